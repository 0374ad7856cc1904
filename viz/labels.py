"""The words of pictures and tables in the language of this run.

Figures, tables and headers are made in English, and said as a whole where they are finished. A label is looked up
between its markup, first as it stands, then with {} for each number, then part by part: "attention weight, 0 to 1" has
the parts "attention weight" and "{} to {}". Of a part that the language lacks, all stays English. Names that a person
or a vocabulary wrote are `Verbatim`, and stay.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from model.language import ENGLISH, Language, Numeral, Sentence, language, tr
from viz.tokens import Verbatim

_MARKUP = re.compile(r"(<[^<>]*>|%\{[^{}]*\}|[±▸≤≥↑★]+)")
"""what parts a label: HTML as Plotly reads it, and what it fills in"""
_NUMBER = re.compile(r"(?<![\w{])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+−-]?\d+| · 10[⁻⁰¹²³⁴-⁹]+)?%?(?!\w)")
_BETWEEN = [re.compile(f"({between})") for between in ("\n", ": ", "; ", " ?\\(|\\)", ", ", " · | = | → | − | × | / ")]
"""what stands between the parts of a label, the widest first"""
_WORD = re.compile(r"[A-Za-z]{2}")
_EDGE = re.compile(r"^([\s,:;·|]*)(.*?)([\s,:;·|]*)$", re.DOTALL)

LEAST_PLAIN, MOST_PLAIN = 1e-5, 1e15
"""between them a number is written without a power of ten"""
OURS = frozenset(
    ("", "a token sees", "at work for a token", "attention", "BLEU: direction", "block", "box", "cache, bytes",
     "change", "changed", "context", "device-hours", "devices", "divided by", "does it", "dropout at", "dropped",
     "EN-DE training operations", "EN-FR training operations", "exact match", "first step that is further off",
     "in short", "inherited", "kind", "KV cache or state, bytes", "largest difference", "layer", "looks", "metric",
     "multiply-adds", "n in it", "new", "norm", "off, the least important first", "one rounding, at most", "operations",
     "order", "ordered by", "parameters", "parameters, bytes", "part", "perplexity: direction", "positions", "quantity",
     "relation", "rotation", "rule", "run", "scores, bytes", "scoring function", "state", "step", "swapped for",
     "the paper's row", "together, bytes", "training", "type", "type here", "type over {}", "verdict",
     "wavelength", "weights", "where", "with positions", "without positions", "work", "writes the same, greedily")
)  # fmt: skip
"""columns of tables whose cells are words of the app, or numbers as texts, and not of a text"""
TYPED = "typed"
"""what a table says in its `attrs` of columns that a person has named, which stay"""
_FIELDS = ("title", "text", "name", "hovertemplate", "ticktext")
"""of a figure, whose texts are labels"""
_TITLES = ("title", "short", "measure", "why", "place_title", "scope")
"""of a header of one of our own pictures, likewise"""
_NUMBERS = ("customdata", "text")
"""of a trace, whose lists hold names and texts that are written beside points"""


def say_label(text: Any) -> Any:
    """A label, or a table's cell, in the language of this run; what is no text, or is `Verbatim`, as it is."""
    if isinstance(text, Sentence):
        return tr(text)
    if isinstance(text, Numeral):
        return language().number(text)
    spoken = language()
    if spoken is ENGLISH or not isinstance(text, str) or isinstance(text, Verbatim):
        return text
    whole = _known(text, spoken)
    return "".join(_said(part, spoken) or part for part in _MARKUP.split(text)) if whole is None else whole


def say_options(options: Mapping[Any, str]) -> dict[Any, str]:
    """The labels of what there is to choose from, words of the app all of them."""
    return {value: say_label(text) for value, text in options.items()}


def lacks(text: str) -> bool:
    """Whether a part of the label stays English in this run."""
    if language() is ENGLISH or isinstance(text, Verbatim | Sentence):
        return False
    parts = [part for part in _MARKUP.split(text) if not _MARKUP.fullmatch(part)]
    return _known(text, language()) is None and any(_said(part, language()) is None for part in parts)


def say_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A table in the language of this run: its columns, and the cells of those that hold words of the app."""
    if language() is ENGLISH:
        return frame
    typed = set(frame.attrs.get(TYPED, ()))
    ours = [name for name in frame if name not in typed and _NUMBER.sub("{}", str(name)) in OURS]
    said = frame.assign(**{name: frame[name].map(say_label) for name in ours})
    return said.set_axis([name if name in typed else say_label(name) for name in frame], axis="columns")


def written(number: float, form: str) -> str:
    """A number of a table as the language of this run writes it.

    Args:
        number: the value; NaN is empty.
        form: Python's `%.3f`, `%+.3f`, `%.1e` or `%.1f%%`; `%.5g` without a power of ten where a number has room;
            `percent` of a share; `,` for a whole number with its thousands.
    """
    if number != number:  # NaN
        return ""
    match form:
        case ",":
            text = f"{number:,.0f}"
        case "percent":
            text = f"{number:.1%}"
        case _:
            text = form % number
            if form.endswith("g") and LEAST_PLAIN <= abs(number) < MOST_PLAIN:
                text = np.format_float_positional(float(text), trim="-")
    return language().number(text.replace("-", "−"))


def say_figure(traces: Iterable[Mapping], layout: Mapping) -> tuple[list[dict], dict]:
    """A figure's traces and layout with all their labels in the language of this run; the given ones stay."""
    return _say(list(traces)), _say(layout)


_SYMBOL = re.compile(r"(?<=\b[dWb])_(model|[QKVO])(?![^\W_ᵀ])")


def set_symbols(label: str) -> str:
    """A label as Plotly sets it: what follows an underscore in d_model or W_Q is a subscript."""
    return _SYMBOL.sub(r"<sub>\1</sub>", label)


def say_header(value: Any, name: str = "") -> Any:
    """The header of one of our own pictures, with its titles in the language of this run."""
    if isinstance(value, Mapping):
        return {key: say_header(part, key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [say_header(part) for part in value]
    return say_label(value) if name in _TITLES else value


def labels_in(content: Any, name: str = "") -> Iterator[str]:
    """The labels of a figure: of axes, legends and colour bars, hover texts, and what stands in it."""
    if isinstance(content, Mapping):
        for key, part in content.items():
            if not (key == "text" and "type" in content):
                yield from labels_in(part, key)
    elif isinstance(content, list | tuple):
        for part in content:
            yield from labels_in(part, name)
    elif isinstance(content, str) and name in _FIELDS:
        yield content


def _say(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        traced = "type" in value and "xaxis" in value
        return {key: _number(part) if traced and key in _NUMBERS else _say(part, key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_say(part, name) for part in value]
    return say_label(value) if name in _FIELDS else value


def _number(value: Any) -> Any:
    """Texts that are numbers, as the language writes them."""
    if isinstance(value, list | tuple):
        return [_number(part) for part in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _number(value.tolist())
    plain = isinstance(value, str) and not isinstance(value, Verbatim)
    return language().number(value) if plain and _NUMBER.fullmatch(value) else value


def _said(text: str, spoken: Language) -> str | None:
    """A label, or a part of one, in the language; None where it lacks it."""
    before, core, after = _EDGE.match(text).groups()
    said = _core(core, spoken)
    return None if said is None else f"{spoken.labels.get(before, before)}{said}{spoken.labels.get(after, after)}"


def _core(text: str, spoken: Language) -> str | None:
    if (known := _known(text, spoken)) is not None:
        return known
    if not _WORD.search(text):
        return _NUMBER.sub(lambda number: spoken.number(number[0]), text)
    for between in _BETWEEN:
        first, *others = between.split(text)
        # What separates stands at every second place.
        said = [_said(first, spoken), *(_said(one, spoken) for one in others[1::2])] if others else [None]
        if None not in said:
            signs = (spoken.labels.get(sign, sign) for sign in others[::2])
            return said[0] + "".join(sign + part for sign, part in zip(signs, said[1:], strict=True))
    return None


def _known(text: str, spoken: Language) -> str | None:
    """A text that the language has, as it stands or with {} for each number."""
    if (said := spoken.labels.get(text, spoken.strings.get(text))) is not None:
        return said
    template = spoken.labels.get(_NUMBER.sub("{}", text))
    return template and template.format(*(spoken.number(number) for number in _NUMBER.findall(text)))
