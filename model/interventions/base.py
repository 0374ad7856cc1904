"""What an intervention is, where in the model it acts, and how it is applied to a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, Protocol

import torch
from torch import Tensor

from model.hooks import Edit, editing, recording
from model.kinds import KIND_TITLES
from model.language import Refusal, sentence, series
from model.network.network import Network

KINDS = tuple(KIND_TITLES)
STACKS = ("encoder", "decoder")
SUBLAYERS = ("self_attn", "cross_attn", "feed_forward")
SIDES = ("source", "target")
Side = Literal["source", "target"]


@dataclass(frozen=True)
class Reading:
    """An edit that also reads the activation at an earlier hook point of the same run, after all edits there."""

    path: str
    """of the earlier hook point"""
    edit: Callable[[Tensor, Tensor], Tensor]
    """(activation, the earlier activation) -> the activation's replacement"""


class Intervention(Protocol):
    """What `translate` and `trace` accept."""

    @property
    def position_free(self) -> bool:
        """True if it acts in the same way in a cached step, which computes one query at a time."""

    def edits(self, model: Network) -> dict[str, Edit | Reading]:
        """Hook point path -> edit, for this model.

        Raises:
            ValueError: the model has no such attention, head or sub-layer.
        """


class Addressed:
    """An intervention whose fields say where it acts: kind, layer and head, or stack, layer and name; None = all."""

    def __post_init__(self) -> None:
        for name, allowed in (("kind", KINDS), ("stack", STACKS), ("name", SUBLAYERS), ("side", SIDES)):
            value = getattr(self, name, None)
            if value is not None and value not in allowed:
                raise Refusal(
                    "{name} must be one of {names}, got {value!r}", name=name, names=", ".join(allowed), value=value
                )
        for name in ("layer", "head"):
            value = getattr(self, name, None)
            if value is not None:
                check_positions((value,), name)


@contextmanager
def applied(model: Network, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Apply `interventions`, the first one first, to every run inside the block."""
    changes = [intervention.edits(model) for intervention in interventions]
    read = {edit.path for edits in changes for edit in edits.values() if isinstance(edit, Reading)}
    with ExitStack() as stack:
        earlier = stack.enter_context(recording(model, sorted(read), detached=False)) if read else {}
        for edits in changes:
            stack.enter_context(editing(model, {path: bind(edit, earlier) for path, edit in edits.items()}))
        yield


def bind(edit: Edit | Reading, earlier: Mapping[str, Tensor]) -> Edit:
    """`edit` as a function of its activation alone; a `Reading` looks up the other one in `earlier`, by path."""
    if isinstance(edit, Reading):
        return lambda activation: edit.edit(activation, earlier[edit.path])
    return edit


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
    model: Network, point: str, kind: str | None, layer: int | None, head: int | None, edit: Edit
) -> dict[str, Edit]:
    """`edit` at this hook point of every attention that the address names."""
    return {f"{path}.{point}": edit for path in attention_paths(model, kind, layer, head)}


def attention_paths(model: Network, kind: str | None, layer: int | None, head: int | None) -> list[str]:
    """Every attention that the address names.

    Raises:
        ValueError: no attention or head of the model has this address.
    """
    kinds = [each for each in model.kinds if kind in (None, each.name) and (head is None or head < each.heads)]
    attentions, names = model.attentions(), [each.name for each in kinds]
    chosen = [path for (k, n), (path, _) in attentions.items() if k in names and layer in (None, n)]
    if not chosen:
        raise Refusal(
            "the model has no attention kind={kind!r}, layer={layer!r}, head={head!r}; it has {kinds}",
            kind=kind,
            layer=layer,
            head=head,
            kinds=series(
                sentence(
                    "{kind} with {layers} layers of {heads} heads",
                    kind=each.name,
                    layers=len(each.layers),
                    heads=each.heads,
                )
                for each in model.kinds
            ),
        )
    return chosen


def sublayer_paths(model: Network, stack: str | None, layer: int | None, name: str | None) -> list[str]:
    """Every sub-layer that the address names, such as `decoder.layers.1.feed_forward`.

    Raises:
        ValueError: no sub-layer of the model has this address.
    """
    chosen = [
        f"{s}.layers.{n}.{sublayer}"
        for s, blocks in model.stacks.items()
        for n, block in enumerate(blocks.layers)
        for sublayer in SUBLAYERS
        if hasattr(block, sublayer) and stack in (None, s) and layer in (None, n) and name in (None, sublayer)
    ]
    if not chosen:
        raise Refusal(
            "the model has no sub-layer stack={stack!r}, layer={layer!r}, name={name!r}; stacks are "
            "encoder and decoder, names self_attn, cross_attn (decoder alone) and feed_forward",
            stack=stack,
            layer=layer,
            name=name,
        )
    return chosen


def check_positions(positions: tuple[int, ...], name: str = "position") -> None:
    """Raise ValueError unless all are whole numbers from 0 on."""
    for position in positions:
        if not isinstance(position, Integral) or isinstance(position, bool) or position < 0:
            raise Refusal("a {name} must be a whole number from 0 on, got {position!r}", name=name, position=position)


def check_permutation(order: tuple[int, ...]) -> None:
    """Raise ValueError unless `order` holds each of 0 to len(order) - 1 once."""
    check_positions(order)
    if sorted(order) != list(range(len(order))):
        raise Refusal("an order must contain each position from 0 on exactly once, got {order!r}", order=order)
