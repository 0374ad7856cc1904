"""Views: functions from a run, and what a person chose, to a `Result`. Nothing here knows Streamlit.

    @view("Rows", code=(entropy,))
    def rows(run: Run, row: int = ROW) -> Result: ...

The words of a view are the section of its title in pages/text/PAGE.md. pages/frame/render.py draws it on a page,
pages/views/standalone.py as HTML and as JSON, for a notebook and for a page without a server.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from model.language import Refusal, joined, sentence
from model.needs import Need
from model.run import Run
from model.trace import Trace
from pages.views.controls import Control, Offer
from pages.views.words import Block, blocks_of
from viz.descent import Descent
from viz.dumbbells import Dumbbells
from viz.forms import Bars, Canvas, Document, Form, Maps, Outcome, Table, Texts
from viz.ridges import Ridges
from viz.river import River
from viz.waterfall import Waterfall

ANSWER = "Answer"
"""title of the view that answers a page's question in one line; it stands below the heading, and is no tab"""
OPEN_SECTION = "open_section"
"""in the URL: the section, below others on a page or in a tab, that a link inside the app leads to, in English"""
OUTCOME = "outcome"
"""the parameter of a view that gets what its work on request returned"""
_PAGE = re.compile(r"pages\.views\.[a-z]+\.(\w+)")
_OF_HEAD = re.compile(r"\brun\.(?:attention|place|layer|head)\b")
QUICK_TOKENS, QUICK_PARAMETERS = 100, 20_000_000
"""up to which dozens of runs of a model take about a second on a CPU"""
MOST_ROWS = 20_000
"""of one array in a spreadsheet; larger ones, such as logits, are in the NPZ only"""


@dataclass(frozen=True)
class Result:
    """What there is to see and to say; every part has a name, by which the text puts it in its place."""

    shows: Mapping[str, Form | Canvas | Texts | Outcome | Document | Table | pd.DataFrame | Any] = field(
        default_factory=dict
    )
    """pictures and tables; where none of the forms fits, a Plotly figure"""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """for the text, beside the values of the controls"""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """arrays to be exported besides those that are shown"""
    lacks: Need | None = None
    """what the model does not have; the page offers a checkpoint that has it"""
    drawn: Run | None = None
    """the run that is shown, where what was chosen makes it another one than the view got"""
    view: "View | None" = None
    """that it is the result of; this and what follows is filled in by the view"""
    run: Run | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """of the view's controls"""

    @cached_property
    def blocks(self) -> list[Block]:
        """The text about it; raises what `blocks_of` raises."""
        return blocks_of(self.view.page, self.view.title, self.told)

    @property
    def told(self) -> dict[str, Any]:
        """What the text may name: the run, its attention, the model's configuration, whether the model is this
        project's own, the head in words, what is lacking; the values of the controls; and the facts."""
        run, opened = self.run, self.run.checkpoint
        common = {"run": run, "attention": run.attention, "place": run.place.title, "lacks": self.lacks}
        common |= {"config": opened and opened.config, "own": bool(opened) and Need.OWN_LAYERS in opened.features}
        return {**common, **self.values, **self.facts}

    def arrays(self) -> dict[str, np.ndarray]:
        """All its numbers, by name; beside those of maps and bars, what their places are called."""
        arrays: dict[str, np.ndarray] = {}
        for name, picture in self.shows.items():
            if isinstance(picture, Form | Outcome):
                arrays |= {f"{name}_{part}".rstrip("_"): np.asarray(array) for part, array in picture.arrays().items()}
                if isinstance(picture, Maps):
                    arrays |= {f"{name}_rows": np.array(picture.rows), f"{name}_columns": np.array(picture.columns)}
                elif isinstance(picture, Bars | Descent | Dumbbells | Ridges | River | Waterfall):
                    arrays[f"{name}_names"] = np.asarray(picture.names)
            elif isinstance(picture, pd.DataFrame | Table):
                frame = _table(picture)
                arrays |= {f"{name}_{column}": np.array(values.tolist()) for column, values in frame.items()}
        return arrays | {name: np.asarray(array) for name, array in self.numbers.items()}

    def table(self) -> pd.DataFrame:
        """The same for a spreadsheet: as the one picture or table has it, or an array after the other."""
        tables = [_table(picture) for picture in self.shows.values()]
        if len(tables) == 1 and tables[0] is not None and not self.numbers:
            return tables[0]
        arrays = {name: array for name, array in self.arrays().items() if array.size <= MOST_ROWS}
        if not arrays:
            return pd.DataFrame(columns=["array", "value"])
        # Of all arrays at once: a table for each and joining them takes most of the time of a page's exports.
        columns: dict[str, Any] = {"array": np.repeat([*arrays], [array.size for array in arrays.values()])}
        start, rows = 0, len(columns["array"])
        for array in arrays.values():
            for axis, place in enumerate(np.indices(array.shape)):
                columns.setdefault(f"index {axis}", np.full(rows, np.nan))[start : start + array.size] = place.ravel()
            columns.setdefault("value", None)  # after the places of the first, where a reader looks for it
            start += array.size
        values = [pd.DataFrame({"value": array.ravel()}) for array in arrays.values()]
        columns["value"] = pd.concat(values, ignore_index=True)["value"]
        return pd.DataFrame(columns).convert_dtypes()

    def _repr_html_(self) -> str:
        from pages.views.standalone import as_output  # what a notebook needs, and the app does not

        return as_output(self)


def _table(picture: Any) -> pd.DataFrame | None:
    match picture:
        case Form():
            return picture.table()
        case Table():
            return picture.frame
    return picture if isinstance(picture, pd.DataFrame) else None


@dataclass(frozen=True)
class Part:
    """What a view needs that only a run tells, as the features of its model do not."""

    name: str
    """as in the sentence “This needs …” """
    is_in: Callable[[Run], bool]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OnRequest:
    """Work that a button starts; the view's parameter `outcome` gets its result, None before that.

    The same object in several views is one button, at the first of them.
    """

    label: str
    """of the button"""
    key: str
    work: Callable[..., Iterator[tuple[float, Any]]]
    """of a run and chosen values: yields the share that is done and what is known so far; the last is the result"""
    case: Callable[..., tuple | None]
    """of the same: everything that the result depends on; None: there is nothing to do, and no button"""
    alone: str = ""
    """a name that is shared by work of which two would disturb each other"""
    icon: str = ":material/timer:"
    at_once: Callable[..., bool] | None = None
    """of the same as `work`: whether that is short enough to start without the button; None: it never is"""


@dataclass(frozen=True, eq=False)
class View:
    """A function with its title and its controls, the parameters that have one as their default."""

    title: str
    function: Callable[..., Result]
    code: Sequence[Callable] | Callable[[Run], Sequence[Callable]] = ()
    """what computes it, for “Show the code”; a function of the run, and of controls, where it depends on these"""
    tab: str = ""
    """title of the tab in which it stands below others, each in a frame; empty: it is a tab of its own"""
    needs: tuple[Need | Part, ...] = ()
    """of the opened model and of the run; without them the tab is not offered"""
    on_request: OnRequest | None = None
    reads: OnRequest | None = None
    """work of another view of its page: `outcome` gets what is known of its result so far"""

    @cached_property
    def name(self) -> str:
        """The function's."""
        return self.function.__name__

    @cached_property
    def page(self) -> str:
        """The page's name: that of its module, or of the package that has its modules."""
        module = self.function.__module__
        found = _PAGE.match(module)
        return found[1] if found else module.rpartition(".")[2]

    @cached_property
    def controls(self) -> Mapping[str, Control]:
        """By the parameter's name."""
        parameters = inspect.signature(self.function).parameters.values()
        return {one.name: one.default for one in parameters if isinstance(one.default, Control)}

    def key(self, name: str) -> str:
        """Of a control in the session and in the link: its own, or page-parameter."""
        return self.controls[name].key or f"{self.page}-{name}"

    @cached_property
    def reads_head(self) -> bool:
        """Whether it is about the chosen head, as its code and that of its module tell: then its files name it."""
        module, found, waiting = import_module(self.function.__module__), set(), [self.function]
        while waiting:
            found.add(one := waiting.pop())
            source = inspect.getsource(one)
            if _OF_HEAD.search(source):
                return True
            named = (getattr(module, name, None) for name in set(re.findall(r"\b_?[a-z]\w*(?=\()", source)))
            own = (each for each in named if inspect.isfunction(each) and each.__module__ == module.__name__)
            waiting += [each for each in own if each not in found]
        return False

    def __call__(self, run: Run | Trace, **chosen: Any) -> Result:
        """The result; what is not chosen is as at first, and work on request is done at once.

        Args:
            run: or a trace alone, if the view does not run the model again; then of the first kind, layer 0, head 0.
            **chosen: values of controls, by the parameter's name.

        Raises:
            TypeError: there is no such control.
            ValueError: a value is not offered, or the model lacks what the view needs.
        """
        run = Run.of(None, run) if isinstance(run, Trace) else run
        if unknown := set(chosen) - {*self.controls, OUTCOME}:
            raise TypeError(f"{self.name} has no control {unknown.pop()}; it has {', '.join(self.controls) or 'none'}")
        if missing := self.missing(run):
            raise Refusal(
                "{view} needs {parts}, which {checkpoint} does not have.",
                view=sentence(self.title),
                parts=joined(sentence(str(need)) for need in missing),
                checkpoint=run.trace.checkpoint,
            )
        values: dict[str, Any] = {}
        for name, control in self.controls.items():
            offer = control.offer(run, values)
            values[name] = chosen.get(name, offer.start) if offer else None
            if offer:
                offer.check(name, values[name])
        if self.on_request:
            values[OUTCOME] = chosen[OUTCOME] if OUTCOME in chosen else self._work(run, values)
        elif self.reads:
            values[OUTCOME] = chosen.get(OUTCOME)
        return replace(self.function(run, **values), view=self, run=run, values=values)

    def _work(self, run: Run, values: Mapping[str, Any]) -> Any:
        """What the work on request returns; None where there is nothing to do."""
        if call(self.on_request.case, run, values) is None:
            return None
        *_, (_, outcome) = call(self.on_request.work, run, values)
        return outcome

    def code_of(self, run: Run, chosen: Mapping[Control, Any] = MappingProxyType({})) -> Sequence[Callable]:
        """What computes it, of this model and with the values of these controls."""
        values = {name: chosen[control] for name, control in self.controls.items() if control in chosen}
        return call(self.code, run, values) if callable(self.code) else self.code

    def missing(self, run: Run) -> list[Need | Part]:
        """What it needs and there is not."""
        return missing_of(self.needs, run)

    def offers(self, run: Run, chosen: Mapping[Control, Any] = MappingProxyType({})) -> dict[str, Offer]:
        """What its controls offer at first, by name, but for those that are `chosen` already and those without any."""
        values: dict[str, Any] = {}
        offers: dict[str, Offer] = {}
        for name, control in self.controls.items():
            offer = control.offer(run, values)
            values[name] = chosen.get(control, offer.start if offer else None)
            if offer and control not in chosen:
                offers[name] = offer
        return offers

    def extremes(self, run: Run) -> Iterator[dict[str, Any]]:
        """For tests: every control as at first, then each at its first and its last value."""
        yield {}
        for name, offer in self.offers(run).items():
            yield from ({name: value} for value in offer.ends)


def is_short(run: Run) -> bool:
    """Whether the run has so few tokens that work on it may start by itself, whatever the size of the model."""
    return sum(len(stream.tokens) for stream in run.trace.streams.values()) <= QUICK_TOKENS


def is_quick(run: Run) -> bool:
    """Whether the model and the text are so small that work on request starts by itself: a page begins with a case."""
    return is_short(run) and sum(run.opened.parameters_by_part().values()) <= QUICK_PARAMETERS


def missing_of(needs: Sequence[Need | Part], run: Run) -> list[Need | Part]:
    """Which of these there are not; no feature of a model of which a trace is all that is known."""
    features = run.checkpoint.features if needs and run.checkpoint else needs
    return [need for need in needs if not (need.is_in(run) if isinstance(need, Part) else need in features)]


def view(title: str, code: Any = (), **more: Any) -> Callable[[Callable[..., Result]], View]:
    """Decorator: the function is a view."""
    return lambda function: View(title, function, code, **more)


def answer(function: Callable[..., Result]) -> View:
    """Decorator: the function's facts answer the page's question, in the first line of the section `# Answer`."""
    return View(ANSWER, function)


def views_of(module: str) -> list[View]:
    """The views of a module or package, in the order in which they stand there, without its answer."""
    return [one for one in _defined(module) if one.title != ANSWER]


def answer_of(module: str) -> View | None:
    """The view that answers the question of the module's page."""
    return next((one for one in _defined(module) if one.title == ANSWER), None)


def _defined(name: str) -> list[View]:
    module = import_module(name)
    if found := getattr(module, "VIEWS", None):  # a package names them in their order
        return list(found)
    return [one for one in vars(module).values() if isinstance(one, View) and one.function.__module__ == name]


def section_key(title: str) -> str:
    """Of the place on the page of a view that stands below others, by its English title."""
    return "-".join(["section", *re.findall("[A-Za-z0-9]+", title)])


def call(function: Callable, run: Run, values: Mapping[str, Any]) -> Any:
    """What a function makes of the run and of those values that it names."""
    names = list(inspect.signature(function).parameters)[1:]
    return function(run, **{name: values[name] for name in names if name in values})
