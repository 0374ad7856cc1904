"""RoPE in a run (Su et al. 2021): its angles, what it did to one head, pair by pair, and scores at other distances."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.analysis.distributions import ratio
from model.network.rotary import rotation
from model.trace import Array, Attention, Rotary, Trace

REACH = 64
"""positions on either side of a query at which a key is placed"""


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


def with_rope(attention: Attention) -> Attention:
    """The same attention if it rotated its queries and keys by the paper's angles, in double precision.

    For a model that was not trained with RoPE: its own q and k, neighbouring dimensions as pairs (Su et al. 2021,
    equation 34). It shows the mechanism, not what a model trained with it would have learned.

    Raises:
        ValueError: d_k is odd.
    """
    if attention.d_k % 2:
        raise ValueError(f"RoPE rotates pairs of dimensions, and d_k = {attention.d_k} is odd.")
    q, k = attention.q.astype(np.float64), attention.k.astype(np.float64)
    # Two positions at least: the frequencies are read between them.
    angles = rotation(torch.arange(max(2, q.shape[1], k.shape[1])), attention.d_k)
    rotary = Rotary(q, k, *(table.numpy() for table in angles), interleaved=True)
    return replace(attention, rotary=rotary, q=rotary.turn(q), k=rotary.turn(k))


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
    wavelength = ratio(2 * math.pi, np.abs(frequencies(rotary)), np.inf)
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
class Rotation:
    """What RoPE did to one query and one key (Su et al. 2021): the pairs are those of `Rotary`."""

    frequency: Array
    """(pair,): radians for each position"""
    angle: Array
    """(2, pair): position * frequency, of the query and of the key"""
    factor: float
    """by which the lengths of both are multiplied; 1 in RoPE, more in YaRN (Peng et al. 2023, section 3.4)"""
    q: Array
    """(2, pair, 2): the query of the run, before the rotation and after it"""
    k: Array
    """(2, pair, 2): the same of the key"""
    products: Array
    """(2, pair): q . k of each pair, before and after; those after and `rest` sum to the score of the run"""
    rest: float
    """q . k of the dimensions that are not rotated"""
    offsets: Array
    """(offset,): n - m, for a key at position n and a query at position m; up to 0 in causal attention"""
    scores: Array
    """(offset,): the score of the same q and k at each offset"""

    @property
    def unrotated_score(self) -> float:
        """The score if nothing were rotated."""
        return float(self.products[0].sum()) + self.rest

    @property
    def score(self) -> float:
        """The score of the run, as the sum of its parts."""
        return float(self.products[1].sum()) + self.rest


def rotate_pairs(attention: Attention, head: int, query: int, key: int) -> Rotation:
    """One query and one key of a head that rotates them, pair by pair, and their score at other distances.

    Raises:
        ValueError: the attention rotates nothing.
    """
    rotary = _rotary(attention)
    q = np.stack([rotary.pairs(x[head, query].astype(np.float64)) for x in (rotary.q, attention.q)])
    k = np.stack([rotary.pairs(x[head, key].astype(np.float64)) for x in (rotary.k, attention.k)])
    rest = slice(rotary.start + 2 * rotary.cos.shape[-1], None)
    constant = float(attention.q[head, query, rest].astype(np.float64) @ attention.k[head, key, rest])
    factor, frequency = float(np.hypot(rotary.cos, rotary.sin).mean()), frequencies(rotary)
    reach = max(REACH, abs(key - query))
    offsets = np.arange(-reach, 1 if attention.causal and key <= query else reach + 1)
    # A pair as a complex number: to rotate it by an angle is to multiply it by e^(i angle).
    fixed, moving = (x[0, :, 0] + 1j * x[0, :, 1] for x in (q, k))
    moved = moving * np.exp(1j * offsets[:, None] * frequency)
    return Rotation(
        frequency=frequency,
        angle=np.array([[query], [key]]) * frequency,
        factor=factor,
        q=q,
        k=k,
        products=(q * k).sum(axis=-1),
        rest=constant,
        offsets=offsets,
        scores=factor**2 * (fixed.conj() * moved).real.sum(axis=-1) + constant,
    )


def rotation_base(frequency: Array, turned: int) -> float | None:
    """b, if the frequencies of the pairs are b^(-2 i / d), d the number of `turned` dimensions; None: they are not."""
    if len(frequency) < 2:
        return None
    exponents = -2 * np.arange(1, len(frequency)) / turned
    if not (frequency[1:] > 0).all():
        return None
    bases = frequency[1:] ** (1 / exponents)
    return float(np.median(bases)) if np.allclose(bases, bases[0], rtol=1e-2) else None


def _rotary(attention: Attention) -> Rotary:
    if attention.rotary is None:
        raise ValueError(f"{attention.kind} of this model does not rotate queries and keys")
    return attention.rotary
