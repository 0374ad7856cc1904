"""Controls as parameters of views: what is offered may depend on the run and on what was chosen before."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from model.language import Numeral, speaking, tr
from model.run import TAUS, Run
from pages.text import languages
from viz.labels import say_label
from viz.tokens import ARROW


@dataclass(frozen=True)
class Offer:
    """What a control offers for one run."""

    label: str
    options: Mapping[Any, str] | None = None
    """values and their labels; a link names the label"""
    start: Any = None
    """its value at first; None: the first one offered"""
    limits: tuple[float, float] | None = None
    """the smallest and the largest value, where there are no options"""
    help: str | None = None
    most: int = 0
    """how many options may be chosen together, where the value is a list of them"""
    examples: tuple[Any, ...] = ()
    """where any run, or any text, may be chosen"""
    step: int = 1
    """between two numbers of a slider"""
    unlinked: str = ""
    """why the link does not hold the value; empty: it does"""

    def __post_init__(self) -> None:
        if self.start is None:
            object.__setattr__(self, "start", next(iter(self.examples or self.limits or self.options or ()), None))

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last value."""
        if self.examples:
            return self.examples[0], self.examples[-1]
        if self.most:
            return [], list(self.options)[: self.most]
        return self.limits or (next(iter(self.options)), list(self.options)[-1])

    def read(self, text: str) -> Any:
        """The value that a text names: a number, or an option or its label; the text itself if it names none.

        Several options are separated by commas.
        """
        if self.limits is not None:
            try:
                return type(self.start)(text)
            except ValueError:
                return text
        return [self._option(part.strip()) for part in text.split(",") if part] if self.most else self._option(text)

    def _option(self, text: str) -> Any:
        names = {text, tr(text)}
        return next((value for value, label in self.options.items() if names & {str(value), label}), text)

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that is not offered.

        Raises:
            ValueError: the sentence says what is offered.
        """
        if self.examples:
            if not isinstance(value, kind := type(self.examples[0])):
                raise ValueError(f"{name} is a {kind.__name__}, not {value!r}.")
            return
        if self.most:
            if not isinstance(value, list) or len(value) > self.most or not {*value} <= {*self.options}:
                options = ", ".join(map(repr, self.options))
                raise ValueError(f"{name} is a list of at most {self.most} of {options}, not {value!r}.")
            return
        if self.limits is None and value not in self.options:
            raise ValueError(f"{name} is one of {', '.join(map(repr, self.options))}, not {value!r}.")
        if self.limits is not None and not (
            isinstance(value, int | float) and self.limits[0] <= value <= self.limits[1]
        ):
            raise ValueError(f"{name} is a number from {self.limits[0]} to {self.limits[1]}, not {value!r}.")


@dataclass(frozen=True, eq=False)
class Control:
    """A value that a person chooses: the default of a view's parameter.

    Words that stand here are English, and are offered in the language of the run; a function returns its own in it.

    Label, start, options, limits and help may be functions of the run and of values chosen before, which they name as
    their parameters. A control that offers nothing is not drawn, and its value is None. The same object in several
    views is one control.
    """

    label: str | Callable
    """of limits: {0} and {1} in it are these"""
    start: Any = None
    """None: the first one offered"""
    options: Mapping[Any, str] | Sequence | Callable | None = None
    limits: tuple[float, float] | Callable | None = None
    key: str = ""
    """of the session and the link, where an older link has another than page-parameter"""
    unlinked: str = ""
    """why the link does not hold the value; empty: it does"""
    help: str | Callable | None = None
    step: int = 1
    """between two numbers of a slider"""
    look: str = "menu"
    """by which pages/widgets/controls.py draws it: a name in its LOOKS"""
    most: int = 0
    """of several: how many options may be chosen together"""
    follows: bool = False
    """whether a value that still is the former start becomes the new one, when the run has another start"""

    def offer(self, run: Run, chosen: Mapping[str, Any]) -> Offer | None:
        """What it offers; None: nothing."""
        start, limits = (_evaluate(part, run, chosen) for part in (self.start, self.limits))
        label, explained = (say_label(_say(part, run, chosen)) for part in (self.label, self.help))
        more = {"help": explained, "most": self.most, "step": self.step, "unlinked": self.unlinked}
        if limits is not None:
            low, high = limits
            start = start if start is None else min(max(start, low), high)
            return Offer(label.format(low, high), None, start, limits, **more) if low <= high else None
        options = (_evaluate if self.is_text else _say)(self.options, run, chosen)
        if not options:
            return None
        if self.is_text:
            return Offer(label, {}, examples=tuple(options), **more)
        options = options if isinstance(options, Mapping) else {value: _written(value) for value in options}
        options = {value: tr(label) if isinstance(label, Numeral) else label for value, label in options.items()}
        return Offer(label, options, start, **more)

    def named(self, run: Run, chosen: Mapping[str, Any], label: str) -> list[Any]:
        """The option that has this label in any language, or is written so, in a list; an empty one: there is none."""
        names = label, label.partition(ARROW)[0]  # as an older link has the row of an encoder
        for one in languages().values():
            with speaking(one):
                offered = self.offer(run, chosen).options or {}
            if found := [value for value, text in offered.items() if text in names or label == str(value)]:
                return found[:1]
        return []

    @property
    def is_text(self) -> bool:
        """Whether its options are examples of what anybody may type or build."""
        return self.look in ("run", "text", "pictured")

    def take(self, value: Any) -> Any:
        """What a move in a picture chooses: a number, an option, or the nearest option on a logarithmic scale."""
        if self.limits is not None:
            return int(value)
        if self.look in ("text", "pictured") or callable(self.options) or value in self.options:
            return value
        place = _log(float(value))
        return min(self.options, key=lambda option: abs(_log(option) - place))


def _log(value: float) -> float:
    """Of numbers that no scale reaches, such as 0, that of the nearest that one might."""
    return math.log(min(max(value, 1e-9), 1e9))


def _written(value: Any) -> str:
    match value:
        case float():
            return Numeral(f"{value:g}")
        case int():
            return Numeral(value)
    return str(value)


def _evaluate(part: Any, run: Run, chosen: Mapping[str, Any]) -> Any:
    if not callable(part):
        return part
    return part(run, **{name: chosen[name] for name in _names_of(part)})


@lru_cache(maxsize=1_000)
def _names_of(part: Callable) -> tuple[str, ...]:
    """Its parameters besides the run; a page asks for those of each control several times."""
    return tuple(inspect.signature(part).parameters)[1:]


def _say(part: Any, run: Run, chosen: Mapping[str, Any]) -> Any:
    """The same of a part that has words: those that are no function's, in the language of the run."""
    match part:
        case str():
            return tr(part)
        case Mapping():
            return {value: tr(label) for value, label in part.items()}
        case Sequence() if any(isinstance(value, str) for value in part):
            return {value: tr(str(value)) for value in part}
    return _evaluate(part, run, chosen)


def menu(label: Any, options: Any, start: Any = None, **more: Any) -> Any:
    """One of many options."""
    return Control(label, start, options, **more)


def choice(label: Any, options: Any, start: Any = None, **more: Any) -> Any:
    """One of a few options side by side."""
    return Control(label, start, options, look="choice", **more)


def steps(label: Any, options: Any, start: Any = None, **more: Any) -> Any:
    """One of the options on a slider."""
    return Control(label, start, options, look="steps", **more)


def number(label: Any, limits: Any, start: Any = None, **more: Any) -> Any:
    """An integer in a box."""
    return Control(label, start, limits=limits, look="number", **more)


def decimals(first: float, last: float, step: float) -> tuple[float, ...]:
    """The numbers of a slider that is not of integers, with at most two decimals: for `steps`."""
    return tuple(round(first + i * step, 2) for i in range(round((last - first) / step) + 1))


def slider(label: Any, limits: Any, start: Any = None, **more: Any) -> Any:
    """An integer on a slider."""
    return Control(label, start, limits=limits, look="slider", **more)


def player(label: Any, limits: Any, start: Any = None, **more: Any) -> Any:
    """A step on a slider, with a button that plays the steps one after another."""
    return Control(label, start, limits=limits, look="player", **more)


def built(label: str, examples: Callable[[Run], Sequence[Any]], **more: Any) -> Any:
    """A value that widgets of the page build; without them the first example."""
    return Control(label, options=examples, look="run", **more)


def several(label: Any, options: Any, start: Any, most: int, **more: Any) -> Any:
    """A list of at most `most` options."""
    return Control(label, start, options, look="several", most=most, **more)


def text(label: Any, examples: Any, **more: Any) -> Any:
    """A line of text; it is at first as the first example, and the last one stands in an empty field."""
    return Control(label, options=examples, look="text", **more)


def pictured(label: Any, examples: Any, **more: Any) -> Any:
    """A text that pictures set, for what is chosen in them and nowhere else; it is at first as the first example."""
    return Control(label, options=examples, look="pictured", **more)


SWITCH = {False: "no", True: "yes"}


def toggle(label: Any, options: Any = SWITCH, **more: Any) -> Any:
    """A switch, initially off."""
    return Control(label, False, options, look="toggle", **more)


TAU = choice("τ", TAUS, 1.0, key="tau")
KIND = choice("Attention", lambda run: {kind.name: tr(kind.title) for kind in run.trace.kinds}, key="kind")
LAYER = number("Layer", lambda run: (0, max(run.trace.kind(run.kind).layers)), key="layer")
HEAD = number("Head", lambda run: (0, run.attention.n_heads - 1), key="head")
CLICKED_HEAD = {"kind": KIND, "layer": LAYER, "head": HEAD}
"""what a click on a head's cell sets"""
SOURCE = menu("Text", lambda run: {run.source: run.source}, key="source")
TARGET, TYPED = (pictured("Target", lambda _: ("",), key=key) for key in ("target", "typed"))
"""the sidebar's temperature, head, text, and of a translator what is forced, which pictures may set; no view draws
them"""
