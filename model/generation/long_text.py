"""Splitting long text at the ends of sentences, since the model was trained on one sentence at a time."""

import re
from collections.abc import Callable
from itertools import pairwise

_ENDS = re.compile(
    r"""(?<! [A-Z] ) (?<! \bMr) (?<! \bMs) (?<! \bMrs) (?<! \bDr) (?<! \bSt) (?<! \bProf) (?<! \be\.g) (?<! \bi\.e)
    [.!?…。！？]+ ["'”’»)\]]* \s+ (?= [^\sa-z] )  # punctuation, closing quotes, space, and no lower-case letter next
    | \n \s*""",
    re.VERBOSE,
)


def split_sentences(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The sentences of `text`, each with its trailing space; joined, they are `text` again. A sentence that is not
    short enough, as `fits` says, is halved, at a space if it has one."""
    bounds = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(bounds) if start < end]
    return [part for sentence in sentences for part in _halve(sentence, fits)]


def first_sentences(text: str, fits: Callable[[str], bool]) -> str:
    """As many sentences from the start of `text` as fit together, without surrounding space."""
    taken = ""
    for sentence in split_sentences(text.lstrip(), fits):
        if taken and not fits((taken + sentence).rstrip()):
            break
        taken += sentence
    return taken.rstrip()


def _halve(text: str, fits: Callable[[str], bool]) -> list[str]:
    if len(text) < 2 or fits(text.rstrip()):
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 0, middle) + 1 or middle
    return _halve(text[:cut], fits) + _halve(text[cut:], fits)
