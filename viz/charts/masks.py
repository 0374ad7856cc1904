"""Pictures of masks (paper, section 3.2.3): which keys each query may attend to, and what leaks without the mask.

Rows are queries, columns keys. A masked cell has no colour: it is hatched.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.heatmap import Array, add_map, axes, scale, some_ticks
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout, symmetric_range
from viz.tokens import labels, numbered, ticks

_MAY = "#56B4E9"


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


Array = np.ndarray


def probability_bars(
    next_tokens: Sequence[str],
    before: Array,
    after: Array,
    said: tuple[str, str] = ("causal mask on", "causal mask lifted"),
) -> go.Figure:
    """The probability of the right next token at each position: before, after, difference.

    Args:
        next_tokens: the right token of each position.
        before: (position,), 0 to 1.
        after: (position,), 0 to 1, after the change.
        said: what `before` and `after` are.
    """
    draft = Draft()
    names = [html.escape(label) for label in labels(next_tokens)]
    for name, values, colour in (
        (f"before: {said[0]}", before, OKABE_ITO[0]),
        (f"after: {said[1]}", after, OKABE_ITO[1]),
        ("difference: after − before", after - before, OKABE_ITO[3]),
    ):
        draft.add_bar(
            x=np.arange(len(names)),
            y=values,
            name=name,
            customdata=names,
            marker_color=colour,
            hovertemplate=f"position %{{x}}, right token %{{customdata}}<br>{name}: <b>%{{y:.6f}}</b><extra></extra>",
        )
    shown, texts = ticks(next_tokens)
    layout(draft, 360, "right next token", "its probability")
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_xaxes(tickvals=shown, ticktext=texts, showgrid=False, zeroline=False)
    draft.update_yaxes(range=[-1 if (after < before).any() else 0, 1], zeroline=True)
    return draft.figure()


def leak_map(mass: Array, rows: Sequence[str]) -> go.Figure:
    """Weight on the future, a row a head, a column a position; 0 to 1.

    Args:
        mass: (head, position).
        rows: names of the decoder rows, plain text.
    """
    names = [html.escape(row) for row in rows]
    heads = [f"head {head}" for head in range(len(mass))]
    draft = Draft().add_heatmap(
        z=np.ascontiguousarray(mass, dtype=np.float32),
        x=names,
        y=heads,
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        colorbar={"title": {"text": "weight on<br>the future,<br>0 to 1"}, "thickness": 12},
        hovertemplate="%{y}, row %{x}<br>weight on later positions <b>%{z:.7g}</b><extra></extra>",
    )
    shown, _ = ticks(names)
    layout(draft, 290 + 22 * len(heads), "decoder row (query)", "")
    draft.update_xaxes(
        tickmode="array", tickvals=shown, ticktext=[names[i] for i in shown], showgrid=False, tickangle=-60
    )
    draft.update_yaxes(autorange="reversed", showgrid=False)
    return draft.figure()


def leak_table(rows: Sequence[str], before: Array, after: Array, moved: Array, future: Array) -> pd.DataFrame:
    """One line a position.

    Args:
        rows: names of the decoder rows.
        before: (position,) probability of the right next token with the mask.
        after: (position,) without it.
        moved: (position,) share of the whole distribution that moved.
        future: (position,) attention weight on later positions, the mean of the layer's heads.
    """
    return pd.DataFrame(
        {
            "row": rows,
            "before": before,
            "after": after,
            "difference": after - before,
            "distribution moved": moved,
            "weight on the future": future,
        }
    )
