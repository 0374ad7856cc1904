"""Queries and keys to move in a plane, values in another one with z among them, for the own_vectors component."""

from collections.abc import Mapping, Sequence
from typing import Any

from viz.drawing import Drawing, named
from viz.theme import KEY, QUERY, VALUE, WEIGHTS, Array, colour_scales

AXES = ("key_axes", "value_axes")
OF_HEAD = ("q", "k", "v", "mask", "pattern", "z", "bias")


def own_vectors(
    arrays: Mapping[str, Array], axes: Sequence[Array], names: tuple[Sequence[str], Sequence[str]], **header: Any
) -> Drawing:
    """The picture; q, k, v, the scores that follow from them, the weights and z.

    Args:
        arrays: of one head: q (query, d_k), k (key, d_k), v (key, d_v), mask and pattern (query, key), z (query, d_v),
            and bias (query, key) where there is one.
        axes: of the plane of keys, (2, d_k), and of that of values, (2, d_v).
        names: plain-text name of each query, and of each key.
        header: title; path and head, by which the arrays are named; row, the chosen query; shares of variance along
            the axes of either plane, none where these are the vectors' own numbers; typed, of typed vectors the texts
            `query` and `keys` and the names in them; scale, softcap, sink and temperature of the run, and taus.
    """
    parts = {name: arrays[name] for name in OF_HEAD if arrays.get(name) is not None}
    sent = {named("plane", name): array for name, array in zip(AXES, axes, strict=True)}
    sent |= {named(header["path"], name, header["head"]): part for name, part in parts.items()}
    header |= {"queries": list(names[0]), "keys": list(names[1]), "biased": "bias" in parts}
    header |= {"colours": colour_scales()[WEIGHTS], "roles": {"q": QUERY, "k": KEY, "v": VALUE}}
    return Drawing.pack("own_vectors", header, sent)
