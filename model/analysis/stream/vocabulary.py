"""The vocabulary of a model: what each piece of a sentence spells, and which embeddings are close together.

`side` is "source" or "target": two names of one matrix where the embeddings are tied (paper, section 3.4).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from model.analysis.words import WORD_START
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.trace import Array, Embedded, Tokens

Side = Literal["source", "target"]
Kind = Literal["text", "byte", "special", "unknown"]

BYTE = re.compile("<0x([0-9A-F]{2})>")
"""a byte piece of SentencePiece; typing these characters gives other pieces"""


@dataclass(frozen=True)
class Piece:
    """One token of a sentence and the text it stands for."""

    token: str
    id: int
    kind: Kind
    utf8: bytes
    """its characters in UTF-8, or the single byte of a byte piece; empty for special and unknown tokens"""
    text: str
    """its characters; for a byte piece the character that it spells with its neighbours, or "" if they spell none"""
    first: int
    """position of the first piece of `text`"""
    last: int
    """position of the last piece of `text`; `first` and `last` differ for byte pieces only"""


@dataclass(frozen=True)
class Neighbour:
    """A token whose embedding is similar to another one's."""

    token: str
    id: int
    kind: Kind
    cosine: float
    """of the two embeddings, -1 to 1"""


def groups_of(tokens: Tokens) -> tuple[str, ...]:
    """What each token is part of: of a chat its role, of two texts the first or the second; nothing otherwise."""
    if tokens.roles is not None:
        return tokens.roles
    if tokens.segments is None or len(set(tokens.segments)) == 1:
        return ()
    return tuple(f"sentence {'AB'[segment]}" for segment in tokens.segments)


def kind_of(tokenizer: Tokenizer, token: str, token_id: int) -> Kind:
    """The kind of a token: text, a byte, special or unknown."""
    if BYTE.fullmatch(token):
        return "byte"
    if token_id == tokenizer.unknown:
        return "unknown"
    return "special" if token_id in tokenizer.special_ids else "text"


def spell(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Piece, ...]:
    """The text of each token of a sentence; byte pieces that spell one character share it."""
    tokens = tokenizer.tokens(ids)
    pieces: list[Piece] = []
    while len(pieces) < len(ids):
        start = len(pieces)
        kind = kind_of(tokenizer, tokens[start], ids[start])
        if kind == "byte":
            pieces += _character(tokenizer, ids, tokens, start)
            continue
        text = tokens[start].replace(WORD_START, " ") if kind == "text" else ""
        pieces.append(Piece(tokens[start], int(ids[start]), kind, text.encode(), text, start, start))
    return tuple(pieces)


def typed_as(tokens: Tokens, pieces: Sequence[Piece]) -> tuple[str, ...]:
    """What stands in the text for each piece that is spelled otherwise, such as in capitals; "" for any other."""
    covered = ("" if span is None else tokens.text[slice(*span)].strip() for span in tokens.spans)
    return tuple(
        text if piece.kind in ("text", "unknown") and text != piece.text.strip() else ""
        for text, piece in zip(covered, pieces, strict=True)
    )


def _character(tokenizer: Tokenizer, ids: Sequence[int], tokens: Sequence[str], start: int) -> Iterator[Piece]:
    """The byte pieces of the character that begins at `start`; a byte that begins none stands alone."""
    # A character has at most four bytes; a typed U+2581 is encoded as two characters of three bytes each.
    matches = [BYTE.fullmatch(token) for token in tokens[start : start + 6]]
    spelled = bytes(int(match[1], 16) for match in matches[: (*matches, None).index(None)])
    stop, text = start + 1, ""
    for length in (6, 1, 2, 3, 4):
        decoded = spelled[:length].decode(errors="ignore")
        complete = len(spelled) >= length and decoded.encode() == spelled[:length]
        if complete and length == 6:
            decoded = tokenizer.decode(list(ids[start : start + 6]))
        if complete and len(decoded) == 1:
            stop, text = start + length, decoded
            break
    for position in range(start, stop):
        byte = spelled[position - start : position - start + 1]
        yield Piece(tokens[position], int(ids[position]), "byte", byte, text, start, stop - 1)


def embedding_rows(opened: Checkpoint, side: Side, ids: Sequence[int]) -> Array:
    """(token, d_model): rows of the embedding matrix E, before the factor sqrt(d_model)."""
    return opened.embedding_matrix(side)[list(ids)]


def cosines(opened: Checkpoint, side: Side, token_id: int) -> Array:
    """(vocabulary,): cosine of the embedding of `token_id` with every embedding, in double precision; 0 for zeros."""
    # In PyTorch, which keeps to the cores that a run may use.
    matrix = torch.from_numpy(opened.embedding_matrix(side).astype(np.float64))
    lengths = matrix.norm(dim=-1).clamp(min=torch.finfo(matrix.dtype).tiny)
    return (matrix @ matrix[token_id] / lengths / lengths[token_id]).clamp(-1, 1).numpy()


def neighbours(tokenizer: Tokenizer, similarities: Array, token_id: int, most: int = 10) -> tuple[Neighbour, ...]:
    """At most so many tokens of the vocabulary most similar to `token_id`, without itself, most similar first;
    `similarities` are from `cosines`."""
    order = np.argsort(-similarities, kind="stable")
    ids = [int(i) for i in order[order != token_id][:most]]
    return tuple(
        Neighbour(token, i, kind_of(tokenizer, token, i), float(similarities[i]))
        for token, i in zip(tokenizer.tokens(ids), ids, strict=True)
    )


def lengths(embedded: Embedded) -> dict[str, Array]:
    """By name, (position,): Euclidean lengths of a stack's scaled embeddings, positional encodings and their sums."""
    return {
        name: np.linalg.norm(getattr(embedded, name).astype(np.float64), axis=-1)
        for name in ("embedding", "positional", "sum")
    }
