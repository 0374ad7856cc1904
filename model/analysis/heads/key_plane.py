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


def principal_axes(rows: Array) -> tuple[Array, Array]:
    """Two orthonormal directions, (2, width), in which rows, (row, width), vary most (Pearson 1901).

    With them each direction's share of the variance, (2,); 0 where the rows do not vary.
    """
    centred = rows.astype(np.float64) - rows.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=True)
    variances = np.zeros(max(2, len(lengths)))
    variances[: len(lengths)] = lengths**2
    total = variances.sum()
    axes = np.zeros((2, rows.shape[1]))
    axes[: len(directions[:2])] = directions[:2]
    return axes, variances[:2] / total if total > 0 else np.zeros(2)


def convex_hull(points: Array) -> list[int]:
    """Which of points, (point, 2), are corners of the smallest convex shape around all, in order around it.

    Andrew 1979, “Another efficient algorithm for convex hulls in two dimensions”.
    """
    order = np.lexsort(points.T[::-1]).tolist()
    hull: list[int] = []
    for numbers in (order, order[::-1]):
        start = len(hull) + 1
        for number in numbers:
            while len(hull) > start and _turns_right(*points[[*hull[-2:], number]]):
                hull.pop()
            hull.append(number)
        hull.pop()
    return hull or order[:1]


def _turns_right(first: Array, second: Array, third: Array) -> bool:
    (a, b), (c, d) = second - first, third - first
    return a * d - b * c <= 0


def key_plane(attention: Attention, head: int) -> KeyPlane:
    """The principal components of all keys of one head, and its queries split by their plane."""
    q, k = (x[head].astype(np.float64) for x in (attention.q, attention.k))
    centre = k.mean(axis=0)
    axes, shares = principal_axes(k)
    in_plane = q @ axes.T
    outside = q - in_plane @ axes
    return KeyPlane(
        axes=axes,
        shares=shares,
        mean=axes @ centre,
        keys=(k - centre) @ axes.T,
        queries=in_plane,
        outside=np.linalg.norm(outside, axis=-1),
        rest=attention.scale * outside @ k.T,
    )
