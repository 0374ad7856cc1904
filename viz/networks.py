"""Masks as small networks: tokens that are read below, outputs above, and an arrow where a row may read a token."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from viz.figure import NO_GRID, StableFigure, escape, figure, grid, panels, scatter, suffix
from viz.forms import UNDIMMED, Array, Form, array_name
from viz.heatmap import slanted_room
from viz.labels import say_label
from viz.theme import DECODER, ENCODER, GUIDE, OKABE_ITO
from viz.tokens import MOST_ROOM, axis_ticks

COLOURS = (ENCODER, DECODER, OKABE_ITO[3])
"""of the kinds of arrows, in their order"""
ABOVE, LAYERS = 74, 230
"""pixels above the networks, for the legend and titles; and of the networks"""
NARROWEST = 4
"""columns whose width a network takes at least"""


@dataclass(frozen=True)
class Networks(Form):
    """Networks beside each other, each of some of the same tokens, whose rows of arrows appear one after another."""

    names: Sequence[str]
    """of all tokens"""
    arrows: Mapping[str, Array]
    """kind of arrow -> bool (token above, token below)"""
    networks: Mapping[str, Sequence[int]]
    """title -> positions of its tokens, among all"""
    drawn: Sequence[int]
    """positions of the tokens that have room, among all"""
    row: int
    """the last row that has appeared, in bold: its position among all tokens"""

    roomy = True

    def clicked(self, point: Mapping) -> dict:
        """The place among the drawn tokens, counted from 1."""
        return {"place": int(point["customdata"][1])}

    def draw(self) -> StableFigure:
        shown = {title: [at for at in tokens if at in self.drawn] for title, tokens in self.networks.items()}
        widths = [max(len(tokens), NARROWEST) for tokens in shown.values()]
        below = 34 + slanted_room([self.names[at] for at in self.drawn], MOST_ROOM)
        every = range(1, len(shown) + 1)
        layout = grid(
            1,
            len(shown),
            list(shown),
            column_widths=[width / sum(widths) for width in widths],
            horizontal_spacing=0.05,
            xaxis=NO_GRID | {"tickangle": -60},
            yaxis=NO_GRID | {"range": [-0.12, 1.2], "tickvals": [0, 1], "ticktext": ["key", "query"]},
        )
        axes = {
            f"xaxis{suffix(panel)}": axis_ticks([self.names[at] for at in tokens])
            | {"range": [-0.6, max(len(tokens), 1) - 0.4]}
            for panel, tokens in enumerate(shown.values(), start=1)
        }
        named: set[str] = set()
        return figure(
            [trace for panel, tokens in enumerate(shown.values(), 1) for trace in self._traces(panel, tokens, named)],
            layout,
            axes,
            panels("yaxis", every[1:], {"showticklabels": False}),
            {"legend": {"orientation": "h", "x": 0, "y": 1 + 34 / LAYERS, "yanchor": "bottom"}},
            self._marked(),
            self.layout,
            height=ABOVE + LAYERS + below,
            margin={"t": ABOVE, "b": below, "l": 64},
            showlegend=True,
        )

    def _traces(self, panel: int, tokens: Sequence[int], named: set[str]) -> Iterator[dict]:
        """Arrows, then tokens and outputs; a kind of arrow stands in the legend once."""
        place = {at: x for x, at in enumerate(tokens)}
        for (kind, mask), colour in zip(self.arrows.items(), COLOURS, strict=True):
            pairs = [(row, key) for row in tokens if row <= self.row for key in tokens if mask[row, key]]
            for bold in (False, True):
                ends = [(place[key], place[row]) for row, key in pairs if (row == self.row) is bold]
                if not pairs or (bold and not ends):
                    continue
                yield scatter(
                    panel=panel,
                    x=[x for below, above in ends for x in (below, above, None)] or [None],
                    y=[y for _ in ends for y in (0, 1, None)] or [None],
                    mode="lines",
                    name=kind,
                    legendgroup=kind,
                    showlegend=kind not in named,
                    line={"color": colour, "width": 3 if bold else 1},
                    opacity=1 if bold else 0.6,
                )
                named.add(kind)
        appeared = [at <= self.row for at in tokens]
        counts = [sum(int(mask[at, list(tokens)].sum()) for mask in self.arrows.values()) for at in tokens]
        names = escape(self.names[at] for at in tokens)
        numbers = [self.drawn.index(at) + 1 for at in tokens]
        shared = {"panel": panel, "x": [*range(len(tokens))], "cliponaxis": False, "showlegend": False} | UNDIMMED
        hidden = say_label("this row has not appeared yet")
        said = [
            say_label(f"reads {count} of {len(tokens)}") if one else hidden
            for count, one in zip(counts, appeared, strict=True)
        ]
        yield scatter(
            y=[0] * len(tokens),
            mode="markers",
            marker={"symbol": "circle", "size": 8, "color": GUIDE, "opacity": 1},
            customdata=[*zip(names, numbers, strict=True)],
            hover="key %{customdata[0]}",
            **shared,
        )
        yield scatter(
            y=[1] * len(tokens),
            mode="markers+text",
            marker={
                "symbol": ["triangle-up" if one else "circle-open" for one in appeared],
                "size": [14 if at == self.row else 10 for at in tokens],
                "color": GUIDE,
                "opacity": 1,
                "line": {"width": [0 if one else 1 for one in appeared]},
            },
            text=[f"<b>{at}</b>" if at == self.row else str(at) for at in tokens],
            textposition="top center",
            textfont={"size": 11},
            customdata=[*zip(names, numbers, said, strict=True)],
            hover="query %{customdata[0]}<br>%{customdata[2]}",
            **shared,
        )

    def arrays(self) -> dict[str, Array]:
        every = np.any([*self.arrows.values()], axis=0)
        whole = {array_name(title): every[np.ix_(tokens, tokens)] for title, tokens in self.networks.items()}
        return whole | {"drawn": np.array(self.drawn)}
