"""A vector as a river: what flows in one after another, as wide as its part of the length of the last vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import NO_GRID, StableFigure, band, escape, figure, scatter, text
from viz.forms import Array, Form
from viz.latex import signed
from viz.theme import CHOSEN, FAINT, OKABE_ITO, TEXT
from viz.tokens import axis_ticks

WATER, INFLOW, OUTFLOW = "rgba(0, 114, 178, 0.55)", "rgba(230, 159, 0, 0.75)", "rgba(213, 94, 0, 0.35)"
"""of the river, and of what flows in and out: those of x and of Sublayer(x) in the charts of one token"""
FALL = 0.2
"""from the beginning of what flows in down to the river, as a part of the largest width"""
WAY = 0.85
"""of a step that flows in, from its beginning to the river"""
SMALL = 0.0095
"""a share below which it is left to the hover text, as on a phone its label would stand on the next one"""
POINTS = 16
"""of a bank on this way"""


@dataclass(frozen=True, kw_only=True)
class River(Form):
    """The last vector of a stack as the sum of what its steps wrote, each as wide as its share along that vector.

    The river begins with the first step. Each other one flows in at its place, from above or below, so the width
    anywhere is the sum so far and in the end 1. A negative share flows out, with a dashed bank.
    """

    names: Sequence[str]
    """of the steps, plain text; the first one is the beginning"""
    shares: Array
    """(step,), which sum to 1"""
    above: Sequence[bool]
    """for each step: whether it comes from above"""
    chosen: int
    """the step to mark"""

    def draw(self) -> StableFigure:
        up, down = self.banks()
        fall = FALL * float((up - down).max())
        flows = [self._flow(step, up if above else -down, fall) for step, above in enumerate(self.above)]
        signs = np.where(self.above, 1, -1)
        ends = np.array([flow[1][0] + abs(share) for flow, share in zip(flows, self.shares, strict=True)]) * signs
        percents = [signed(share, ".0%") if abs(share) >= SMALL else "" for share in self.shares]
        percents[0] = percents[0] or signed(self.shares[0], ".1%")
        exact = [signed(share, ".2%") for share in self.shares]
        said = zip(escape(self.names), exact, (up - down).tolist(), strict=True)
        font = {"textfont": {"color": TEXT}}
        labels = scatter(
            x=[-0.5, *(flow[0][0] for flow in flows[1:])],
            y=[up[0], *ends[1:]],
            mode="text",
            text=percents,
            textposition=["top right", *("top center" if above else "bottom center" for above in self.above[1:])],
            textfont={"color": TEXT, "size": 12},
            customdata=[[*each] for each in said],
            hover="%{customdata[0]}: <b>%{customdata[1]}</b><br>sum so far %{customdata[2]:.1%}",
            **({"selected": font, "unselected": font} if self.sets else {}),
        )
        low, high = min(*down, *ends[1:]), max(*up, *ends[1:])
        room = 0.1 * (high - low)
        whole = text(
            signed(up[-1] - down[-1], ".0%"), x=len(up) - 0.5, y=(up[-1] + down[-1]) / 2, xanchor="left", xshift=6
        )
        across = axis_ticks(self.names, len(self.names)) | {"tickangle": -45, "range": [-0.6, len(self.names) - 0.4]}
        return figure(
            [
                self._body(up, down),
                *(self._drawn(step, *flow, signs[step]) for step, flow in enumerate(flows) if step),
                labels,
            ],
            {"xaxis": across, "yaxis": NO_GRID | {"showticklabels": False, "range": [low - room, high + room]}},
            {"annotations": [whole], "shapes": [band(self.chosen - 0.5, self.chosen + 0.5, FAINT)]},
            self._marked(),
            self.layout,
            height=self.height,
            margin={"l": 20, "r": 56, "t": 16, "b": 96},
            hoverdistance=200,
            showlegend=False,
        )

    def banks(self) -> tuple[Array, Array]:
        """(step,) each: the upper and the lower bank behind each step, as far apart as the sum so far."""
        from_above = np.array(self.above)
        from_above[0] = False
        first = self.shares[0] / 2
        rest = np.append(0.0, self.shares[1:])
        return first + np.cumsum(rest * from_above), -first - np.cumsum(rest * ~from_above)

    def _body(self, up: Array, down: Array) -> dict:
        """The river itself, which becomes wider or narrower at each step."""
        edges = np.append(np.repeat(np.arange(len(up)), 2)[1:], len(up) - 0.5).astype(float)
        edges[0] = -0.5
        above, below = np.repeat(up, 2)[: len(edges)], np.repeat(down, 2)[: len(edges)]
        return scatter(
            x=np.concatenate([edges, edges[::-1]]),
            y=np.concatenate([above, below[::-1]]),
            mode="lines",
            fill="toself",
            fillcolor=WATER,
            line={"width": 0.5, "color": OKABE_ITO[0]},
            name="sum so far",
        )

    def _flow(self, step: int, bank: Array, fall: float) -> tuple[Array, Array]:
        """The inner bank of what flows in before its place, or out behind it: from far outside to the river."""
        along = np.linspace(0, 1, POINTS)
        inner = min(bank[max(step - 1, 0)], bank[step])
        ahead = WAY if self.shares[step] < 0 else -WAY
        return step + ahead * (1 - along), inner + fall * (1 + np.cos(np.pi * along)) / 2

    def _drawn(self, step: int, x: Array, inner: Array, sign: int) -> dict:
        """What flows in or out, as wide at each place as its share."""
        share = float(self.shares[step])
        fill, line = (INFLOW, {"color": OKABE_ITO[1]}) if share >= 0 else (OUTFLOW, {"color": CHOSEN, "dash": "dot"})
        return scatter(
            x=np.concatenate([x, x[::-1]]),
            y=sign * np.concatenate([inner, inner[::-1] + abs(share)]),
            mode="lines",
            fill="toself",
            fillcolor=fill,
            line=line | {"width": 1},
            name=self.names[step],
        )

    def arrays(self) -> dict[str, Array]:
        return {"share": self.shares}

    def table(self) -> pd.DataFrame | None:
        return pd.DataFrame({"step": list(self.names)} | self.arrays())
