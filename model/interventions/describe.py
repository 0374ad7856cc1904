"""One sentence for the screen that says what an intervention does."""

import math
import re
from collections.abc import Mapping, Sequence

from model.interventions.attention import AttentionTemperature, HeadGate, SharedKeysValues, Unscaled, ValueZeroing
from model.interventions.base import Intervention, attention_paths
from model.interventions.blocks import NormOff, PositionsOff, PositionsShuffled, ResidualOff, SublayerOff
from model.interventions.masks import ForbidSource, LiftCausalMask, MaskEdit, PatternMask
from model.interventions.patch import Patch, PatchFrom
from model.interventions.patterns import FrozenPattern, PatternEdit, PermutedAttention, UniformAttention
from model.kinds import KIND_TITLES
from model.language import Refusal, Sentence, joined, later, sentence
from model.network.network import Network

EVERY = {
    "": sentence("Every sub-layer"),
    "self_attn": sentence("Every self-attention"),
    "cross_attn": sentence("Every cross-attention"),
    "feed_forward": sentence("Every feed-forward"),
}
THE = {
    "self_attn": sentence("The self-attention"),
    "cross_attn": sentence("The cross-attention"),
    "feed_forward": sentence("The feed-forward"),
}
WRITES = {
    "self_attn": sentence("What self-attention writes"),
    "cross_attn": sentence("What cross-attention writes"),
    "feed_forward": sentence("What feed-forward writes"),
}
MOST_LISTED = 8
"""A sentence names this many positions and counts the others."""


SAID: Mapping[type, str] = {
    AttentionTemperature: later(
        "In {place}, what the softmax reads is divided by τ = {tau:g}; several temperatures multiply."
    ),
    ForbidSource: later("No query may attend to source {positions} in {place}."),
    PatternMask: later("Queries attend only to {keys} in {place}."),
    LiftCausalMask: later("Target tokens may attend to later ones in {place}."),
    PatternEdit: later("The attention weights of row {row} are set by hand in {place}."),
    UniformAttention: later("In {place}, every query gives equal weight to each key that it may see."),
    PermutedAttention: later("The attention weights of each row are permuted in {place}."),
    FrozenPattern: later("The attention weights in {place} are taken from another run."),
    ValueZeroing: later("The values v of key {positions} are 0 in {place}."),
    SharedKeysValues: later(
        "In {place}, the heads form {groups} groups, each sharing the mean of its keys and values."
    ),
    SublayerOff: later("{place} outputs 0: only the residual passes."),
    ResidualOff: later("{place} has no residual connection."),
    NormOff: later("{place} has no norm."),
}
"""what those do that one sentence describes, whatever their fields"""


def describe(intervention: Intervention, model: Network | None = None) -> Sentence:
    """One sentence: what is changed, and where. Numbers count from 0, as everywhere on screen. Without a model, it is
    one whose scores are divided by the square root of d_k, as the paper's."""
    place, said = _place(intervention), SAID.get(type(intervention))
    match intervention:
        case Unscaled():
            return _unscaled(intervention, place, model)
        case MaskEdit():
            return _mask_edit(intervention, place)
        case HeadGate():
            return _gate(intervention, place)
        case Patch() | PatchFrom():
            return _patch(intervention)
        case PositionsOff(side=side):
            return {
                None: sentence("No positional encoding is added to the source and the target."),
                "source": sentence("No positional encoding is added to the source."),
                "target": sentence("No positional encoding is added to the target."),
            }[side]
        case PositionsShuffled(order=order, side=side):
            permuted = {
                "source": later("The first {count} positional encodings of the source are permuted."),
                "target": later("The first {count} positional encodings of the target are permuted."),
            }
            return sentence(permuted[side], count=len(order))
        case PermutedAttention(order=None):
            said = later("The attention weights of each row are shuffled among its keys (seed {seed}) in {place}.")
        case SharedKeysValues(groups=1):
            said = later("In {place}, all heads share one set of keys and values, the mean of theirs.")
    if said is None:
        raise Refusal("no description of {intervention!r}", intervention=intervention)
    names = {"tau": "tau", "seed": "seed", "groups": "groups", "row": "query"}
    facts = {name: getattr(intervention, field, None) for name, field in names.items()}
    facts["positions"] = _positions(getattr(intervention, "positions", ()))
    facts["keys"] = _kept(intervention) if isinstance(intervention, PatternMask) else None
    return sentence(said, place=place, **facts)


def _place(change: Intervention) -> Sentence:
    match change:
        case SublayerOff() | ResidualOff() | NormOff():
            return _sublayer(change)
        case ForbidSource(kind=None):
            return _at(sentence("encoder self-attention and cross-attention"), change.layer, change.head)
        case PatternMask(kind=None):
            return _at(sentence("every self-attention"), change.layer, None)
        case LiftCausalMask():
            return _of_kind("decoder_self", change.layer, None)
    return place_in_words(change)


def scaling_in_words(
    model: Network, kind: str | None = None, layer: int | None = None, head: int | None = None
) -> Sentence | None:
    """What the attentions at an address do to their scores: "divided by √dₖ", "multiplied by 0.125", or "scaled" where
    they differ; None if they leave them as they are."""
    attentions = [model.get_submodule(path) for path in attention_paths(model, kind, layer, head)]
    words = {_scaling(attention.divisor, attention.d_k) for attention in attentions}
    return words.pop() if len(words) == 1 else sentence("scaled")


def _scaling(divisor: float, d_k: int) -> Sentence | None:
    if divisor == 1:
        return None
    if math.isclose(divisor, math.sqrt(d_k), rel_tol=1e-4):
        return sentence("divided by √dₖ")
    return sentence("multiplied by {factor:.4g}", factor=1 / divisor)


def _unscaled(change: Unscaled, place: Sentence, model: Network | None) -> Sentence:
    address = change.kind, change.layer, change.head
    scaling = scaling_in_words(model, *address) if model else sentence("divided by √dₖ")
    if not scaling:
        return sentence("Scores in {place} stay as they are: this model does not scale them.", place=place)
    return sentence("Scores in {place} are not {scaled}.", place=place, scaled=scaling)


def _kept(change: PatternMask) -> Sentence:
    """`themselves, keys less than 4 positions away and position 0, which sees every key`."""
    parts = [sentence("themselves")]
    if change.window:
        parts.append(sentence("keys less than {count:,} positions away", count=change.window))
    if change.stride:
        parts.append(sentence("keys at a multiple of {count:,} positions", count=change.stride))
    if change.block:
        parts.append(sentence("keys in their block of {count:,}", count=change.block))
    if change.global_tokens:
        parts.append(sentence("global {positions}", positions=_positions(change.global_tokens)))
    return joined(parts)


def _gate(change: HeadGate, place: Sentence) -> Sentence:
    z = sentence("z of every head") if change.head is None else "z"
    facts = {"place": place, "z": z, "gate": change.gate}
    if change.gate == 1:
        return sentence("In {place}, {z} stays as it is.", **facts)
    if change.mode != "mean":
        if change.gate == 0:
            return sentence("In {place}, {z} is set to 0.", **facts)
        return sentence("In {place}, {z} is multiplied by {gate:g}.", **facts)
    facts["mean"] = sentence("its mean")
    if change.kind != "encoder_self":
        facts["mean"] = sentence("its mean (in the decoder, over the positions up to the query's own)")
    if change.gate == 0:
        return sentence("In {place}, {z} is replaced by {mean}.", **facts)
    return sentence("In {place}, {z} is multiplied by {gate:g}; the rest is {mean}.", **facts)


def _mask_edit(change: MaskEdit, place: Sentence) -> Sentence:
    facts = {"place": place, "forbidden": _cells(len(change.forbid)), "allowed": _cells(len(change.allow))}
    match bool(change.forbid), bool(change.allow):
        case True, True:
            return sentence("The mask of {place} forbids {forbidden} and allows {allowed}.", **facts)
        case True, False:
            return sentence("The mask of {place} forbids {forbidden}.", **facts)
        case False, True:
            return sentence("The mask of {place} allows {allowed}.", **facts)
    return sentence("The mask of {place} stays as it is.", **facts)


def _cells(count: int) -> Sentence:
    return sentence("1 cell") if count == 1 else sentence("{count} cells", count=count)


def _patch(change: Patch | PatchFrom) -> Sentence:
    """`z in cross-attention, layer 3, head 0 has the values of another run at position 2 and position 4 (its 5).`"""
    what = _point(change.path)
    if change.head is not None:
        what = sentence("{place}, head {head}", place=what, head=change.head)
    pairs = change.positions
    if pairs is None:
        where = sentence("all positions")
    elif all(here == there for here, there in pairs):
        where = _positions([here for here, _ in pairs])
    else:
        where = _positions(
            [
                here if here == there else sentence("{here} (its {there})", here=here, there=there)
                for here, there in pairs
            ]
        )
    if change.path.endswith(".pattern"):
        return sentence("{what} have the values of another run at {positions}.", what=what, positions=where)
    return sentence("{what} has the values of another run at {positions}.", what=what, positions=where)


POINT = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(?:(self_attn|cross_attn|feed_forward)(_residual)?\.)?(\w+)")


def _point(path: str) -> Sentence:
    """`The residual stream before layer 2 of the decoder`, `Z in cross-attention, layer 3`; others by their path."""
    match = POINT.fullmatch(path)
    if not match:
        return sentence("The activation at {path}", path=path)
    stack, layer, name, residual, point = match.groups()
    if (name, residual, point) == ("self_attn", "_residual", "before"):
        return _in_stack(sentence("The residual stream before layer {layer}", layer=int(layer)), stack)
    if name and not residual and point == "out":
        return _in_stack(sentence("{what} in layer {layer}", what=WRITES[name], layer=int(layer)), stack)
    if name and not residual and name != "feed_forward":
        kind = "cross" if name == "cross_attn" else f"{stack}_self"
        place = _of_kind(kind, int(layer), None)
        if point == "pattern":
            return sentence("The attention weights in {place}", place=place)
        return sentence("The activation {name} in {place}", name=point, place=place)
    return sentence("The activation at {path}", path=path)


def _in_stack(what: Sentence, stack: str) -> Sentence:
    if stack == "encoder":
        return sentence("{what} of the encoder", what=what)
    return sentence("{what} of the decoder", what=what)


def _positions(positions: Sequence[int | str]) -> Sentence:
    """`position 3`, `positions 1 and 4`, `positions 0, 1, 2 and 9 more`, `no position`."""
    if not positions:
        return sentence("no position")
    if len(positions) == 1:
        return sentence("position {position}", position=positions[0])
    names, rest = list(positions[:MOST_LISTED]), len(positions) - MOST_LISTED
    if rest > 0:
        names.append(sentence("{count} more", count=rest))
    return sentence("positions {positions}", positions=joined(names))


def place_in_words(intervention: Intervention, short: bool = False) -> Sentence:
    """On which attentions an intervention acts: `cross-attention, layer 3, head 0`, `every attention`; in `short` the
    kinds are called as in the sidebar: `Cross, layer 3, head 0`."""
    kind, layer, head = (getattr(intervention, name, None) for name in ("kind", "layer", "head"))
    if short and kind:
        return _at(sentence(KIND_TITLES[kind].removesuffix("-attention")), layer, head)
    return _of_kind(kind, layer, head)


def _of_kind(kind: str | None, layer: int | None, head: int | None) -> Sentence:
    return _at(sentence(KIND_TITLES[kind].lower() if kind else "every attention"), layer, head)


def _at(what: Sentence, layer: int | None, head: int | None) -> Sentence:
    if layer is not None:
        what = sentence("{place}, layer {layer}", place=what, layer=layer)
    if head is not None:
        what = sentence("{place}, head {head}", place=what, head=head)
    return what


def _sublayer(change: SublayerOff | ResidualOff | NormOff) -> Sentence:
    """`Every sub-layer`, `Every feed-forward of the decoder`, `The feed-forward of the encoder in layer 2`."""
    single = change.name and change.stack and change.layer is not None
    what = (THE if single else EVERY)[change.name or ""]
    if change.stack:
        what = _in_stack(what, change.stack)
    return what if change.layer is None else sentence("{what} in layer {layer}", what=what, layer=change.layer)
