"""How positions enter attention itself, measured in a run: rotations of q and k, and biases of the scores."""

import math
from dataclasses import dataclass, replace

import numpy as np

from model.analysis.heads.softmax import mask_orders
from model.analysis.positions.word_order import move_words, shuffle_words
from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Attention, Rotary, Trace


def attention_with(trace: Trace, chosen: Attention, field: str) -> Attention | None:
    """The chosen attention if its `field`, "rotary" or "bias", is set, else the first of the run; None: no attention.

    A model can rotate queries and keys, or add a bias, in some of its layers only.
    """
    places = sorted(trace.attentions, key=lambda place: (place[0] != chosen.kind, place))
    attentions = (trace.attention(*place) for place in places)
    if getattr(chosen, field) is not None:
        return chosen
    return next((each for each in attentions if getattr(each, field) is not None), None)


def frequencies(rotary: Rotary) -> Array:
    """(pair,): radians per position, measured in the run's cosines and sines of positions 0 and 1."""
    turn = rotary.cos.astype(np.float64) + 1j * rotary.sin
    return np.angle(turn[1] / turn[0]) if len(turn) > 1 else np.zeros(turn.shape[1])


def extend_angles(rotary: Rotary, positions: Array) -> Rotary:
    """The same rotation at other positions, in double precision: angle = position * frequency.

    Some models multiply cosines and sines by a factor, such as YaRN's; it is kept.
    """
    angle = positions[:, None] * frequencies(rotary)
    factor = np.hypot(rotary.cos[0].astype(np.float64), rotary.sin[0])
    return replace(rotary, cos=factor * np.cos(angle), sin=factor * np.sin(angle))


def shifted_scores(attention: Attention, head: int, shift: int) -> Array:
    """(query, key): scores of one head if its text began at position `shift`: the run's q and k, rotated further on.

    Raises:
        ValueError: the attention rotates nothing.
    """
    rotary = _rotary(attention)
    q, k = (
        extend_angles(rotary, shift + np.arange(x.shape[1])).turn(x.astype(np.float64))[head]
        for x in (rotary.q, rotary.k)
    )
    return q @ k.T


@dataclass(frozen=True)
class RotatedHead:
    """What RoPE did to the queries and keys of one head (Su et al. 2021)."""

    cos: Array
    """(position, pair): of the angle by which each pair of dimensions was rotated"""
    sin: Array
    """(position, pair)"""
    wavelength: Array
    """(pair,): positions per full turn; infinite for a pair that is not rotated"""
    q_before: Array
    """(query, d_k)"""
    q: Array
    """(query, d_k): after the rotation"""
    k_before: Array
    """(key, d_k)"""
    k: Array
    """(key, d_k): after the rotation"""
    rotation_error: float
    """largest difference between the rotation, repeated here, and the run's q and k"""


def rotated_head(trace: Trace, kind: str, layer: int, head: int) -> RotatedHead:
    """The rotation of one head's queries and keys, repeated with the run's angles.

    Raises:
        ValueError: the attention rotates nothing.
    """
    attention = trace.attention(kind, layer)
    rotary = _rotary(attention)
    frequency = np.abs(frequencies(rotary))
    wavelength = np.divide(2 * math.pi, frequency, out=np.full(len(frequency), np.inf), where=frequency > 0)
    pairs = ((rotary.q, attention.q), (rotary.k, attention.k))
    errors = [np.abs(rotary.turn(before.astype(np.float64)) - after)[head].max() for before, after in pairs]
    return RotatedHead(
        rotary.cos,
        rotary.sin,
        wavelength,
        rotary.q[head],
        attention.q[head],
        rotary.k[head],
        attention.k[head],
        max(map(float, errors)),
    )


@dataclass(frozen=True)
class BiasedHead:
    """What a bias of the scores does to one head (Press et al. 2022; Raffel et al. 2020)."""

    offsets: Array
    """(offset,): key - query position, of the cells that the mask allows"""
    lowest: Array
    """(head, offset): the smallest bias at that offset"""
    highest: Array
    """(head, offset): the largest; equal to the smallest where the bias depends on the offset alone"""
    slopes: Array
    """(head,): m with bias = -m |key - query|, by least squares over the visible cells"""
    misfit: float
    """largest difference of the bias from -m |key - query| over all heads and visible cells"""
    bias: Array
    """(query, key): of this head"""
    without: Array
    """(query, key): this head's scores without the bias: scaled, then capped where the model caps them"""
    pre_softmax: Array
    """(query, key): with the bias, as the softmax read them"""
    pattern_without: Array
    """(query, key): attention weights recomputed without the bias"""
    pattern: Array
    """(query, key): attention weights of the run"""


def biased_head(trace: Trace, kind: str, layer: int, head: int) -> BiasedHead:
    """The bias of all heads by offset, and the scores and weights of one head with it and without.

    Raises:
        ValueError: the attention adds no bias.
    """
    attention = trace.attention(kind, layer)
    if attention.bias is None:
        raise ValueError(f"{attention.kind} of this model adds no bias to its scores")
    bias, visible = attention.bias.astype(np.float64), attention.mask.any(axis=0)
    offset = np.arange(bias.shape[2]) - np.arange(bias.shape[1])[:, None]
    offsets = np.unique(offset[visible])
    cells = [bias[:, visible & (offset == each)] for each in offsets]
    distance = np.abs(offset[visible])
    slopes = -(bias[:, visible] @ distance) / max((distance**2).sum(), 1)
    without = replace(attention, bias=None).pre_softmax[head]
    tau = float(attention.temperature[head])
    return BiasedHead(
        offsets=offsets,
        lowest=np.stack([each.min(axis=1) for each in cells], axis=1),
        highest=np.stack([each.max(axis=1) for each in cells], axis=1),
        slopes=slopes,
        misfit=float(np.abs(bias[:, visible] + slopes[:, None] * distance).max()),
        bias=attention.bias[head],
        without=without,
        pre_softmax=attention.pre_softmax[head],
        pattern_without=mask_orders(without, attention.mask[head], tau).before,
        pattern=attention.pattern[head],
    )


@dataclass(frozen=True)
class Reordered:
    """A text and the same tokens in another order, through a model of one stack."""

    order: tuple[int, ...]
    """which token stands at each position"""
    logits_change: Array
    """(position,), in the own order: largest change of the logits in the row of the same token"""


def word_positions(trace: Trace) -> tuple[tuple[int, ...], ...]:
    """The positions of each word's tokens; special tokens belong to no word."""
    (stream,) = trace.streams.values()
    numbers = [number for number in dict.fromkeys(stream.tokens.words) if number is not None]
    return tuple(tuple(i for i, word in enumerate(stream.tokens.words) if word == number) for number in numbers)


def reorder_words(checkpoint: Checkpoint, trace: Trace, seed: int) -> Reordered:
    """Shuffle the words of a model of one stack, run it again, and compare each token's logits."""
    (stream,) = trace.streams.values()
    words = word_positions(trace)
    order = move_words(len(stream.tokens.ids), words, shuffle_words(len(words), seed))
    ids = [stream.tokens.ids[i] for i in order]
    own, other = (checkpoint.record(trace, trace.interventions, each)["logits"] for each in (stream.tokens.ids, ids))
    return Reordered(order, np.abs(other[np.argsort(order)] - own).max(axis=-1))


def _rotary(attention: Attention) -> Rotary:
    if attention.rotary is None:
        raise ValueError(f"{attention.kind} of this model does not rotate queries and keys")
    return attention.rotary
