"""The vocabulary as the model holds it: what each piece of a sentence spells, and which embeddings lie close together.

`side` is "source" or "target": two names of one matrix where the embeddings are tied (paper, section 3.4).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.network.config import SPECIAL_TOKENS, UNK
from model.trace import Array, Embedded

Side = Literal["source", "target"]
Kind = Literal["text", "byte", "special", "unknown"]

WORD_START = "\u2581"
BYTE = re.compile("<0x([0-9A-F]{2})>")
"""How SentencePiece writes a byte piece; text never gets one, also where someone types these very characters."""


@dataclass(frozen=True)
class Piece:
    """One token of a sentence and what it stands for."""

    token: str
    id: int
    kind: Kind
    utf8: bytes
    """what it writes: its characters in UTF-8, the single byte of a byte piece; empty for special and unknown ones"""
    text: str
    """the characters; of a byte piece the one that it and its neighbours spell, "" where their bytes spell none"""
    first: int
    """position of the first piece that spells `text`"""
    last: int
    """position of the last one; for all but byte pieces `first` and `last` are its own"""


@dataclass(frozen=True)
class Neighbour:
    """A token whose embedding points almost the same way."""

    token: str
    id: int
    kind: Kind
    cosine: float
    """of the two embeddings, -1 to 1"""


def kind_of(token: str, token_id: int) -> Kind:
    """What sort of token of a vocabulary this is."""
    if token_id == UNK:
        return "unknown"
    if token_id < len(SPECIAL_TOKENS):
        return "special"
    return "byte" if BYTE.fullmatch(token) else "text"


def spell(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Piece, ...]:
    """What each token of a sentence stands for; byte pieces that spell one character name their first and last."""
    tokens = tokenizer.tokens(ids)
    found: list[Piece] = []
    while len(found) < len(ids):
        start = len(found)
        kind = kind_of(tokens[start], ids[start])
        if kind == "byte":
            found += _character(tokenizer, ids, tokens, start)
            continue
        text = tokens[start].replace(WORD_START, " ") if kind == "text" else ""
        found.append(Piece(tokens[start], int(ids[start]), kind, text.encode(), text, start, start))
    return tuple(found)


def _character(tokenizer: Tokenizer, ids: Sequence[int], tokens: Sequence[str], start: int) -> Iterator[Piece]:
    """The byte pieces of one character from `start` on; a byte that begins none stands alone."""
    # No character takes more than four bytes; a typed U+2581 travels as two characters of three.
    matches = [BYTE.fullmatch(token) for token in tokens[start : start + 6]]
    spelled = bytes(int(match[1], 16) for match in matches[: (*matches, None).index(None)])
    stop, text = start + 1, ""
    for length in (6, 1, 2, 3, 4):
        decoded = spelled[:length].decode(errors="ignore")
        whole = len(spelled) >= length and decoded.encode() == spelled[:length]
        if whole and length == 6:
            decoded = tokenizer.decode(list(ids[start : start + 6]))
        if whole and len(decoded) == 1:
            stop, text = start + length, decoded
            break
    for position in range(start, stop):
        byte = spelled[position - start : position - start + 1]
        yield Piece(tokens[position], int(ids[position]), "byte", byte, text, start, stop - 1)


def embedding_rows(translator: Translator, side: Side, ids: Sequence[int]) -> Array:
    """(token, d_model): the rows of the embedding matrix E for `ids`, before they are multiplied by anything."""
    return translator.embedding_matrix(side)[list(ids)]


def cosines(translator: Translator, side: Side, token_id: int) -> Array:
    """(vocabulary,): cosine of the embedding of `token_id` with each, in double precision; 0 with an empty row."""
    matrix = translator.embedding_matrix(side).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(matrix, axis=-1), np.finfo(np.float64).tiny)
    return (matrix @ matrix[token_id] / lengths / lengths[token_id]).clip(-1, 1)


def neighbours(tokenizer: Tokenizer, similarities: Array, token_id: int, most: int = 10) -> tuple[Neighbour, ...]:
    """The tokens most like `token_id`, of the whole vocabulary but for itself, nearest first.

    Args:
        tokenizer: whose vocabulary it is.
        similarities: (vocabulary,) as `cosines` gives them.
        token_id: whose neighbours.
        most: how many; fewer where the vocabulary is smaller.
    """
    order = np.argsort(-similarities, kind="stable")
    ids = [int(i) for i in order[order != token_id][:most]]
    return tuple(
        Neighbour(token, i, kind_of(token, i), float(similarities[i]))
        for token, i in zip(tokenizer.tokens(ids), ids, strict=True)
    )


def lengths(embedded: Embedded) -> dict[str, Array]:
    """(position,) each: Euclidean lengths of a stack's scaled embeddings, positional encodings and their sums."""
    return {
        name: np.linalg.norm(getattr(embedded, name).astype(np.float64), axis=-1)
        for name in ("embedding", "positional", "sum")
    }
