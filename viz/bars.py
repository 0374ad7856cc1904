"""Bar charts of the probabilities of candidate next tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model.language import tr
from viz.figure import NO_GRID, bar, escape
from viz.tokens import Verbatim, labels

Array = np.ndarray

PERCENT = {"range": [0, 1.15], "tickvals": [0, 0.25, 0.5, 0.75, 1], "tickformat": ".0%"}
"""Axis of probabilities, with room for the number after a bar."""


def candidate_bars(
    names: Sequence[str], values: Array, name: str, marker: Mapping, number: str = ".2%", **properties: Any
) -> dict:
    """One horizontal bar for each candidate token, its value written after it.

    Args:
        names: names of the candidates, escaped, best first.
        values: (candidate,) probabilities or their differences.
        name: what the values are.
        marker: colour, and hatching.
        number: format of the text after a bar.
        properties: further properties of the trace.
    """
    defaults = {
        "customdata": names,
        "text": [f"{value:{number}}" for value in values],
        "hover": f"%{{customdata}}<br>{name} <b>%{{x:.6f}}</b>",
    }
    look = {"name": name, "marker": marker, "textposition": "outside", "cliponaxis": False}
    return bar(x=values, y=np.arange(len(names)), orientation="h", **look, **defaults | properties)


def candidate_names(pieces: Sequence[str], others: int) -> list[str]:
    """Escaped names of the listed candidates, and last one name for all other tokens of the vocabulary."""
    return [*escape(labels(pieces)), Verbatim(tr("all {others:,} others", others=others))]


def with_rest(probabilities: Array) -> Array:
    """The probabilities and, last, the sum of all that are not listed."""
    return np.append(probabilities, max(1.0 - float(np.sum(probabilities)), 0.0))


def candidate_axis(names: Sequence[str], emphasised: int | None = None) -> dict:
    """The y axis of candidates, best on top, one of them in bold."""
    texts = [Verbatim(f"<b>{name}</b>") if i == emphasised else name for i, name in enumerate(names)]
    return {"tickvals": np.arange(len(names)), "ticktext": texts, "range": [len(names) - 0.5, -0.5]} | NO_GRID
