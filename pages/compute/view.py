"""What a page shows: a run of the model, and the place in it that the person chose."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.checkpoints.translator import Translator
from model.trace import KIND_TITLES, Attention, Trace
from pages.compute.runs import Request

KINDS: Mapping[str, str] = KIND_TITLES
"""titles by name, of all kinds there are"""


@dataclass(frozen=True)
class Place:
    """One head: kind of attention, layer and number in the layer."""

    kind: str
    """encoder_self, decoder_self or cross"""
    layer: int
    head: int

    @property
    def title(self) -> str:
        return f"{KINDS[self.kind]}, layer {self.layer}, head {self.head}"

    @property
    def slug(self) -> str:
        """For names of files."""
        return f"{self.kind}-layer-{self.layer}-head-{self.head}"

    def in_words(self, scope: str) -> str:
        """This head, its layer or everything, as `scope` says."""
        where = f"{KINDS[self.kind].lower()}, layer {self.layer}"
        return {
            "head": f"head {self.head} of {where}",
            "layer": f"all heads of {where}",
            "everywhere": "every attention",
        }[scope]

    def address(self, scope: str = "head") -> dict[str, str | int]:
        """The keyword arguments with which an intervention acts on this head, its layer, its kind, or "everywhere"."""
        parts = {"kind": self.kind, "layer": self.layer, "head": self.head}
        return dict(list(parts.items())[: {"head": 3, "layer": 2, "kind": 1, "everywhere": 0}[scope]])


@dataclass(frozen=True)
class View:
    """The run that a page shows, and what the person chose to look at."""

    translator: Translator
    request: Request
    """what was asked for; interventions of `trace` beyond these were made afterwards, on the same tokens"""
    trace: Trace
    place: Place
    source: str
    """as typed; `trace` holds its beginning if it was too long"""
    tau: float = 1.0
    """attention temperature, 1 = as trained; at work in `trace`"""
    scope: str = "head"
    """where tau is at work: head, layer or everywhere"""

    @property
    def kind(self) -> str:
        return self.place.kind

    @property
    def layer(self) -> int:
        return self.place.layer

    @property
    def head(self) -> int:
        return self.place.head

    @property
    def beam_size(self) -> int:
        """Of this page's searches; 1 is greedy."""
        return self.request.beam_size

    @property
    def attention(self) -> Attention:
        return self.trace.attention(self.kind, self.layer)
