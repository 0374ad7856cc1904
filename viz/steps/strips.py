"""Rows of numbers in columns, one column for each term of a sum: the data of the arithmetic component."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from model.language import Sentence
from viz.drawing import Drawing
from viz.labels import say_label
from viz.latex import number, signed
from viz.theme import SIGNED, WEIGHTS, Array, colour_scales, symmetric_range


@dataclass(frozen=True)
class StripRow:
    """One row of a strip."""

    label: str
    values: Array
    """(columns,)"""
    colour: str = ""
    bars: bool = False
    """whether bars stand above the numbers"""
    scale: str = SIGNED
    limit: float | None = None
    """end of the colour range, -limit to limit, or 0 to limit for weights; None: 1 for weights, else the row's own"""
    allowed: Array | None = None
    """bool (columns,): False is hatched"""


@dataclass(frozen=True)
class Strip:
    """Rows with common columns."""

    title: Sentence
    columns: tuple[str, ...]
    rows: tuple[StripRow, ...]
    result: Sentence
    """what the last row adds up to, in words"""
    chosen: int | None = None
    """the column to mark"""


@dataclass(frozen=True)
class Arithmetic:
    """How one number is computed."""

    latex: str
    strips: tuple[Strip, ...] = ()


def arithmetic_picture(arithmetic: Arithmetic, links: list[tuple[str, str]], step: int) -> Drawing:
    """For the arithmetic component, in the language of this run: each number as text, and as a float for its colour."""
    chain = [(say_label(name), say_label(value)) for name, value in links]
    data = {"strips": [_said(strip) for strip in arithmetic.strips], "chain": chain, "step": step}
    return Drawing("arithmetic", data | {"scales": colour_scales()})


def _said(strip: Strip) -> dict:
    words = {"title": say_label(strip.title), "result": say_label(strip.result)}
    return words | {
        "columns": [say_label(column) for column in strip.columns],
        "rows": [_plain(row) for row in strip.rows],
        "chosen": strip.chosen,
    }


def _plain(row: StripRow) -> dict:
    """A row as JSON, which has no infinity."""
    masked = np.zeros(len(row.values), bool) if row.allowed is None else ~row.allowed
    limit = row.limit
    if limit is None:
        limit = 1.0 if row.scale == WEIGHTS else symmetric_range(row.values[np.isfinite(row.values)])[1]
    return asdict(row) | {
        "label": say_label(row.label),
        "limit": float(limit) or 1.0,
        "values": [float(value) if np.isfinite(value) else None for value in row.values],
        "texts": [say_label(text) for text in number_texts(row.values)],
        "masked": masked.tolist(),
        "allowed": None,
    }


def number_texts(values: Array) -> list[str]:
    """Three decimals, or one digit and a power of ten where three decimals would be 0."""
    return [_text(float(value)) for value in values]


def _text(value: float) -> str:
    if math.isinf(value) or abs(value) >= 1000:
        return number(value)
    if value and abs(value) < 5e-4:
        return signed(value, ".0e")
    return signed(value, ".3f")
