"""What a lesson and a station are, and how they are read from their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any

from model.needs import Need
from model.run import Run
from model.trace import KIND_TITLES
from pages.lessons.question import Answer, Question, read, read_question
from pages.text import ALSO, LESSON, translate_entry
from pages.views.chosen_token import query_of
from pages.views.words import evaluate
from viz.tokens import word

STACKS: Mapping[str, frozenset[str]] = {
    "en-de": frozenset({"encoder", "decoder"}),
    "multi30k-tiny": frozenset({"encoder", "decoder"}),
    "everyday-lm": frozenset({"decoder"}),
    "everyday-mlm": frozenset({"encoder"}),
}
"""the stacks of each checkpoint's family"""


@dataclass(frozen=True, kw_only=True)
class Station:
    """A sentence, a place in the model, one thing to do there, and one question."""

    slug: str
    """in the URL and in the browser's list of finished stations"""
    also: tuple[str, ...] = ()
    """names by which the search finds it, too"""
    title: str
    source: str
    kind: str
    layer: int
    head: int
    checkpoint: str = "en-de"
    live: str
    """the view beside the text, such as masks.orders; a name without a dot is a picture that is no view yet"""
    only: str = ""
    """the one picture of it that is shown; empty: all"""
    given: Mapping[str, Any] = field(default_factory=dict)
    """values of the view's controls that are not drawn, by parameter"""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """values of other controls at first, by key of the session"""
    wide: bool = False
    """whether the view needs the whole width of the page"""
    do: str = ""
    look_for: str = ""
    done: str = ""
    """condition under which what there is to do is done, of `query`, the chosen row, and its `word`; empty: nobody can
    tell"""
    question: Question
    page: str
    """file of the page that shows more, without .py"""
    further: str
    """what one sees there: the label of the link"""
    tab: Mapping[str, str] = field(default_factory=dict)
    """URL parameter of that page's tab -> its title"""

    def answer(self, run: Run) -> Answer:
        """What the run on screen says."""
        return self.question.answer_of(run)

    def fits(self, run: Run) -> bool:
        """True if the opened model is of the family that the station is about."""
        return Need.OWN_LAYERS in run.opened.features and STACKS[self.checkpoint] == frozenset(run.trace.streams)

    def is_done(self, run: Run) -> bool:
        """True if the run on screen shows that a person has done what there is to do."""
        query = query_of(run)
        facts = {"run": run, "query": query, "word": word(run.attention.query_tokens[query])}
        return bool(self.done) and self.fits(run) and bool(evaluate(self.done, facts))

    @property
    def controls(self) -> dict[str, object]:
        """The values of the controls that bring one here: the sidebar's, and the live view's."""
        place = {"kind": self.kind, "layer": self.layer, "head": self.head}
        run = {"checkpoint": self.checkpoint, "source": self.source, "target": "beam", "tau": 1.0}
        return place | run | dict(self.chosen)

    @property
    def link(self) -> dict[str, str]:
        """The same as parameters of a URL, which holds labels."""
        place = {"kind": KIND_TITLES[self.kind], "layer": str(self.layer), "head": str(self.head)}
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
    also: tuple[str, ...] = ()
    """names by which the search finds it, too"""

    def name(self, number: int) -> str:
        """Of one of its stations, in the browser's list."""
        return f"{self.slug}.{self.stations[number].slug}"


def read_lesson(name: str) -> Lesson:
    """The lesson in NAME.toml; what only code can read off a run for its answers is in NAME.py."""
    texts, functions = read(name), vars(import_module(f"pages.lessons.{name}"))
    entries, own = (
        texts.pop("station"),
        {one: texts.pop(one) for one in ("title", "about", "minutes", ALSO) if one in texts},
    )
    file = f"lessons/{name}.toml"
    entries = [translate_entry(entry, file, entry["slug"]) for entry in entries]
    stations = tuple(_station(texts | entry, functions) for entry in entries)
    return Lesson(slug=name.replace("_", "-"), **translate_entry(own, file, LESSON), stations=stations)


def _station(entry: Mapping[str, Any], functions: Mapping[str, Any]) -> Station:
    """A station from its fields; those that are not its own are the question's."""
    names = {one.name for one in fields(Station)}
    question = {name: value for name, value in entry.items() if name not in names}
    if "facts" not in question:
        question |= {"view": entry["live"], "chosen": entry.get("given", {})}
    own = {name: value for name, value in entry.items() if name in names}
    return Station(**own, question=read_question(question, functions))
