"""Pictures of patching: what each patch restores; a click on a cell makes this patch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viz.forms import Maps
from viz.special.what_if import HeadMaps


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
