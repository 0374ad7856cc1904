"""Pictures of What if: an intervention's effect on token probabilities, on the weights of a head, and on every head."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.language import tr
from viz.candidates import candidate_axis, candidate_bars
from viz.figure import (
    GROUPED_BARS,
    INVISIBLE,
    NO_GRID,
    StableFigure,
    escape,
    figure,
    frame,
    grid,
    heatmap,
    panels,
    scatter,
    suffix,
)
from viz.forms import ABOVE, BESIDE, Form, Scale
from viz.heatmap import Map, bar_below, cells_height, colour_axis, half_bar, map_grid, signed, slanted_room, weight_axis
from viz.latex import span
from viz.theme import CHOSEN, OKABE_ITO, SIGNED, Array, symmetric_range
from viz.tokens import MOST_ROOM, labels

BEFORE = {"color": OKABE_ITO[0]}
AFTER = {"color": OKABE_ITO[1], "pattern": {"shape": "/"}}
"""Hatched, so that before and after differ in more than their colour."""
DIFFERENCE = {"color": OKABE_ITO[3]}


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
        height=94 + 24 * len(names),
        xaxis={"range": [0, 1.15], "tickvals": [0, 0.5, 1], "title": "probability"},
        xaxis2={"range": [low, high], "nticks": 4, "title": "difference"},
    )


MAPS, HEADS = 330, 400
"""pixels of pictures below three rows of controls, and of two below two, so that they are on a screen of 1280 x 720"""
OWN = "own"
"""the choice of showing the head that was chosen, whatever changed most"""


@dataclass(frozen=True, kw_only=True)
class ChangeMaps(Form):
    """A head's attention weights before and after, in one range from 0 to 1, and their difference, centred on 0.

    A click on a cell of the first map chooses it: an invisible point lies on each.
    """

    rows: Sequence[str]
    """names of the queries, plain text"""
    keys: Sequence[str]
    """names of the keys, plain text"""
    weights: tuple[Array, Array]
    """(query, key) before and after"""
    masks: tuple[Array, Array]
    """bool (query, key) before and after, True = visible"""
    edited: Sequence[tuple[int, int]] = ()
    """(query, key) of the mask cells that were changed already, crossed in the first map"""
    place: tuple[str, int, int] = ("", 0, 0)
    """kind, layer and head whose weights these are"""

    roomy = True  # three maps need the width

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The query and the key of a cell, and how many cells were changed before; and the head, which stays."""
        query, key, *_ = point["customdata"]
        kind, layer, head = self.place
        cell = [int(query), int(key), len(self.edited)]
        return {"cell": cell, "kind": kind, "layer": layer, "head": head, "shown": OWN}

    @property
    def difference(self) -> Array:
        """(query, key): after − before."""
        before, after = self.weights
        return (after - before).astype(np.float32)

    def arrays(self) -> dict[str, Array]:
        return {
            "before": self.weights[0],
            "after": self.weights[1],
            "difference": self.difference,
            "mask_before": self.masks[0],
            "mask_after": self.masks[1],
        }

    def draw(self) -> StableFigure:
        before, after = self.weights
        low, high = symmetric_range(self.difference)
        either, colours = self.masks[0] | self.masks[1], {"coloraxis": "coloraxis2"}
        traces, layout = map_grid(
            self.rows,
            self.keys,
            (
                Map("Before", before, self.masks[0], "weight before <b>%{z:.7g}</b>"),
                Map("After", after, self.masks[1], "weight after <b>%{z:.7g}</b>"),
                Map("After − before", self.difference, either, "after − before <b>%{z:+.7g}</b>", colours),
            ),
            horizontal_spacing=0.03,
        )
        rows, below = len(self.rows), 18 + slanted_room(self.keys, MOST_ROOM)
        plot = max(cells_height(rows, MAPS - ABOVE - below), 180)
        return figure(
            [*traces, *self._points()],
            layout,
            # Points would get a margin around them, which no heat map has.
            panels("xaxis", (1, 2, 3), {"range": [-0.5, len(self.keys) - 0.5]}),
            panels("yaxis", (1, 2, 3), {"autorange": False, "range": [rows - 0.5, -0.5]}),
            height=ABOVE + plot + below,
            margin={"t": ABOVE, "b": below, "r": BESIDE},
            coloraxis=weight_axis(**half_bar(0.78) | {"len": 0.5, "tickvals": [0, 1]}),
            coloraxis2=colour_axis(
                SIGNED, low, high, f"difference<br>{span(low, high)}", **half_bar(0.2) | {"tickvals": [low, high]}
            ),
            hoverdistance=60,
            clickmode="event+select",
            dragmode="zoom",
        )

    def _points(self) -> Iterator[dict]:
        """A point on each cell, and a cross on each edited one."""
        inside = {(query, key) for query, key in self.edited if query < len(self.rows) and key < len(self.keys)}
        cross = {"symbol": "x", "size": 10, "color": "#FFFFFF", "line": {"color": "#000000", "width": 1.5}}
        yield self._at(list(np.ndindex(self.masks[0].shape)), inside, INVISIBLE)
        yield self._at(sorted(inside), inside, {"mode": "markers", "marker": cross, "showlegend": False})

    def _at(self, cells: Sequence[tuple[int, int]], edited: set[tuple[int, int]], look: Mapping[str, Any]) -> dict:
        weights, mask, rows, keys = self.weights[0], self.masks[0], escape(self.rows), escape(self.keys)
        texts = []
        for cell in cells:
            action = tr("click to forbid this cell") if mask[cell] else tr("click to allow this cell")
            texts.append(
                (
                    signed(weights[cell], ".7g") if mask[cell] else tr("0 (masked)"),
                    tr("edited: click to undo") if cell in edited else action,
                )
            )
        return scatter(
            x=[keys[key] for _, key in cells],
            y=[rows[query] for query, _ in cells],
            customdata=[[*cell, *text] for cell, text in zip(cells, texts, strict=True)],
            hover="weight before <b>%{customdata[2]}</b><br>query %{y}<br>key %{x}<br>%{customdata[3]}",
            **look,
        )


BETWEEN, FOOT, AXIS_ROOM = 30, 110, 46
"""pixels between two maps of heads, for the lower one's title; below the last, for its numbers and the colours; and of
these for the numbers alone"""
HEADS_TOP = 24
"""pixels above the first map, for its title"""
LAYER, READABLE = (13, 26), 15
"""pixels of a layer's row, at least and at most; and from which on it has room for numbers"""


@dataclass(frozen=True, kw_only=True)
class HeadMaps(Form):
    """A number of each head: a map of layers and heads for each kind of attention, in one range of colours.

    A click on a cell chooses its kind, layer and head.
    """

    values: Mapping[str, Array]
    """kind -> (layer, head); NaN: there is no such head"""
    layers: Mapping[str, Sequence[int]]
    """kind -> numbers of its layers"""
    names: Mapping[str, str]
    """kind -> its title"""
    chosen: tuple[str, int, int]
    """kind, layer and head to frame"""
    what: str
    """a number is, for the hover text"""
    scale: Scale
    unit: str = ""
    number: str = ".2f"
    """format of the number in a cell"""

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Kind, layer and head."""
        kind, layer, head, *_ = point["customdata"]
        return {"kind": kind, "layer": int(layer), "head": int(head)}

    def arrays(self) -> dict[str, Array]:
        return dict(self.values)

    def draw(self) -> StableFigure:
        sizes = [len(values) for values in self.values.values()]
        between = BETWEEN * (len(sizes) - 1)
        each = (HEADS - HEADS_TOP - FOOT - between) / sum(sizes)
        each = min(max(each, LAYER[0]), LAYER[1])
        plot = max(round(each * sum(sizes)) + between, 120)
        traces, layout, frames = [], {}, []
        *_, last = (values.shape[1] for values in self.values.values())
        for panel, (kind, values) in enumerate(self.values.items(), start=1):
            traces += self._panel(panel, kind, values, each >= READABLE)
            n_layers, n_heads = values.shape
            layers = {"tickvals": list(range(n_layers)), "ticktext": list(map(str, self.layers[kind]))}
            whole = {"tickmode": "linear", "dtick": 1 if n_heads <= 16 else 4}
            hidden = {"showticklabels": False} if panel < len(sizes) and n_heads == last else {}
            layout[f"xaxis{suffix(panel)}"] = whole | NO_GRID | {"range": [-0.5, n_heads - 0.5]} | hidden
            layout[f"yaxis{suffix(panel)}"] = layers | NO_GRID | {"range": [n_layers - 0.5, -0.5], "title": "layer"}
            if kind == self.chosen[0] and self.chosen[1] in self.layers[kind]:
                row, head = list(self.layers[kind]).index(self.chosen[1]), self.chosen[2]
                frames = [frame((head, head), (row, row), CHOSEN, 3, panel)]
        layout[f"xaxis{suffix(panel)}"] |= {"title": {"text": "head", "standoff": 4}}
        # Not at the container's edge, where Plotly draws the title on the bar.
        title = {"text": f"colours: {span(self.scale.low, self.scale.high)}{self.unit}", "side": "top"}
        bar = bar_below(0.5, 0.8, AXIS_ROOM / plot) | {"thickness": 12, "nticks": 5, "title": title}
        colours = {"colorscale": self.scale.colours, "cmin": self.scale.low, "cmax": self.scale.high, "colorbar": bar}
        return figure(
            traces,
            grid(
                len(sizes),
                titles=[self.names[kind] for kind in self.values],
                title_style={"font": {"size": 14}},
                row_heights=sizes,
                vertical_spacing=BETWEEN / plot if len(sizes) > 1 else 0,
            ),
            layout,
            height=plot + HEADS_TOP + FOOT,
            shapes=frames,
            coloraxis=colours,
            margin={"l": 50, "r": 10, "t": HEADS_TOP, "b": FOOT},
            clickmode="event+select",
            hoverdistance=60,
        )

    def _panel(self, panel: int, kind: str, values: Array, has_room: bool) -> list[dict]:
        """The map of a kind, with its numbers where they have room, and a point on each cell."""
        cells = [cell for cell in np.ndindex(values.shape) if np.isfinite(values[cell])]
        texts = np.full(values.shape, "", dtype=object)
        for cell in cells:
            texts[cell] = signed(values[cell], self.number)
        return [
            heatmap(
                panel=panel,
                z=np.ascontiguousarray(values, dtype=np.float64),
                coloraxis="coloraxis",
                text=texts,
                texttemplate="%{text}" if has_room and values.shape[1] <= 16 else None,
                textfont={"size": 12},
                xgap=2,
                ygap=2,
            ),
            scatter(
                panel=panel,
                x=[head for _, head in cells],
                y=[row for row, _ in cells],
                customdata=[
                    (kind, self.layers[kind][row], head, signed(values[row, head], ".7g")) for row, head in cells
                ],
                hover=f"{self.names[kind]}<br>layer %{{customdata[1]}}, head %{{customdata[2]}}<br>{self.what} "
                f"<b>%{{customdata[3]}}</b>{self.unit}<br>click to choose this head",
                **INVISIBLE,
            ),
        ]
