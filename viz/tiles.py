"""Attention tile by tile: blocks of Q beside the scores, of K and V above them, and what is kept of each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from viz.figure import NO_GRID, StableFigure, bar, escape, figure, frame, heatmap, merge, panels
from viz.forms import Array, Form
from viz.heatmap import CLEAR, QUERY_AND_KEY, cells_height, signed_axis, slanted_room
from viz.latex import signed
from viz.theme import CHOSEN, FAINT, GUIDE, symmetric_range
from viz.tokens import ARROW, MOST_ROOM, axis_ticks, text_width

SCORES, KEYS, VALUES, QUERIES, LARGEST, SUM, OUTPUT = range(1, 8)
"""the panels: S, and above it K and V; Q at the left; m, ℓ and O at the right"""
ACROSS = {QUERIES: (0, 0.11), SCORES: (0.135, 0.535), LARGEST: (0.56, 0.64), SUM: (0.655, 0.79), OUTPUT: (0.81, 1)}
"""of the picture's width"""
STRIP, GAP = 32, 6
"""pixels of K and of V, and between them"""
TALLEST_MAP, EACH, LABEL = 212, 18, 15
"""pixels of all rows, of a row and of its label"""
MOST_NUMBERS = 16
"""rows whose m and ℓ have room for their numbers"""
MOST_KEYS = 24
"""labels below the scores"""
OUTSIDE = 0.4
"""opacity of what is not in fast memory"""
SHOWN = 0.99
"""of the magnitudes in Q, K and V that the colours tell apart: a few outliers would leave the others pale"""


@dataclass(frozen=True)
class Tiles(Form):
    """A step of FlashAttention: the tile that is in fast memory, among all queries and keys."""

    queries: Sequence[str]
    keys: Sequence[str]
    q: Array
    """(query, d_k)"""
    k: Array
    """(key, d_k)"""
    v: Array
    """(key, d_v)"""
    scores: Array
    """(query, key), NaN where masked"""
    m: Array
    """(query,): the largest score so far, or -inf"""
    l: Array  # noqa: E741 - the paper's name
    """(query,): the sum so far"""
    o: Array
    """(query, d_v): the output so far"""
    most: float
    """the largest ℓ of all steps: its range does not move"""
    tiles: Array
    """(step, 4): first and end of queries and of keys of each tile"""
    skipped: Array
    """(tile, 4): those that are never read"""
    step: int
    """the tile that is read, counted from 0"""

    def draw(self) -> StableFigure:
        top, bottom, left, right = self.tiles[self.step]
        rows, keys = escape(self.queries), escape(self.keys)
        height = cells_height(len(rows), TALLEST_MAP, EACH)
        below = 44 + slanted_room(self.keys, MOST_ROOM)
        of_query, of_key = {"y": rows}, {"x": keys}
        inside = slice(top, bottom), slice(left, right)
        traces = [
            *self._scores(rows, keys),
            *_block(KEYS, self.k.T, (slice(None), inside[1]), of_key, "k", "key %{x}<br>dimension %{y}"),
            *_block(VALUES, self.v.T, (slice(None), inside[1]), of_key, "v", "key %{x}<br>dimension %{y}"),
            *_block(QUERIES, self.q, (inside[0], slice(None)), of_query, "q", "query %{y}<br>dimension %{x}"),
            self._largest(rows),
            self._sum(rows),
            heatmap(
                panel=OUTPUT,
                z=self.o.astype(np.float32),
                y=rows,
                coloraxis="coloraxis2",
                hover="O <b>%{z:.5g}</b><br>query %{y}<br>dimension %{x}",
            ),
        ]
        sizes = np.abs(np.concatenate([one.ravel() for one in (self.q, self.k, self.v)]))
        vectors = float(np.quantile(sizes[np.isfinite(sizes)], SHOWN, method="higher")) or 1.0
        scores = symmetric_range(self.scores[np.isfinite(self.scores)])[1]
        return figure(
            traces,
            self._axes(height),
            {
                "coloraxis": _bar(f"score, ±{signed(scores)}", scores, 1),
                "coloraxis2": _bar(
                    f"vectors, ±{signed(vectors)}", vectors, 1 - 38 / _whole(height), sizes.max() > vectors
                ),
                "shapes": self._shapes(),
            },
            self._marked(),
            self.layout,
            height=8 + _whole(height) + below,
            margin={"t": 8, "b": below, "l": 20 + text_width(_short(self.queries)), "r": 16},
            showlegend=False,
            bargap=0.2,
        )

    def _scores(self, rows: list[str], keys: list[str]) -> list[dict]:
        """Those of the tile, and where no tile is read."""
        top, bottom, left, right = self.tiles[self.step]
        place = {"panel": SCORES, "x": keys, "y": rows, "hoverongaps": False}
        shown, never = (np.full(self.scores.shape, np.nan, dtype=np.float32) for _ in range(2))
        shown[top:bottom, left:right] = self.scores[top:bottom, left:right]
        for a, b, c, d in self.skipped:
            never[a:b, c:d] = 0
        traces = [heatmap(z=shown, coloraxis="coloraxis", hover="score <b>%{z:.5g}</b>" + QUERY_AND_KEY, **place)]
        hover = "skipped: every cell is masked" + QUERY_AND_KEY
        return [*traces, heatmap(z=never, hover=hover, **place, **CLEAR)] if len(self.skipped) else traces

    def _largest(self, rows: list[str]) -> dict:
        seen = np.where(np.isfinite(self.m), self.m, np.nan)
        numbers = [[signed(value, ".1f")] for value in self.m]
        few = {"text": numbers, "texttemplate": "%{text}", "textfont": {"size": 11}}
        return heatmap(
            panel=LARGEST,
            z=seen[:, None].astype(np.float32),
            y=rows,
            coloraxis="coloraxis",
            hoverongaps=False,
            hover="m <b>%{z:.5g}</b><br>query %{y}",
            **(few if len(rows) <= MOST_NUMBERS else {}),
        )

    def _sum(self, rows: list[str]) -> dict:
        few = {"text": [signed(value, ".2f") for value in self.l], "textposition": "outside", "textfont": {"size": 11}}
        return bar(
            panel=SUM,
            x=self.l,
            y=rows,
            orientation="h",
            marker={"color": GUIDE},
            cliponaxis=False,
            hover="ℓ <b>%{x:.5g}</b><br>query %{y}",
            **(few if len(rows) <= MOST_NUMBERS else {}),
        )

    @property
    def _longest(self) -> float:
        """The end of the axis of ℓ, which leaves room for the numbers behind its bars."""
        return (1.9 if len(self.queries) <= MOST_NUMBERS else 1.1) * self.most

    def _axes(self, height: int) -> dict[str, Any]:
        """The rows are those of S at the left and at the right, and the columns those of S above it."""
        whole, rows = _whole(height), len(self.queries)
        down = {
            SCORES: (0, height / whole),
            KEYS: ((height + GAP) / whole, (height + GAP + STRIP) / whole),
            VALUES: (1 - STRIP / whole, 1),
        }
        axes: dict[str, Any] = {}
        for panel in range(1, 8):
            number = "" if panel == 1 else str(panel)
            across = ACROSS.get(panel, ACROSS[SCORES])
            axes[f"xaxis{number}"] = NO_GRID | {"anchor": f"y{number}", "domain": [*across]}
            axes[f"yaxis{number}"] = NO_GRID | {"anchor": f"x{number}", "domain": [*down.get(panel, down[SCORES])]}
        bare = {"showticklabels": False, "ticks": ""}
        named = {"range": [rows - 0.5, -0.5], "type": "category"} | axis_ticks(_short(self.queries), height // LABEL)
        keyed = {"range": [-0.5, len(self.keys) - 0.5], "type": "category"}
        titles = {QUERIES: "Q", LARGEST: "m", SUM: "ℓ", OUTPUT: "O so far"}
        return merge(
            axes,
            panels("yaxis", (SCORES, QUERIES, LARGEST, SUM, OUTPUT), {"matches": "y4"} | named),
            panels("yaxis", (SCORES, LARGEST, SUM, OUTPUT), bare),
            {"yaxis4": {"matches": None}},
            panels("xaxis", (SCORES, KEYS, VALUES), keyed),
            panels("xaxis", (KEYS, VALUES, QUERIES, LARGEST, SUM, OUTPUT), bare),
            {
                "xaxis": {"title": {"text": "scores S, by key", "standoff": 8}, "tickangle": -60}
                | axis_ticks(self.keys, MOST_KEYS)
            },
            *(panels("xaxis", (panel,), {"title": {"text": title, "standoff": 8}}) for panel, title in titles.items()),
            {"xaxis6": {"range": [0, self._longest]}, "xaxis5": {"range": [-0.5, 0.5]}},
            {
                f"yaxis{panel}": {"tickvals": [(len(values) - 1) / 2], "ticktext": [name], "showgrid": False}
                for panel, name, values in ((KEYS, "K", self.k.T), (VALUES, "V", self.v.T))
            },
        )

    def _shapes(self) -> list[dict]:
        """Tiles that were read, are not read, and are left out; and in orange what is in fast memory."""
        top, bottom, left, right = self.tiles[self.step]
        shapes = [
            frame((c, d - 1), (a, b - 1), GUIDE) | {"line": {"width": 0}, "fillcolor": FAINT, "layer": "below"}
            for a, b, c, d in self.tiles[: self.step]
        ]
        shapes += [frame((c, d - 1), (a, b - 1), GUIDE, 1) | {"type": "line"} for a, b, c, d in self.skipped]
        shapes += [frame((c, d - 1), (a, b - 1), GUIDE, 1) for a, b, c, d in (*self.tiles, *self.skipped)]
        rows, columns = (top, bottom - 1), (left, right - 1)
        shapes.append(frame(columns, rows, CHOSEN, 3))
        for panel, (across, down) in {
            KEYS: (columns, (0, self.k.shape[1] - 1)),
            VALUES: (columns, (0, self.v.shape[1] - 1)),
            QUERIES: ((0, self.q.shape[1] - 1), rows),
            LARGEST: ((0, 0), rows),
            SUM: ((0.5, self._longest - 0.5), rows),
            OUTPUT: ((0, self.o.shape[1] - 1), rows),
        }.items():
            shapes.append(frame(across, down, CHOSEN, 2, panel))
        return shapes

    def arrays(self) -> dict[str, Array]:
        return {"q": self.q, "k": self.k, "v": self.v}


def _block(panel: int, values: Array, inside: tuple[slice, slice], names: dict, what: str, place: str) -> list[dict]:
    """A matrix, pale but for the block in fast memory."""
    block, others = np.full(values.shape, np.nan, dtype=np.float32), values.astype(np.float32)
    block[inside], others[inside] = values[inside], np.nan
    shared = {"panel": panel, "coloraxis": "coloraxis2", "hoverongaps": False, **names}
    hover = f"{what} <b>%{{z:.5g}}</b><br>{place}"
    return [heatmap(z=block, hover=hover, **shared), heatmap(z=others, opacity=OUTSIDE, hover=hover, **shared)]


def _short(queries: Sequence[str]) -> list[str]:
    """What a decoder row reads; the hover text has what it predicts, too."""
    return [name.split(ARROW)[0] for name in queries]


def _whole(height: int) -> int:
    """Pixels of S with what stands above it."""
    return height + 2 * (STRIP + GAP)


def _bar(title: str, limit: float, y: float, beyond: bool = False) -> dict:
    """A colour axis whose bar lies in the corner above m, ℓ and O, and states its range in the title."""
    place = {"x": (ACROSS[LARGEST][0] + 1) / 2, "len": 0.42, "y": y, "yanchor": "top", "thickness": 8, "ypad": 0}
    return merge(signed_axis((-limit, limit), title, beyond), {"colorbar": place | {"showticklabels": False}})
