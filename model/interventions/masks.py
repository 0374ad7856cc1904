"""Changes to the mask: which keys a query may attend to (paper, section 3.2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from model.hooks import Edit
from model.interventions.base import Addressed, at_attentions, check_positions
from model.kinds import Kind
from model.language import Refusal
from model.network.masks import pattern_mask
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
                raise Refusal("a cell is a pair (query, key), got {cell!r}", cell=cell)

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
            raise Refusal("decoder_self has no source keys; kind must be encoder_self, cross or None for both")

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
            raise Refusal("the model has no source: it reads a single text")
        return _at_kinds(model, kinds, self.layer, self.head, forbid)


@dataclass(frozen=True)
class PatternMask(Addressed):
    """Sparse self-attention: of the keys that a query may see, keep those in one of these patterns, and itself.

    The union of the patterns that are given: `window` and `stride` of equal size is the strided attention of Child et
    al. (2019, section 4.3), `window` and `global_tokens` that of Longformer (Beltagy et al. 2020, section 3.1), `block`
    alone block-diagonal attention (Qiu et al. 2020). A masked cell stays masked. Cross-attention has no distances: its
    queries and keys are positions of two texts.

    Args:
        window: keys less than this many positions away, on either side where the model sees both.
        stride: keys whose distance is a multiple of it.
        global_tokens: positions that see every key and that every query sees.
        block: keys in the query's own block of this many positions.
        kind: encoder_self, decoder_self or None for every self-attention.
        layer: None for all.

    Raises:
        ValueError: no pattern is given, a size is not a whole number from 1 on, or `kind` is cross.
    """

    window: int | None = None
    stride: int | None = None
    global_tokens: tuple[int, ...] = ()
    block: int | None = None
    kind: str | None = None
    layer: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positions(self.global_tokens)
        for name in ("window", "stride", "block"):
            size = getattr(self, name)
            if size is not None:
                check_positions((size,), name)
                if size < 1:
                    raise Refusal("a {name} must be a whole number from 1 on, got 0", name=name)
        if not (self.window or self.stride or self.block or self.global_tokens):
            raise Refusal("a pattern needs a window, a stride, global tokens or a block")
        if self.kind == "cross":
            raise Refusal("cross-attention joins two texts; kind must be encoder_self, decoder_self or None")

    @property
    def position_free(self) -> bool:
        """Distances are counted from the newest key; where a cache drops old keys, positions from 0 are not known."""
        return not (self.global_tokens or self.block)

    def cells(self, n_queries: int, n_keys: int, device: torch.device | str | None = None) -> Tensor:
        """(1, 1, query, key): the kept cells, before the model's own mask; the queries are the last of the keys."""
        sizes = (self.window, self.stride, self.global_tokens, self.block)
        return pattern_mask(n_queries, n_keys, *sizes, device)

    def edits(self, model: Network) -> dict[str, Edit]:
        def keep(mask: Tensor) -> Tensor:
            return mask & self.cells(*mask.shape[2:], mask.device)

        kinds = [kind for kind in model.kinds if not kind.crosses and self.kind in (None, kind.name)]
        if not kinds:
            return at_attentions(model, "mask", self.kind, self.layer, None, keep)
        return _at_kinds(model, kinds, self.layer, None, keep)


@dataclass(frozen=True)
class LiftCausalMask(Addressed):
    """Let each decoder row see all target tokens, the later ones included."""

    layer: int | None = None

    position_free: ClassVar[bool] = False

    def edits(self, model: Network) -> dict[str, Edit]:
        def lift(mask: Tensor) -> Tensor:
            return mask.any(dim=-2, keepdim=True).expand_as(mask)

        return at_attentions(model, "mask", "decoder_self", self.layer, None, lift)


def _at_kinds(
    model: Network, kinds: Sequence[Kind], layer: int | None, head: int | None, edit: Edit
) -> dict[str, Edit]:
    """A layer that only the deeper of the two stacks has is addressed there alone."""
    found = [kind for kind in kinds if layer is None or layer in kind.layers] or kinds
    edits = [at_attentions(model, "mask", kind.name, layer, head, edit) for kind in found]
    return {path: one for of_kind in edits for path, one in of_kind.items()}
