"""Changes to the mask: which keys a query may attend to (paper, section 3.2.3)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from model.hooks import Edit
from model.interventions.base import Addressed, at_attentions, check_positions
from model.network.network import Network


@dataclass(frozen=True)
class MaskEdit(Addressed):
    """Forbid or allow single (query, key) cells, before the softmax; cells outside the sentence have no effect.

    Allowing a cell may let a decoder row see a later word.

    Raises:
        ValueError: a cell is not a pair of positions from 0 on.
    """

    forbid: tuple[tuple[int, int], ...] = ()
    allow: tuple[tuple[int, int], ...] = ()
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    @property
    def position_free(self) -> bool:
        """The encoder computes all rows at once, but an allowed cell might be padding in a longer batch."""
        return self.kind == "encoder_self" and not self.allow

    def __post_init__(self) -> None:
        super().__post_init__()
        for cell in (*self.forbid, *self.allow):
            check_positions(cell)
            if len(cell) != 2:
                raise ValueError(f"a cell is a pair (query, key), got {cell!r}")

    def edits(self, model: Network) -> dict[str, Edit]:
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
class ForbidSource(Addressed):
    """Hide these source positions from every query: in the encoder, in cross-attention, or (None) in both.

    Raises:
        ValueError: a position is not a whole number from 0 on, or `kind` has no source keys.
    """

    positions: tuple[int, ...]
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positions(self.positions)
        if self.kind == "decoder_self":
            raise ValueError("decoder_self has no source keys; kind must be encoder_self, cross or None for both")

    def edits(self, model: Network) -> dict[str, Edit]:
        def forbid(mask: Tensor) -> Tensor:
            mask = mask.clone()
            heads = slice(None) if self.head is None else self.head
            for position in self.positions:
                if position < mask.shape[3]:
                    mask[:, heads, :, position] = False
            return mask

        kinds = [kind for kind in model.kinds if kind.keys == "encoder" and self.kind in (None, kind.name)]
        if not kinds:
            raise ValueError("the model has no source: it reads a single text")
        # A layer that only the deeper of the two stacks has is addressed there alone.
        kinds = [kind for kind in kinds if self.layer is None or self.layer in kind.layers] or kinds
        return {
            path: edit
            for kind in kinds
            for path, edit in at_attentions(model, "mask", kind.name, self.layer, self.head, forbid).items()
        }


@dataclass(frozen=True)
class LiftCausalMask(Addressed):
    """Let each decoder row see all target tokens, the later ones included."""

    layer: int | None = None

    position_free: ClassVar[bool] = False

    def edits(self, model: Network) -> dict[str, Edit]:
        def lift(mask: Tensor) -> Tensor:
            return mask.any(dim=-2, keepdim=True).expand_as(mask)

        return at_attentions(model, "mask", "decoder_self", self.layer, None, lift)
