"""What the table of positions (section 3.5) is made of: wavelengths, similarities and rotations, in numbers.

An `encoding` is the table that a model adds, (position, d_model), as `Translator.positional_encoding` gives it.
"""

import math

import numpy as np

from model.network.embedding import sinusoids
from model.trace import Array


def wavelengths(d_model: int) -> Array:
    """(pair,): positions in a full turn of pair i, dimensions 2i and 2i+1: 2 pi 10000^(2i / d_model)."""
    return 2 * math.pi * 10_000 ** (np.arange(0, d_model, 2) / d_model)


def wavelengths_in(encoding: Array) -> Array:
    """(pair,): the same, read off a sinusoidal table: 2 pi over the angle that each pair turns from row 0 to row 1."""
    sine, cosine = encoding[1, 0::2].astype(np.float64), encoding[1, 1::2].astype(np.float64)
    return 2 * math.pi / np.arctan2(sine, cosine)


def similarity(encoding: Array, cosine: bool = False) -> Array:
    """(position, position): PE(a) . PE(b) of every two rows; with `cosine`, over the product of their lengths."""
    rows = encoding.astype(np.float64)
    if cosine:
        rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows @ rows.T).astype(np.float32)


def similarity_by_offset(similarities: Array) -> tuple[Array, Array]:
    """(lowest, highest), each (offset,), of the similarities between any two positions that lie k apart.

    Where the two are one number for each k, similarity depends on the distance alone.
    """
    diagonals = [np.diagonal(similarities, k) for k in range(len(similarities))]
    return np.array([d.min() for d in diagonals]), np.array([d.max() for d in diagonals])


def rotation_blocks(encoding: Array, k: int) -> Array:
    """(pair, 2, 2): the blocks of M_k, which turns PE(pos) into PE(pos + k) whatever pos is.

    Block i is [[cos w k, sin w k], [-sin w k, cos w k]] with the pair's angle w for each position; these
    sines and cosines stand in row k of the table itself.
    """
    sine, cosine = encoding[k, 0::2].astype(np.float64), encoding[k, 1::2].astype(np.float64)
    return np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)


def rotate(encoding: Array, k: int) -> Array:
    """(position, d_model): M_k PE(pos) for every pos whose partner pos + k is in the table too."""
    start = encoding[: len(encoding) - k].astype(np.float64)
    pairs = start.reshape(len(start), -1, 2)
    return np.einsum("irc,pic->pir", rotation_blocks(encoding, k), pairs).reshape(start.shape)


def sinusoidal_encoding(max_len: int, d_model: int) -> Array:
    """(max_len, d_model): the paper's table, to set beside a learned one."""
    return sinusoids(max_len, d_model).numpy()
