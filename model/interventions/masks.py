"""Changes to the mask: which keys a query may look at (paper, section 3.2.3)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from model.hooks import Edit
from model.interventions.base import at_attentions, check_one_of, check_positions
from model.network.encoder_decoder import Transformer


@dataclass(frozen=True)
class MaskEdit:
    """Forbid or allow single (query, key) cells, before the softmax; cells outside the sentence do nothing.

    A cell that is allowed may let a decoder row see a later word: that is for the one who names it to decide.

    Raises:
        ValueError: a cell has a negative position.
    """

    forbid: tuple[tuple[int, int], ...] = ()
    allow: tuple[tuple[int, int], ...] = ()
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    @property
    def position_free(self) -> bool:
        """The encoder's rows are all there at once; but an allowed cell might be padding in a longer batch."""
        return self.kind == "encoder_self" and not self.allow

    def __post_init__(self) -> None:
        for cell in (*self.forbid, *self.allow):
            if min(cell) < 0:
                raise ValueError(f"positions count from 0, got the cell {cell!r}")

    def edits(self, model: Transformer) -> dict[str, Edit]:
        if not (self.forbid or self.allow):
            return {}

        def edit(mask: Tensor) -> Tensor:
            mask = mask.clone()
            heads = slice(None) if self.head is None else self.head
            for cells, allowed in ((self.forbid, False), (self.allow, True)):
                for query, key in cells:
                    if query < mask.shape[2] and key < mask.shape[3]:
                        mask[:, heads, query, key] = allowed
            return mask

        return at_attentions(model, "mask", self.kind, self.layer, self.head, edit)


@dataclass(frozen=True)
class ForbidSource:
    """No query may look at these source positions: in the encoder, in cross-attention, or (None) in both.

    Raises:
        ValueError: a position is negative, or `kind` has no source keys.
    """

    positions: tuple[int, ...]
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positions(self.positions)
        check_one_of("kind", self.kind, ("encoder_self", "cross"))

    def edits(self, model: Transformer) -> dict[str, Edit]:
        def forbid(mask: Tensor) -> Tensor:
            mask = mask.clone()
            heads = slice(None) if self.head is None else self.head
            for position in self.positions:
                if position < mask.shape[3]:
                    mask[:, heads, :, position] = False
            return mask

        if self.kind is not None:
            return at_attentions(model, "mask", self.kind, self.layer, self.head, forbid)
        found: dict[str, Edit] = {}
        layers = {"encoder_self": model.config.n_encoder_layers, "cross": model.config.n_decoder_layers}
        for kind, n_layers in layers.items():
            # A layer number that only the deeper of the two stacks has names that one alone.
            if self.layer is None or self.layer < n_layers or self.layer >= max(layers.values()):
                found |= at_attentions(model, "mask", kind, self.layer, self.head, forbid)
        return found


@dataclass(frozen=True)
class LiftCausalMask:
    """Let decoder rows see the target words after them, which they are trained to predict."""

    layer: int | None = None

    position_free: ClassVar[bool] = False

    def edits(self, model: Transformer) -> dict[str, Edit]:
        def lift(mask: Tensor) -> Tensor:
            return mask.any(dim=-2, keepdim=True).expand_as(mask)

        return at_attentions(model, "mask", "decoder_self", self.layer, None, lift)
