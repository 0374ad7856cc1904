"""A token's path through a stack (paper, section 3.1): lengths, shares and cosines after every sub-layer.

Columns are steps: the stack's input, then each sub-layer in the order of computation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.language import sentence
from viz.figure import (
    INVISIBLE,
    NO_GRID,
    TITLE_LEFT,
    StableFigure,
    bar,
    curve,
    escape,
    figure,
    frame,
    heatmap,
    scatter,
    suffix,
    text,
    vline,
)
from viz.figure import band as shaded_band
from viz.forms import Form
from viz.heatmap import MOST_ROWS, colours
from viz.labels import say_label
from viz.latex import span
from viz.theme import CHOSEN, OKABE_ITO, SIGNED, WEIGHTS, Array
from viz.tokens import as_plotly, axis_ticks, labels

BAND = "rgba(127,127,127,0.22)"
CHART, GAP, FOOT, HEAD = 92, 78, 88, 80
"""Pixels: height of each of the two line charts, gap between them, room below and above both; in all, of a picture that
is on the first screen."""
LEFT, RIGHT = (0, 0.44), (0.56, 1)
"""shares of the width: the charts of the chosen token, and the map of all tokens"""
ABOVE_MAP = {"x": RIGHT[0], "xref": "paper", "y": 1, "yref": "paper", "yshift": 2, "yanchor": "bottom"}


@dataclass(frozen=True)
class Measure:
    """What the map of all tokens can show, by its name in `model.analysis.stream.residual_stream.StreamMeasures`."""

    title: str
    definition: str
    """in one line, for the title of the map"""
    cosine: bool = False


MEASURES: Mapping[str, Measure] = {
    "share": Measure("Share added", "‖Sublayer(x)‖ / (‖x‖ + ‖Sublayer(x)‖)"),
    "to_start": Measure("Cosine to input", "cosine with the token's own input", cosine=True),
    "to_previous": Measure("Cosine to previous step", "cosine with the previous step", cosine=True),
    "norm": Measure("Length", "‖x‖ after the step"),
    "out": Measure("Length added", "‖Sublayer(x)‖"),
}


@dataclass(frozen=True, kw_only=True)
class StreamPath(Form):
    """Three panels: lengths of the chosen token, below them its share and cosines, and beside both a map of all tokens.

    A click on a point or a cell chooses its token and step.
    """

    measures: Mapping[str, Array]
    """(position, step) each: those of MEASURES, and "added" """
    steps: Sequence[str]
    """names of the columns"""
    rows: Sequence[str]
    """names of the tokens, plain text and unique, for the hover text"""
    tokens: Sequence[str]
    """their pieces, for the tick labels"""
    chosen: tuple[int, int]
    """token and step to mark"""
    shown: str
    """the measure of the map"""

    roomy = True  # the map stands beside the charts

    def clicked(self, point: Mapping[str, Any]) -> dict[str, int]:
        """The token and the step of a point or a cell."""
        token, step, *_ = point["customdata"]
        return {"token": token, "step": step}

    def arrays(self) -> dict[str, Array]:
        return dict(self.measures)

    def draw(self) -> StableFigure:
        rows, steps, shown = self.rows, [say_label(step) for step in self.steps], self.shown
        position, step = self.chosen
        plot = 2 * CHART + GAP
        mine = {name: values[position] for name, values in self.measures.items()}
        columns = {"x": np.arange(len(steps)), "customdata": [[position, i, name] for i, name in enumerate(steps)]}
        lengths = bar(
            y=mine["out"],
            name="‖Sublayer(x)‖",
            marker={"color": OKABE_ITO[1]},
            hover="‖Sublayer(x)‖ <b>%{y:.7g}</b><br>%{customdata[2]}",
            **columns,
        )
        lines = (
            (1, mine["added"], "‖x + Sublayer(x)‖", OKABE_ITO[3], "dot", "diamond"),
            (1, mine["norm"], "‖x‖ after the step", OKABE_ITO[0], "solid", "circle"),
            (2, mine["share"], "share", OKABE_ITO[1], "dash", "square"),
            (2, mine["to_start"], "cosine to input", OKABE_ITO[2], "solid", "circle"),
            (2, mine["to_previous"], "cosine to previous step", OKABE_ITO[4], "dot", "diamond"),
        )
        turned = min(float(np.nanmin(mine[name])) for name in ("to_start", "to_previous")) < -0.2
        # A legend's own title makes room for itself where a narrow window wraps the entries.
        legend = {"orientation": "h", "x": 0, "yanchor": "bottom"}
        token = as_plotly(rows[position])
        titles = (
            sentence("<b>Lengths</b>, token {token}", token=token),
            sentence("<b>Share and cosines</b>, token {token}", token=token),
        )
        return figure(
            [
                lengths,
                *(_line(*line, columns) for line in lines),
                *_map_traces(shown, self.measures[shown], steps, rows),
            ],
            _panels(steps, CHART / plot),
            height=plot + FOOT + HEAD,
            yaxis={"rangemode": "tozero"},
            yaxis2={"range": [-1.08 if turned else -0.25, 1.08], "tickvals": [-1, -0.5, 0, 0.5, 1]},
            yaxis3=axis_ticks([f"{i} {name}" for i, name in enumerate(labels(self.tokens))], MOST_ROWS)
            | NO_GRID
            | {"range": [len(rows) - 0.5, -0.5]},
            annotations=[text(f"<b>All tokens</b>: {MEASURES[shown].definition}", **TITLE_LEFT | ABOVE_MAP)],
            legend=legend | {"y": 1, "title": {"text": titles[0], "font": {"size": 14}}},
            legend2=legend
            | {
                "y": 1 - (CHART + GAP) / plot,
                "font": {"size": 12},
                "title": {"text": titles[1], "side": "top", "font": {"size": 14}},
            },
            margin={"t": HEAD, "b": FOOT, "l": 60, "r": 80},
            hoverdistance=200,
            bargap=0.45,
            shapes=_marks(steps, position, step),
        )


def _panels(steps: Sequence[str], share: float) -> dict:
    """The axes of the two charts, which share their steps, and of the map; `share` is that of a chart in the height."""
    across = axis_ticks(steps, len(steps)) | {"tickangle": -45, "range": [-0.5, len(steps) - 0.5]}
    places = ((LEFT, (1 - share, 1)), (LEFT, (0, share)), (RIGHT, (0, 1)))
    axes: dict[str, dict] = {}
    for panel, (x, y) in enumerate(places, start=1):
        axes[f"xaxis{suffix(panel)}"] = across | {"domain": x, "anchor": f"y{suffix(panel)}"}
        axes[f"yaxis{suffix(panel)}"] = {"domain": y, "anchor": f"x{suffix(panel)}"}
    axes["xaxis"] |= {"matches": "x2", "showticklabels": False}
    return axes


def _line(
    panel: int, values: Array, name: str, colour: str, dash: str, symbol: str, columns: Mapping[str, object]
) -> dict:
    return curve(
        y=values,
        name=name,
        colour=colour,
        dash=dash,
        symbol=symbol,
        panel=panel,
        legend="legend" if panel == 1 else "legend2",
        unselected={"marker": {"opacity": 1}},
        hover=f"{name} <b>%{{y:.7g}}</b><br>%{{customdata[2]}}",
        **columns,
    )


def _map_traces(shown: str, values: Array, steps: Sequence[str], rows: Sequence[str]) -> list[dict]:
    """The heat map, and an invisible point on each cell, which can be clicked."""
    measure = MEASURES[shown]
    finite = values[np.isfinite(values)]
    low, high = (-1.0, 1.0) if measure.cosine else (0.0, 1.0 if shown == "share" else float(finite.max(initial=0)))
    title = span(low, high)
    ticks = {"tickvals": [low, (low + high) / 2, high], "tickformat": ".3~g"}
    bar_place = {"y": 0, "yanchor": "bottom", "len": 1}
    names = escape(rows)
    places = np.argwhere(np.isfinite(values))
    return [
        heatmap(
            panel=3,
            z=np.ascontiguousarray(values, dtype=np.float32),
            **colours(SIGNED if measure.cosine else WEIGHTS, low, high, title, **ticks, **bar_place),
            ygap=1 if len(rows) <= 30 else 0,
            xgap=1,
        ),
        scatter(
            panel=3,
            x=places[:, 1],
            y=places[:, 0],
            customdata=[[int(p), int(s), steps[s], names[p], float(values[p, s])] for p, s in places],
            hover=f"{measure.definition} <b>%{{customdata[4]:.7g}}</b><br>token %{{customdata[3]}}<br>"
            "%{customdata[2]}",
            **INVISIBLE,
        ),
    ]


def _marks(steps: Sequence[str], position: int, step: int) -> list[dict]:
    """A band behind the chosen step, dotted lines between layers, frames around the chosen row and its cell."""
    layers = [name.split()[0] for name in steps]
    starts = [i - 0.5 for i in range(1, len(steps)) if layers[i] != layers[i - 1]]
    return [
        *(shaded_band(step - 0.5, step + 0.5, BAND, panel) for panel in (1, 2)),
        *(vline(start, panel) for panel in (1, 2, 3) for start in starts),
        frame((0, len(steps) - 1), (position, position), CHOSEN, 2, panel=3),
        frame((step, step), (position, position), CHOSEN, 3, panel=3),
    ]
