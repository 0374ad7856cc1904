"""Figures of Side by side: two heads' attention weights in one colour range, and their difference.

Cells without a colour are hatched: masked, or missing on one of the sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import NO_GRID, StableFigure, escape, figure, grid, heatmap, merge, suffix
from viz.forms import TALLEST, Form
from viz.heatmap import (
    CLEAR,
    MASKED,
    MOST_KEYS,
    MOST_ROWS,
    QUERY_AND_KEY,
    bar_below,
    cells_table,
    colour_axis,
    hatching,
    slanted_room,
    weight_axis,
)
from viz.latex import span
from viz.theme import SIGNED, Array, symmetric_range
from viz.tokens import ARROW, MOST_TICKS, axis_ticks

Pair = tuple[int | None, int | None]

LONGEST_TICK, LONGEST_BETWEEN = 22, 10
"""Characters of a label left of the first map, and between the maps."""
TOP, FOOT = 56, 84
"""Pixels above the maps, and below their labels."""


@dataclass(frozen=True)
class Panel:
    """One side: a head's attention weights and the names of its rows and columns, as plain text."""

    rows: Sequence[str]
    """names of the queries, unique"""
    keys: Sequence[str]
    weights: Array
    """(query, key), 0 to 1"""
    mask: Array
    """bool (query, key), True = visible"""


@dataclass(frozen=True)
class Shared:
    """Which rows and keys of the two sides correspond, and the difference of their weights."""

    rows: Sequence[Pair]
    """a row of the left and of the right, None where a side lacks it"""
    keys: Sequence[Pair]
    difference: Array
    """(row, key) right − left; NaN where a side lacks the cell"""
    distances: Array
    """(row,) total variation distance of the two sides' weights, 0 to 1; NaN where a side lacks the row"""


@dataclass(frozen=True)
class _Layer:
    """Cells with the same hover text."""

    cells: Array
    """bool (row, key)"""
    hover: str
    values: Array | None = None
    """None: without a colour"""
    numbers: Array | None = None
    """(row, key, n): further numbers in the hover text"""


@dataclass(frozen=True, kw_only=True)
class SideMaps(Form):
    """Left, right, and right − left if they can be compared; hovering a cell shows both weights and the difference."""

    left: Panel
    right: Panel
    shared: Shared | None
    """how they correspond; None where no cell can be compared"""
    titles: tuple[str, str]
    """of the two sides, plain text in one or two lines"""

    roomy = True  # three maps need the width

    def draw(self) -> StableFigure:
        """The two or three maps."""
        left, right, shared = self.left, self.right, self.shared
        names = [(panel.rows, panel.keys) for panel in (left, right)]
        layers = [_side_layers(left, right, shared, side) for side in (0, 1)]
        if shared is not None:
            rows = paired_names(shared.rows, left.rows, right.rows)
            names.append((rows, paired_names(shared.keys, left.keys, right.keys)))
            layers.append(_difference_layers(left, right, shared))
        label_room = max(slanted_room([tick[:LONGEST_TICK] for tick in keys]) for _, keys in names)
        plot = min(max(20 * max(len(rows) for rows, _ in names), 220), TALLEST - TOP - FOOT - label_room)
        place = (0.33, 0.4) if shared else (0.5, 0.5)
        colours = {"coloraxis": weight_axis("weight, left and right, 0 to 1", **bar_below(*place, label_room / plot))}
        if shared is not None:
            low, high = symmetric_range(np.nan_to_num(shared.difference))
            title = f"right − left, {span(low, high, '.2g')}"
            colours["coloraxis2"] = colour_axis(SIGNED, low, high, title, **bar_below(0.86, 0.26, label_room / plot))
        same_rows = all(rows == left.rows for rows, _ in names)
        layout = grid(
            1,
            len(names),
            [*(title.replace("\n", "<br>") for title in escape(self.titles)), "Right − left"][: len(names)],
            {"font": {"size": 13}},
            horizontal_spacing=0.03 if same_rows else 0.13,
            xaxis={"tickangle": -60},
            yaxis=NO_GRID | {"autorange": "reversed"},
        )
        traces, images = [], []
        for panel, ((rows, keys), of_panel) in enumerate(zip(names, layers, strict=True), start=1):
            visible = [layer for layer in of_panel if layer.cells.any()]
            traces += [_layer_map(panel, rows, keys, layer) for layer in visible]
            images += [hatching(panel)] if any(layer.values is None for layer in visible) else []
            # Between the maps there is room only for what a decoder row reads; the hover text has all of it.
            labels = rows if panel == 1 else [row.split(ARROW)[0] for row in rows]
            yaxis = short_ticks(labels, LONGEST_TICK if panel == 1 else LONGEST_BETWEEN, MOST_ROWS)
            hidden = {"showticklabels": False, "ticks": ""} if panel > 1 and same_rows else {}
            axes = {f"xaxis{suffix(panel)}": short_ticks(keys, most=MOST_KEYS), f"yaxis{suffix(panel)}": yaxis | hidden}
            layout = merge(layout, axes)
        height = plot + TOP + label_room + FOOT
        margin = {"t": TOP, "b": label_room + FOOT, "r": 10}
        return figure(traces, layout, colours, height=height, margin=margin, images=images, dragmode="zoom")

    def arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for name, side in (("left", self.left), ("right", self.right)):
            arrays |= {name: side.weights, f"{name}_mask": side.mask}
            arrays |= {f"{name}_queries": np.array(side.rows), f"{name}_keys": np.array(side.keys)}
        if self.shared is None:
            return arrays
        pairs = {"joined_rows": _positions(self.shared.rows), "joined_keys": _positions(self.shared.keys)}
        return arrays | pairs | {"difference": self.shared.difference, "distances": self.shared.distances}

    def table(self) -> pd.DataFrame:
        """One line for each cell of either side, queries first; blank where a side has no such cell."""
        sides = {"left": self.left, "right": self.right}
        if self.shared is None:
            tables = {
                name: cells_table(side.rows, side.keys, {"visible": side.mask, "value": side.weights})
                for name, side in sides.items()
            }
            return pd.concat(tables, names=["side", "cell"]).reset_index("side").reset_index(drop=True)
        rows, keys, distances = self.shared.rows, self.shared.keys, self.shared.distances
        return cells_table(
            paired_names(rows, self.left.rows, self.right.rows),
            paired_names(keys, self.left.keys, self.right.keys),
            {name: _on_shared_axes(side.weights, self.shared, at) for at, (name, side) in enumerate(sides.items())}
            | {"difference": self.shared.difference}
            | {"total variation distance of the query": np.repeat(distances[:, None], len(keys), axis=1)},
        )


def paired_names(pairs: Sequence[Pair], left: Sequence[str], right: Sequence[str]) -> list[str]:
    """A name for each pair: the left's; after − what only the left has, after + what only the right has."""
    return [
        f"+ {right[other]}" if one is None else f"− {left[one]}" if other is None else left[one] for one, other in pairs
    ]


def _side_layers(left: Panel, right: Panel, shared: Shared | None, side: int) -> list[_Layer]:
    """Cells of one side that the other has too, those that it lacks, and masked ones."""
    mine, name, other_name = ((left, "left", "right"), (right, "right", "left"))[side]
    weight = f"{name} <b>%{{z:.7g}}</b>"
    masked = _Layer(~mine.mask, MASKED)
    if shared is None:
        return [_Layer(mine.mask, weight, mine.weights), masked]
    theirs = _counterpart(mine, (right, left)[side], shared, side)
    present = ~np.isnan(theirs)
    difference = theirs - mine.weights if side == 0 else mine.weights - theirs
    hover = f"{weight}<br>{other_name} %{{customdata[0]:.7g}}<br>right − left %{{customdata[1]:+.7g}}"
    return [
        _Layer(mine.mask & present, hover, mine.weights, np.stack([theirs, difference], axis=-1)),
        _Layer(mine.mask & ~present, f"{weight}<br>no such cell on the {other_name}", mine.weights),
        masked,
    ]


def _counterpart(mine: Panel, other: Panel, shared: Shared, side: int) -> Array:
    """The other side's weight at each cell of this one; NaN where it has none."""
    weights = np.full(mine.weights.shape, np.nan, dtype=np.float32)
    rows, keys = ([pair for pair in pairs if None not in pair] for pairs in (shared.rows, shared.keys))
    ours, theirs = (np.ix_([p[at] for p in rows], [p[at] for p in keys]) for at in (side, 1 - side))
    weights[ours] = other.weights[theirs]
    return weights


def _difference_layers(left: Panel, right: Panel, shared: Shared) -> list[_Layer]:
    """Cells of both sides, and of the other cells why they have no colour."""
    one, other = (_on_shared_axes(panel.weights, shared, side) for side, panel in enumerate((left, right)))
    masks = (_on_shared_axes(panel.mask, shared, side) == 0 for side, panel in enumerate((left, right)))
    on_both = ~np.isnan(one) & ~np.isnan(other)
    hidden = np.logical_or(*masks) & on_both & (one == 0) & (other == 0)
    hover = "right − left <b>%{z:+.7g}</b><br>left %{customdata[0]:.7g}<br>right %{customdata[1]:.7g}"
    alone = "on the %s only: weight %%{customdata[0]:.7g}"
    return [
        _Layer(on_both & ~hidden, hover, shared.difference, np.stack([one, other], axis=-1)),
        _Layer(hidden, MASKED + ", on both sides"),
        _Layer(~np.isnan(one) & ~on_both, alone % "left", numbers=one[..., None]),
        _Layer(~np.isnan(other) & ~on_both, alone % "right", numbers=other[..., None]),
        _Layer(np.isnan(one) & np.isnan(other), "a query of one side, a key of the other: no cell"),
    ]


def _on_shared_axes(values: Array, shared: Shared, side: int) -> Array:
    """One side's values on the rows and keys of both sides; NaN where it has no such cell."""
    placed = np.full((len(shared.rows), len(shared.keys)), np.nan, dtype=np.float32)
    places = [[i for i, pair in enumerate(pairs) if pair[side] is not None] for pairs in (shared.rows, shared.keys)]
    placed[np.ix_(*places)] = values
    return placed


def _layer_map(panel: int, rows: Sequence[str], keys: Sequence[str], layer: _Layer) -> dict:
    values = np.zeros(layer.cells.shape) if layer.values is None else layer.values
    gap = 1 if max(len(rows), len(keys)) <= MOST_TICKS else 0
    colours = CLEAR if layer.values is None else {"coloraxis": "coloraxis2" if panel == 3 else "coloraxis"}
    return heatmap(
        panel=panel,
        z=np.where(layer.cells, values, np.nan).astype(np.float32),
        x=escape(keys),
        y=escape(rows),
        customdata=None if layer.numbers is None else layer.numbers.astype(np.float32),
        hover=layer.hover + QUERY_AND_KEY,
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        **colours,
    )


def short_ticks(names: Sequence[str], longest: int = LONGEST_TICK, most: int = MOST_TICKS) -> dict:
    """Tick labels of at most `longest` characters."""
    return axis_ticks([name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names], most)


def _positions(pairs: Sequence[Pair]) -> Array:
    """(pair, 2): -1 where a side lacks it."""
    return np.array([[-1 if at is None else at for at in pair] for pair in pairs], dtype=int).reshape(-1, 2)
