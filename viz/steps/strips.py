"""Strips of numbers under each other: what the arithmetic component draws."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from viz.canvas.matrices import Array, colour_scales
from viz.latex import number
from viz.theme import SIGNED, WEIGHTS, symmetric_range


@dataclass(frozen=True)
class Row:
    """One line of a strip."""

    label: str
    values: Array
    """(columns,)"""
    colour: str = ""
    bars: bool = False
    """drawn as bars above the numbers"""
    scale: str = SIGNED
    limit: float = 1.0
    """the colours' range: -limit to limit, or 0 to limit for weights"""
    allowed: Array | None = None
    """bool (columns,): False is hatched"""


@dataclass(frozen=True)
class Strip:
    """Numbers under each other, one column for each term of a sum."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    result: str
    """what the last row adds up to"""
    chosen: int | None = None
    """the column to mark"""


@dataclass(frozen=True)
class Arithmetic:
    """How one number comes about."""

    latex: str
    strips: tuple[Strip, ...] = ()


def make_row(
    label: str,
    values: Array,
    colour: str = "",
    *,
    bars: bool = False,
    scale: str = SIGNED,
    limit: float | None = None,
    allowed: Array | None = None,
) -> Row:
    """A line whose colours span its own largest magnitude, unless `limit` says otherwise."""
    if limit is None:
        limit = 1.0 if scale == WEIGHTS else symmetric_range(values[np.isfinite(values)])[1]
    return Row(label, values, colour, bars, scale, float(limit) or 1.0, allowed)


def payload(arithmetic: Arithmetic, links: list[tuple[str, str]], step: int) -> dict:
    """What the arithmetic component draws, as JSON: each number as text, and as a float for its colour."""
    strips = []
    for strip in arithmetic.strips:
        strips.append(asdict(strip) | {"rows": [_plain(row) for row in strip.rows]})
    return {"strips": strips, "chain": links, "step": step, "scales": colour_scales()}


def _plain(row: Row) -> dict:
    """A row as JSON can hold it: infinity is no number there."""
    masked = np.zeros(len(row.values), bool) if row.allowed is None else ~row.allowed
    return asdict(row) | {
        "values": [float(value) if np.isfinite(value) else None for value in row.values],
        "texts": number_texts(row.values),
        "masked": masked.tolist(),
        "allowed": None,
    }


def number_texts(values: Array) -> list[str]:
    """Three decimals; what would vanish keeps one digit and its power of ten."""
    return [_text(float(value)) for value in values]


def _text(value: float) -> str:
    if math.isinf(value) or abs(value) >= 1000:
        return number(value)
    if value and abs(value) < 5e-4:
        digit, _, power = f"{value:.0e}".partition("e")
        return f"{digit}e{int(power)}".replace("-", "−")
    return f"{value:.3f}".replace("-", "−")
