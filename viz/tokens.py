"""Tokens as text on screen: readable, numbered where names must be unique, and never live markup."""

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from model.language import quoted

WORD_START = "\u2581"


class Verbatim(str):
    """What a person or a vocabulary wrote, as it stands in a figure: of no language."""


SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
NAMED = re.compile(
    r"(<0x..>)+|</?(s|pad|unk|mask|bos|eos|cls|sep|image|[a-z]+(_[a-z\d]+)+)>|<\|[^|]+\|>|\[[A-Z]+\]"
    r"|__[a-z]{2,3}__|[a-z]{2}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}"
)
"""how tokens that are no text are written: <s>, <0xF0>, <|endoftext|>, [CLS], <extra_id_0>; and languages:
__de__, de_DE, deu_Latn"""
ARROW = " → "
"""in the name of a decoder row, between what it reads and what it predicts"""
MOST_ROOM = 104
"""pixels that are kept for labels in a figure of fixed height or width"""
MOST_TICKS = 30
"""Labels on an axis that still can be read."""


def word(piece: str) -> str:
    """The piece without its word-start marker; a piece that is only the marker becomes an open box."""
    return piece.removeprefix(WORD_START).replace(WORD_START, "\u2423") or "\u2423"


def visible(text: str) -> str:
    """Text with each control, format or unassigned character replaced by its code point.

    A right-to-left override or a NUL would otherwise distort the label around it.
    """
    if text.isprintable():
        return text
    return "".join(
        f"U+{ord(c):04X}" if unicodedata.category(c) in ("Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp") else c for c in text
    )


def as_markdown(text: str) -> str:
    """Markdown that Streamlit renders as exactly this text, on one line: in labels, sentences and cells of tables.

    Backslashes keep punctuation from meaning anything. After that Streamlit still replaces :emoji:, arrows and dashes
    between blanks, and makes links of addresses; it does so within one node of text, and an empty one parts these.
    """
    parts = _REPLACED.split(re.sub(r"[ \t\n\r\f]+", " ", text))
    return ":small[]".join(_MARKUP.sub(r"\\\g<0>", part) for part in parts)


_MARKUP = re.compile(r"[\\`*_\[\]{}<>!$:&|~#]|(?<=:material)/|(?<=^)[-+=]|(?<=^ )[-+=]|(?<=\d)[.)](?= |$)")
"""what begins something in Markdown: anywhere, or at the start of a line or after a number there"""
_REPLACED = re.compile(
    r"(?<=:)(?=[\w+-]+:)|(?<=[<>~-])(?=[>=-])|(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=[\w.+-])(?=@)", re.IGNORECASE
)
"""where Streamlit would replace a text, or make a link of it: inside :smile:, ->, --, >=, http://, www. and a@b"""


def as_plotly(text: str) -> Verbatim:
    """Text for a figure that Plotly shows as exactly this text: it reads some HTML, and %{...} in templates.

    Quotation marks stay as they are, since it knows only a few entities.
    """
    return Verbatim(html.escape(text, quote=False).replace("%{", "&#37;{"))


def labels(pieces: Sequence[str]) -> list[str]:
    """One plain-text label for each position, the one notation of the app: "The" begins a word, "-t" continues one.

    Punctuation and bytes stand as they are; "\u2423" is a word-start marker alone.
    """
    return [_label(piece) for piece in pieces]


# Every figure labels the same few pieces many times.
@lru_cache(maxsize=10_000)
def _label(piece: str) -> str:
    return f"-{visible(piece)}" if _continues(piece) else visible(word(piece))


def _continues(piece: str) -> bool:
    """Whether the piece continues a word; punctuation, bytes, and tokens with a name, such as [CLS], need no hyphen."""
    alone = NAMED.fullmatch(piece)
    return not piece.startswith(WORD_START) and not alone and any(c.isalnum() for c in piece)


def numbered(pieces: Sequence[str]) -> list[str]:
    """Unique labels, as categorical axes need them: "3 kitchen"."""
    return [f"{position} {label}" for position, label in enumerate(labels(pieces))]


def axis_ticks(names: Sequence[str], most: int = MOST_TICKS) -> dict:
    """Axis properties: at most `most` of the names as tick labels, evenly spaced, at positions counted from 0.

    Plotly reads a subset of HTML in tick labels, so the names are escaped.
    """
    shown = range(0, len(names), -(-len(names) // most) if names else 1)
    return {"tickmode": "array", "tickvals": [*shown], "ticktext": [as_plotly(names[i]) for i in shown]}


def token_ticks(pieces: Sequence[str]) -> dict:
    """Axis properties: the labels of at most `MOST_TICKS` tokens, evenly spaced."""
    return axis_ticks(labels(pieces))


def text_width(texts: Sequence[str], size: int = 12, most: int = MOST_ROOM) -> int:
    """Approximate width in pixels of the widest text, rather too wide than too narrow, to keep room for labels.

    Args:
        texts: plain text; of escaped text it is a little too wide.
        size: of the font, in pixels.
        most: more is not kept; Plotly itself makes room for a longer label, where the figure has some.
    """
    return min(round(size * max((sum(map(_ems, text)) for text in texts), default=0)), most)


@lru_cache(maxsize=10_000)
def _ems(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "mwMW@%→…—":
        return 0.9
    return 0.32 if letter in "ijltfrI.,:;'|!()[]- " else 0.64 if letter.isupper() else 0.54


def decoder_rows(tgt_tokens: Sequence[str], next_tokens: Sequence[str]) -> list[str]:
    """What each decoder row reads and predicts: "Zwei → Männer"."""
    return decoder_names(labels(tgt_tokens), labels(next_tokens))


def decoder_names(reads: Sequence[str], predicts: Sequence[str]) -> list[str]:
    """Names of decoder rows, the one notation of the app: "Zwei → Männer".

    Args:
        reads: plain-text label of the token that each row reads.
        predicts: of the one that it predicts.
    """
    return [ARROW.join(pair) for pair in zip(map(_name, reads), map(_name, predicts), strict=True)]


def _name(label: str) -> str:
    """Punctuation in the quotation marks of this run's language, so that it is not read as that of the name."""
    return label if any(c.isalnum() for c in label) or len(label) > 1 else quoted(label)
