"""A head's keys in the plane of their two leading principal components, and its queries in the same plane.

A query can be moved in that plane. The part of it that lies outside stays as it is and counts in every score, so the
weights of a moved query are exact: nothing is projected away.
"""

from dataclasses import dataclass

import numpy as np

from model.analysis.heads.softmax import softmax
from model.trace import Array, Attention


@dataclass(frozen=True)
class KeyPlane:
    """One head's keys and queries, as the softmax meets them, split by a plane. All in double precision."""

    axes: Array
    """(2, d_k): the two directions in which the keys vary most, orthonormal"""
    shares: Array
    """(2,): each direction's share of the keys' variance, 0 to 1; 0 where the keys do not vary"""
    mean: Array
    """(2,): the keys' mean in the plane"""
    keys: Array
    """(key, 2): in the plane, from the mean"""
    queries: Array
    """(query, 2): the part of each query in the plane, from zero"""
    outside: Array
    """(query,): length of the part of each query outside the plane"""
    rest: Array
    """(query, key): what that part adds to each raw score, times the model's scale"""


def key_plane(attention: Attention, head: int) -> KeyPlane:
    """The principal components of all keys of one head (Pearson 1901), and its queries split by their plane."""
    q, k = (x[head].astype(np.float64) for x in (attention.q, attention.k))
    centre = k.mean(axis=0)
    _, lengths, directions = np.linalg.svd(k - centre, full_matrices=True)
    axes = directions[:2]
    variances = np.zeros(max(2, len(lengths)))
    variances[: len(lengths)] = lengths**2
    total = variances.sum()
    in_plane = q @ axes.T
    outside = q - in_plane @ axes
    return KeyPlane(
        axes=axes,
        shares=variances[:2] / total if total > 0 else np.zeros(2),
        mean=axes @ centre,
        keys=(k - centre) @ axes.T,
        queries=in_plane,
        outside=np.linalg.norm(outside, axis=-1),
        rest=attention.scale * outside @ k.T,
    )


def weights_of_moved_query(attention: Attention, head: int, row: int, point: Array) -> Array:
    """(key,): the weights of query `row` if its part in the plane were `point`, (2,), and the rest of it its own.

    Mask, soft cap, bias, sink and temperature are those of the run.
    """
    plane = key_plane(attention, head)
    x = attention.scale * (plane.keys + plane.mean) @ point + plane.rest[row]
    if attention.softcap is not None:
        x = attention.softcap * np.tanh(x / attention.softcap)
    if attention.bias is not None:
        x = x + attention.bias[head, row]
    x = np.where(attention.mask[head, row], x, -np.inf) / attention.temperature[head]
    if attention.sink is not None:
        return softmax(np.append(x, attention.sink[head]))[:-1]
    return softmax(x)
