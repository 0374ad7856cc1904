"""Figures of training: a run's curves, its learning rate, a smoothed target, and one head's weights at a snapshot."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import DECODER, OKABE_ITO, WEIGHTS, layout
from viz.tokens import labels

Array = np.ndarray

TRAIN, DEV, SPEED, TARGET = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2], OKABE_ITO[3]
GUIDE = "#8C8C8C"
"""Seen on light and on dark."""
MOST_TICKS = 30
BLANK = "rgba(128,128,128,0.18)"
"""Behind a map, where masked cells are left out."""


@dataclass(frozen=True)
class Panel:
    """One of the panels of a run's curves."""

    title: str
    unit: str
    columns: Mapping[str, tuple[str, str]]
    """by column of the log: name and colour"""


PANELS = (
    Panel(
        "Loss",
        "nats a token",
        {"train_loss": ("training, with label smoothing", TRAIN), "dev_loss": ("development, without it", DEV)},
    ),
    Panel("BLEU", "BLEU", {"dev_bleu": ("development, greedy", DEV)}),
    Panel(
        "Speed",
        "tokens a second",
        {"tokens_per_second": ("target tokens per second since the start of the run", SPEED)},
    ),
)
OVER = {"step": "training step", "epoch": "epoch", "hours": "hours of training"}


def run_curves(log: Mapping[str, Array], over: str) -> go.Figure:
    """Loss, BLEU and speed of a run side by side; columns that the log lacks are left out.

    Args:
        log: (row,) by column of log.csv, NaN where a cell is empty.
        over: step, epoch or hours.
    """
    draft = grid(1, len(PANELS), titles=[panel.title for panel in PANELS], horizontal_spacing=0.08)
    layout(draft, 400, "", "")
    for column, panel in enumerate(PANELS, start=1):
        for name, (text, colour) in panel.columns.items():
            if name in log:
                hover = f"<b>%{{y:.6g}}</b> {panel.unit}<br>{text}<br>{OVER[over]} %{{x:,.6g}}<extra></extra>"
                drawn = {
                    "type": "scatter",
                    "x": log[over],
                    "y": log[name],
                    "name": text,
                    "line_color": colour,
                    "hovertemplate": hover,
                }
                # Two curves in one panel are told apart without their colours, too.
                symbol = "diamond-open" if name == "dev_loss" else "circle"
                drawn.update(mode="lines+markers", marker={"size": 6, "symbol": symbol})
                draft.add_trace(drawn, row=1, col=column)
        draft.update_xaxes(title=OVER[over], row=1, col=column)
        draft.update_yaxes(title=panel.unit, rangemode="tozero", row=1, col=column)
    return draft.update_layout(legend={"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0}).figure()


def schedule_chart(
    steps: Array, curves: Mapping[str, Array], points: tuple[Array, Array] | None, peak: tuple[int, float]
) -> go.Figure:
    """The learning rate over the steps.

    Args:
        steps: (step,) where the curves were computed.
        curves: (step,) by name; the first is the slider's, the next the run's own as read back.
        points: steps and rates of log.csv.
        peak: step and rate at which the first curve turns.
    """
    draft = Draft()
    styles = ({"color": DECODER, "width": 3}, {"color": TRAIN, "width": 2, "dash": "dot"})
    for (name, rates), line in zip(curves.items(), styles, strict=False):
        hover = f"<b>%{{y:.6g}}</b><br>step %{{x:,}}<br>{name}<extra></extra>"
        draft.add_scatter(x=steps, y=rates, mode="lines", line=line, name=name, hovertemplate=hover)
    if points is not None:
        name = "this run, log.csv"
        hover = f"<b>%{{y:.6g}}</b><br>step %{{x:,}}<br>{name}<extra></extra>"
        draft.add_scatter(x=points[0], y=points[1], mode="markers", name=name, hovertemplate=hover, marker_color=TRAIN)
    draft.add_vline(peak[0], line={"color": GUIDE, "width": 1, "dash": "dot"})
    draft.add_annotation(
        x=peak[0],
        y=peak[1],
        text=f"{peak[1]:.3g} at step {peak[0]:,}",
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
    )
    layout(draft, 400, "training step", "learning rate")
    draft.update_yaxes(rangemode="tozero", exponentformat="power")
    return draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}).figure()


def smoothing_chart(tokens: Sequence[str], target: Array, model: Array, right: int, vocabulary: int) -> go.Figure:
    """Target and model at one position, on a logarithmic axis: the most probable tokens, and all others together.

    Args:
        tokens: pieces, the model's best first.
        target: (token,) smoothed target probabilities.
        model: (token,) the model's.
        right: index of the right token.
        vocabulary: number of tokens in the vocabulary.
    """
    names = [html.escape(name) for name in labels(tokens)] + [f"all {vocabulary - len(tokens):,} others"]
    rows = np.arange(len(names))
    draft = Draft()
    for name, shares, colour, symbol in (
        ("smoothed target", target, TARGET, "diamond"),
        ("the model, here", model, DECODER, "circle"),
    ):
        draft.add_scatter(
            x=np.append(shares, max(1.0 - float(np.sum(shares)), 0.0)),
            y=rows,
            customdata=names,
            mode="markers",
            name=name,
            marker={"color": colour, "symbol": symbol, "size": 12, "line": {"color": GUIDE, "width": 1}},
            hovertemplate=f"%{{customdata}}<br>{name}: <b>%{{x:.6g}}</b><extra></extra>",
        )
    shown = [f"<b>{name}</b>" if row == right else name for row, name in enumerate(names)]
    draft.update_yaxes(tickvals=rows, ticktext=shown, autorange="reversed")
    draft.update_xaxes(type="log", **_decades(target, model))
    layout(draft, 110 + 28 * len(names), "probability (log), of the whole vocabulary", "")
    return draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}).figure()


def _decades(*shares: Array) -> dict:
    """Range and ticks of a logarithmic axis of probabilities, at most nine decades labelled."""
    positive = np.concatenate(shares)
    positive = positive[positive > 0]
    low = int(np.floor(np.log10(positive.min()))) if len(positive) else -1
    ticks = range(0, low - 1, -max(1, -low // 8))
    return {
        "range": [low - 0.2, 0.2],
        "tickvals": [10.0**tick for tick in ticks],
        "ticktext": [f"10<sup>{tick}</sup>" if tick else "1" for tick in ticks],
    }


def pattern_map(pattern: Array, mask: Array, rows: Sequence[str], keys: Sequence[str]) -> go.Figure:
    """One head's attention weights, in colours from 0 to 1; masked cells are left blank.

    Args:
        pattern: (query, key)
        mask: bool (query, key): True = may look.
        rows: what each query is, as plain text.
        keys: what each key is, as plain text.
    """
    queries, columns = ([html.escape(name) for name in names] for names in (rows, keys))
    hover = np.array([[f"{query}<br>looks at {key}" for key in columns] for query in queries])
    draft = Draft().add_heatmap(
        z=np.where(mask, pattern, np.nan),
        customdata=hover,
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        hoverongaps=False,
        colorbar={"title": {"text": "attention weight, 0 to 1", "side": "right"}, "thickness": 14},
        hovertemplate="%{customdata}<br>weight <b>%{z:.7g}</b><extra></extra>",
    )
    layout(draft, 130 + min(24 * len(queries), 640), "key", "query")
    for axis, names in ((draft.update_xaxes, columns), (draft.update_yaxes, queries)):
        step = -(-len(names) // MOST_TICKS)
        axis(tickvals=list(range(0, len(names), step)), ticktext=names[::step], showgrid=False, zeroline=False)
    draft.update_xaxes(side="top")
    draft.update_yaxes(autorange="reversed")
    return draft.update_layout(plot_bgcolor=BLANK, margin={"t": 70, "b": 10}).figure()
