"""Figures of Temperature: the live picture, one row at several temperatures, and its entropy."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import position_bars, position_chart
from viz.canvas.matrices import Axis, Matrix, pack_equations
from viz.drawing import Drawing
from viz.figure import LEGEND_ABOVE, TITLE_LEFT, band, curve, figure, grid, hline, text, vline
from viz.theme import OKABE_ITO, WEIGHTS
from viz.tokens import axis_ticks

Array = np.ndarray


def live_weights(
    names: tuple[Sequence[str], Sequence[str]], notes: Sequence[str], cells: Mapping[str, Array], **header
) -> Drawing:
    """For the temperature component: the head's own scores and weights.

    Args:
        names: of the queries and of the keys, plain text.
        notes: additions to the names of the queries where there is room, what a decoder row predicts; or empty.
        cells: `mask`, bool; `scaled`, scores / sqrt(d_k); `pattern`, the run's weights; (query, key) each.
        header: title; temperature, of the run; taus, those offered for a run; row, the chosen query; scope, in words.
    """
    queries = Axis("query", "queries", len(names[0]), tuple(names[0]), tuple(notes))
    keys = Axis("key", "keys", len(names[1]), tuple(names[1]))
    mask = cells["mask"]
    masked = np.where(mask, cells["scaled"], -np.inf)
    weights = Matrix("weights", cells["pattern"], queries, keys, "", WEIGHTS, 0, 1, mask, result=True)
    return pack_equations("temperature", ((weights, Matrix("masked", masked, queries, keys, allowed=mask)),), **header)


def row_panels(keys: Sequence[str], mask: Array, panels: Mapping[str, tuple[Array, float]]) -> go.Figure:
    """One query's attention weights, a panel for each temperature, all from 0 to 1; masked keys have no bar.

    Args:
        keys: names of the keys, plain text.
        mask: bool (key,), True = visible.
        panels: title -> weights (key,) and their entropy in bits.
    """
    count = len(panels)
    return figure(
        [
            position_bars(
                keys,
                np.where(mask, weights, np.nan),
                f"{title}: attention weight",
                {"color": OKABE_ITO[4]},
                what="key at position",
                number=".7g",
                panel=panel,
            )
            for panel, (title, (weights, _)) in enumerate(panels.items(), start=1)
        ],
        grid(
            count,
            1,
            [f"{title}:  entropy {bits:.3f} bits" for title, (_, bits) in panels.items()],
            TITLE_LEFT | {"font": {"size": 13}},
            shared_xaxes=True,
            vertical_spacing=0.045,
            xaxis=axis_ticks(keys) | {"tickangle": -60, "range": [-0.6, len(keys) - 0.4]},
            yaxis={"range": [0, 1.02], "tickvals": [0, 0.5, 1], "zeroline": True},
        ),
        height=92 * count + 120,
        showlegend=False,
        bargap=0.15,
        shapes=[
            band(start - 0.5, end + 0.5, "rgba(128,128,128,0.18)", panel)
            for start, end in _runs(~mask)
            for panel in range(1, count + 1)
        ],
    )


def _runs(flags: Array) -> list[tuple[int, int]]:
    """First and last position of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def angle_bars(tokens: Sequence[str], degrees: Array) -> go.Figure:
    """How far a change has turned the vector of each token.

    Args:
        tokens: names, plain text.
        degrees: (token,) between the vectors before and after the change.
    """
    series = {"turned by": (degrees, {"color": OKABE_ITO[1]})}
    titles = ("token", "angle, in degrees")
    return position_chart(tokens, series, 300, titles, yaxis={"rangemode": "tozero"}, number=".4f", unit="°")


def entropy_chart(taus: Array, row: Array, head: Array, visible: int, run_tau: float) -> go.Figure:
    """Entropy against temperature, with the two limits of the row.

    Args:
        taus: (tau,), on a logarithmic axis.
        row: (tau,) entropy of the chosen row, in bits.
        head: (tau,) mean entropy of the head's rows, in bits.
        visible: number of keys that the row may attend to.
        run_tau: the temperature of the run.
    """
    most = math.log2(visible) if visible else 0.0
    keys = "1 key" if visible == 1 else f"{visible} keys"
    top = max(most, float(head.max(initial=0.0)), 0.1)
    ends = [(0.0, 1.0, "right", "0: all weight on one key (τ → 0, no ties)")]
    if most:
        ends.append((most, 0.0, "left", f"log₂ {visible} = {most:.3f}: uniform over {keys} (τ → ∞)"))
    at_run = {"x": math.log10(run_tau), "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top", "xshift": 4}
    marks = [0.01, 0.1, 1, 10, 100]
    return figure(
        [
            curve(
                taus,
                bits,
                name,
                colour,
                dash=dash,
                width=2.5,
                hover=f"{name}<br>τ = %{{x:.3g}}<br><b>%{{y:.5f}} bits</b>",
            )
            for name, bits, colour, dash in (
                ("chosen row", row, OKABE_ITO[0], "solid"),
                ("mean of the head's rows", head, OKABE_ITO[1], "dash"),
            )
        ],
        height=380,
        legend=LEGEND_ABOVE,
        xaxis={
            "title": "temperature τ (logarithmic)",
            "type": "log",
            "tickvals": marks,
            "ticktext": [f"{mark:g}" for mark in marks],
        },
        yaxis={"title": "entropy (bits)", "range": [-0.06 * top, 1.16 * top], "zeroline": False},
        shapes=[
            *(hline(height, width=2) for height, *_ in ends),
            vline(run_tau, color=OKABE_ITO[5], width=1.5, dash="solid"),
        ],
        annotations=[
            *(text(words, x=x, xref="paper", xanchor=side, y=y, yanchor="bottom") for y, x, side, words in ends),
            text(f"the run: τ = {run_tau:g}", **at_run),
        ],
    )
