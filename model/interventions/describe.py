"""What each intervention does, in one plain sentence for the screen."""

from collections.abc import Sequence

from model.interventions.attention import AttentionTemperature, HeadGate, Unscaled, ValueZeroing
from model.interventions.base import Intervention
from model.interventions.blocks import PositionsOff, PositionsShuffled, ResidualOff, SublayerOff
from model.interventions.masks import ForbidSource, LiftCausalMask, MaskEdit
from model.interventions.patterns import FrozenPattern, PatternEdit, PermutedAttention, UniformAttention

KIND_NAMES = {
    "encoder_self": "encoder self-attention",
    "decoder_self": "decoder self-attention",
    "cross": "cross-attention",
}
SUBLAYER_NAMES = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}
MOST_LISTED = 8
"""Positions that a sentence names; the others are counted."""


def describe(intervention: Intervention) -> str:
    """One sentence: what is changed, and where. Numbers count from 0, as everywhere on screen."""
    place = _sublayer(intervention) if isinstance(intervention, SublayerOff | ResidualOff) else _place(intervention)
    match intervention:
        case AttentionTemperature(tau=tau):
            return f"The softmax in {place} runs at temperature {tau:g}."
        case Unscaled():
            return f"Scores in {place} are not divided by √d_k."
        case MaskEdit():
            return _mask_edit(intervention, place)
        case ForbidSource(positions=positions, kind=kind):
            where = place if kind else place.replace("every attention", "encoder self-attention and cross-attention")
            return f"Nobody may look at source {_positions(positions)} in {where}."
        case LiftCausalMask():
            return f"Target words may look at later ones in {_of_kind('decoder_self', intervention.layer, None)}."
        case HeadGate():
            return _gate(intervention, place)
        case PatternEdit(query=query):
            return f"The attention weights of row {query} are set by hand in {place}."
        case UniformAttention():
            return f"Every query looks equally at all keys it may see in {place}."
        case PermutedAttention():
            return f"The attention weights of each row are {_shuffled(intervention)} in {place}."
        case FrozenPattern():
            return f"The attention weights in {place} are those of another run."
        case ValueZeroing(positions=positions):
            return f"Key {_positions(positions)} {_have(positions)} value 0 in {place}."
        case PositionsOff(side=side):
            return f"No positional encoding is added to the {side or 'source and the target'}."
        case PositionsShuffled(order=order, side=side):
            return f"The first {len(order)} positional encodings of the {side} are in another order."
        case SublayerOff():
            return f"{place} gives 0: only the residual passes."
        case ResidualOff():
            return f"{place} has no residual connection around it."
    raise ValueError(f"no words for {intervention!r}")


def _gate(change: HeadGate, place: str) -> str:
    if change.gate == 1:
        return f"The result of {place} stays as it is."
    instead = " and filled up with its mean" if change.mode == "mean" else ""
    if change.gate == 0:
        return f"The result of {place} is replaced by its mean." if instead else f"The result of {place} is set to 0."
    return f"The result of {place} is multiplied by {change.gate:g}{instead}."


def _mask_edit(change: MaskEdit, place: str) -> str:
    parts = [
        f"{verb} {len(cells)} {'cell' if len(cells) == 1 else 'cells'}"
        for verb, cells in (("forbids", change.forbid), ("allows", change.allow))
        if cells
    ]
    return f"The mask of {place} {' and '.join(parts) or 'stays as it is'}."


def _shuffled(change: PermutedAttention) -> str:
    return f"shuffled among its keys (seed {change.seed})" if change.order is None else "put into another order"


def _positions(positions: Sequence[int]) -> str:
    """`position 3`, `positions 1 and 4`, `positions 0, 1, 2 and 9 more`, `no position`."""
    if not positions:
        return "no position"
    listed, rest = [str(position) for position in positions[:MOST_LISTED]], len(positions) - MOST_LISTED
    if rest > 0:
        listed.append(f"{rest} more")
    joined = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    return f"position{'s' * (len(positions) > 1)} {joined}"


def _have(positions: Sequence[int]) -> str:
    return "have" if len(positions) > 1 else "has"


def _place(intervention: Intervention) -> str:
    return _of_kind(*(getattr(intervention, name, None) for name in ("kind", "layer", "head")))


def _of_kind(kind: str | None, layer: int | None, head: int | None) -> str:
    """`cross-attention, layer 3, head 0`, `every attention`."""
    parts = [KIND_NAMES[kind] if kind else "every attention"]
    if layer is not None:
        parts.append(f"layer {layer}")
    if head is not None:
        parts.append(f"head {head}")
    return ", ".join(parts)


def _sublayer(change: SublayerOff | ResidualOff) -> str:
    """`Every sub-layer`, `Every feed-forward of the decoder`, `The feed-forward of the encoder in layer 2`."""
    name = SUBLAYER_NAMES[change.name] if change.name else "sub-layer"
    stack = f" of the {change.stack}" if change.stack else ""
    layer = f" in layer {change.layer}" if change.layer is not None else ""
    return f"Every {name}{stack}{layer}" if not (change.name and stack and layer) else f"The {name}{stack}{layer}"
