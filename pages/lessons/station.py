"""What a lesson and a station are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from model.needs import Need
from pages.compute.view import KINDS, View

EN_DE, LANGUAGE_MODEL, MASKED_MODEL = "en-de", "everyday-lm", "everyday-mlm"
SNAPSHOTS = "multi30k-tiny"
"""the checkpoint that comes with earlier states of its training"""
STACKS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        EN_DE: frozenset({"encoder", "decoder"}),
        SNAPSHOTS: frozenset({"encoder", "decoder"}),
        LANGUAGE_MODEL: frozenset({"decoder"}),
        MASKED_MODEL: frozenset({"encoder"}),
    }
)
"""the stacks of each checkpoint's family"""


@dataclass(frozen=True)
class Answer:
    """An answer from the run on screen."""

    text: str
    """Markdown; tokens in it are escaped"""
    holds: bool
    """whether what the station says to look for is there in this run"""


@dataclass(frozen=True)
class Station:
    """A sentence, a place in the model, one thing to do there, and one question."""

    slug: str
    """in the URL and in the browser's list of finished stations"""
    title: str
    source: str
    kind: str
    layer: int
    head: int
    live: str
    """the view beside the text: a key of `VIEWS` in pages/parts/learn.py"""
    do: str
    look_for: str
    question: str
    hints: tuple[str, str]
    answer: Callable[[View], Answer]
    page: str
    """file of the page that shows more, without .py"""
    further: str
    """what one sees there: the label of the link"""
    tab: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """URL parameter of that page's tab -> its title"""
    checkpoint: str = EN_DE
    chosen: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """the live view's own controls: values by key of the session"""

    def fits(self, view: View) -> bool:
        """Whether the opened model is of the family that the station is about."""
        return Need.OWN_LAYERS in view.translator.features and STACKS[self.checkpoint] == frozenset(view.trace.streams)

    @property
    def controls(self) -> dict[str, object]:
        """The values of the controls that bring one here: the sidebar's, and the live view's."""
        place = {"kind": self.kind, "layer": self.layer, "head": self.head, **self.chosen}
        return place | {"checkpoint": self.checkpoint, "source": self.source, "target": "beam", "tau": 1.0}

    @property
    def link(self) -> dict[str, str]:
        """The same as parameters of a URL, which holds labels."""
        place = {"kind": KINDS[self.kind], "layer": str(self.layer), "head": str(self.head)}
        return place | {"checkpoint": self.checkpoint, "source": self.source}


@dataclass(frozen=True)
class Lesson:
    """A few stations that belong together."""

    slug: str
    title: str
    about: str
    """what one knows afterwards, in a sentence"""
    minutes: int
    stations: tuple[Station, ...]

    def name(self, number: int) -> str:
        """Of one of its stations, in the browser's list."""
        return f"{self.slug}.{self.stations[number].slug}"
