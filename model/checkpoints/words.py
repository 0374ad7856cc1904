"""What ends a word, in every script: said here, and nowhere else."""

import unicodedata
from collections.abc import Sequence

import regex

_PARTS = regex.compile(r"\b", regex.VERSION1 | regex.WORD)
_HYPHENS = "-\u2010\u2011"
_ZERO_WIDTH_SPACE = "\u200b"


def number_words(
    text: str,
    spans: Sequence[tuple[int, int] | None],
    special: Sequence[bool],
    own: Sequence[int | None] | None = None,
) -> tuple[int | None, ...]:
    """The number of the word, with the punctuation around it, that each token belongs to; None for a special token.

    A word ends at white space, where Unicode's word boundaries (UAX 29) part two letters, as those of Chinese or Thai,
    where punctuation stands between letters, but for a hyphen and what UAX 29 has inside words ("didn't", "3.14"), and
    where the tokenizer's own words end between two letters. A piece is of one word, that of its first letter.

    Args:
        text: what the spans are of.
        spans: first character of each token, and the one after its last; None for special tokens.
        special: whether each token stands for no text.
        own: the tokenizer's own number of each token's word, where it has them.
    """
    runs = _number_runs(text)
    numbers: list[int | None] = []
    word, last, opened, blank = -1, None, False, None
    """`last`: token and character that came last in the word; `opened`: a token of spaces has begun it; `blank`: the
    white space that came last, of which each byte may be a token"""
    for n, (span, mark) in enumerate(zip(spans, special, strict=True)):
        if mark or span is None:
            numbers.append(None)
            last, opened = None, False
            continue
        characters = [i for i in range(*span) if runs[i] is not None]
        if not characters:
            word += span != blank
            last, opened, blank = None, not text[slice(*span)].strip(" "), span
        else:
            first = characters[0]
            goes_on = last is not None and (first <= last[1] or runs[first] == runs[last[1]])
            if goes_on and own is not None and own[n] != own[last[0]] and first > last[1]:
                goes_on = not (text[first].isalnum() and text[last[1]].isalnum())
            word += not (goes_on or (opened and first == span[0]))
            last, opened = (n, characters[-1]), False
        numbers.append(word)
    return tuple(numbers)


def _number_runs(text: str) -> list[int | None]:
    """For each character, the number of its word with the punctuation around it; None for white space."""
    numbers: list[int | None] = []
    run, before, letters = -1, "space", False
    for part in filter(None, _PARTS.split(text)):
        if part.isspace() or part == _ZERO_WIDTH_SPACE:
            numbers += [None] * len(part)
            before, letters = "space", False
            continue
        marks = all(unicodedata.category(character).startswith("P") for character in part)
        if before == "space" or (not marks and letters and before in ("word", "mark")):
            run, letters = run + 1, False
        numbers += [run] * len(part)
        hyphen = part in _HYPHENS and before == "word"
        before, letters = ("hyphen" if hyphen else "mark") if marks else "word", letters or not marks
    return numbers
