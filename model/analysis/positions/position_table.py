"""Properties of the positional encoding (section 3.5): wavelengths, similarities and rotations.

`encoding` is the table that a model adds, (position, d_model), from `Translator.positional_encoding`.
"""

import math

import numpy as np

from model.trace import Array


def wavelengths(d_model: int) -> Array:
    """(pair,): wavelength in positions of dimensions 2i and 2i+1: 2 pi 10000^(2i / d_model)."""
    return 2 * math.pi * 10_000 ** (np.arange(0, d_model, 2) / d_model)


def wavelengths_in(encoding: Array) -> Array:
    """(pair,): wavelengths measured in a sinusoidal table: 2 pi / the angle of each pair from row 0 to row 1."""
    sine, cosine = encoding[1, 0::2].astype(np.float64), encoding[1, 1::2].astype(np.float64)
    return 2 * math.pi / np.arctan2(sine, cosine)


def similarity(encoding: Array, cosine: bool = False) -> Array:
    """(position, position): the dot product of each pair of rows, or their cosine."""
    rows = encoding.astype(np.float64)
    if cosine:
        rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows @ rows.T).astype(np.float32)


def similarity_by_offset(similarities: Array) -> tuple[Array, Array]:
    """Lowest and highest similarity of two positions k apart, each (offset,).

    Where both are equal for every k, similarity depends on the distance alone.
    """
    diagonals = [np.diagonal(similarities, k) for k in range(len(similarities))]
    return np.array([d.min() for d in diagonals]), np.array([d.max() for d in diagonals])


def rotation_blocks(encoding: Array, k: int) -> Array:
    """(pair, 2, 2): the blocks of the matrix M_k with M_k PE(pos) = PE(pos + k) for every pos.

    Block i is [[cos w k, sin w k], [-sin w k, cos w k]], where w is the pair's angle per position; row k of the table
    holds these sines and cosines.
    """
    sine, cosine = encoding[k, 0::2].astype(np.float64), encoding[k, 1::2].astype(np.float64)
    return np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)


def rotate(encoding: Array, k: int) -> Array:
    """(position, d_model): M_k PE(pos) for every pos with pos + k in the table."""
    start = encoding[: len(encoding) - k].astype(np.float64)
    pairs = start.reshape(len(start), -1, 2)
    return np.einsum("irc,pic->pir", rotation_blocks(encoding, k), pairs).reshape(start.shape)
