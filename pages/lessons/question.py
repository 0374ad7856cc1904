"""Questions about a run, as data: texts, and where in the run the right answer is.

The texts are templates and the conditions expressions of jinja2, as the words of views are. They name facts: those of
a function of the run, or of a view; what `let` computes from these; and of options that are read off a picture of
a view, `best`, `value` and `values`. The right answer is read from the run each time, so that a question
holds for any text and model.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from model.checkpoints.store import CheckpointError, shown_message
from model.language import joined, language, tr
from model.run import Run
from model.trace import Array
from pages import page_of
from pages.lessons.reading import Facts
from pages.views import OUTCOME, Result, View
from pages.views.shared import axes
from pages.views.words import evaluate, fill
from viz.forms import Bars, Maps
from viz.tokens import as_markdown

FOLDER = Path(__file__).parent
MOST_OPTIONS = 12


@dataclass(frozen=True)
class Answer:
    """An answer from the run on screen."""

    text: str
    """Markdown"""
    holds: bool = True
    """whether what is said of the run beforehand is there"""


@dataclass(frozen=True)
class Asked:
    """A question with options, and its answer."""

    text: str
    """Markdown, as is the answer"""
    options: tuple[str, ...]
    """plain text, because they may be tokens"""
    right: tuple[int, ...]
    """the correct options; several if numbers are equal"""
    answer: str
    row: int | None = None
    """the query it is about, if it is about one"""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, and where its answer is."""

    ask: str
    answer: str
    otherwise: str = ""
    """the answer where the run cannot tell"""
    holds: str = ""
    """condition under which the run shows what is said of it beforehand; empty: it always does"""
    hints: tuple[str, ...] = ()
    facts: Callable[[Run], Facts] | None = None
    """what the texts name, of a run; None where `view` says it"""
    view: str = ""
    """such as masks.orders"""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """values of the view's controls, by parameter; texts are expressions if they begin with `=`"""
    find: str = "largest"
    """the option that is right: largest or smallest"""
    among: str = ""
    """picture of the view, whose places are the options; empty: `names` are"""
    part: str = ""
    """series of that picture, or title of the map; empty: the first one"""
    names: str = ""
    values: str = ""
    since: str = ""
    """the first place that is an option"""
    let: Mapping[str, str] = field(default_factory=dict)
    """further facts: expressions that may name those before them, and `number`, of the questions about one subject"""
    when: str = ""
    """condition under which it can be asked"""
    options: tuple[str, ...] = ()
    """expressions for numbers; those that are equal become one option; or texts, if `place` is given"""
    right: str = ""
    """expression for the right one of the numbers"""
    place: str = ""
    """expression for the place of the right one of the texts"""
    form: str = ","
    unit: str = ""
    """of the numbers"""
    row: str = ""
    """expression for the query it is about"""

    def answer_of(self, run: Run) -> Answer:
        """What the run answers."""
        common = _common(run, 0)
        try:
            facts, _ = self._facts(run, common)
        except CheckpointError as error:
            return Answer(as_markdown(tr(shown_message(error))), False)
        if facts is None:
            return Answer(fill(self.otherwise, common), False)
        return Answer(fill(self.answer, facts), not self.holds or bool(evaluate(self.holds, facts)))

    def asked_of(self, run: Run, number: int = 0) -> Asked | None:
        """The question about the run with its options; None where the run gives nothing to choose from.

        The `number` of the questions about one subject makes another one be about another row, say.
        """
        facts, result = self._facts(run, _common(run, number))
        if facts is None or (self.when and not evaluate(self.when, facts)):
            return None
        choices = self._numbers(facts) if self.options else self._places(facts, result)
        if choices is None or len(choices[0]) < 2:
            return None
        options, right, more = choices
        facts |= more
        row = int(evaluate(self.row, facts)) if self.row else None
        return Asked(fill(self.ask, facts), options, right, fill(self.answer, facts), row)

    def _facts(self, run: Run, common: dict[str, Any]) -> tuple[dict[str, Any] | None, Result | None]:
        """What the texts may name, None where the run cannot tell; and what the view shows."""
        result = self._result(run, common) if self.view else None
        own = self.facts(run) if self.facts else result.told if result else {}
        if own is None:
            return None, result
        facts = common | dict(own)
        for name, expression in self.let.items():
            facts[name] = evaluate(expression, facts)
        return facts, result

    def _result(self, run: Run, common: Mapping[str, Any]) -> Result:
        view = view_named(self.view)
        chosen = {
            name: evaluate(value[1:], common) if isinstance(value, str) and value.startswith("=") else value
            for name, value in self.chosen.items()
        }
        return view(run, **chosen, **({OUTCOME: None} if view.on_request else {}))

    def _numbers(self, facts: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...], dict[str, Any]]:
        if self.place:
            return tuple(fill(option, facts) for option in self.options), (int(evaluate(self.place, facts)),), {}
        right = evaluate(self.right, facts)
        numbers = sorted({*(evaluate(option, facts) for option in self.options), right})
        written = language().number
        named = {number: written(f"{number:{self.form}}") + self.unit for number in numbers if number > 0}
        options = tuple(dict.fromkeys(named.values()))
        return options, (options.index(named[right]),), {}

    def _places(
        self, facts: Mapping[str, Any], result: Result | None
    ) -> tuple[tuple[str, ...], tuple[int, ...], dict[str, Any]] | None:
        """Options that are places of the view's picture, or of a list."""
        if self.among:
            places = places_of(result, self.among, self.part, facts["number"])
        else:
            names = [str(name) for name in evaluate(self.names, facts)]
            places = Places(names, np.asarray(evaluate(self.values, facts)))
        if places and self.since:
            places = places.since(int(evaluate(self.since, facts)))
        if places is None or len(places.names) < 2:
            return None
        options, right, best, value = largest(places, self.find == "smallest")
        return options, right, {"best": best, "value": value, **vars(places)}


def ask_one(run: Run, questions: Sequence[Question], number: int) -> Asked | None:
    """One of the questions of a place about the run; None where there is nothing to choose from.

    They take turns: `number` counts those about one subject, from 0.
    """
    turns = (questions[(number + i) % len(questions)].asked_of(run, number) for i in range(len(questions)))
    return next(filter(None, turns), None)


def _common(run: Run, number: int) -> dict[str, Any]:
    """What the texts of every question may name."""
    queries, keys = axes(run.attention)
    common = {"run": run, "attention": run.attention, "queries": queries, "keys": keys}
    return common | {"number": number, "log": math.log}


@dataclass(frozen=True)
class Places:
    """Named numbers, of which one is the largest."""

    names: Sequence[str]
    values: Array
    open: Array | None = None
    """bool: those that can be the largest; None: all"""
    centre: float | None = None
    """where there are too many, those next to it are offered; None: the largest one"""
    row: int | None = None
    """of a map"""
    query: str = ""
    """name of that row"""

    def since(self, first: int) -> "Places":
        """Those from the place `first` on."""
        return Places(self.names[first:], self.values[first:], self.open, self.centre, self.row, self.query)


def places_of(result: Result, name: str, part: str = "", number: int = 0) -> Places | None:
    """The places of a picture of a view, bars or maps; None where they leave nothing to choose.

    `part` is a series of the bars, or the title of the map; empty: the first one. `number` chooses a row of a map among
    those with more than one open key.
    """
    picture = result.shows[name]
    match picture:
        case Bars():
            values = picture.series[part or next(iter(picture.series))]
            return Places([f"{i} {one}" for i, one in enumerate(picture.names)], np.asarray(values))
        case Maps():
            return _places_of_row(picture, part or next(iter(picture.maps)), number)
    raise ValueError(f"{name} is neither bars nor maps: it has no places to choose from.")


def _places_of_row(maps: Maps, title: str, number: int) -> Places | None:
    one = maps.maps[title]
    mask = np.ones(one.values.shape, bool) if one.mask is None else one.mask
    rows = rows_with_choice(mask)
    if not rows:
        return None
    row = rows[(len(rows) // 2 + number) % len(rows)]
    centre = row * (len(maps.columns) - 1) / max(len(maps.rows) - 1, 1)
    return Places(one.columns or maps.columns, one.values[row], mask[row], centre, row, maps.rows[row])


def largest(places: Places, smallest: bool = False) -> tuple[tuple[str, ...], tuple[int, ...], str, float]:
    """Options to choose from, which of them are right, and the place and the value of the largest number.

    If there are too many, those nearest to the centre stay, in their order, and "another" stands for the rest.
    """
    sign = -1 if smallest else 1
    candidates = np.arange(len(places.names)) if places.open is None else np.flatnonzero(places.open)
    best, _ = highest(sign * np.asarray(places.values)[candidates])
    best = [int(candidates[i]) for i in best]
    centre = best[0] if places.centre is None else places.centre
    offered = sorted(map(int, candidates), key=lambda place: (abs(place - centre), place))
    if len(offered) > MOST_OPTIONS:
        offered = offered[: MOST_OPTIONS - 1]
    offered.sort()
    options, right = [places.names[place] for place in offered], [offered.index(i) for i in best if i in offered]
    if len(offered) < len(candidates):
        options.append(tr("another"))
        right += [len(offered)] * any(i not in offered for i in best)
    names = [places.names[i] for i in best]
    text = names[0] if len(names) == 1 else tr("{names} alike", names=joined(names))
    return tuple(options), tuple(right), text, np.asarray(places.values)[best[0]].item()


def highest(values: Array) -> tuple[tuple[int, ...], float]:
    """Every position of the largest of (n,) numbers, and that number."""
    most = values.max()
    return tuple(map(int, np.flatnonzero(values == most))), float(most)


def rows_with_choice(mask: Array) -> tuple[int, ...]:
    """The queries of a bool (query, key) mask that may attend to more than one key."""
    return tuple(map(int, np.flatnonzero(mask.sum(axis=-1) > 1)))


def read(name: str) -> dict[str, Any]:
    """What a file of this folder holds, by its name without ending."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def read_question(entry: Mapping[str, Any], functions: Mapping[str, Any]) -> Question:
    """A question from its fields in a file; a function is named there."""
    lists = {name: tuple(entry[name]) for name in ("hints", "options") if name in entry}
    return Question(**{**entry, **lists, "facts": functions[entry["facts"]] if "facts" in entry else None})


def view_named(name: str) -> View:
    """A view by its page and its own name, such as masks.orders."""
    page, _, own = name.partition(".")
    return next(view for view in page_of(page).views if view.name == own)
