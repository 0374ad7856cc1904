"""Tokens as a line of small boxes, each with its id, as HTML that holds no live markup of its own."""

import html
from collections.abc import Sequence

import pandas as pd

from viz.theme import FONT
from viz.tokens import SPECIAL, WORD_START, visible, word

_STYLE = f"""<style>
.chips {{ display: flex; flex-wrap: wrap; gap: 0.35rem; font-family: {FONT}; }}
.chip {{ display: inline-flex; flex-direction: column; align-items: center; padding: 0.1rem 0.5rem;
  border: 1px solid color-mix(in srgb, var(--hue) 70%, transparent); border-radius: 0.4rem;
  background: color-mix(in srgb, var(--hue) 14%, transparent); }}
.chips-title {{ font-size: 0.85rem; opacity: 0.75; margin-bottom: 0.2rem; }}
.sentence {{ font-size: 1.75rem; font-weight: 600; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }}
.chip .certainty {{ font-size: 0.72rem; font-weight: 600; }}
.chip .marker, .chip .id {{ opacity: 0.6; }}
.chip .id {{ font-size: 0.72rem; font-variant-numeric: tabular-nums; }}
</style>"""


def sentence(text: str) -> str:
    """A translation, large, as plain text whatever it holds."""
    return f'{_STYLE}<p class="sentence"><bdi>{html.escape(visible(text))}</bdi></p>'


def chips(
    title: str, pieces: Sequence[str], ids: Sequence[int], hue: str, probabilities: Sequence[float] | None = None
) -> str:
    """One box a token: the piece, its word-start marker dim, its id in the vocabulary.

    Args:
        title: what they are, before the first one.
        pieces: tokens as the vocabulary writes them.
        ids: their numbers.
        hue: the boxes' colour, "#rrggbb".
        probabilities: what the model gave each, shown under it; 0 to 1.
    """
    shown = [""] * len(pieces) if probabilities is None else [f"{p:.1%}" for p in probabilities]
    boxes = "".join(_chip(*token) for token in zip(pieces, ids, shown, strict=True))
    return (
        f'{_STYLE}<div class="chips-title">{html.escape(title)}</div>'
        f'<div class="chips" role="list" aria-label="{html.escape(title)}" style="--hue: {hue}">{boxes}</div>'
    )


def _chip(piece: str, token_id: int, probability: str) -> str:
    starts_word = piece.startswith(WORD_START) and piece not in SPECIAL
    name = html.escape(visible(word(piece)))
    text = html.escape(visible(piece.removeprefix(WORD_START))) if starts_word else name
    marker = f'<span class="marker" aria-hidden="true">{WORD_START}</span>' if starts_word else ""
    certainty = f'<span class="certainty">{probability}</span>' if probability else ""
    return (
        f'<span class="chip" role="listitem" aria-label="{name}, id {token_id} {probability}">'
        f'<bdi>{marker}{text}</bdi><span class="id" aria-hidden="true">{token_id}</span>{certainty}</span>'
    )


KINDS = {"text": "piece", "byte": "byte", "special": "special token", "unknown": "unknown character"}


_PIECE_STYLE = f"""<style>
.pieces {{ display: flex; flex-wrap: wrap; gap: 0.35rem; align-items: flex-end; font-family: {FONT}; }}
.piece {{ display: inline-flex; flex-direction: column; align-items: center; padding: 0.1rem 0.5rem;
  border: 1px solid color-mix(in srgb, var(--hue) 70%, transparent); border-radius: 0.4rem;
  background: color-mix(in srgb, var(--hue) 14%, transparent); }}
.piece.special, .piece.unknown {{ border-style: dotted; }}
.piece.chosen {{ outline: 2px solid var(--hue); background: color-mix(in srgb, var(--hue) 40%, transparent); }}
.piece small, .together small {{ font-size: 0.72rem; opacity: 0.8; font-variant-numeric: tabular-nums; }}
.piece .marker {{ opacity: 0.6; }}
.together {{ display: inline-flex; flex-direction: column; align-items: center; gap: 0.15rem; padding: 0.15rem 0.3rem;
  border: 1px dashed #8c8c8c; border-radius: 0.5rem; }}
.together > span {{ display: flex; flex-wrap: wrap; gap: 0.2rem; }}
.pieces-title, .pieces-note {{ font-family: {FONT}; font-size: 0.85rem; opacity: 0.8; margin: 0.2rem 0; }}
</style>"""


def piece_boxes(title: str, pieces: Sequence, hue: str, chosen: int) -> str:
    """HTML: a box a piece with its id and bytes, a dashed box around the bytes of one character, and what that means.

    Args:
        title: what they are.
        pieces: the sentence's, in order.
        hue: the boxes' colour, "#rrggbb".
        chosen: position of the box to stress.
    """
    boxes, position = [], 0
    while position < len(pieces):
        stop = pieces[position].last + 1
        inner = "".join(_box(pieces[i], i == chosen) for i in range(position, stop))
        boxes.append(_together(pieces[position], inner) if pieces[position].kind == "byte" else inner)
        position = stop
    return (
        f'{_PIECE_STYLE}<div class="pieces-title">{html.escape(title)}</div><div class="pieces" role="list" '
        f'aria-label="{html.escape(title)}" style="--hue: {hue}">{"".join(boxes)}</div>'
        f'<p class="pieces-note">{html.escape(note(pieces))}</p>'
    )


def note(pieces: Sequence) -> str:
    """One plain sentence on what the vocabulary has no piece for."""
    spelled = dict.fromkeys(named(p.text) for p in pieces if p.kind == "byte" and p.text)
    loose = sum(p.kind == "byte" and not p.text for p in pieces)
    unknown = sum(p.kind == "unknown" for p in pieces)
    said = []
    if spelled:
        said.append(
            f"Spelt byte by byte in UTF-8, as characters without a piece of their own are: {', '.join(spelled)}."
        )
    if loose:
        said.append(f"Bytes that make no character: {loose}.")
    if unknown:
        said.append(f"Unknown characters, of which the model sees no more than <unk>: {unknown}.")
    return " ".join(said) or "No unknown characters: each one is in a piece of the vocabulary."


def piece_table(pieces: Sequence) -> pd.DataFrame:
    """A row a piece: token, id, kind, characters with code points, UTF-8 bytes in hexadecimal."""
    return pd.DataFrame(
        {
            "position": range(len(pieces)),
            "token": [visible(p.token) for p in pieces],
            "id": [p.id for p in pieces],
            "kind": [KINDS[p.kind] for p in pieces],
            "stands for": [meaning(p) for p in pieces],
            "code points": [" ".join(f"U+{ord(c):04X}" for c in p.text) for p in pieces],
            "UTF-8 bytes": [p.utf8.hex(" ").upper() for p in pieces],
        }
    )


def meaning(piece: object) -> str:
    """What a piece stands for, in plain words: "␣dog", "byte 2 of 4 of 🦖"."""
    if piece.kind != "byte":
        return shown(piece.text) or KINDS[piece.kind]
    if not piece.text:
        return "a byte that makes no character"
    return f"one of the {piece.last - piece.first + 1} bytes of {named(piece.text)}"


def shown(text: str) -> str:
    """Characters that can be seen: an open box for a space, code points for what has no look of its own."""
    return visible(text).replace(" ", "\u2423")


def named(character: str) -> str:
    """A character with its code point: "🦖 U+1F996"."""
    code = f"U+{ord(character):04X}"
    return code if shown(character) == code else f"{shown(character)} {code}"


def _box(piece: object, chosen: bool) -> str:
    starts_word = piece.kind == "text" and piece.token.startswith(WORD_START) and piece.token != WORD_START
    text = html.escape(visible(word(piece.token)))
    marker = f'<span class="marker" aria-hidden="true">{WORD_START}</span>' if starts_word else ""
    below = {"special": "special", "unknown": "unknown"}.get(piece.kind) or piece.utf8.hex(" ").upper()
    name = f"{text}, id {piece.id}, {KINDS[piece.kind]}"
    return (
        f'<span class="piece {piece.kind}{" chosen" * chosen}" role="listitem" aria-label="{name}">'
        f"<bdi>{marker}{text}</bdi><small>id {piece.id}</small><small>{below}</small></span>"
    )


def _together(piece: object, inner: str) -> str:
    count = piece.last - piece.first + 1
    spelled = f"{'together' if count > 1 else 'byte of'} {named(piece.text)}" if piece.text else "no character"
    return f'<span class="together"><span>{inner}</span><small><bdi>{html.escape(spelled)}</bdi></small></span>'
