"""Heat maps of queries and keys: cells, hatching, axes with tokens, colour bars that state their range.

Rows are queries, columns keys. A masked cell has no colour: it is hatched.
"""

import base64
import html
from collections.abc import Mapping, Sequence

import numpy as np

from viz.figure import Draft
from viz.tokens import decoder_rows, numbered, ticks

Array = np.ndarray

MOST_TICKS = 30
_HATCH = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600"><defs><pattern id="h" width="7" height="7" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1.4" height="7" fill="#8C8C8C"/>'
    '</pattern></defs><rect width="600" height="600" fill="url(#h)"/></svg>'
)
CLEAR = [[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]]
_BAR = {"thickness": 12, "len": 0.44, "yanchor": "middle"}


def row_names(tokens: Sequence[str], next_tokens: Sequence[str] | None) -> list[str]:
    """One name a query, as plain text: "3 kitchen"; of a decoder row "3 reads Küche, predicts .".

    Args:
        tokens: what each row reads.
        next_tokens: what each row predicts; None outside the decoder.
    """
    if next_tokens is None:
        return numbered(tokens)
    return [f"{position} {row}" for position, row in enumerate(decoder_rows(tokens, next_tokens))]


def add_map(
    draft: Draft,
    place: tuple[int, int],
    names: tuple[Sequence[str], Sequence[str]],
    cells: tuple[Array, Array],
    said: str,
    colours: Mapping,
) -> None:
    """One heat map; below it the hatching, which shows where a cell has no colour, and hovering says why."""
    row, col = place[0] + 1, place[1] + 1
    for trace in map_traces(names, cells, said, colours):
        draft.add_trace(trace, row, col)
    if not cells[1].all():
        add_hatching(draft, row, col)


def map_traces(
    names: tuple[Sequence[str], Sequence[str]], cells: tuple[Array, Array], said: str, colours: Mapping
) -> list[dict]:
    """A heat map of the cells that no mask hides and, if it hides any, a clear one of those, as plain dicts."""
    rows, keys = ([html.escape(name) for name in side] for side in names)
    values, mask = cells
    hover = "<br>query %{y}<br>key %{x}<extra></extra>"
    # No gaps between cells: without them Plotly sends the browser one pixel a cell, and draws in half the time.
    shared = {"type": "heatmap", "x": keys, "y": rows, "hoverongaps": False}
    seen = np.where(mask, values, np.nan).astype(np.float32)
    traces = [{"z": seen, "hovertemplate": said + hover, **shared, **colours}]
    if not mask.all():
        hidden = np.where(mask, np.nan, 0).astype(np.float32)
        why = "masked: −∞ before the softmax, weight exactly 0"
        clear = {"colorscale": CLEAR, "showscale": False}
        traces.append({"z": hidden, "hovertemplate": why + hover, **shared, **clear})
    return traces


def add_hatching(draft: Draft, row: int, col: int) -> None:
    """Behind one map: it shows where a cell has no colour."""
    draft.add_layout_image(hatching(), row=row, col=col)


def hatching() -> dict:
    """A picture of slanted lines as large as the map, below it."""
    source = "data:image/svg+xml;base64," + base64.b64encode(_HATCH.encode()).decode()
    whole = {"x": 0, "y": 1, "sizex": 1, "sizey": 1, "xref": "x domain", "yref": "y domain"}
    return {"source": source, "sizing": "stretch", "layer": "below", **whole}


def axes(draft: Draft, rows: Sequence[str], *keys: Sequence[str]) -> None:
    """Token labels on both axes; zooming into one map zooms into all that share its columns."""
    plain = {"showgrid": False, "zeroline": False}
    draft.update_xaxes(**plain, tickangle=-60)
    draft.update_yaxes(**plain, autorange="reversed", matches="y")
    draft.update_yaxes(**some_ticks([html.escape(name) for name in rows]), col=1)
    draft.update_yaxes(showticklabels=False, col=2)
    for column, names in enumerate(keys if len(keys) > 1 else [*keys, *keys], start=1):
        draft.update_xaxes(**some_ticks([html.escape(name) for name in names]), col=column)
    if len(keys) == 1:
        draft.update_xaxes(matches="x")


def some_ticks(names: Sequence[str]) -> dict:
    """At most MOST_TICKS labels, evenly spread."""
    shown, _ = ticks(names, MOST_TICKS)
    return {"tickmode": "array", "tickvals": shown, "ticktext": [names[i] for i in shown]}


def scale(name: str, low: float, high: float, title: str, y: float) -> dict:
    """A colour axis whose bar states its range; `y` is the bar's middle."""
    bar = {"title": {"text": title}, "tickvals": [low, (low + high) / 2, high], "tickformat": ".3~g"}
    return {"colorscale": name, "cmin": low, "cmax": high, "colorbar": _BAR | bar | {"y": y}}
