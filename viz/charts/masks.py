"""Figures of Masks (paper, section 3.2.3): which keys each query may attend to, and what leaks without the mask."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.bars import position_chart
from viz.figure import GROUPED_BARS, bar, escape, figure, heatmap, vline
from viz.heatmap import Map, cells_height, colour_axis, colours, half_bar, map_grid, slanted_room, weight_axis
from viz.theme import CHOSEN, OKABE_ITO, SIGNED, WEIGHTS, symmetric_range
from viz.tokens import MOST_ROOM, axis_ticks, labels, numbered

Array = np.ndarray

BESIDE = 146
"""pixels for the colour bars at the right and their titles"""
VISIBLE = {"colorscale": [[0, "#56B4E9"], [1, "#56B4E9"]], "showscale": False}


def mask_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, scaled: Array, weights: Array) -> go.Figure:
    """Mask, scaled scores before and after it, and attention weights; both score maps share one colour range.

    Args:
        rows: names of the queries, from `viz.heatmap.row_names`.
        keys: names of the keys, plain text.
        mask: bool (query, key), True = visible.
        scaled: (query, key), scores / sqrt(d_k).
        weights: (query, key), 0 to 1.
    """
    low, high = symmetric_range(scaled)
    score = "scaled score <b>%{z:.7g}</b>"
    traces, layout = map_grid(
        rows,
        keys,
        (
            Map("1  The mask (blue: visible)", np.ones_like(scaled), mask, "visible", VISIBLE),
            Map("2  Scaled scores, before the mask", scaled, np.ones_like(mask), score),
            Map("3  Scaled scores, after the mask", scaled, mask, score),
            Map("4  Softmax of 3: attention weights", weights, mask, colours={"coloraxis": "coloraxis2"}),
        ),
        columns=2,
        horizontal_spacing=0.03,
        vertical_spacing=0.2,
    )
    return figure(
        traces,
        layout,
        height=2 * cells_height(len(rows), 330) + 260,
        margin={"b": 18 + slanted_room(keys, MOST_ROOM), "r": BESIDE},
        coloraxis=colour_axis(SIGNED, low, high, f"score (2, 3)<br>{low:.3g} to {high:.3g}", **half_bar(0.8)),
        coloraxis2=weight_axis("weight (4)<br>0 to 1", **half_bar(0.2)),
    )


def padding_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, alone: Array, padded: Array) -> go.Figure:
    """A head's attention weights for the sentence alone and in a padded batch, in one colour range from 0 to 1.

    Args:
        rows: names of the sentence's own queries.
        keys: names of its own keys.
        mask: bool (query, key + pads), of the padded batch.
        alone: (query, key).
        padded: (query, key + pads).
    """
    columns = [*keys, *(f"{position} <pad>" for position in range(len(keys), mask.shape[1]))]
    maps = (
        Map("The sentence alone", alone, mask[:, : len(keys)], keys=keys),
        Map("The same sentence in the padded batch", padded, mask, keys=columns),
    )
    return figure(
        *map_grid(rows, keys, maps),
        height=cells_height(len(rows), 400) + 170,
        margin={"b": 18 + slanted_room(columns, MOST_ROOM), "r": BESIDE},
        coloraxis=weight_axis(len=1, y=0.5),
        shapes=[vline(len(keys) - 0.5, panel=2, color=CHOSEN, width=2, dash="solid")],
    )


def weight_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, maps: Mapping[str, Array]) -> go.Figure:
    """Several versions of a head's attention weights side by side, in one colour range from 0 to 1.

    Args:
        rows: names of the queries.
        keys: names of the keys.
        mask: bool (query, key), True = visible.
        maps: title -> weights, (query, key).
    """
    traces, layout = map_grid(
        rows, keys, [Map(title, values, mask) for title, values in maps.items()], horizontal_spacing=0.02
    )
    return figure(
        traces,
        layout,
        height=cells_height(len(rows), 400) + 190,
        margin={"b": 18 + slanted_room(keys, MOST_ROOM), "r": BESIDE},
        coloraxis=weight_axis(len=1, y=0.5),
    )


def masking_bars(keys: Sequence[str], variants: Mapping[str, Array]) -> go.Figure:
    """The attention weights of one query under three ways of masking, with the sum of each in the legend.

    Args:
        keys: names of the keys, plain text.
        variants: name -> weights, (key,).
    """
    names = escape(keys)
    return figure(
        [
            bar(
                x=names,
                y=values,
                name=f"{name}: sum {values.sum():.6f}",
                marker={"color": colour},
                hover=f"%{{x}}<br>{name}: <b>%{{y:.7g}}</b>",
            )
            for (name, values), colour in zip(variants.items(), (OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]), strict=True)
        ],
        GROUPED_BARS,
        height=360,
        xaxis=axis_ticks(keys) | {"title": "key", "type": "category"},
        yaxis={"title": "attention weight", "range": [0, 1]},
    )


def pad_names(tokens: Sequence[str], pads: int) -> list[str]:
    """Names of the keys of a padded sentence, the pads last."""
    return numbered([*tokens, *["<pad>"] * pads])


def probability_bars(
    next_tokens: Sequence[str],
    before: Array,
    after: Array,
    names: tuple[str, str] = ("causal mask on", "causal mask lifted"),
) -> go.Figure:
    """The probability of the correct next token at each position: before, after, difference.

    Args:
        next_tokens: the correct token of each position.
        before: (position,), 0 to 1.
        after: (position,), 0 to 1, with the intervention.
        names: what `before` and `after` are.
    """
    difference = after - before
    series = {
        f"before: {names[0]}": (before, {"color": OKABE_ITO[0]}),
        f"after: {names[1]}": (after, {"color": OKABE_ITO[1]}),
        "difference: after − before": (difference, {"color": OKABE_ITO[3]}),
    }
    return position_chart(
        labels(next_tokens),
        series,
        360,
        ("correct next token", "its probability"),
        what="correct token at position",
        yaxis={"range": [-1 if (difference < 0).any() else 0, 1], "zeroline": True},
    )


def future_weight_map(mass: Array, rows: Sequence[str]) -> go.Figure:
    """The attention weight that each head puts on later positions, 0 to 1.

    Args:
        mass: (head, position).
        rows: names of the decoder rows, plain text.
    """
    return figure(
        [
            heatmap(
                z=np.ascontiguousarray(mass, dtype=np.float32),
                x=escape(rows),
                y=[f"head {head}" for head in range(len(mass))],
                **colours(WEIGHTS, 0, 1, "weight on<br>later positions,<br>0 to 1"),
                hover="%{y}, row %{x}<br>weight on later positions <b>%{z:.7g}</b>",
            )
        ],
        height=290 + 22 * len(mass),
        xaxis=axis_ticks(rows) | {"title": "decoder row (query)", "tickangle": -60},
        yaxis={"autorange": "reversed", "showgrid": False},
    )


def leak_table(rows: Sequence[str], before: Array, after: Array, moved: Array, future: Array) -> pd.DataFrame:
    """One line for each position.

    Args:
        rows: names of the decoder rows.
        before: (position,) probability of the correct next token with the mask.
        after: (position,) without it.
        moved: (position,) total variation distance of the two distributions, 0 to 1.
        future: (position,) attention weight on later positions, the mean of the layer's heads.
    """
    return pd.DataFrame(
        {
            "row": rows,
            "before": before,
            "after": after,
            "difference": after - before,
            "distribution moved": moved,
            "weight on later positions": future,
        }
    )
