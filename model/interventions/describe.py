"""One sentence for the screen that says what an intervention does."""

import math
from collections.abc import Sequence

from model.interventions.attention import AttentionTemperature, HeadGate, SharedKeysValues, Unscaled, ValueZeroing
from model.interventions.base import Intervention, attention_paths
from model.interventions.blocks import PositionsOff, PositionsShuffled, ResidualOff, SublayerOff
from model.interventions.masks import ForbidSource, LiftCausalMask, MaskEdit, PatternMask
from model.interventions.patterns import FrozenPattern, PatternEdit, PermutedAttention, UniformAttention
from model.network.network import Network
from model.trace import KIND_TITLES

SUBLAYER_NAMES = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}
MOST_LISTED = 8
"""A sentence names this many positions and counts the others."""


def describe(  # noqa: C901 - one case per kind of intervention
    intervention: Intervention, model: Network | None = None
) -> str:
    """One sentence: what is changed, and where. Numbers count from 0, as everywhere on screen.

    Args:
        intervention: what is described.
        model: that it changes; None: one whose scores are divided by the square root of d_k, as the paper's.
    """
    place = _sublayer(intervention) if isinstance(intervention, SublayerOff | ResidualOff) else _place(intervention)
    match intervention:
        case AttentionTemperature(tau=tau):
            return f"In {place}, what the softmax reads is divided by τ = {tau:g}; several temperatures multiply."
        case Unscaled():
            return _unscaled(intervention, place, model)
        case MaskEdit():
            return _mask_edit(intervention, place)
        case ForbidSource(positions=positions, kind=kind):
            where = place if kind else place.replace("every attention", "encoder self-attention and cross-attention")
            return f"No query may attend to source {_positions(positions)} in {where}."
        case PatternMask(kind=kind):
            where = place if kind else place.replace("every attention", "every self-attention")
            return f"Queries attend only to {_kept(intervention)} in {where}."
        case LiftCausalMask():
            return f"Target tokens may attend to later ones in {_of_kind('decoder_self', intervention.layer, None)}."
        case HeadGate():
            return _gate(intervention, place)
        case PatternEdit(query=query):
            return f"The attention weights of row {query} are set by hand in {place}."
        case UniformAttention():
            return f"Every query gives equal weight to each key that it may see in {place}."
        case PermutedAttention():
            return f"The attention weights of each row are {_permutation(intervention)} in {place}."
        case FrozenPattern():
            return f"The attention weights in {place} are taken from another run."
        case ValueZeroing(positions=positions):
            return f"The values v of key {_positions(positions)} are 0 in {place}."
        case SharedKeysValues(groups=1):
            return f"All heads share one set of keys and values, the mean of theirs, in {place}."
        case SharedKeysValues(groups=groups):
            return f"The heads form {groups} groups that share keys and values, the mean of theirs, in {place}."
        case PositionsOff(side=side):
            return f"No positional encoding is added to the {side or 'source and the target'}."
        case PositionsShuffled(order=order, side=side):
            return f"The first {len(order)} positional encodings of the {side} are permuted."
        case SublayerOff():
            return f"{place} outputs 0: only the residual passes."
        case ResidualOff():
            return f"{place} has no residual connection."
    raise ValueError(f"no description of {intervention!r}")


def scaling_in_words(model: Network, kind: str | None = None, layer: int | None = None, head: int | None = None) -> str:
    """What the attentions at an address do to their scores: "divided by √d_k", "multiplied by 0.125", or "scaled" where
    they differ; empty if they leave them as they are."""
    attentions = [model.get_submodule(path) for path in attention_paths(model, kind, layer, head)]
    words = {_scaling(attention.divisor, attention.d_k) for attention in attentions}
    return words.pop() if len(words) == 1 else "scaled"


def _scaling(divisor: float, d_k: int) -> str:
    if divisor == 1:
        return ""
    root = math.isclose(divisor, math.sqrt(d_k), rel_tol=1e-4)
    return "divided by √d_k" if root else f"multiplied by {1 / divisor:.4g}"


def _unscaled(change: Unscaled, place: str, model: Network | None) -> str:
    address = change.kind, change.layer, change.head
    scaling = scaling_in_words(model, *address) if model else "divided by √d_k"
    if not scaling:
        return f"Scores in {place} stay as they are: this model does not scale them."
    return f"Scores in {place} are not {scaling}."


def _kept(change: PatternMask) -> str:
    """`themselves, keys less than 4 positions away and position 0, which sees every key`."""
    parts = ["themselves"]
    if change.window:
        parts.append(f"keys less than {change.window:,} positions away")
    if change.stride:
        parts.append(f"keys at a multiple of {change.stride:,} positions")
    if change.block:
        parts.append(f"keys in their block of {change.block:,}")
    if change.global_tokens:
        parts.append(f"global {_positions(change.global_tokens)}")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _gate(change: HeadGate, place: str) -> str:
    heads = "z of every head" if change.head is None else "z"
    if change.gate == 1:
        return f"In {place}, {heads} stays as it is."
    mean = "its mean" if change.mode == "mean" else ""
    if mean and change.kind != "encoder_self":
        mean = "its mean (in the decoder, over the positions up to the query's own)"
    if change.gate == 0:
        return f"In {place}, {heads} is {f'replaced by {mean}' if mean else 'set to 0'}."
    return f"In {place}, {heads} is multiplied by {change.gate:g}{f'; the rest is {mean}' if mean else ''}."


def _mask_edit(change: MaskEdit, place: str) -> str:
    parts = [
        f"{verb} {len(cells)} {'cell' if len(cells) == 1 else 'cells'}"
        for verb, cells in (("forbids", change.forbid), ("allows", change.allow))
        if cells
    ]
    return f"The mask of {place} {' and '.join(parts) or 'stays as it is'}."


def _permutation(change: PermutedAttention) -> str:
    return f"shuffled among its keys (seed {change.seed})" if change.order is None else "permuted"


def _positions(positions: Sequence[int]) -> str:
    """`position 3`, `positions 1 and 4`, `positions 0, 1, 2 and 9 more`, `no position`."""
    if not positions:
        return "no position"
    listed, rest = [str(position) for position in positions[:MOST_LISTED]], len(positions) - MOST_LISTED
    if rest > 0:
        listed.append(f"{rest} more")
    joined = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    return f"position{'s' * (len(positions) > 1)} {joined}"


def _place(intervention: Intervention) -> str:
    return _of_kind(*(getattr(intervention, name, None) for name in ("kind", "layer", "head")))


def _of_kind(kind: str | None, layer: int | None, head: int | None) -> str:
    """`cross-attention, layer 3, head 0`, `every attention`."""
    parts = [KIND_TITLES[kind].lower() if kind else "every attention"]
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
