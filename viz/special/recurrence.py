"""Recurrence beside attention, on Why attention: both schedules step by step, gradients, exact match over length."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.language import Sentence, sentence, tr
from viz.figure import NO_GRID, TITLE_LEFT, escape, figure, frame, grid, heatmap, scatter, suffix
from viz.heatmap import bar_below, colour_axis
from viz.labels import say_label
from viz.latex import span
from viz.theme import CHOSEN, OKABE_ITO, SIGNED, Array
from viz.tokens import Verbatim, as_plotly

LOOKS = ((OKABE_ITO[0], "square"), (OKABE_ITO[2], "diamond"), (OKABE_ITO[5], "circle"))
"""Colour and marker of each model: one vector, additive attention, Transformer."""
STRIP, LABELS = 48, 60
"""pixels: height of a layer's strip, and what a panel takes besides its strips"""
BARS = 76
"""pixels for the colour bars"""
STRIP_SHARE = 0.92
"""of a layer's height; the rest is a gap"""
LARGEST_DOT = 13
"""pixels, diameter of a weight of 1"""


LOG = {"type": "log", "exponentformat": "power", "dtick": 1}


@dataclass(frozen=True)
class Schedule:
    """One model's run as a series of steps."""

    title: str
    reads: Sequence[str]
    """source tokens"""
    writes: Sequence[str]
    """written tokens"""
    encoder: Array
    """(layer, source position, d_model); a model that reads all positions at once has its input as layer 0"""
    decoder: Array
    """(layer, step, d_model)"""
    weights: Array | None
    """(step, source position) attention weights; None: the last state is handed over once"""
    one_by_one: bool
    """whether the encoder computes a position a step; else all positions of a layer a step"""
    limit: float
    """colours range from -limit to limit"""

    @property
    def reading_steps(self) -> int:
        """Steps until the encoder is done."""
        return len(self.reads) if self.one_by_one else len(self.encoder) - 1

    @property
    def steps(self) -> int:
        """Steps until the last token is written."""
        return self.reading_steps + len(self.writes)

    def in_words(self, step: int) -> Sentence:
        """What it does in a step, counted from 1."""
        if step > self.steps:
            return sentence("done after step {step}", step=self.steps)
        if step > self.reading_steps:
            return sentence("writes {token}", token=self.writes[step - self.reading_steps - 1])
        if self.one_by_one:
            return sentence("reads {token}", token=self.reads[step - 1])
        return sentence("layer {step}, all positions at once", step=step)


def schedule_chart(models: Sequence[Schedule], step: int) -> go.Figure:
    """What each model has computed after `step` steps, a panel a model: encoder states left, decoder states right.

    Above the strips a dot for each position of the encoder that the token being written reads, its diameter the weight.
    """
    width = max(len(model.writes) for model in models)
    traces, shapes, axes = [], [], {}
    for panel, model in enumerate(models, start=1):
        traces += [*_strips(model, step, panel), _dots(model, step, panel)]
        shapes += _current(model, step, panel)
        axes |= _panel_axes(model, step, panel, width)
    heights = [STRIP * len(model.encoder) for model in models]
    height = sum(heights) + LABELS * len(models)
    titles = [Verbatim(f"<b>{say_label(model.title)}</b>: {as_plotly(tr(model.in_words(step)))}") for model in models]
    spacing = {"row_heights": heights, "vertical_spacing": LABELS / height}
    return figure(
        traces,
        grid(len(models), 1, titles, TITLE_LEFT, yaxis=NO_GRID, **spacing),
        axes,
        _colour_axes(models, BARS / 2 / height),
        height=height + 20 + BARS,
        margin={"t": 34, "b": 34 + BARS, "l": 64, "r": 12},
        shapes=shapes,
        showlegend=False,
        hovermode="closest",
    )


def _colour_axes(models: Sequence[Schedule], below: float) -> dict:
    """One range for the states of all recurrent models, one for the Transformer's layers, with their bars."""
    axes = {}
    for name, x in ((True, 0.24), (False, 0.76)):
        limit = next(model.limit for model in models if model.one_by_one is name)
        title = f"{'LSTM' if name else 'Transformer'}, {span(-limit, limit)}"
        axes[_colour_axis(name)] = colour_axis(SIGNED, -limit, limit, title, **bar_below(x, 0.42, below))
    return axes


def _colour_axis(one_by_one: bool) -> str:
    return "coloraxis" if one_by_one else "coloraxis2"


def _columns(model: Schedule) -> tuple[Array, Array]:
    """x of the encoder's positions and of the decoder's steps, one column apart."""
    n = len(model.reads)
    return np.arange(n), n + 1 + np.arange(len(model.writes))


def _strips(model: Schedule, step: int, panel: int) -> list[dict]:
    """Heat maps of the layers that are computed by now, one a layer and stack."""
    left, right = _columns(model)
    written = max(0, step - model.reading_steps)
    size = model.encoder.shape[-1]
    traces = []
    for layer in range(len(model.encoder)):
        read = step if model.one_by_one else len(left) * (layer <= step)
        for x, states, done, names in (
            (left, model.encoder[layer], read, model.reads),
            (right, model.decoder[layer], written, model.writes),
        ):
            cells = {
                "x": x,
                "y": layer + (np.arange(size) + 0.5) / size * STRIP_SHARE,
                "z": np.where(np.arange(len(x)) < done, states.T, np.nan).astype(np.float32),
                "customdata": [escape(names)] * size,
            }
            hover = f"<b>%{{z:.7g}}</b><br>%{{customdata}}, {_layer_name(model, layer)}"
            traces.append(
                heatmap(panel=panel, hover=hover, hoverongaps=False, **cells, coloraxis=_colour_axis(model.one_by_one))
            )
    return traces


def _dots(model: Schedule, step: int, panel: int) -> dict:
    """What the token that is being written reads from the encoder, as dots above it."""
    at, left = step - model.reading_steps - 1, _columns(model)[0]
    hover = "attention weight <b>%{customdata:.7g}</b>"
    if not 0 <= at < len(model.writes) or (model.weights is None and at):
        left, weights = left[:0], np.empty(0)
    elif model.weights is None:
        left, weights, hover = left[-1:], np.ones(1), "handed over as the decoder's first state"
    else:
        weights = model.weights[at]
    # A marker of size 0 would be given Plotly's default.
    marker = {"color": CHOSEN, "size": np.maximum(LARGEST_DOT * weights, 0.5), "opacity": 1, "line": {"width": 0}}
    y = [len(model.encoder) + 0.16] * len(left)
    return scatter(panel=panel, x=left, y=y, customdata=weights, mode="markers", marker=marker, hover=hover)


def _current(model: Schedule, step: int, panel: int) -> list[dict]:
    """Frames around what is computed in this step."""
    left, right = _columns(model)
    top = len(model.encoder) - 1
    if step > model.steps:
        return []
    if step > model.reading_steps:
        columns, rows = (right[step - model.reading_steps - 1],) * 2, (0, top)
    elif model.one_by_one:
        columns, rows = (left[step - 1],) * 2, (0, top)
    else:
        columns, rows = (left[0], left[-1]), (step, step)
    # A frame reaches half a cell beyond its rows.
    return [frame(columns, (rows[0] + 0.5, rows[1] + STRIP_SHARE - 0.5), CHOSEN, panel=panel)]


def _panel_axes(model: Schedule, step: int, panel: int, width: int) -> dict:
    left, right = _columns(model)
    written = max(0, step - model.reading_steps)
    names = [*model.reads, *(name if i < written else "·" for i, name in enumerate(model.writes))]
    n, layers = len(left), range(len(model.encoder))
    return {
        f"xaxis{suffix(panel)}": {
            "range": [-0.6, n + width + 0.6],
            "tickvals": [*left, *right],
            "ticktext": escape(names),
            "tickangle": 0,
        },
        f"yaxis{suffix(panel)}": {
            "range": [-0.02, len(model.encoder) + 0.4],
            "tickvals": [layer + STRIP_SHARE / 2 for layer in layers],
            "ticktext": [_layer_name(model, layer) for layer in layers],
        },
    }


def _layer_name(model: Schedule, layer: int) -> str:
    if model.one_by_one:
        return "state"
    return f"layer {layer}" if layer else "input"
