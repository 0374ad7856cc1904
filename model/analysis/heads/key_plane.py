"""A head's keys in the plane of their two leading principal components, and its queries in the same plane.

A query can be moved in that plane. The part of it that lies outside stays as it is and counts in every score, so the
weights of a moved query are exact: nothing is projected away.
"""

from dataclasses import dataclass

import numpy as np

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
