"""Pictures of patching: what each patch restores; a click on a cell makes this patch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from viz.dumbbells import Dumbbells
from viz.figure import scatter
from viz.forms import Array, Maps, array_name
from viz.special.what_if import HeadMaps
from viz.theme import GUIDE

WIDE = 14
"""pixels of the line at what another run has"""


@dataclass(frozen=True, kw_only=True)
class StreamShares(Maps):
    """What is restored by the residual stream before each layer, one position at a time."""

    stack: str

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The stream of this stack before the row's layer, at the column's position."""
        cell = super().clicked(point)
        return {"place": f"stream {self.stack}", "layer": cell["row"], "at": str(cell["column"])}


@dataclass(frozen=True, kw_only=True)
class HeadShares(HeadMaps):
    """What is restored by each head's z, at all positions that correspond."""

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The head's z."""
        cell = super().clicked(point)
        return {"place": f"z {cell['kind']}", "layer": cell["layer"], "head": cell["head"], "at": "all"}


@dataclass(frozen=True, kw_only=True)
class TowardsAnother(Dumbbells):
    """Numbers before a change and after it, and those of another run, which the change may reach, as short lines."""

    another: Array
    """(name,)"""
    title: str
    """what the other run is"""

    def _traces(self) -> list[dict]:
        line = {"symbol": "line-ew-open", "size": WIDE, "color": GUIDE, "opacity": 1, "line": {"width": 3}}
        places, hover = np.arange(len(self.names)), f"{self.title} <b>%{{y:{self.number}}}</b>{self.unit}"
        other = scatter(x=places, y=self.another, name=self.title, mode="markers", marker=line, hover=hover)
        return [other | {"cliponaxis": False}, *super()._traces()]

    def arrays(self) -> dict[str, Array]:
        return super().arrays() | {array_name(self.title): self.another}
