"""Figures of Training: curves of a run, the learning rate, and label smoothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.bars import candidate_axis, candidate_names, with_rest
from viz.figure import LEGEND_ABOVE, curve, figure, grid, merge, scatter, text, vline
from viz.theme import DECODER, GUIDE, OKABE_ITO

Array = np.ndarray

TRAIN, DEV, SPEED, TARGET = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2], OKABE_ITO[3]


@dataclass(frozen=True)
class Panel:
    """One panel of the curves of a run."""

    title: str
    unit: str
    columns: Mapping[str, tuple[str, str]]
    """column of the log -> name and colour"""


LOSS = Panel("Loss", "nats per token", {"train_loss": ("training", TRAIN), "dev_loss": ("development", DEV)})
SCORES = (
    Panel("BLEU", "BLEU", {"dev_bleu": ("development, greedy", DEV)}),
    Panel("Score", "bits per byte", {"dev_bits_per_byte": ("development, lower is better", DEV)}),
    Panel("Score", "share of masked tokens", {"dev_accuracy": ("development, guessed right", DEV)}),
)
"""of a translator, a language model and a masked language model"""
SPEED_PANEL = Panel(
    "Speed", "tokens per second", {"tokens_per_second": ("target tokens, mean since the start of the run", SPEED)}
)
OVER = {"step": "training step", "epoch": "epoch", "hours": "hours of training"}


def panels_of(columns: Collection[str]) -> tuple[Panel, ...]:
    """Loss, score and speed for a log with these columns; BLEU if it has no score."""
    score = next((panel for panel in SCORES if set(panel.columns) & set(columns)), SCORES[0])
    return LOSS, score, SPEED_PANEL


def run_curves(log: Mapping[str, Array], over: str) -> go.Figure:
    """Loss, score and speed of a run side by side; columns that the log lacks are left out.

    Args:
        log: (row,) by column of log.csv, NaN where a cell is empty.
        over: step, epoch or hours.
    """
    panels = panels_of(log)
    traces = [
        curve(
            log[over],
            log[name],
            label,
            colour,
            panel=number,
            # The two curves of one panel differ in more than their colours.
            symbol="diamond-open" if name == "dev_loss" else "circle",
            hover=f"<b>%{{y:.6g}}</b> {panel.unit}<br>{label}<br>{OVER[over]} %{{x:,.6g}}",
        )
        for number, panel in enumerate(panels, start=1)
        for name, (label, colour) in panel.columns.items()
        if name in log
    ]
    return figure(
        traces,
        grid(
            1,
            len(panels),
            # Beside the axes the units would run into the panel before.
            [panel.title + (f"<br>{panel.unit}" if panel.unit != panel.title else "") for panel in panels],
            {"font": {"size": 13}},
            horizontal_spacing=0.08,
            xaxis={"title": OVER[over]},
            yaxis={"rangemode": "tozero"},
        ),
        height=400,
        margin={"t": 60},
        legend={"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0},
    )


def schedule_chart(
    steps: Array, curves: Mapping[str, Array], points: tuple[Array, Array] | None, peak: tuple[int, float]
) -> go.Figure:
    """The learning rate over the training steps.

    Args:
        steps: (step,) where the curves were computed.
        curves: (step,) by name; first that of the controls, then the run's own as fitted to its log.
        points: steps and rates of log.csv.
        peak: step and rate of the first curve's maximum.
    """
    styles = ((DECODER, {"width": 3}), (TRAIN, {"dash": "dot"}))
    traces = [
        curve(steps, rates, name, colour, hover=_rate_hover(name), **look)
        for (name, rates), (colour, look) in zip(curves.items(), styles, strict=False)
    ]
    if points is not None:
        name = "this run, log.csv"
        look = {"mode": "markers", "marker": {"color": TRAIN}}
        traces.append(scatter(x=points[0], y=points[1], name=name, hover=_rate_hover(name), **look))
    note = text(f"{peak[1]:.3g} at step {peak[0]:,}", x=peak[0], y=peak[1], xanchor="left", yanchor="bottom")
    return figure(
        traces,
        height=400,
        legend=LEGEND_ABOVE,
        xaxis={"title": "training step"},
        yaxis={"title": "learning rate", "rangemode": "tozero", "exponentformat": "power"},
        shapes=[vline(peak[0])],
        annotations=[note],
    )


def _rate_hover(name: str) -> str:
    return f"<b>%{{y:.6g}}</b><br>step %{{x:,}}<br>{name}"


def smoothing_chart(tokens: Sequence[str], target: Array, model: Array, right: int, vocabulary: int) -> go.Figure:
    """Smoothed target and model at one position, on a logarithmic axis: the most probable tokens, and all others.

    Args:
        tokens: pieces, the model's best first.
        target: (token,) smoothed target probabilities.
        model: (token,) the model's probabilities.
        right: index of the correct token.
        vocabulary: number of tokens in the vocabulary.
    """
    names = candidate_names(tokens, vocabulary - len(tokens))
    series = (("smoothed target", target, TARGET, "diamond"), ("the model, here", model, DECODER, "circle"))
    return figure(
        [
            scatter(
                x=with_rest(values),
                y=np.arange(len(names)),
                customdata=names,
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 12, "line": {"color": GUIDE, "width": 1}},
                hover=f"%{{customdata}}<br>{name}: <b>%{{x:.6g}}</b>",
            )
            for name, values, colour, symbol in series
        ],
        height=110 + 28 * len(names),
        legend=LEGEND_ABOVE,
        xaxis=_decades(target, model) | {"title": "probability (log), of the whole vocabulary", "type": "log"},
        yaxis=merge(candidate_axis(names, right), {"showgrid": True}),
    )


def _decades(*probabilities: Array) -> dict:
    """Range and ticks of a logarithmic axis of probabilities, at most nine decades labelled."""
    positive = np.concatenate(probabilities)
    positive = positive[positive > 0]
    low = int(np.floor(np.log10(positive.min()))) if len(positive) else -1
    ticks = range(0, low - 1, -max(1, -low // 8))
    return {
        "range": [low - 0.2, 0.2],
        "tickvals": [10.0**tick for tick in ticks],
        "ticktext": [f"10<sup>{tick}</sup>" if tick else "1" for tick in ticks],
    }
