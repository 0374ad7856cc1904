"""Figure of Verification: the error of each claim about a run, in single and in double precision."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.figure import figure, scatter, text, vline
from viz.labels import say_label
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import as_plotly

ZERO = 1e-19
"""Where 0 stands on the logarithmic axis."""
FAR = 1e2
"""Where infinity stands."""
_ROW = 19


@dataclass(frozen=True)
class ClaimRow:
    """One claim's errors; None: not measured, or nothing to measure."""

    number: str
    """of the claim, with its part: "8a" """
    title: str
    error: float | None
    allowed: float
    double: float | None
    double_allowed: float
    note: str = ""
    """why there is no error"""


def errors_chart(rows: Sequence[ClaimRow]) -> go.Figure:
    """A circle for the run's own precision, a diamond for double precision, a bar for each tolerance.

    Args:
        rows: in the order of the claims, the first one on top.
    """
    names = [f"{say_label(row.title)}  <b>{row.number}</b>" for row in rows]
    single, double = OKABE_ITO[0], OKABE_ITO[1]
    spans = [
        scatter(
            x=[_place(row.double), _place(row.error)],
            y=[name] * 2,
            mode="lines",
            line={"color": GUIDE, "width": 1},
            showlegend=False,
        )
        for row, name in zip(rows, names, strict=True)
        if row.double is not None and row.error is not None
    ]
    bar = "line-ns-open"
    series = (
        ([None if row.error is None else row.allowed for row in rows], "allowed", single, bar),
        ([None if row.double is None else row.double_allowed for row in rows], "allowed in double", double, bar),
        ([row.double for row in rows], "same run in double precision", double, "diamond"),
        ([row.error for row in rows], "this run", single, "circle"),
    )
    top, small = {"y": 1, "yref": "paper", "yanchor": "bottom"}, {"color": GUIDE, "size": 11}
    # The two labels stand on the far sides of their lines, as a phone has no room for both between these.
    precisions = ((np.finfo(np.float32).eps, "single", "left"), (np.finfo(np.float64).eps, "double", "right"))
    powers = range(-16, 2, 4)
    return figure(
        [*spans, *(_marks(names, errors, *look) for errors, *look in series)],
        height=_ROW * len(names) + 160,
        margin={"t": 90, "b": 70, "l": 20},
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0, "xref": "container"},
        xaxis={
            "title": {"text": "largest difference<br>(0, and powers of ten)", "standoff": 8},
            "type": "log",
            "range": [-19.6, 2.4],
            "tickvals": [ZERO, *(10.0**power for power in powers), FAR],
            "ticktext": ["0", *(f"10<sup>{power}</sup>" for power in powers), "broken"],
        },
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showgrid": True,
            "dtick": 1,  # every claim's name, on a phone too, where the legend takes some of the height
        },
        shapes=[vline(float(digits)) for digits, _, _ in precisions],
        annotations=[
            *(
                text(f"<i>{as_plotly(row.note)}</i>", x=-12, y=name, font={"color": GUIDE, "size": 12})
                for row, name in zip(rows, names, strict=True)
                if row.note
            ),
            *(
                text(f"last digit,<br>{name}", x=np.log10(eps), xanchor=side, font=small, **top)
                for eps, name, side in precisions
            ),
        ],
    )


def _marks(names: Sequence[str], errors: Sequence[float | None], label: str, colour: str, symbol: str) -> dict:
    known = [(name, error) for name, error in zip(names, errors, strict=True) if error is not None]
    size = 13 if symbol.startswith("line") else 10
    return scatter(
        x=[_place(error) for _, error in known],
        y=[name for name, _ in known],
        customdata=[say_label("0: bit-identical") if error == 0 else f"{error:.3g}" for _, error in known],
        mode="markers",
        name=label,
        marker={"color": colour, "symbol": symbol, "size": size, "line": {"color": colour, "width": 2}},
        hover=f"%{{y}}<br>{label}: <b>%{{customdata}}</b>",
    )


def _place(error: float) -> float:
    """Where an error stands on the axis; NaN proves nothing and stands with infinity."""
    return min(max(error, ZERO), FAR) if error == error else FAR
