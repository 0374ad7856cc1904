"""Changes to a run: frozen, hashable, applied through the hook points, for one context only.

Value first, address by keyword; None = all. They compose in the order given.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from model.hooks import Edit, editing
from model.transformer import Transformer


class Intervention(Protocol):
    """What `translate` and `trace` accept."""

    @property
    def position_free(self) -> bool:
        """Whether it means the same in a cached step, which sees one query at a time."""

    def edits(self, model: Transformer) -> dict[str, Edit]:
        """Hook point path -> edit, for this model."""


@dataclass(frozen=True)
class AttentionTemperature:
    """softmax(x / tau) instead of softmax(x): below 1 sharper, above 1 flatter.

    Raises:
        ValueError: tau is outside [1e-30, 1e30], where single precision still holds x / tau.
    """

    tau: float
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1e-30 <= self.tau <= 1e30:
            raise ValueError(f"tau must be a number above 0, within [1e-30, 1e30], got {self.tau!r}")

    def edits(self, model: Transformer) -> dict[str, Edit]:
        def divide(masked: Tensor) -> Tensor:
            return masked / _per_head(masked.shape[1], self.head, self.tau, masked)

        return _at(model, "masked", self.kind, self.layer, self.head, divide)


@dataclass(frozen=True)
class HeadGate:
    """Multiply a head's z by `gate`: 1 leaves it, 0 removes it.

    With mode "mean" what is removed is replaced by the head's mean over the sentence's positions; in
    the decoder over those up to the query's own, so that no row learns what comes after it.
    """

    gate: float
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    mode: Literal["zero", "mean"] = "zero"

    def __post_init__(self) -> None:
        if not 0 <= self.gate <= 1:
            raise ValueError(f"gate must lie in [0, 1], got {self.gate!r}")
        if self.mode not in ("zero", "mean"):
            raise ValueError(f"mode must be zero or mean, got {self.mode!r}")

    @property
    def position_free(self) -> bool:
        return self.mode == "zero"

    def edits(self, model: Transformer) -> dict[str, Edit]:
        def zero(z: Tensor) -> Tensor:
            return z * _per_head(z.shape[1], self.head, self.gate, z)

        def mean(z: Tensor) -> Tensor:
            return zero(z) + (1 - _per_head(z.shape[1], self.head, self.gate, z)) * z.mean(dim=2, keepdim=True)

        def mean_so_far(z: Tensor) -> Tensor:
            positions = torch.arange(1, z.shape[2] + 1, dtype=z.dtype, device=z.device)[:, None]
            return zero(z) + (1 - _per_head(z.shape[1], self.head, self.gate, z)) * (z.cumsum(dim=2) / positions)

        edits = _at(model, "z", self.kind, self.layer, self.head, zero)
        if self.mode == "zero":
            return edits
        return {path: mean if path.startswith("encoder.") else mean_so_far for path in edits}


@dataclass(frozen=True)
class MaskEdit:
    """Forbid or allow single (query, key) cells, before the softmax; cells outside the sentence do nothing.

    Raises:
        ValueError: a cell has a negative position.
    """

    forbid: tuple[tuple[int, int], ...] = ()
    allow: tuple[tuple[int, int], ...] = ()
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = False

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

        return _at(model, "mask", self.kind, self.layer, self.head, edit)


@dataclass(frozen=True)
class LiftCausalMask:
    """Let decoder rows see the target words after them, which they are trained to predict."""

    layer: int | None = None

    position_free: ClassVar[bool] = False

    def edits(self, model: Transformer) -> dict[str, Edit]:
        def lift(mask: Tensor) -> Tensor:
            return mask.any(dim=-2, keepdim=True).expand_as(mask)

        return _at(model, "mask", "decoder_self", self.layer, None, lift)


@contextmanager
def applied(model: Transformer, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Run the block with `interventions` at work, the first one first."""
    with ExitStack() as stack:
        for intervention in interventions:
            stack.enter_context(editing(model, intervention.edits(model)))
        yield


def temperatures(interventions: Sequence[Intervention], kind: str, layer: int, n_heads: int) -> list[float]:
    """The product of all temperatures at work on each head of one attention."""
    taus = [1.0] * n_heads
    for change in interventions:
        if not isinstance(change, AttentionTemperature):
            continue
        if change.kind in (None, kind) and change.layer in (None, layer):
            taus = [tau * change.tau if change.head in (None, head) else tau for head, tau in enumerate(taus)]
    return taus


def _per_head(n_heads: int, head: int | None, value: float, like: Tensor) -> Tensor:
    """(heads, 1, 1): `value` at `head` (None: everywhere), 1 elsewhere, an exact identity."""
    values = torch.ones(n_heads, 1, 1, dtype=like.dtype, device=like.device)
    values[slice(None) if head is None else head] = value
    return values


def _at(
    model: Transformer, point: str, kind: str | None, layer: int | None, head: int | None, edit: Callable
) -> dict[str, Edit]:
    """`edit` at this hook point of every attention that the address names.

    Raises:
        ValueError: no attention or head of the model has this address.
    """
    attentions = model.attentions()
    chosen = [path for (k, n), (path, _) in attentions.items() if kind in (None, k) and layer in (None, n)]
    if not chosen or not (head is None or 0 <= head < model.config.n_heads):
        raise ValueError(
            f"the model has no attention kind={kind!r}, layer={layer!r}, head={head!r}; "
            f"kinds are {sorted({k for k, _ in attentions})}, heads 0 to {model.config.n_heads - 1}"
        )
    return {f"{path}.{point}": edit for path in chosen}
