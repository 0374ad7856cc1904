"""How tokens are written on screen: readable, told apart by position, and never as live markup."""

import html
import re
import string
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

WORD_START = "\u2581"
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


def word(piece: str) -> str:
    """The piece without its word-start marker; a piece that is only the marker shows as an open box."""
    return piece.removeprefix(WORD_START).replace(WORD_START, "\u2423") or "\u2423"


def visible(text: str) -> str:
    """Text with every control, format and unassigned character written out as its code point.

    A right-to-left override or a NUL would otherwise change, or vanish from, the label around it.
    """
    if text.isprintable():
        return text
    return "".join(
        f"U+{ord(c):04X}" if unicodedata.category(c) in ("Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp") else c for c in text
    )


def as_markdown(text: str) -> str:
    """Text as Markdown that shows exactly this text."""
    return re.sub(f"([{re.escape(string.punctuation)}])", r"\\\1", text)


def labels(pieces: Sequence[str]) -> list[str]:
    """One plain-text label a position: the word, or the piece after a hyphen if it continues one."""
    return [_label(piece) for piece in pieces]


# Every picture writes the same few pieces many times.
@lru_cache(maxsize=10_000)
def _label(piece: str) -> str:
    return f"-{visible(piece)}" if _continues(piece) else visible(word(piece))


def _continues(piece: str) -> bool:
    """Whether the piece goes on with a word; a full stop or a closing quote needs no hyphen to say so."""
    return not piece.startswith(WORD_START) and piece not in SPECIAL and any(c.isalnum() for c in piece)


def numbered(pieces: Sequence[str]) -> list[str]:
    """Labels that are unique, as categorical axes need them: "3 kitchen"."""
    return [f"{position} {label}" for position, label in enumerate(labels(pieces))]


def ticks(pieces: Sequence[str], most: int = 30) -> tuple[list[int], list[str]]:
    """Positions and escaped labels of at most `most` axis ticks, evenly spread.

    Plotly reads a small HTML subset in tick labels, so labels are escaped.
    """
    step = -(-len(pieces) // most) if pieces else 1
    shown = list(range(0, len(pieces), step))
    names = labels(pieces)
    return shown, [html.escape(names[i]) for i in shown]


def decoder_rows(tgt_tokens: Sequence[str], next_tokens: Sequence[str]) -> list[str]:
    """What each decoder row reads and predicts: "reads Zwei, predicts Männer"."""
    return [f"reads {r}, predicts {p}" for r, p in zip(labels(tgt_tokens), labels(next_tokens), strict=True)]
