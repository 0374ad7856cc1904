"""Two heads' attention weights in one colour range, and their difference where both have the cell.

Rows are queries, columns keys. A cell without a colour is hatched: masked, or not there on one of the sides.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.heatmap import CLEAR, MOST_TICKS, add_hatching, scale
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout, symmetric_range

Array = np.ndarray
Pair = tuple[int | None, int | None]

LONGEST_TICK, LONGEST_BETWEEN = 22, 10
"""characters of a label, left of the first map and between the maps"""
MOST_KEYS = 16
"""labels below one of three maps"""
ARROW = " → "
"""in a decoder row's short name, between what it reads and what it predicts"""
_PLACE = "<br>query %{y}<br>key %{x}<extra></extra>"
_MASKED = "masked: −∞ before the softmax, weight exactly 0"


@dataclass(frozen=True)
class Panel:
    """One side: a head's weights and what its rows and columns are called, as plain text."""

    rows: Sequence[str]
    """names of the queries, unique"""
    ticks: Sequence[str]
    """the same, shorter: beside the map"""
    keys: Sequence[str]
    weights: Array
    """(query, key), 0 to 1"""
    mask: Array
    """bool (query, key), True = may look"""


@dataclass(frozen=True)
class Shared:
    """Which rows and keys of both sides belong together, and the difference."""

    rows: Sequence[Pair]
    """a row of the left and of the right, None where a side lacks it"""
    keys: Sequence[Pair]
    difference: Array
    """(row, key) right − left; NaN where a side lacks the cell"""


@dataclass(frozen=True)
class _Layer:
    """Cells that say the same when the pointer is on them."""

    cells: Array
    said: str
    values: Array | None = None
    """None: without a colour"""
    more: Array | None = None
    """(row, key, n): further numbers that `said` names"""


def side_maps(left: Panel, right: Panel, shared: Shared | None, titles: tuple[str, str]) -> go.Figure:
    """Left, right, and right − left where there is one; hovering a cell gives both weights and their difference.

    Args:
        left: one side.
        right: the other.
        shared: how they belong together; None where no cell can be compared.
        titles: of the two sides, plain text.
    """
    drawn = [(panel.rows, panel.ticks, panel.keys) for panel in (left, right)]
    if shared is not None:
        rows, ticks = (both(shared.rows, *names) for names in ((left.rows, right.rows), (left.ticks, right.ticks)))
        drawn.append((rows, ticks, both(shared.keys, left.keys, right.keys)))
    said = [*map(html.escape, titles), "Right − left"]
    room = 0.03 if all(names[1] == left.ticks for names in drawn) else 0.13
    draft = grid(1, len(drawn), titles=said[: len(drawn)], horizontal_spacing=room)
    for column, names in enumerate(drawn, start=1):
        layers = _between(left, right, shared) if column == 3 else _side_layers(left, right, shared, column - 1)
        _add(draft, column, names, layers)
        if column > 1 and room < 0.1:
            draft.update_yaxes(showticklabels=False, ticks="", col=column)
    colours = {"coloraxis": scale(WEIGHTS, 0, 1, "weight, left<br>and right<br>0 to 1", 0.78)}
    if shared is not None:
        low, high = symmetric_range(np.nan_to_num(shared.difference))
        colours["coloraxis2"] = scale(SIGNED, low, high, f"right − left<br>{low:.2g} to {high:.2g}", 0.22)
    longest = max(len(left.rows), len(right.rows), 0 if shared is None else len(shared.rows))
    layout(draft, min(max(22 * longest, 220), 560) + 165, "", "")
    draft.update_layout(**colours, dragmode="zoom")
    return draft.figure()


def both(pairs: Sequence[Pair], left: Sequence[str], right: Sequence[str]) -> list[str]:
    """A name a pair: the left's; with − what only the left has, with + what only the right has."""
    return [
        f"+ {right[other]}" if one is None else f"− {left[one]}" if other is None else left[one] for one, other in pairs
    ]


def _side_layers(left: Panel, right: Panel, shared: Shared | None, side: int) -> list[_Layer]:
    """Cells of one side that the other has too, those that it lacks, and masked ones."""
    mine, name, others = ((left, "left", "right"), (right, "right", "left"))[side]
    weight = f"{name} <b>%{{z:.7g}}</b>"
    masked = _Layer(~mine.mask, _MASKED)
    if shared is None:
        return [_Layer(mine.mask, weight, mine.weights), masked]
    counterpart = _counterpart(mine, (right, left)[side], shared, side)
    there = ~np.isnan(counterpart)
    difference = counterpart - mine.weights if side == 0 else mine.weights - counterpart
    text = f"{weight}<br>{others} %{{customdata[0]:.7g}}<br>right − left %{{customdata[1]:+.7g}}"
    return [
        _Layer(mine.mask & there, text, mine.weights, np.stack([counterpart, difference], axis=-1)),
        _Layer(mine.mask & ~there, f"{weight}<br>no such cell on the {others}", mine.weights),
        masked,
    ]


def _counterpart(mine: Panel, other: Panel, shared: Shared, side: int) -> Array:
    """The other side's weight at each cell of this one; NaN where it has none."""
    found = np.full(mine.weights.shape, np.nan, dtype=np.float32)
    rows, keys = ([pair for pair in pairs if None not in pair] for pairs in (shared.rows, shared.keys))
    ours, theirs = (np.ix_([p[at] for p in rows], [p[at] for p in keys]) for at in (side, 1 - side))
    found[ours] = other.weights[theirs]
    return found


def _between(left: Panel, right: Panel, shared: Shared) -> list[_Layer]:
    """Cells of both sides, and why the others have no colour."""
    one, other = (_spread(panel.weights, shared, side) for side, panel in enumerate((left, right)))
    masked = np.zeros(one.shape, dtype=bool)
    for side, panel in enumerate((left, right)):
        masked |= _spread(panel.mask, shared, side) == 0
    on_both = ~np.isnan(one) & ~np.isnan(other)
    hidden = masked & on_both & (one == 0) & (other == 0)
    text = "right − left <b>%{z:+.7g}</b><br>left %{customdata[0]:.7g}<br>right %{customdata[1]:.7g}"
    alone = "on the %s only: weight %%{customdata[0]:.7g}"
    layers = [
        _Layer(on_both & ~hidden, text, shared.difference, np.stack([one, other], axis=-1)),
        _Layer(hidden, _MASKED + ", on both sides"),
        _Layer(~np.isnan(one) & ~on_both, alone % "left", more=one[..., None]),
        _Layer(~np.isnan(other) & ~on_both, alone % "right", more=other[..., None]),
    ]
    return [*layers, _Layer(np.isnan(one) & np.isnan(other), "a query of one side, a key of the other: no cell")]


def _spread(values: Array, shared: Shared, side: int) -> Array:
    """(row, key) in the order of both; NaN where this side has no such cell."""
    spread = np.full((len(shared.rows), len(shared.keys)), np.nan, dtype=np.float32)
    places = [[i for i, pair in enumerate(pairs) if pair[side] is not None] for pairs in (shared.rows, shared.keys)]
    spread[np.ix_(*places)] = values
    return spread


def _add(draft: Draft, column: int, names: tuple[Sequence[str], ...], layers: Sequence[_Layer]) -> None:
    rows, _, keys = ([html.escape(name) for name in side] for side in names)
    gap = 1 if max(len(rows), len(keys)) <= MOST_TICKS else 0
    axis = {"coloraxis": "coloraxis2" if column == 3 else "coloraxis"}
    for layer in layers:
        if not layer.cells.any():
            continue
        values = np.zeros(layer.cells.shape) if layer.values is None else layer.values
        draft.add_heatmap(
            z=np.where(layer.cells, values, np.nan).astype(np.float32),
            x=keys,
            y=rows,
            customdata=None if layer.more is None else layer.more.astype(np.float32),
            hovertemplate=layer.said + _PLACE,
            hoverongaps=False,
            xgap=gap,
            ygap=gap,
            row=1,
            col=column,
            **({"colorscale": CLEAR, "showscale": False} if layer.values is None else axis),
        )
    if any(layer.values is None and layer.cells.any() for layer in layers):
        add_hatching(draft, 1, column)
    plain = {"showgrid": False, "zeroline": False, "row": 1, "col": column}
    draft.update_xaxes(**plain, tickangle=-60, **_ticks(names[2], most=MOST_KEYS))
    # Between the maps there is room for what a decoder row reads; what it predicts is said on hover.
    found = _ticks(names[1]) if column == 1 else _ticks([t.split(ARROW)[0] for t in names[1]], LONGEST_BETWEEN)
    draft.update_yaxes(**plain, autorange="reversed", **found)


def _ticks(names: Sequence[str], longest: int = LONGEST_TICK, most: int = MOST_TICKS) -> dict:
    """At most `most` labels, evenly spread, none longer than is read beside a map."""
    step = -(-len(names) // most)
    texts = [html.escape(text if len(text) <= longest else f"{text[: longest - 1]}…") for text in names[::step]]
    return {"tickmode": "array", "tickvals": list(range(0, len(names), step)), "ticktext": texts}


def distance_bars(rows: Sequence[str], ticks: Sequence[str], distances: Array) -> go.Figure:
    """How far each query's weights lie apart; a query that one side lacks has no bar.

    Args:
        rows: names of the queries of both sides, plain text.
        ticks: the same, shorter.
        distances: (row,) total variation distance, 0 to 1, NaN where there is none.
    """
    names = [html.escape(name) for name in rows]
    draft = Draft().add_bar(
        x=np.arange(len(rows)),
        y=distances,
        customdata=names,
        marker={"color": OKABE_ITO[0]},
        hovertemplate="%{customdata}<br>total variation distance <b>%{y:.7g}</b><extra></extra>",
    )
    layout(draft, 300, "query", "distance, 0 to 1")
    draft.update_yaxes(range=[0, 1.02], showgrid=True, zeroline=True)
    draft.update_xaxes(showgrid=False, tickangle=-60, **_ticks(ticks))
    return draft.figure()


def cells_table(shared: Shared, left: Panel, right: Panel) -> pd.DataFrame:
    """One line a cell of either side, queries first; blank where a side has no such cell."""
    rows, keys = both(shared.rows, left.rows, right.rows), both(shared.keys, left.keys, right.keys)
    return pd.DataFrame(
        {
            "query": np.repeat(np.array(rows, dtype=object), len(keys)),
            "key": np.tile(np.array(keys, dtype=object), len(rows)),
            "left": _spread(left.weights, shared, 0).ravel(),
            "right": _spread(right.weights, shared, 1).ravel(),
            "difference": shared.difference.ravel(),
        }
    )
