"""Heat maps of queries (rows) and keys (columns) with token labels; masked cells are hatched, not coloured."""

import base64
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import NO_GRID, escape, figure, frame, grid, heatmap, merge, panels, suffix
from viz.labels import say_label, set_symbols
from viz.latex import signed
from viz.theme import GUIDE, SIGNED, WEIGHTS, Array, flat_bar
from viz.tokens import MOST_TICKS, Verbatim, axis_ticks, decoder_names, labels, numbered, text_width

_HATCH = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600"><defs><pattern id="h" width="7" height="7" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1.4" height="7" fill="#8C8C8C"/>'
    '</pattern></defs><rect width="600" height="600" fill="url(#h)"/></svg>'
)
CLEAR = {"colorscale": [[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]], "showscale": False}
MASKED = "masked: score −∞, attention weight exactly 0"
QUERY_AND_KEY = "<br>query %{y}<br>key %{x}"
WEIGHT = "attention weight <b>%{z:.7g}</b>"
MOST_KEYS = 16
"""Labels below a map that shares its row with two others; with more it has less room."""
MOST_ROWS = 22
"""Labels beside a map that is as high as a screen allows: 15 pixels each."""


@dataclass(frozen=True)
class Map:
    """One of several maps with the same queries."""

    title: str
    values: Array
    """(query, key)"""
    mask: Array
    """bool (query, key), True = visible"""
    hover: str = WEIGHT
    colours: Mapping = field(default_factory=lambda: {"coloraxis": "coloraxis"})
    keys: Sequence[str] | None = None
    """names of the keys where they are not those of the other maps"""


def row_names(tokens: Sequence[str], next_tokens: Sequence[str] | None) -> list[str]:
    """One unique plain-text name for each query: "3 kitchen", or for a decoder row "3 Küche → “.”".

    Args:
        tokens: what each row reads.
        next_tokens: what each row predicts; None outside the decoder.
    """
    if next_tokens is None:
        return numbered(tokens)
    names = decoder_names(labels(tokens), labels(next_tokens))
    return [f"{position} {name}" for position, name in enumerate(names)]


NAMES = {"type": "category"}
"""of an axis of names, which Plotly would take for numbers where they look like some: "0.1", the patch of an image"""


def map_grid(
    rows: Sequence[str],
    keys: Sequence[str],
    maps: Sequence[Map],
    columns: int | None = None,
    axes: tuple[str, str] = ("query", "key"),
    **spacing: Any,
) -> tuple[list[dict], dict]:
    """Traces and layout of several maps in a grid; zooming into one zooms into all.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        maps: the maps, row by row.
        columns: maps next to each other; all of them if not given.
        axes: what rows and columns are, for the hover text.
        spacing: as of viz.figure.grid.
    """
    columns = columns or len(maps)
    traces, images = [], []
    for panel, each in enumerate(maps, start=1):
        traces += map_traces((rows, each.keys or keys), (each.values, each.mask), each.hover, each.colours, panel, axes)
        images += [] if each.mask.all() else [hatching(panel)]
    right = [panel for panel in range(1, len(maps) + 1) if panel % columns != 1 and columns > 1]
    most = MOST_TICKS if columns < 3 else MOST_KEYS * 3 // columns
    return traces, merge(
        grid(
            -(-len(maps) // columns),
            columns,
            [each.title for each in maps],
            xaxis={"tickangle": -60, "type": "category"}
            | ({} if any(each.keys for each in maps) else {"matches": "x"}),
            yaxis=NO_GRID
            | {"type": "category", "range": [len(rows) - 0.5, -0.5], "matches": "y"}
            | axis_ticks(rows, MOST_ROWS),
            **spacing,
        ),
        {f"xaxis{suffix(n)}": axis_ticks(each.keys or keys, most) for n, each in enumerate(maps, start=1)},
        panels("yaxis", right, {"showticklabels": False, "ticks": ""}),
        {"images": images} if images else {},
    )


def map_traces(
    names: tuple[Sequence[str], Sequence[str]],
    cells: tuple[Array, Array],
    hover: str,
    colours: Mapping,
    panel: int = 1,
    axes: tuple[str, str] = ("query", "key"),
) -> list[dict]:
    """A heat map of the visible cells and, where any are masked, a transparent one whose hover text says so.

    Args:
        names: of queries and keys, plain text, unique.
        cells: values and bool mask, (query, key) each.
        hover: hover text of a value, before the names of query and key.
        colours: colour properties of the trace.
        panel: which panel of the grid.
        axes: as in `map_grid`.
    """
    place = f"<br>{axes[0]} %{{y}}<br>{axes[1]} %{{x}}"
    rows, keys = map(escape, names)
    values, mask = cells
    # No gaps between cells: without them Plotly sends the browser one pixel a cell, and draws in half the time.
    shared = {"panel": panel, "x": keys, "y": rows, "hoverongaps": False}
    visible = np.where(mask, values, np.nan).astype(np.float32)
    traces = [heatmap(z=visible, hover=hover + place, **shared, **colours)]
    if not mask.all():
        hidden = np.where(mask, np.nan, 0).astype(np.float32)
        traces.append(heatmap(z=hidden, hover=MASKED + place, **shared, **CLEAR))
    return traces


def hatching(panel: int = 1) -> dict:
    """A layout image: slanted lines behind the map of a panel, seen wherever a cell has no colour."""
    refs = {"xref": f"x{suffix(panel)} domain", "yref": f"y{suffix(panel)} domain"}
    source = "data:image/svg+xml;base64," + base64.b64encode(_HATCH.encode()).decode()
    return {"source": source, "sizing": "stretch", "layer": "below", "x": 0, "y": 1, "sizex": 1, "sizey": 1, **refs}


def cells_height(count: int, most: int, each: int = 20) -> int:
    """Height of a map of `count` rows in pixels: `each` a row, at least 110, at most `most`."""
    return min(max(each * count, 110), most)


def colour_axis(scale: str, low: float, high: float, title: str, **bar: Any) -> dict:
    """A colour axis whose bar states its range; `bar` holds further properties of the bar, such as its place."""
    above = {"side": "top", "font": {"size": 13}} if bar.get("orientation") == "h" else {}
    bar = {"title": {"text": title, **above}, "thickness": 12, "tickvals": [low, (low + high) / 2, high], **bar}
    return {"colorscale": scale, "cmin": low, "cmax": high, "colorbar": {"tickformat": ".3~g", **bar}}


def colours(scale: str, low: float, high: float, title: str = "", **bar: Any) -> dict:
    """Colour properties of a map with a range of its own; without a title it has no colour bar."""
    colour_bar = {"colorbar": {"title": {"text": title}, "thickness": 12, **bar}} if title else {"showscale": False}
    return {"colorscale": scale, "zmin": low, "zmax": high, **colour_bar}


def weight_axis(title: str = "attention<br>weight<br>0 to 1", **bar: Any) -> dict:
    """The colour axis of attention weights, from 0 to 1."""
    return colour_axis(WEIGHTS, 0, 1, title, **bar)


def bar_below(x: float, length: float, below: float) -> dict:
    """Place of a colour bar under the maps, where it takes no width from them.

    Args:
        x: its middle, 0 to 1.
        length: 0 to 1.
        below: distance from the maps, in heights of the maps: room for their labels.
    """
    place = {"x": x, "xanchor": "center", "len": length, "y": -below, "yanchor": "top"}
    return {"orientation": "h", **place}


def slanted_room(names: Sequence[str], most: int = 1000) -> int:
    """Approximate height in pixels of labels of 12 pixels at 60 degrees; `most` as in `text_width`."""
    return 18 + round(0.87 * text_width(names, most=most))


def half_bar(y: float) -> dict:
    """Place of one of two colour bars that stand above each other; `y` is its middle."""
    return {"len": 0.44, "yanchor": "middle", "y": y}


def vector_strips(
    vectors: Mapping[str, Array], dimension: int | None, limits: tuple[float, float], title: str, height: int
) -> go.Figure:
    """Vectors of one token, one above the other, in one colour range that the bar states.

    Args:
        vectors: (d_model,) by name, top first.
        dimension: the one to frame; None: none.
        limits: of the colours.
        title: of the x axis.
        height: in pixels.
    """
    names = [say_label(name) for name in vectors]
    z = np.stack([*vectors.values()]).astype(np.float32)
    return figure(
        [heatmap(z=z, y=names, ygap=6, coloraxis="coloraxis", hover="<b>%{z:.7g}</b><br>%{y}<br>dimension %{x}")],
        height=height,
        margin={"t": 122, "l": 105, "b": 74},
        coloraxis=signed_axis(limits),
        xaxis={"title": title},
        yaxis=NO_GRID
        | {
            "tickvals": names,
            "ticktext": [Verbatim(set_symbols("<br>".join(textwrap.wrap(name, 15)))) for name in names],
            "autorange": "reversed",
        },
        shapes=[] if dimension is None else [frame((dimension, dimension), (0, len(names) - 1), GUIDE)],
    )


def signed_axis(limits: tuple[float, float], title: str = "value", beyond: bool = False) -> dict:
    """A colour axis of signed values, its range written on a bar above the figure; `beyond`: some lie outside it."""
    ticks = np.linspace(*limits, 3)
    texts = [
        f"{sign}{signed(tick)}" for sign, tick in zip(("≤ ", "", "≥ ") if beyond else [""] * 3, ticks, strict=True)
    ]
    bar = flat_bar(title) | {"tickvals": ticks, "ticktext": texts}
    return {"colorscale": SIGNED, "cmin": limits[0], "cmax": limits[1], "colorbar": bar}


def cells_table(rows: Sequence[str], keys: Sequence[str], columns: Mapping[str, Array]) -> pd.DataFrame:
    """One line for each cell, queries first; each of `columns` is (query, key)."""
    names = {"query": np.repeat(np.array(rows, dtype=object), len(keys)), "key": [*keys] * len(rows)}
    return pd.DataFrame(names | {name: values.ravel() for name, values in columns.items()})
