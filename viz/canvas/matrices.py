"""Matrix equations as the payload of the matrices component: the run's own numbers, labelled, in bytes."""

import json
import struct
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import plotly.colors

from viz.theme import SIGNED, WEIGHTS

Array = np.ndarray


@dataclass(frozen=True)
class Axis:
    """What the rows or the columns of a matrix count."""

    name: str
    """query, key, dimension (of a head) or model (dimension of the residual stream): what a click chooses"""
    title: str
    """on screen: what it counts, in the plural"""
    size: int
    labels: tuple[str, ...] = ()
    """one a position; empty where the position's number is its label"""
    notes: tuple[str, ...] = ()
    """what hovering adds to a label"""
    groups: tuple[str, ...] = ()
    """names of the equal blocks that the axis falls into: the heads of a concatenation"""
    lit: int | None = None
    """the block to frame"""


@dataclass(frozen=True)
class Matrix:
    """One matrix of an equation: its numbers, what its axes mean, and how it is coloured."""

    symbol: str
    """as in the formula: _ starts a subscript, ^ a superscript"""
    values: Array
    """(rows, columns), drawn as they are: no transpose, no rounding"""
    rows: Axis
    columns: Axis
    colour: str = ""
    """of Q, K or V; empty for everything else"""
    scale: str = SIGNED
    low: float = 0.0
    high: float = 1.0
    """the colours' range, low to high"""
    allowed: Array | None = None
    """bool (rows, columns): False is hatched, whatever the number"""
    family: str = ""
    """what the legend names instead of the symbol, where many matrices share a range"""
    note: str = ""
    """what the caption adds to the symbol and the shape"""
    result: bool = False
    """drawn larger: what this step computes"""

    def __post_init__(self) -> None:
        expected = (self.rows.size, self.columns.size)
        if self.values.shape != expected:
            raise ValueError(f"matrix {self.symbol} has shape {self.values.shape}, its axes say {expected}")

    def table(self) -> pd.DataFrame:
        """The numbers under their labels, positions first ("3 kitchen"); the first column names the rows."""
        rows, columns = (
            [f"{i} {axis.labels[i]}" if axis.labels else str(i) for i in range(axis.size)]
            for axis in (self.rows, self.columns)
        )
        table = pd.DataFrame(self.values, columns=columns)
        table.insert(0, self.symbol, rows)
        return table


Equation = tuple[Matrix | str, ...]
"""Matrices with operators between them, in reading order."""


def encode(equations: tuple[Equation, ...], **header) -> bytes:
    """The payload: four bytes with the header's length, the header as JSON, then the matrices' numbers.

    Numbers are little-endian float32, row by row; `allowed` follows its matrix as one byte a cell. Each
    matrix's header says at which byte after the header they start.

    Args:
        equations: what to draw, one below the other.
        header: anything else that the component reads, as JSON.
    """
    chunks, drawn, offset = [], [], 0
    for equation in equations:
        parts = []
        for part in equation:
            if isinstance(part, str):
                parts.append(part)
                continue
            numbers, flags = _bytes(part)
            parts.append(_description(part) | {"offset": offset, "allowed_offset": offset + len(numbers)})
            chunks += (numbers, flags)
            offset += len(numbers) + len(flags)
        drawn.append(parts)
    text = _padded(json.dumps(header | {"equations": drawn, "scales": colour_scales()}).encode(), b" ")
    return struct.pack("<I", len(text)) + text + b"".join(chunks)


def _bytes(matrix: Matrix) -> tuple[bytes, bytes]:
    numbers = np.ascontiguousarray(matrix.values, dtype="<f4").tobytes()
    flags = b"" if matrix.allowed is None else np.ascontiguousarray(matrix.allowed, dtype=np.uint8).tobytes()
    return numbers, _padded(flags, b"\0")


def _padded(data: bytes, filler: bytes) -> bytes:
    """A multiple of four bytes, so that the float32 numbers after them are aligned."""
    return data + filler * (-len(data) % 4)


def _description(matrix: Matrix) -> dict:
    return {
        "symbol": matrix.symbol,
        "rows": vars(matrix.rows),
        "columns": vars(matrix.columns),
        "colour": matrix.colour,
        "scale": matrix.scale,
        "low": matrix.low,
        "high": matrix.high,
        "masked": matrix.allowed is not None,
        "family": matrix.family or matrix.symbol,
        "note": matrix.note,
        "result": matrix.result,
    }


@cache
def colour_scales() -> dict[str, list[list[int]]]:
    """Evenly spaced [red, green, blue] anchors, 0 to 255, of the two colour scales that components draw with."""
    return {name: _anchors(name) for name in (WEIGHTS, SIGNED)}


def _anchors(scale: str) -> list[list[int]]:
    colours = [colour for _, colour in plotly.colors.get_colorscale(scale)]
    colours, _ = plotly.colors.convert_colors_to_same_type(colours, "tuple")
    return [[round(255 * part) for part in colour] for colour in colours]
