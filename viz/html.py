"""Text and tokens as HTML without live markup: sentences, their differences, tokens as boxes."""

import html
from collections.abc import Sequence
from difflib import SequenceMatcher

import pandas as pd

from model.language import Numeral, Sentence, in_a_row, sentence, tr
from viz.labels import say_label
from viz.theme import DECODER, ENCODER, FONT
from viz.tokens import NAMED, WORD_START, labels, visible

KINDS = {"text": "piece", "byte": "byte", "special": "special token", "unknown": "unknown character"}

ADDED, REMOVED = "#0072B2", "#D55E00"
_BOXES = f"""<style>
.chips {{ display: flex; flex-wrap: wrap; gap: 0.35rem; align-items: flex-end; font-family: {FONT}; }}
.chip {{ display: inline-flex; flex-direction: column; align-items: center; padding: 0.1rem 0.5rem;
  border: 0 solid color-mix(in srgb, var(--hue) 70%, transparent);
  background: color-mix(in srgb, var(--hue) 14%, transparent); }}
.chips[role=list] > * {{ flex-grow: var(--stretch, 0); }}
.chips[role=list] > :not(.chip) {{ display: grid; }}
button.chip {{ border-width: 1px; border-radius: 0.4rem; }}
.chip.special, .chip.unknown {{ border-style: dotted; }}
.chip.chosen {{ box-shadow: 0 0 0 2px var(--hue); background: color-mix(in srgb, var(--hue) 40%, transparent); }}
.chip small, .character small {{ font-size: 0.72rem; opacity: 0.8; font-variant-numeric: tabular-nums; }}
.chip .certainty {{ font-weight: 600; opacity: 1; }}
.character {{ display: inline-flex; flex-direction: column; align-items: center; gap: 0.15rem; padding: 0.15rem 0.3rem;
  border: 1px dashed #8c8c8c; border-radius: 0.5rem; }}
.character > span {{ display: flex; flex-wrap: wrap; gap: 0.2rem; }}
.chips-title {{ font-family: {FONT}; font-size: 0.85rem; opacity: 0.8; margin: 0.2rem 0; }}
</style>"""
_SENTENCE = """<style>
.sentence { font-size: 1.75rem; font-weight: 600; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }
.sentence .given { font-weight: 400; opacity: 0.8; }
.sentence button { all: unset; cursor: pointer; border-radius: 0.2rem; }
.sentence button:is(:hover, :focus-visible) { box-shadow: 0 0.12em 0 var(--st-primary-color, #0067A5); }
.translated { font-size: 1.15rem; margin: 0; opacity: 0.8; overflow-wrap: anywhere; }
</style>"""
_CHAT = f"""<style>
.turns {{ display: flex; flex-direction: column; gap: 0.6rem; }}
.turn {{ max-width: 85%; margin: 0; padding: 0.4rem 0.9rem 0.5rem; border-radius: 0.9rem; align-self: flex-start;
  background: color-mix(in srgb, currentColor 7%, transparent); }}
.turn.user {{ align-self: flex-end; background: color-mix(in srgb, {ENCODER} 16%, transparent); }}
.turn.system {{ align-self: center; }}
.turn.written {{ background: color-mix(in srgb, {DECODER} 16%, transparent); font-weight: 600; }}
.turn small {{ display: block; font-size: 0.78rem; font-weight: 400; opacity: 0.8; }}
.turn bdi {{ font-size: 1.15rem; line-height: 1.4; white-space: pre-wrap; overflow-wrap: anywhere; }}
</style>"""
_DIFF = f"""<style>
.compared {{ font-family: {FONT}; font-size: 1.15rem; line-height: 1.7; margin: 0; overflow-wrap: anywhere; }}
.compared del {{ text-decoration: line-through; text-decoration-thickness: 2px; padding: 0 0.25rem;
  border-radius: 0.25rem; background: color-mix(in srgb, {REMOVED} 22%, transparent); }}
.compared ins {{ text-decoration: none; font-weight: 650; padding: 0 0.25rem; border-radius: 0.25rem;
  background: color-mix(in srgb, {ADDED} 26%, transparent); border-bottom: 2px solid {ADDED}; }}
.compared del::before {{ content: "− "; }}
.compared ins::before {{ content: "+ "; }}
</style>"""


def translated(translation: str, source: str = "", tokens: Sequence[str] = (), kind: str = "") -> str:
    """A translation in large letters, below its source if that is given, as plain text.

    Args:
        translation: as it is written.
        source: what it translates.
        tokens: of the translation, as the vocabulary writes them, one a row of the attention `kind`: each becomes a
            button, whose click viz/canvas/js/page/here.js takes for a choice of its row.
        kind: of attention.
    """
    above = f'<p class="translated"><bdi>{html.escape(visible(source))}</bdi></p>' if source else ""
    pieces = _pieces(translation, tokens, kind) or [(translation, html.escape(visible(translation)))]
    return f'{_SENTENCE}{above}<p class="sentence"><bdi>{"".join(markup for _, markup in pieces)}</bdi></p>'


def continued(given: str, written: str, tokens: Sequence[str] = (), kind: str = "") -> str:
    """A text in large letters as plain text, what was written after it in bold; the rest as in `translated`."""
    pieces = _pieces(given + written, tokens, kind) or [(text, html.escape(visible(text))) for text in (given, written)]
    parts, place = [], 0
    for text, markup in pieces:
        parts.append(f'<span class="given">{markup}</span>' if place < len(given) else markup)
        place += len(text)
    return f'{_SENTENCE}<p class="sentence"><bdi>{"".join(parts)}</bdi></p>'


def _pieces(text: str, tokens: Sequence[str], kind: str) -> list[tuple[str, str]]:
    """The text, piece by piece, plain and as HTML: a button for each token. Empty where tokens do not add up to it."""
    plain = {row: token.replace(WORD_START, " ") for row, token in enumerate(tokens) if not NAMED.fullmatch(token)}
    if plain and not text.endswith("".join(plain.values())):
        first = min(plain)
        plain[first] = plain[first].removeprefix(" ")
    joined = "".join(plain.values())
    if not joined or not text.endswith(joined):
        return []
    before = text[: len(text) - len(joined)]
    pieces = [(before, html.escape(visible(before)))] if before else []
    for row, piece in plain.items():
        word = piece.lstrip(" ")
        button = f'<button data-kind="{kind}" data-query="{row}">{html.escape(visible(word))}</button>' if word else ""
        pieces.append((piece, piece[: len(piece) - len(word)] + button))
    return pieces


def chat(turns: Sequence[tuple[str, str]], answer: str) -> str:
    """A chat as plain text: the role and the words of each turn, and what the model wrote now, in bold."""
    said = [*((say_label(role), text, role) for role, text in turns)]
    said.append((tr("assistant, written now"), answer.strip(), "written"))
    boxes = [
        f'<div class="turn {html.escape(kind)}" role="listitem"><small>{html.escape(role)}</small>'
        f"<bdi>{'<br>'.join(html.escape(visible(line)) for line in text.split(chr(10)))}</bdi></div>"
        for role, text, kind in said
        if text
    ]
    name = html.escape(tr("The chat"))
    return f'{_CHAT}<div class="turns" role="list" aria-label="{name}">{"".join(boxes)}</div>'


def word_diff(before: str, after: str) -> str:
    """`after` with removed words struck out and added words underlined, each with its sign."""
    old, new = before.split(), after.split()
    parts: list[str] = []
    for change, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change == "equal":
            parts.append(html.escape(visible(" ".join(old[i:j]))))
            continue
        parts += [
            f"<{tag}>{html.escape(visible(' '.join(words)))}</{tag}>"
            for tag, words in (("del", old[i:j]), ("ins", new[k:m]))
            if words
        ]
    return f'{_DIFF}<p class="compared">{" ".join(parts) or html.escape(tr("(nothing)"))}</p>'


def changed_words(before: str, after: str) -> str:
    """Plain text: only the words that differ, old → new, each with the word before it."""
    old, new = before.split(), after.split()
    return "; ".join(
        f"{' '.join(['…', *old[max(i - 1, 0) : i]])} {' '.join(old[i:j]) or '∅'} → {' '.join(new[k:m]) or '∅'}"
        for change, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change != "equal"
    )


def chips(
    title: str,
    pieces: Sequence[str],
    ids: Sequence[int],
    hue: str,
    probabilities: Sequence[float] | None = None,
    chosen: int | None = None,
    first: int = 0,
) -> str:
    """A box for each token: its label and its id in the vocabulary.

    Args:
        title: heading of the boxes.
        pieces: tokens as the vocabulary writes them.
        ids: their numbers.
        hue: colour of the boxes, "#rrggbb".
        probabilities: of each token, written below it; 0 to 1.
        chosen: position to emphasise; the boxes are then buttons, for the component `chips`.
        first: position of the first box.
    """
    certainties = [""] * len(pieces) if probabilities is None else [tr(Numeral(f"{p:.1%}")) for p in probabilities]
    boxes = []
    for place, (label, token_id, certainty) in enumerate(zip(labels(pieces), ids, certainties, strict=True), first):
        below = f'<small aria-hidden="true">{token_id}</small>'
        below += f'<small class="certainty">{certainty}</small>' if certainty else ""
        boxes.append(
            _box(
                label,
                f"{tr('id {id}', id=str(token_id))} {certainty}",
                below,
                None if chosen is None else (place, chosen),
            )
        )
    return _row(title, hue, boxes)


def piece_boxes(
    title: str, pieces: Sequence, hue: str, chosen: int, groups: Sequence[str] = (), typed: Sequence[str] = ()
) -> str:
    """A button for each piece with its id and bytes, for the component `chips`, and a note below.

    A dashed box stands around the bytes of one character.

    Args:
        title: heading of the boxes.
        pieces: of the sentence, in order (model.analysis.stream.vocabulary.Piece, or anything with its fields).
        hue: colour of the boxes, "#rrggbb".
        chosen: position of the box to emphasise.
        groups: what each piece is part of, such as "user" in a chat; written in its box.
        typed: what stands in the text where the piece is spelled otherwise, such as in capitals; shown on hover.
    """
    boxes, position = [], 0
    while position < len(pieces):
        piece = pieces[position]
        places = range(position, piece.last + 1)
        inner = "".join(
            _piece_box(pieces[i], (i, chosen), groups[i] if groups else "", typed[i] if typed else "") for i in places
        )
        boxes.append(_character_box(piece, inner) if piece.kind == "byte" else inner)
        position = piece.last + 1
    return _row(title, hue, boxes) + f'<p class="chips-title">{html.escape(coverage_note(pieces))}</p>'


def _row(title: str, hue: str, boxes: Sequence[str]) -> str:
    title = html.escape(say_label(title))
    return (
        f'{_BOXES}<div class="chips-title">{title}</div>'
        f'<div class="chips" role="list" aria-label="{title}" style="--hue: {hue}">{"".join(boxes)}</div>'
    )


def _box(label: str, spoken: str, below: str, place: tuple[int, int] | None, classes: str = "", hover: str = "") -> str:
    """One token: a button if it has a `place`, its position and the chosen one.

    `spoken` follows its label for screen readers, `below` is HTML.
    """
    title = f' title="{html.escape(hover)}"' if hover else ""
    text = html.escape(label)
    name, inside = f"{text}, {spoken}", f"<bdi>{text}</bdi>{below}"
    if place is None:
        return f'<span class="chip{classes}" role="listitem" aria-label="{name}">{inside}</span>'
    position, chosen = place
    state = f'data-position="{position}" aria-pressed="{"true" if position == chosen else "false"}"'
    button = f'<button class="chip{classes}{" chosen" * (position == chosen)}" {state} aria-label="{name}">'
    return f'<span role="listitem"{title}>{button}{inside}</button></span>'


def _piece_box(piece: object, place: tuple[int, int], group: str, typed: str) -> str:
    content = {"special": tr("special"), "unknown": tr("unknown")}.get(piece.kind) or piece.utf8.hex(" ").upper()
    name, group = tr("id {id}", id=str(piece.id)), html.escape(say_label(group))
    below = f"<small>{name}</small><small>{content}</small>" + (f"<small>{group}</small>" if group else "")
    (label,) = labels([piece.token])
    hover = tr("typed: {text}", text=visible(typed)) if typed else ""
    spoken = ", ".join(filter(None, [name, say_label(KINDS[piece.kind]), group, html.escape(hover)]))
    return _box(label, spoken, below, place, f" {piece.kind}", hover)


def _character_box(piece: object, inner: str) -> str:
    count = piece.last - piece.first + 1
    name = tr("no character")
    if piece.text:
        character = character_name(piece.text)
        name = tr("byte of {character}", character=character)
        if count > 1:
            name = tr("together {character}", character=character)
    return f'<span class="character"><span>{inner}</span><small><bdi>{html.escape(name)}</bdi></small></span>'


def coverage_note(pieces: Sequence) -> str:
    """Plain text in the language of this run: which characters of the sentence the vocabulary has no piece for."""
    spelled = dict.fromkeys(character_name(p.text) for p in pieces if p.kind == "byte" and p.text)
    loose = sum(p.kind == "byte" and not p.text for p in pieces)
    unknown = sum(p.kind == "unknown" for p in pieces)
    notes = []
    if spelled:
        notes.append(
            tr(
                "Spelled as UTF-8 bytes, because the vocabulary has no piece for them: {characters}.",
                characters=", ".join(spelled),
            )
        )
    if loose:
        notes.append(tr("Bytes that do not form a character: {count}.", count=loose))
    if unknown:
        notes.append(tr("Unknown characters, which the model only sees as <unk>: {count}.", count=unknown))
    return in_a_row(*notes) or tr("No unknown characters: the vocabulary has pieces for all of them.")


def piece_table(pieces: Sequence, groups: Sequence[str] = ()) -> pd.DataFrame:
    """A row for each piece: token, id, what it is part of if that is given, kind, characters with code points, UTF-8
    bytes in hexadecimal."""
    return pd.DataFrame(
        {
            "position": range(len(pieces)),
            "token": [visible(p.token) for p in pieces],
            "id": [p.id for p in pieces],
            **({"part of": [say_label(group) for group in groups]} if groups else {}),
            "kind": [KINDS[p.kind] for p in pieces],
            "stands for": [tr(describe_piece(p)) for p in pieces],
            "code points": [" ".join(f"U+{ord(c):04X}" for c in p.text) for p in pieces],
            "UTF-8 bytes": [p.utf8.hex(" ").upper() for p in pieces],
        }
    )


def describe_piece(piece: object) -> Sentence:
    """What a piece stands for, in words: "␣dog", "one of the 4 bytes of 🦖 U+1F996"."""
    if piece.kind != "byte":
        text = _with_visible_spaces(piece.text)
        return sentence("{text}", text=text) if text else sentence(KINDS[piece.kind])
    if not piece.text:
        return sentence("a byte that does not form a character")
    count = piece.last - piece.first + 1
    return sentence("one of the {count} bytes of {character}", count=count, character=character_name(piece.text))


def character_name(character: str) -> str:
    """A character with its code point: "🦖 U+1F996"."""
    code, text = f"U+{ord(character):04X}", _with_visible_spaces(character)
    return code if text == code else f"{text} {code}"


def _with_visible_spaces(text: str) -> str:
    return visible(text).replace(" ", "\u2423")
