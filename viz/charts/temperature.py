"""Pictures of one attention at many temperatures: the live component's payload, one row, and its entropy."""

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.canvas.matrices import Axis, Matrix, encode
from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, WEIGHTS, layout
from viz.tokens import ticks

Array = np.ndarray


def live_payload(
    names: tuple[Sequence[str], Sequence[str]], notes: Sequence[str], cells: Mapping[str, Array], **header
) -> bytes:
    """What the temperature component draws from: the head's own scores and weights, once.

    Args:
        names: of the queries and of the keys, plain text.
        notes: what is added to a query's name where there is room: what a decoder row predicts; or nothing.
        cells: `mask`, bool; `scaled`, scores / sqrt(d_k); `pattern`, the run's weights; (query, key) each.
        header: title; temperature, of the run; taus, what may be run; row, the chosen query; scope, in words.
    """
    queries = Axis("query", "queries", len(names[0]), tuple(names[0]), tuple(notes))
    keys = Axis("key", "keys", len(names[1]), tuple(names[1]))
    mask = cells["mask"]
    masked = np.where(mask, cells["scaled"], -np.inf)
    weights = Matrix("weights", cells["pattern"], queries, keys, "", WEIGHTS, 0, 1, mask, result=True)
    return encode(((weights, Matrix("masked", masked, queries, keys, allowed=mask)),), **header)


def row_panels(keys: Sequence[str], mask: Array, panels: Mapping[str, tuple[Array, float]]) -> go.Figure:
    """One query's weights, a panel a temperature, all from 0 to 1; masked keys have no bar.

    Args:
        keys: names of the keys, plain text.
        mask: bool (key,), True = may look.
        panels: title -> weights (key,) and their entropy in bits.
    """
    places = np.arange(len(keys))
    titles = [f"{title}:  entropy {bits:.3f} bits" for title, (_, bits) in panels.items()]
    draft = grid(len(panels), 1, shared_xaxes=True, titles=titles, vertical_spacing=0.045)
    for number, (title, (weights, _)) in enumerate(panels.items(), start=1):
        draft.add_bar(
            x=places,
            y=np.where(mask, weights, np.nan),
            customdata=[html.escape(key) for key in keys],
            marker_color=OKABE_ITO[4],
            hovertemplate=f"{title}<br>key %{{customdata}}<br>weight <b>%{{y:.7g}}</b><extra></extra>",
            row=number,
            col=1,
        )
    layout(draft, 92 * len(panels) + 120, "", "")
    shown, _ = ticks(keys)
    texts = [html.escape(keys[i]) for i in shown]
    draft.update_xaxes(tickvals=shown, ticktext=texts, tickangle=-60, showgrid=False, range=[-0.6, len(keys) - 0.4])
    draft.update_yaxes(range=[0, 1.02], tickvals=[0, 0.5, 1], zeroline=True)
    for start, end in _runs(~mask):
        box = {"line": {"width": 0}, "fillcolor": "rgba(128,128,128,0.18)", "layer": "below"}
        draft.add_vrect(start - 0.5, end + 0.5, **box)
    draft.update_annotations(x=0, xanchor="left", font={"size": 13})
    draft.update_layout(showlegend=False, bargap=0.15)
    return draft.figure()


def _runs(flags: Array) -> list[tuple[int, int]]:
    """First and last position of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def entropy_chart(taus: Array, row: Array, head: Array, visible: int, run_tau: float) -> go.Figure:
    """Entropy against temperature, with the two limits of the row.

    Args:
        taus: (tau,), on a logarithmic axis.
        row: (tau,) entropy of the chosen row, in bits.
        head: (tau,) mean entropy of the head's rows.
        visible: number of keys that the row may look at.
        run_tau: the temperature in the run.
    """
    draft = Draft()
    drawn = (("the chosen row", row, OKABE_ITO[0], "solid"), ("mean of the head's rows", head, OKABE_ITO[1], "dash"))
    for name, bits, colour, dash in drawn:
        draft.add_scatter(
            x=taus,
            y=bits,
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash, "width": 2.5},
            hovertemplate=f"{name}<br>τ = %{{x:.3g}}<br><b>%{{y:.5f}} bits</b><extra></extra>",
        )
    layout(draft, 380, "temperature τ (logarithmic)", "entropy, bits")
    most = math.log2(visible) if visible else 0.0
    _limits(draft, visible, most)
    _run_line(draft, run_tau)
    top = max(most, float(head.max(initial=0.0)), 0.1)
    draft.update_yaxes(range=[-0.06 * top, 1.16 * top], zeroline=False)
    marks = [0.01, 0.1, 1, 10, 100]
    draft.update_xaxes(type="log", tickvals=marks, ticktext=[f"{mark:g}" for mark in marks], showgrid=False)
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.figure()


def _limits(draft: Draft, visible: int, most: float) -> None:
    """A line at 0 and one at the entropy of the uniform distribution, with what they stand for."""
    keys = "1 key" if visible == 1 else f"{visible} keys"
    limits = (
        (0.0, "0: all weight on one key (τ → 0, without ties)", "right"),
        (most, f"log₂ {visible} = {most:.3f}: uniform over {keys} (τ → ∞)", "left"),
    )
    for height, text, side in limits[: 1 if most == 0 else 2]:
        draft.add_hline(height, line={"dash": "dot", "color": "#8C8C8C"})
        place = {"x": float(side == "right"), "xref": "paper", "xanchor": side, "yanchor": "bottom"}
        draft.add_annotation(y=height, text=text, showarrow=False, **place)


def _run_line(draft: Draft, run_tau: float) -> None:
    draft.add_vline(run_tau, line={"color": OKABE_ITO[5], "width": 1.5})
    draft.add_annotation(
        x=math.log10(run_tau),
        y=1,
        yref="paper",
        text=f"the run: τ = {run_tau:g}",
        xanchor="left",
        yanchor="top",
        xshift=4,
        showarrow=False,
    )


def weights_table(names: tuple[Sequence[str], Sequence[str]], mask: Array, maps: Mapping[str, Array]) -> pd.DataFrame:
    """One line a cell, queries first: whether it may be looked at, and its number in each of `maps`."""
    rows, keys = names
    columns = {"query": np.repeat(np.array(rows, dtype=object), len(keys)), "key": list(keys) * len(rows)}
    return pd.DataFrame(columns | {"may_look": mask.ravel()} | {name: cells.ravel() for name, cells in maps.items()})
