"""Attention between tokens that are far apart: two words of the paper's figures, among all such cells of all heads."""

from dataclasses import dataclass

import numpy as np

from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Tokens, Trace

FAR = 5
"""tokens between which a cell counts as far"""


@dataclass(frozen=True)
class FarCells:
    """The cells of all heads of one kind that join two words at least `FAR` tokens apart, the largest weight first."""

    kind: str
    weights: Array
    """(cell,)"""
    places: Array
    """(cell, 4): layer, head, query and key of each"""

    def rank(self, weight: float) -> int:
        """The place of a weight among them, from 1."""
        return int((self.weights > weight).sum()) + 1


def far_cells(trace: Trace, kind: str) -> FarCells:
    """Every visible cell of a kind of self-attention with a distance of `FAR` or more; no special tokens."""
    described = trace.kind(kind)
    tokens = trace.streams[described.queries].tokens
    text = ~np.array(tokens.special)
    position = np.arange(len(text))
    far = (np.abs(position[:, None] - position) >= FAR) & text[:, None] & text
    weights, places = [], []
    for layer in described.layers:
        pattern, mask = trace.weights_and_mask(kind, layer)
        cells = np.argwhere(mask & far)
        weights.append(pattern[tuple(cells.T)])
        places.append(np.concatenate([np.full((len(cells), 1), layer), cells], axis=1))
    joined, rows = np.concatenate(weights), np.concatenate(places)
    order = np.argsort(-joined, kind="stable")
    return FarCells(kind, joined[order], rows[order])


@dataclass(frozen=True)
class Pair:
    """The cell of all heads in which one word attends most to another."""

    weight: float
    layer: int
    head: int
    query: int
    key: int


def strongest(trace: Trace, kind: str, query: str, key: str) -> Pair | None:
    """Where the row of one word, the query, has its largest weight on another; None: a word is not there, or never
    visible.

    In a causal model the later of the two words is the query.
    """
    described = trace.kind(kind)
    tokens = trace.streams[described.queries].tokens
    rows, columns = pieces_of(tokens, query), pieces_of(tokens, key)
    if described.causal and rows and columns and rows[0] < columns[0]:
        rows, columns = columns, rows
    best = None
    for layer in described.layers if rows and columns else ():
        pattern, mask = trace.weights_and_mask(kind, layer)
        block = np.where(mask, pattern, -1.0)[:, rows][:, :, columns]
        head, row, column = np.unravel_index(int(block.argmax()), block.shape)
        weight = float(block[head, row, column])
        if weight >= 0 and (best is None or weight > best.weight):
            best = Pair(weight, layer, int(head), rows[row], columns[column])
    return best


def pieces_of(tokens: Tokens, word: str) -> list[int]:
    """The positions of the tokens that spell the first occurrence of a word in their text."""
    start = tokens.text.find(word)
    inside = start, start + len(word)
    spans = [(i, span) for i, span in enumerate(tokens.spans) if span and start >= 0]
    return [i for i, (first, last) in spans if max(first, inside[0]) < min(last, inside[1])]


def read_sentence(opened: Checkpoint, text: str) -> Trace | str:
    """The run of a model on a sentence, or why it cannot read it."""
    try:
        return opened.trace(text, beam_size=1)
    except ValueError as error:
        return str(error)
