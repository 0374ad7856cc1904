"""Matrix equations for the components matrices and temperature: the run's own numbers with their labels."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.drawing import Drawing
from viz.theme import SIGNED, colour_scales

Array = np.ndarray


@dataclass(frozen=True)
class Axis:
    """The rows or the columns of a matrix."""

    name: str
    """query, key, dimension (of a head) or model (dimension of the residual stream): what a click sets"""
    title: str
    """on screen, in the plural"""
    size: int
    labels: tuple[str, ...] = ()
    """one per position; empty: the positions' numbers"""
    notes: tuple[str, ...] = ()
    """added to the labels in the tooltip"""
    groups: tuple[str, ...] = ()
    """names of equal blocks of the axis: the heads of a concatenation"""
    lit: int | None = None
    """index of the block to outline"""


@dataclass(frozen=True)
class Matrix:
    """One matrix of an equation: its numbers, its axes and its colours."""

    symbol: str
    """as in the formula: _ starts a subscript, ^ a superscript"""
    values: Array
    """(rows, columns), drawn as they are: no transpose, no rounding"""
    rows: Axis
    columns: Axis
    colour: str = ""
    """the colour of Q, K or V; empty for other matrices"""
    scale: str = SIGNED
    low: float = 0.0
    high: float = 1.0
    """the colours go from low to high"""
    allowed: Array | None = None
    """bool (rows, columns): False is masked and hatched; None: no mask"""
    family: str = ""
    """name in the legend for matrices that share a range; empty: the symbol"""
    note: str = ""
    """added to the caption"""
    result: bool = False
    """what this step computes; drawn larger"""

    def __post_init__(self) -> None:
        expected = (self.rows.size, self.columns.size)
        if self.values.shape != expected:
            raise ValueError(f"matrix {self.symbol} has shape {self.values.shape}, its axes say {expected}")

    def table(self) -> pd.DataFrame:
        """The numbers with row and column labels ("3 kitchen"); the first column has the row labels."""
        rows, columns = (
            [f"{i} {axis.labels[i]}" if axis.labels else str(i) for i in range(axis.size)]
            for axis in (self.rows, self.columns)
        )
        table = pd.DataFrame(self.values, columns=columns)
        table.insert(0, self.symbol, rows)
        return table


Equation = tuple[Matrix | str, ...]
"""Matrices, with operators between them as strings."""


def pack_equations(component: str, equations: tuple[Equation, ...], **header) -> Drawing:
    """The picture (Drawing.pack): of each matrix its float32 numbers and, if masked, `allowed` as uint8.

    Args:
        component: that draws it.
        equations: drawn one below the other.
        header: anything else that the component reads, as JSON.
    """
    arrays, descriptions = [], []
    for equation in equations:
        descriptions.append([part if isinstance(part, str) else _description(part) for part in equation])
        for matrix in (part for part in equation if isinstance(part, Matrix)):
            arrays.append(matrix.values.astype("<f4"))
            if matrix.allowed is not None:
                arrays.append(matrix.allowed.astype(np.uint8))
    return Drawing.pack(component, header | {"equations": descriptions, "scales": colour_scales()}, arrays)


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
