"""Changes around attention: positional encodings, sub-layers and residual connections (sections 3.1, 3.5)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from model.hooks import Edit, has_hook_point
from model.interventions.base import Addressed, Reading, Side, check_permutation, sublayer_paths
from model.language import Refusal
from model.network.network import Network

EMBEDDINGS = {"source": "src_embedding", "target": "tgt_embedding"}


@dataclass(frozen=True)
class PositionsOff(Addressed):
    """Add no positional encoding to this side (None: both), so that the model cannot tell the order of its words."""

    side: Side | None = None

    position_free: ClassVar[bool] = True

    def edits(self, model: Network) -> dict[str, Edit]:
        return {f"{name}.positional": torch.zeros_like for name in _positioned(model, self.side)}


@dataclass(frozen=True)
class PositionsShuffled(Addressed):
    """Position i gets the positional encoding of position order[i]; positions from len(order) on keep their own.

    The encodings are read from the model's table, so that the change is the same while the target grows. Of two
    changes to the positions of one side, the later one counts.

    Raises:
        ValueError: `order` is not a permutation, or is longer than the model's table.
    """

    order: tuple[int, ...]
    side: Side = "source"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_permutation(self.order)
        if self.side is None:
            raise Refusal("side must be source or target")

    @property
    def position_free(self) -> bool:
        """The source is embedded all at once; a cached step embeds one target token without its position."""
        return self.side == "source"

    def edits(self, model: Network) -> dict[str, Edit]:
        (name,) = _positioned(model, self.side)
        table = getattr(model, name).positions.detach()
        if len(self.order) > len(table):
            raise Refusal(
                "the order has {ordered} positions; the model has {positions}",
                ordered=len(self.order),
                positions=len(table),
            )

        def shuffle(positional: Tensor) -> Tensor:
            n = min(len(self.order), len(positional))
            # The proof applies a change to what a Trace holds, which is on the CPU, wherever the model is.
            shuffled = table[: len(positional)].to(positional, copy=True)
            shuffled[:n] = table[list(self.order[:n])].to(positional)
            return shuffled

        return {f"{name}.positional": shuffle}


def _positioned(model: Network, side: Side | None) -> list[str]:
    """Paths of the embeddings of this side (None: of all) to which the model adds a positional encoding."""
    names = [name for key, name in EMBEDDINGS.items() if side in (None, key) and hasattr(model, name)]
    names = [name for name in names if getattr(model, name).positions is not None]
    if not names:
        if side:
            raise Refusal("the model adds no positional encoding to the {side}", side=side)
        raise Refusal("the model adds no positional encoding")
    return names


@dataclass(frozen=True)
class _SubLayerChange(Addressed):
    """Where a change to a sub-layer acts; None = all."""

    stack: str | None = None
    layer: int | None = None
    name: str | None = None

    position_free: ClassVar[bool] = True


@dataclass(frozen=True)
class SublayerOff(_SubLayerChange):
    """Set the sub-layer's output to 0, so that only the residual passes: LayerNorm(x + 0)."""

    def edits(self, model: Network) -> dict[str, Edit]:
        return {f"{path}.out": torch.zeros_like for path in sublayer_paths(model, self.stack, self.layer, self.name)}


@dataclass(frozen=True)
class ResidualOff(_SubLayerChange):
    """Remove the residual connection: LayerNorm(Sublayer(x)), or Sublayer(LayerNorm(x)) with pre-norm."""

    def edits(self, model: Network) -> dict[str, Reading]:
        edits = {}
        for path in sublayer_paths(model, self.stack, self.layer, self.name):
            if has_hook_point(model, f"{path}_residual.added"):
                edits[f"{path}_residual.added"] = Reading(f"{path}.out", lambda _added, out: out)
            else:  # where the sum itself cannot be edited: x + (Sublayer(x) - x), equal up to rounding
                edits[model.update_point(path)] = Reading(model.before_point(path), lambda out, before: out - before)
        return edits


@dataclass(frozen=True)
class NormOff(_SubLayerChange):
    """Leave out the norm: x + Sublayer(x) instead of LayerNorm(x + Sublayer(x)), with pre-norm Sublayer(x) instead of
    Sublayer(LayerNorm(x)). The norm after the last layer of a pre-norm stack stays."""

    def edits(self, model: Network) -> dict[str, Reading]:
        paths = sublayer_paths(model, self.stack, self.layer, self.name)
        if not all(has_hook_point(model, f"{path}_residual.added") for path in paths):
            raise Refusal(
                "the norms of this model cannot be left out: its layers are not of this project's own code, and "
                "where its norms read from is not known"
            )
        reads = "before" if model.config.norm == "pre" else "added"
        return {
            f"{path}_residual.normed": Reading(f"{path}_residual.{reads}", lambda _normed, read: read) for path in paths
        }
