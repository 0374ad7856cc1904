"""Cutting long text where sentences end: the model was trained on one sentence at a time."""

import re
from collections.abc import Callable
from itertools import pairwise

_ENDS = re.compile(
    r"""(?<! [A-Z] ) (?<! \bMr) (?<! \bMs) (?<! \bMrs) (?<! \bDr) (?<! \bSt) (?<! \bProf) (?<! \be\.g) (?<! \bi\.e)
    [.!?…。！？]+ ["'”’»)\]]* \s+ (?= [^\sa-z] )  # an end, closing quotes, space, and no small letter after it
    | \n \s*""",
    re.VERBOSE,
)


def split_sentences(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The sentences of `text`, each with the space behind it; joined, they are `text` again.

    Args:
        text: anything.
        fits: whether a part is short enough. A sentence that is not is cut in halves, between words if it has any.
    """
    bounds = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(bounds) if start < end]
    return [part for sentence in sentences for part in _halves(sentence, fits)]


def leading(text: str, fits: Callable[[str], bool]) -> str:
    """As many sentences from the start of `text` as fit together, without the space before and behind them."""
    kept = ""
    for sentence in split_sentences(text.lstrip(), fits):
        if kept and not fits((kept + sentence).rstrip()):
            break
        kept += sentence
    return kept.rstrip()


def _halves(text: str, fits: Callable[[str], bool]) -> list[str]:
    if len(text) < 2 or fits(text.rstrip()):
        return [text]
    middle = len(text) // 2
    cut = text.rfind(" ", 0, middle) + 1 or middle
    return _halves(text[:cut], fits) + _halves(text[cut:], fits)
