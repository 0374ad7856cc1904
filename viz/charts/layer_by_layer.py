"""A token's way through a stack (paper, section 3.1): lengths, shares and cosines at every sub-layer.

Columns are steps: the stack's input, then each sub-layer in the order in which they run.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout, symmetric_range
from viz.tokens import ticks

Array = np.ndarray

LINE = "#7f7f7f"
BAND = "rgba(127,127,127,0.22)"
LINES, GAP, FOOT, HEAD = 130, 84, 90, 84
"""Pixels: each of the two charts of lines, what lies between charts, below them all and above."""


@dataclass(frozen=True)
class Measure:
    """What a map of all tokens can show, by its name in `model.analysis.residual_stream.Path`."""

    title: str
    said: str
    """in one line, for the bar's title"""
    cosine: bool = False


MEASURES: Mapping[str, Measure] = {
    "share": Measure("Share", "‖Sublayer(x)‖ / (‖x‖ + ‖Sublayer(x)‖)"),
    "to_start": Measure("Cosine to input", "cosine with the token's own input", cosine=True),
    "to_previous": Measure("Cosine to step before", "cosine with the step before", cosine=True),
    "norm": Measure("Length", "‖x‖ that goes on"),
    "out": Measure("Length added", "‖Sublayer(x)‖"),
}


def path_chart(
    measures: Mapping[str, Array],
    steps: Sequence[str],
    names: tuple[Sequence[str], Sequence[str]],
    chosen: tuple[int, int],
    shown: str,
) -> go.Figure:
    """The chosen token's lengths, then its share and cosines, then one measure of all tokens as a heat map.

    Every point and cell carries (token, step) as its custom data, so that a click can choose it.

    Args:
        measures: (position, step) each: those of MEASURES, and "added".
        steps: names of the columns.
        names: of the tokens as hovering says them, plain text and unique; and their pieces, for the ticks.
        chosen: token and step to mark.
        shown: the measure of the map.
    """
    rows, tokens = names
    cells = min(max(20 * len(rows), 110), 420)
    plot = 2 * LINES + cells + 2 * GAP
    name = html.escape(rows[chosen[0]])
    titles = ("", "", f"<b>All tokens</b>: {MEASURES[shown].said}")
    rooms = {"vertical_spacing": GAP / plot, "row_heights": [LINES, LINES, cells]}
    draft = grid(3, 1, shared_xaxes=True, titles=titles, **rooms)
    mine = {name: values[chosen[0]] for name, values in measures.items()}
    _lengths(draft, mine, steps, chosen[0])
    _shares(draft, mine, steps, chosen[0])
    _map(draft, measures[shown], steps, rows, (shown, cells / plot))
    layout(draft, plot + FOOT + HEAD, "", "")
    _mark(draft, steps, chosen)
    draft.update_layout(
        legend={"title": {"text": f"<b>Lengths</b>, token {name}"}},
        legend2={"title": {"text": f"<b>Share and cosines</b>, token {name}"}},
    )
    return _dress(draft, steps, tokens, plot)


def similarity_map(similarities: Array, rows: Sequence[str]) -> go.Figure:
    """Cosine of every two tokens, -1 to 1.

    Args:
        similarities: (position, position).
        rows: names of the tokens, plain text and unique.
    """
    names = [html.escape(row) for row in rows]
    draft = Draft().add_heatmap(
        z=np.ascontiguousarray(similarities, dtype=np.float32),
        x=names,
        y=names,
        colorscale=SIGNED,
        zmin=-1,
        zmax=1,
        colorbar={"title": {"text": "cosine<br>−1 to 1"}, "thickness": 12, "tickvals": [-1, -0.5, 0, 0.5, 1]},
        hovertemplate="cosine <b>%{z:.7g}</b><br>%{y}<br>and %{x}<extra></extra>",
    )
    shown, _ = ticks(rows)
    some = {"tickvals": [names[i] for i in shown], "ticktext": [names[i] for i in shown], "showgrid": False}
    layout(draft, 200 + min(max(22 * len(names), 110), 480), "", "")
    draft.update_xaxes(type="category", tickangle=-60, constrain="domain", **some)
    return draft.update_yaxes(
        type="category", autorange="reversed", scaleanchor="x", constrain="domain", automargin=True, **some
    ).figure()


def strips(vectors: Mapping[str, Array], dimension: int) -> go.Figure:
    """Vectors of one token, one above the other, in one colour range that the bar states.

    Args:
        vectors: (d_model,) each, by what they are, top first.
        dimension: the one to frame.
    """
    low, high = symmetric_range(*vectors.values())
    names = list(vectors)
    draft = Draft().add_heatmap(
        z=np.stack([*vectors.values()]).astype(np.float32),
        y=names,
        ygap=5,
        colorscale=SIGNED,
        zmin=low,
        zmax=high,
        colorbar={
            "title": {"text": f"value<br>−{high:.3g} to {high:.3g}"},
            "thickness": 12,
            "tickvals": [low, 0, high],
            "ticktext": [f"−{high:.3g}", "0", f"{high:.3g}"],
        },
        hovertemplate="<b>%{z:.7g}</b><br>%{y}<br>dimension %{x}<extra></extra>",
    )
    frame = {"x0": dimension - 0.5, "x1": dimension + 0.5, "y0": -0.5, "y1": len(names) - 0.5}
    draft.add_shape(type="rect", **frame, line={"color": LINE, "width": 2})
    layout(draft, 70 + 34 * len(names), "dimension", "")
    draft.update_layout(margin={"t": 10})
    draft.update_xaxes(showgrid=False, zeroline=False)
    return draft.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, automargin=True).figure()


def _dress(draft: Draft, steps: Sequence[str], tokens: Sequence[str], plot: int) -> go.Figure:
    """Titles above their legends, the steps' names at the foot, the tokens' at the map; `plot` is in pixels."""
    draft.update_annotations(x=0, xanchor="left", font_size=14, yshift=2)
    # A legend's own title makes room for itself where a narrow window wraps the entries.
    below = {
        "orientation": "h",
        "x": 0,
        "yanchor": "bottom",
        "font_size": 12,
        "title": {"side": "top", "font_size": 14},
    }
    draft.update_layout(
        legend={**below, "y": 1},
        legend2={**below, "y": 1 - (LINES + GAP) / plot},
        margin={"t": HEAD, "b": FOOT, "l": 80},
        hoverdistance=200,
        bargap=0.45,
    )
    names = {"tickmode": "array", "tickvals": np.arange(len(steps)), "ticktext": list(steps)}
    draft.update_xaxes(**names, showgrid=False, zeroline=False, tickangle=-45, range=[-0.5, len(steps) - 0.5])
    rows, text = ticks(tokens)
    text = [f"{row} {name}" for row, name in zip(rows, text, strict=True)]
    draft.update_yaxes(zeroline=False, row=3)
    return draft.update_yaxes(tickvals=rows, ticktext=text, autorange="reversed", showgrid=False, row=3).figure()


def _lengths(draft: Draft, mine: Mapping[str, Array], steps: Sequence[str], position: int) -> None:
    places = _places(position, len(steps))
    draft.add_bar(
        x=places[:, 1],
        y=mine["out"],
        customdata=_said(places, steps),
        name="‖Sublayer(x)‖",
        marker_color=OKABE_ITO[1],
        hovertemplate="‖Sublayer(x)‖ <b>%{y:.7g}</b><br>%{customdata[2]}<extra></extra>",
        row=1,
        col=1,
    )
    _line(draft, (places, steps), mine["added"], "‖x + Sublayer(x)‖", (OKABE_ITO[3], "dot", "diamond"), 1)
    _line(draft, (places, steps), mine["norm"], "‖x‖ that goes on", (OKABE_ITO[0], "solid", "circle"), 1)
    draft.update_yaxes(rangemode="tozero", row=1)


def _shares(draft: Draft, mine: Mapping[str, Array], steps: Sequence[str], position: int) -> None:
    at = _places(position, len(steps)), steps
    _line(draft, at, mine["share"], "share", (OKABE_ITO[1], "dash", "square"), 2)
    _line(draft, at, mine["to_start"], "cosine to input", (OKABE_ITO[2], "solid", "circle"), 2)
    _line(draft, at, mine["to_previous"], "cosine to step before", (OKABE_ITO[4], "dot", "diamond"), 2)
    turned = min(float(np.nanmin(mine[name])) for name in ("to_start", "to_previous")) < -0.2
    draft.update_yaxes(range=[-1.08 if turned else -0.25, 1.08], tickvals=[-1, -0.5, 0, 0.5, 1], row=2)


def _line(
    draft: Draft,
    at: tuple[Array, Sequence[str]],
    values: Array,
    title: str,
    look: tuple[str, str, str],
    row: int,
) -> None:
    """One measure over the steps, in its colour, dash and symbol."""
    colour, dash, symbol = look
    draft.add_scatter(
        x=at[0][:, 1],
        y=values,
        customdata=_said(*at),
        name=title,
        mode="lines+markers",
        line={"color": colour, "dash": dash},
        marker={"symbol": symbol, "size": 8},
        legend="legend" if row == 1 else "legend2",
        unselected={"marker": {"opacity": 1}},
        hovertemplate=f"{title} <b>%{{y:.7g}}</b><br>%{{customdata[2]}}<extra></extra>",
        row=row,
        col=1,
    )


def _map(draft: Draft, values: Array, steps: Sequence[str], rows: Sequence[str], of: tuple[str, float]) -> None:
    """The heat map, and over it a point a cell: Plotly reports clicks on points, and not on cells."""
    measure = MEASURES[of[0]]
    finite = values[np.isfinite(values)]
    low, high = (-1.0, 1.0) if measure.cosine else (0.0, 1.0 if of[0] == "share" else float(finite.max(initial=0)))
    draft.add_trace(
        {
            "type": "heatmap",
            "z": np.ascontiguousarray(values, dtype=np.float32),
            "colorscale": SIGNED if measure.cosine else WEIGHTS,
            "zmin": low,
            "zmax": high,
            "colorbar": _bar(low, high, of[1]),
            "hoverinfo": "skip",
            "ygap": 1 if len(rows) <= 30 else 0,
            "xgap": 1,
        },
        row=3,
        col=1,
    )
    places = np.argwhere(np.isfinite(values))
    said = _said(places, steps, [html.escape(row) for row in rows], values)
    clear = {"marker": {"opacity": 0}}
    draft.add_scatter(
        x=places[:, 1],
        y=places[:, 0],
        customdata=said,
        mode="markers",
        showlegend=False,
        marker={"opacity": 0, "size": 6},
        selected=clear,
        unselected=clear,
        hovertemplate=f"{measure.said} <b>%{{customdata[4]:.7g}}</b><br>token %{{customdata[3]}}<br>%{{customdata[2]}}"
        "<extra></extra>",
        row=3,
        col=1,
    )


def _bar(low: float, high: float, length: float) -> dict:
    return {
        "title": {"text": f"{low:.3g} to {high:.3g}".replace("-", "−")},
        "thickness": 12,
        "y": 0,
        "yanchor": "bottom",
        "len": length,
        "tickvals": [low, (low + high) / 2, high],
        "tickformat": ".3~g",
    }


def _places(position: int, steps: int) -> Array:
    return np.column_stack([np.full(steps, position), np.arange(steps)])


def _said(places: Array, steps: Sequence[str], rows: Sequence[str] = (), values: Array | None = None) -> list[list]:
    """Custom data of points: token, step, the step's name; where given the token's name and the value."""
    return [
        [int(p), int(s), steps[s], *([rows[p], float(values[p, s])] if values is not None else [])] for p, s in places
    ]


def _mark(draft: Draft, steps: Sequence[str], chosen: tuple[int, int]) -> None:
    """A band behind the chosen step, thin lines between layers, a frame around the chosen token's row."""
    position, step = chosen
    layers = [name.split()[0] for name in steps]
    starts = [i - 0.5 for i in range(1, len(steps)) if layers[i] != layers[i - 1]]
    line = {"color": LINE, "width": 1, "dash": "dot"}
    for axis in ("", "2", "3"):
        whole = {"xref": f"x{axis}", "yref": f"y{axis} domain", "y0": 0, "y1": 1}
        if axis != "3":
            band = {"fillcolor": BAND, "line_width": 0, "layer": "below"}
            draft.add_shape(type="rect", x0=step - 0.5, x1=step + 0.5, **band, **whole)
        for start in starts:
            draft.add_shape(type="line", x0=start, x1=start, line=line, **whole)
    for x0, x1, width in ((-0.5, len(steps) - 0.5, 2), (step - 0.5, step + 0.5, 3)):
        frame = {"x0": x0, "x1": x1, "y0": position - 0.5, "y1": position + 0.5, "xref": "x3", "yref": "y3"}
        draft.add_shape(type="rect", **frame, line={"color": OKABE_ITO[5], "width": width})
