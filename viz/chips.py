"""Tokens as a line of small boxes, each with its id, as HTML that holds no live markup of its own."""

import html
from collections.abc import Sequence

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
