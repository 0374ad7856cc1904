"""How far a run is from each claim about it, in single beside double precision: a row a claim, a logarithmic axis."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import OKABE_ITO, layout

ZERO = 1e-19
"""where the axis, which has no 0, draws it"""
FAR = 1e2
"""where it draws what is infinitely far off"""
_GREY = "#8C8C8C"
_ROW = 26


@dataclass(frozen=True)
class Row:
    """One claim's errors; None: not measured, or nothing to measure."""

    number: int
    title: str
    error: float | None
    allowed: float
    double: float | None
    double_allowed: float
    note: str = ""
    """why there is no error"""


def errors_chart(rows: Sequence[Row]) -> go.Figure:
    """A circle for the run's own precision, a diamond for double, a bar for what is allowed.

    Args:
        rows: in the order of the claims; the first is drawn on top.
    """
    draft, names = Draft(), [f"{row.title}  <b>{row.number}</b>" for row in rows]
    for row, name in zip(rows, names, strict=True):
        ends = [_place(error) for error in (row.double, row.error) if error is not None]
        if len(ends) == 2:
            line = {"color": _GREY, "width": 1}
            draft.add_scatter(x=ends, y=[name] * 2, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    _marks(
        draft,
        names,
        [row.allowed if row.error is not None else None for row in rows],
        "allowed",
        OKABE_ITO[0],
        "line-ns-open",
    )
    _marks(
        draft,
        names,
        [row.double_allowed if row.double is not None else None for row in rows],
        "allowed in double",
        OKABE_ITO[1],
        "line-ns-open",
    )
    _marks(draft, names, [row.double for row in rows], "same run in double precision", OKABE_ITO[1], "diamond")
    _marks(draft, names, [row.error for row in rows], "this run", OKABE_ITO[0], "circle")
    for row, name in zip(rows, names, strict=True):
        if row.note:
            said = {"text": f"<i>{html.escape(row.note)}</i>", "font": {"color": _GREY, "size": 12}}
            draft.add_annotation(x=-12, y=name, showarrow=False, **said)
    _axes(draft, names)
    return draft.figure()


def _marks(
    draft: Draft, names: Sequence[str], errors: Sequence[float | None], said: str, colour: str, symbol: str
) -> None:
    known = [(name, error) for name, error in zip(names, errors, strict=True) if error is not None]
    bar = symbol.startswith("line")
    draft.add_scatter(
        x=[_place(error) for _, error in known],
        y=[name for name, _ in known],
        customdata=["0: not one bit" if error == 0 else f"{error:.3g}" for _, error in known],
        mode="markers",
        name=said,
        marker={"color": colour, "symbol": symbol, "size": 13 if bar else 10, "line": {"color": colour, "width": 2}},
        hovertemplate=f"%{{y}}<br>{said}: <b>%{{customdata}}</b><extra></extra>",
    )


def _place(error: float) -> float:
    """NaN is no proof: it stands with what is infinitely far off."""
    return min(max(error, ZERO), FAR) if error == error else FAR


def _axes(draft: Draft, names: Sequence[str]) -> None:
    layout(draft, _ROW * len(names) + 170, "largest difference<br>(0, and powers of ten)", "")
    # The two labels stand on the far sides of their lines: between these a phone has no room for both.
    sides = ((np.finfo(np.float32).eps, "single", "left"), (np.finfo(np.float64).eps, "double", "right"))
    for digits, said, anchor in sides:
        draft.add_vline(float(digits), line={"color": _GREY, "width": 1, "dash": "dot"})
        draft.add_annotation(
            x=np.log10(digits), y=1, yref="paper", yanchor="bottom", showarrow=False,
            xanchor=anchor, text=f"last digit,<br>{said}", font={"size": 11, "color": _GREY},
        )  # fmt: skip
    powers = range(-16, 2, 4)
    draft.update_xaxes(
        type="log",
        range=[-19.6, 2.4],
        tickvals=[ZERO, *(10.0**power for power in powers), FAR],
        ticktext=["0", *(f"10<sup>{power}</sup>" for power in powers), "broken"],
        showgrid=False,
        zeroline=False,
    )
    draft.update_yaxes(
        type="category", categoryorder="array", categoryarray=list(reversed(names)), showgrid=True, automargin=True
    )
    draft.update_layout(
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0, "xref": "container"},
        margin={"t": 90, "l": 20},
    )


def errors_table(rows: Sequence[Row], seconds: Sequence[float | None]) -> pd.DataFrame:
    """One line a claim; an error that there is not stays empty."""
    return pd.DataFrame(
        {
            "claim": [row.number for row in rows],
            "in short": [row.title for row in rows],
            "verdict": [_verdict(row) for row in rows],
            "error": pd.Series([row.error for row in rows], dtype=float),
            "allowed": [row.allowed for row in rows],
            "error, double": pd.Series([row.double for row in rows], dtype=float),
            "allowed, double": [row.double_allowed for row in rows],
            "seconds": pd.Series(list(seconds), dtype=float),
        }
    )


def _verdict(row: Row) -> str:
    if row.error is None:
        return row.note or "not measured"
    held = row.error <= row.allowed and (row.double is None or row.double <= row.double_allowed)
    return "✓ holds" if held else "✗ fails"
