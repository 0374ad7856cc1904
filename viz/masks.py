"""Pictures of masks (paper, section 3.2.3): who may look at whom, and the scores and weights on both sides of it.

Rows are queries, columns keys. A masked cell has no colour: it is hatched.
"""

import base64
import html
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.draft import Draft, grid
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout, symmetric_range
from viz.tokens import decoder_rows, numbered, ticks

Array = np.ndarray

MOST_TICKS = 30
_MAY = "#56B4E9"
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


def mask_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, scaled: Array, weights: Array) -> go.Figure:
    """Mask, scaled scores before and after it, and the softmax's weights; the two score maps in one colour range.

    Args:
        rows: names of the queries, from `row_names`.
        keys: names of the keys, plain text.
        mask: bool (query, key), True = may look.
        scaled: (query, key), scores / sqrt(d_k).
        weights: (query, key), 0 to 1.
    """
    low, high = symmetric_range(scaled)
    titles = (
        "1  The mask (blue: may look)",
        "2  Scaled scores, before the mask",
        "3  Scaled scores, after the mask",
        "4  Softmax of 3",
    )
    drawn = (
        (np.ones_like(scaled), "may look", {"colorscale": [[0, _MAY], [1, _MAY]], "showscale": False}, True),
        (scaled, "scaled score <b>%{z:.7g}</b>", {"coloraxis": "coloraxis"}, False),
        (scaled, "scaled score <b>%{z:.7g}</b>", {"coloraxis": "coloraxis"}, True),
        (weights, "weight <b>%{z:.7g}</b>", {"coloraxis": "coloraxis2"}, True),
    )
    draft = grid(2, 2, titles=titles, horizontal_spacing=0.03, vertical_spacing=0.2)
    for number, (values, said, colours, masked) in enumerate(drawn):
        add_map(draft, divmod(number, 2), (rows, keys), (values, mask if masked else np.ones_like(mask)), said, colours)
    each = min(max(20 * len(rows), 110), 330)
    layout(draft, 2 * each + 260, "", "")
    axes(draft, rows, keys)
    draft.update_layout(
        coloraxis=scale(SIGNED, low, high, f"score (2, 3)<br>{low:.3g} to {high:.3g}", 0.8),
        coloraxis2=scale(WEIGHTS, 0, 1, "weight (4)<br>0 to 1", 0.2),
    )
    return draft.figure()


def padding_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, alone: Array, padded: Array) -> go.Figure:
    """A head's weights alone and in a padded batch, masked cells and pads hatched; one colour range, 0 to 1.

    Args:
        rows: names of the sentence's own queries.
        keys: names of its own keys.
        mask: bool (query, key + pads), of the padded batch.
        alone: (query, key).
        padded: (query, key + pads).
    """
    columns = [*keys, *(f"{position} <pad>" for position in range(len(keys), mask.shape[1]))]
    draft = grid(1, 2, titles=("The sentence alone", "The same sentence in the padded batch"))
    for number, (names, values) in enumerate(((keys, alone), (columns, padded))):
        cells = (values, mask[:, : len(names)])
        add_map(draft, (0, number), (rows, names), cells, "weight <b>%{z:.7g}</b>", {"coloraxis": "coloraxis"})
    layout(draft, min(max(20 * len(rows), 110), 400) + 170, "", "")
    axes(draft, rows, keys, columns)
    bar = scale(WEIGHTS, 0, 1, "weight<br>0 to 1", 0.5)
    bar["colorbar"]["len"] = 1
    draft.update_layout(coloraxis=bar)
    draft.add_vline(len(keys) - 0.5, line={"color": OKABE_ITO[5], "width": 2}, row=1, col=2)
    return draft.figure()


def weight_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, maps: Mapping[str, Array]) -> go.Figure:
    """A head's weights in several versions, side by side, masked cells hatched; one colour range, 0 to 1.

    Args:
        rows: names of the queries.
        keys: names of the keys.
        mask: bool (query, key), True = may look.
        maps: title -> weights, (query, key).
    """
    draft = grid(1, len(maps), titles=list(maps), horizontal_spacing=0.02)
    for number, values in enumerate(maps.values()):
        said = "weight <b>%{z:.7g}</b>"
        add_map(draft, (0, number), (rows, keys), (values, mask), said, {"coloraxis": "coloraxis"})
    layout(draft, min(max(20 * len(rows), 110), 400) + 190, "", "")
    axes(draft, rows, *[keys] * len(maps))
    draft.update_yaxes(showticklabels=False)
    draft.update_yaxes(showticklabels=True, col=1)
    bar = scale(WEIGHTS, 0, 1, "weight<br>0 to 1", 0.5)
    bar["colorbar"]["len"] = 1
    draft.update_layout(coloraxis=bar)
    return draft.figure()


def orders_chart(keys: Sequence[str], ways: Mapping[str, Array]) -> go.Figure:
    """The weights of one query, a bar a key and way of masking; the sum of each way in the legend."""
    draft = Draft()
    names = [html.escape(key) for key in keys]
    for (way, values), colour in zip(ways.items(), (OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]), strict=True):
        draft.add_bar(
            x=names,
            y=values,
            name=f"{way}: sum {values.sum():.6f}",
            marker_color=colour,
            hovertemplate=f"%{{x}}<br>{way}: <b>%{{y:.7g}}</b><extra></extra>",
        )
    layout(draft, 360, "key", "weight")
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_xaxes(**some_ticks(names), type="category", showgrid=False)
    draft.update_yaxes(range=[0, 1])
    return draft.figure()


def cells_table(rows: Sequence[str], keys: Sequence[str], mask: Array, scaled: Array, weights: Array) -> pd.DataFrame:
    """One line a cell, queries first."""
    return pd.DataFrame(
        {
            "query": np.repeat(np.array(rows, dtype=object), len(keys)),
            "key": np.tile(np.array(keys, dtype=object), len(rows)),
            "may_look": mask.ravel(),
            "scaled_score": scaled.ravel(),
            "weight": weights.ravel(),
        }
    )


def pad_names(tokens: Sequence[str], pads: int) -> list[str]:
    """Names of the keys of a padded sentence, the pads last."""
    return numbered([*tokens, *["<pad>"] * pads])


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
