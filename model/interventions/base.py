"""What an intervention is, where in the model it acts, and how a run comes under it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from model.hooks import Edit, editing, recording
from model.network.encoder_decoder import Transformer

KINDS = ("encoder_self", "decoder_self", "cross")
STACKS = ("encoder", "decoder")
SUBLAYERS = ("self_attn", "cross_attn", "feed_forward")
SIDES = ("source", "target")
Side = Literal["source", "target"]


@dataclass(frozen=True)
class Reading:
    """An edit that also needs what an earlier hook point of the same run holds, after all edits there."""

    path: str
    """of the earlier hook point"""
    edit: Callable[[Tensor, Tensor], Tensor]
    """(activation, the earlier activation) -> the activation's replacement"""

    def bound(self, earlier: Mapping[str, Tensor]) -> Edit:
        return lambda activation: self.edit(activation, earlier[self.path])


class Intervention(Protocol):
    """What `translate` and `trace` accept."""

    @property
    def position_free(self) -> bool:
        """Whether it means the same in a cached step, which sees one query at a time."""

    def edits(self, model: Transformer) -> dict[str, Edit | Reading]:
        """Hook point path -> edit, for this model."""


@contextmanager
def applied(model: Transformer, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Run the block with `interventions` at work, the first one first."""
    changes = [intervention.edits(model) for intervention in interventions]
    read = {edit.path for edits in changes for edit in edits.values() if isinstance(edit, Reading)}
    with ExitStack() as stack:
        earlier = stack.enter_context(recording(model, sorted(read))) if read else {}
        for edits in changes:
            stack.enter_context(editing(model, {path: bound(edit, earlier) for path, edit in edits.items()}))
        yield


def bound(edit: Edit | Reading, earlier: Mapping[str, Tensor]) -> Edit:
    """A plain edit; a `Reading` finds what it needs in `earlier`, by path."""
    return edit.bound(earlier) if isinstance(edit, Reading) else edit


def per_head(n_heads: int, head: int | None, value: float, like: Tensor) -> Tensor:
    """(heads, 1, 1): `value` at `head` (None: everywhere), 1 elsewhere, an exact identity."""
    values = torch.ones(n_heads, 1, 1, dtype=like.dtype, device=like.device)
    values[slice(None) if head is None else head] = value
    return values


def at_head(head: int | None, before: Tensor, after: Tensor) -> Tensor:
    """(batch, heads, ...): `after` at `head` (None: everywhere), `before` elsewhere."""
    if head is None:
        return after
    mixed = before.clone()
    mixed[:, head] = after[:, head]
    return mixed


def at_attentions(
    model: Transformer, point: str, kind: str | None, layer: int | None, head: int | None, edit: Edit
) -> dict[str, Edit]:
    """`edit` at this hook point of every attention that the address names."""
    return {f"{path}.{point}": edit for path in attention_paths(model, kind, layer, head)}


def attention_paths(model: Transformer, kind: str | None, layer: int | None, head: int | None) -> list[str]:
    """Every attention that the address names.

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
    return chosen


def sublayer_paths(model: Transformer, stack: str | None, layer: int | None, name: str | None) -> list[str]:
    """Every sub-layer that the address names, such as `decoder.layers.1.feed_forward`.

    Raises:
        ValueError: no sub-layer of the model has this address.
    """
    chosen = [
        f"{s}.layers.{n}.{sublayer}"
        for s in STACKS
        for n, block in enumerate(getattr(model, s).layers)
        for sublayer in SUBLAYERS
        if hasattr(block, sublayer) and stack in (None, s) and layer in (None, n) and name in (None, sublayer)
    ]
    if not chosen:
        raise ValueError(
            f"the model has no sub-layer stack={stack!r}, layer={layer!r}, name={name!r}; stacks are encoder and "
            f"decoder, names self_attn, cross_attn (decoder alone) and feed_forward"
        )
    return chosen


def check_positions(positions: tuple[int, ...]) -> None:
    """Raise ValueError unless all are whole numbers from 0 on."""
    for position in positions:
        if not isinstance(position, int) or position < 0:
            raise ValueError(f"positions count from 0, got {position!r}")


def check_permutation(order: tuple[int, ...]) -> None:
    """Raise ValueError unless `order` holds each of 0 to len(order) - 1 once."""
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"an order holds each position from 0 on once, got {order!r}")


def check_one_of(name: str, value: str | None, allowed: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is None or one of `allowed`."""
    if value is not None and value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
