"""Figures of What if: an intervention's effect on token probabilities, on the weights of a head, and on every head."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import candidate_axis, candidate_bars, position_bars
from viz.figure import GROUPED_BARS, INVISIBLE, NO_GRID, escape, figure, frame, grid, heatmap, merge, panels, scatter
from viz.heatmap import (
    QUERY_AND_KEY,
    Map,
    bar_below,
    cells_height,
    colour_axis,
    map_grid,
    signed,
    slanted_room,
    weight_axis,
)
from viz.theme import CHOSEN, OKABE_ITO, SIGNED, WEIGHTS, symmetric_range
from viz.tokens import labels, token_ticks

Array = np.ndarray

BEFORE = {"color": OKABE_ITO[0]}
AFTER = {"color": OKABE_ITO[1], "pattern": {"shape": "/"}}
"""Hatched, so that before and after differ in more than their colour."""
DIFFERENCE = {"color": OKABE_ITO[3]}


def log_probability_bars(next_tokens: Sequence[str], before: Array, after: Array) -> go.Figure:
    """The log-probability of each target token before and after, and below it the difference.

    Args:
        next_tokens: the target's pieces.
        before: (position,) nats, at most 0.
        after: (position,) nats.
    """
    names = labels(next_tokens)
    series = (
        ("before", before, BEFORE, 1),
        ("after", after, AFTER, 1),
        ("after − before", after - before, DIFFERENCE, 2),
    )
    return figure(
        [position_bars(names, values, name, marker, unit=" nats", panel=n) for name, values, marker, n in series],
        grid(2, shared_xaxes=True, vertical_spacing=0.08, xaxis=token_ticks(next_tokens)),
        GROUPED_BARS,
        height=430,
        xaxis2={"title": "target token"},
        yaxis={"title": "log p (nats)"},
        yaxis2={"title": "difference (nats)"},
    )


def candidate_change_bars(tokens: Sequence[str], before: Array, after: Array, written: int) -> go.Figure:
    """Probabilities of the next token at one position, before and after, and beside them the difference.

    Args:
        tokens: pieces, the most probable first, and last the name of the rest of the vocabulary.
        before: (token,) probabilities, the last that of the rest.
        after: (token,)
        written: index of the target's own token, in bold.
    """
    names = escape([*labels(tokens[:-1]), tokens[-1]])
    low, high = (1.4 * limit for limit in symmetric_range(after - before))
    return figure(
        [
            candidate_bars(names, before, "before", BEFORE),
            candidate_bars(names, after, "after", AFTER),
            candidate_bars(names, after - before, "after − before", DIFFERENCE, "+.2%", panel=2),
        ],
        grid(
            1,
            2,
            shared_yaxes=True,
            column_widths=[0.62, 0.38],
            horizontal_spacing=0.04,
            xaxis={"tickformat": ".0%"},
            yaxis=candidate_axis(names, written) | {"range": [len(names) - 0.4, -0.6]},
        ),
        GROUPED_BARS,
        height=120 + 40 * len(names),
        xaxis={"range": [0, 1.15], "tickvals": [0, 0.5, 1], "title": "probability"},
        xaxis2={"range": [low, high], "nticks": 4, "title": "difference"},
    )


def weight_change_maps(
    rows: Sequence[str],
    keys: Sequence[str],
    weights: tuple[Array, Array],
    masks: tuple[Array, Array],
    edited: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """A head's attention weights before and after, in one range from 0 to 1, and their difference, centred on 0.

    The cells of the first map can be clicked: an invisible point lies on each, in the order of the matrix.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        weights: (query, key) before and after.
        masks: bool (query, key) before and after, True = visible.
        edited: (query, key) of the mask cells that the user has changed, marked in the first map.
    """
    before, after = weights
    difference = (after - before).astype(np.float32)
    low, high = symmetric_range(difference)
    traces, layout = map_grid(
        rows,
        keys,
        (
            Map("Before", before, masks[0], "weight before <b>%{z:.7g}</b>"),
            Map("After", after, masks[1], "weight after <b>%{z:.7g}</b>"),
            Map(
                "After − before",
                difference,
                masks[0] | masks[1],
                "after − before <b>%{z:+.7g}</b>",
                {"coloraxis": "coloraxis2"},
            ),
        ),
        horizontal_spacing=0.03,
    )
    plot, label_room = max(cells_height(len(rows), 560, 22), 220), slanted_room(keys)
    return figure(
        [*traces, *_click_targets(rows, keys, (before, masks[0]), set(edited))],
        layout,
        # Points would get a margin around them, which no heat map has.
        panels("xaxis", (1, 2, 3), {"range": [-0.5, len(keys) - 0.5]}),
        panels("yaxis", (1, 2, 3), {"autorange": False, "range": [len(rows) - 0.5, -0.5]}),
        height=40 + plot + label_room + 84,
        margin={"b": label_room + 84, "r": 10},
        coloraxis=weight_axis("attention weight, 0 to 1", **bar_below(0.33, 0.4, label_room / plot)),
        coloraxis2=colour_axis(
            SIGNED,
            low,
            high,
            f"difference, {signed(low)} to {signed(high)}",
            **bar_below(0.86, 0.26, label_room / plot),
        ),
        hoverdistance=60,
        clickmode="event+select",
        dragmode="zoom",
    )


def _click_targets(
    rows: Sequence[str], keys: Sequence[str], cells: tuple[Array, Array], edited: set[tuple[int, int]]
) -> list[dict]:
    """A point on each cell, and a cross on each edited one."""
    weights, mask = cells
    rows, keys = escape(rows), escape(keys)
    actions, values = [], []
    for cell in np.ndindex(mask.shape):
        action = "click to forbid this cell" if mask[cell] else "click to allow this cell"
        actions.append("edited: click to undo" if cell in edited else action)
        values.append(f"{weights[cell]:.7g}" if mask[cell] else "0 (masked)")
    crossed = [(query, key) for query, key in sorted(edited) if query < len(rows) and key < len(keys)]
    hover = "weight before <b>%{hovertext}</b>" + QUERY_AND_KEY + "<br>%{customdata}"
    cross = {"symbol": "x", "size": 10, "color": "#FFFFFF", "line": {"color": "#000000", "width": 1.5}}
    return [
        scatter(
            x=[*keys] * len(rows),
            y=[row for row in rows for _ in keys],
            hovertext=values,
            customdata=actions,
            hover=hover,
            **INVISIBLE,
        ),
        scatter(
            x=[keys[key] for _, key in crossed],
            y=[rows[query] for query, _ in crossed],
            mode="markers",
            marker=cross,
            showlegend=False,
        ),
    ]


def head_change_maps(changes: Mapping[str, Array], names: Mapping[str, str], chosen: tuple[str, int, int]) -> go.Figure:
    """The largest |difference| of any attention weight of each head: a map for each kind, in one range from 0.

    Args:
        changes: kind -> (layers, heads).
        names: kind -> its title.
        chosen: kind, layer and head to frame.
    """
    highest = max(float(values.max()) for values in changes.values()) or 1.0
    kinds = list(changes)
    traces = [
        heatmap(
            panel=panel,
            z=np.ascontiguousarray(values, dtype=np.float32),
            coloraxis="coloraxis",
            texttemplate="%{z:.2f}" if values.size <= 64 else None,
            xgap=2,
            ygap=2,
            hover=f"{names[kind]}<br>layer %{{y}}, head %{{x}}<br>largest change of a weight <b>%{{z:.7g}}</b>",
        )
        for panel, (kind, values) in enumerate(changes.items(), start=1)
    ]
    whole = {"tickmode": "linear", "dtick": 1}
    _, layer, head = chosen
    return figure(
        traces,
        grid(
            1,
            len(kinds),
            [names[kind] for kind in kinds],
            horizontal_spacing=0.05,
            xaxis=whole | {"title": "head"},
            yaxis=whole | NO_GRID | {"autorange": "reversed"},
        ),
        height=130 + 34 * max(len(values) for values in changes.values()),
        yaxis={"title": "layer"},
        shapes=[frame((head, head), (layer, layer), CHOSEN, 3, panel=kinds.index(chosen[0]) + 1)]
        if chosen[0] in kinds
        else [],
        coloraxis=merge(
            colour_axis(WEIGHTS, 0, highest, f"0 to {highest:.2g}"), {"colorbar": {"tickvals": None, "nticks": 4}}
        ),
    )
