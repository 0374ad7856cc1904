"""Translators of many languages (M2M100, NLLB, mBART): which a text is in and which one is written, in ids of tokens.

transformers keeps the two on the tokenizer, where one visitor's choice would be another's. So what each language puts
around a text is read once, when the model is opened.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.language import Refusal

_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")
"""such as en_XX and eng_Latn, which some tokenizers list among their special tokens alone"""
_MODES = {"source": ("src_lang", "text"), "target": ("tgt_lang", "text_target")}
"""side -> the tokenizer's attribute, and the argument that it reads"""

Frame = tuple[tuple[int, ...], tuple[int, ...]]
"""ids before and after those of a text"""


@dataclass(frozen=True)
class Languages:
    """The languages of a translator, and the two that are chosen."""

    codes: tuple[str, ...]
    """as the tokenizer calls them, such as "de" or "deu_Latn" """
    ids: frozenset[int]
    """of their tokens"""
    source: str
    target: str
    frames: Mapping[str, Mapping[str, Frame]]
    """source or target -> code -> what stands around a text; what a decoder reads first is no part of it"""
    starts: Mapping[str, int | None]
    """what a decoder reads first in place of the model's own start token (mBART); None: the latter"""
    forced: Mapping[str, int | None]
    """what every text in a language begins with (M2M100, NLLB); None: with anything"""

    def choose(self, source: str | None, target: str | None) -> "Languages":
        """With other languages; None: the same as now.

        Raises:
            ValueError: the tokenizer has no such language; the message lists those that it has.
        """
        for code in (source, target):
            if code is not None and code not in self.codes:
                raise Refusal(
                    "This model has no language {code!r}. It has: {codes}.", code=code, codes=", ".join(self.codes)
                )
        return replace(self, source=source or self.source, target=target or self.target)

    def around(self, ids: Sequence[int], target: bool) -> list[int]:
        """The ids of a text with those around it, in the source language or the `target` language."""
        side, code = ("target", self.target) if target else ("source", self.source)
        before, after = self.frames[side][code]
        return [*before, *ids, *after]


def find_languages(tokenizer: object, size: int, begins: Iterable[int]) -> Languages | None:
    """The languages of a transformers tokenizer, whose choice is the same afterwards, its own first; None where it has
    none.

    The model knows `size` tokens, and its settings let a text begin with the ids `begins`, one of which may be a
    language's.
    """
    if not hasattr(tokenizer, "src_lang"):
        return None
    ids = {code: i for code, i in _codes(tokenizer).items() if isinstance(i, int) and 0 <= i < size}
    own, before = tokenizer.src_lang, {name: getattr(tokenizer, name) for name, _ in _MODES.values()}
    if len(ids) < 2 or own not in ids:
        return None
    written = tokenizer("a", add_special_tokens=False)["input_ids"]
    frames, starts, forced = {"source": {}, "target": {}}, {}, {}
    try:
        for side, (attribute, argument) in _MODES.items():
            for code in ids:
                setattr(tokenizer, attribute, code)
                frames[side][code] = _frame(tokenizer(**{argument: "a"})["input_ids"], written)
    finally:
        for name, value in before.items():
            setattr(tokenizer, name, value)
    for code, i in ids.items():
        first, last = frames["target"][code]
        forced[code], starts[code] = (i if i in first else None), (i if i in last else None)
        # mBART's labels end with the language, which its decoder reads first.
        frames["target"][code] = first, tuple(each for each in last if each != i)
    chosen = next((code for i in begins for code, each in ids.items() if each == i), own)
    target = before["tgt_lang"] if before["tgt_lang"] in ids else chosen
    return Languages(tuple(ids), frozenset(ids.values()), own, target, frames, starts, forced)


def _codes(tokenizer: object) -> dict[str, int]:
    """Id of each language's token, by its code."""
    known = getattr(tokenizer, "lang_code_to_id", None)
    if known:
        return dict(known)
    special = sorted({str(token) for token in getattr(tokenizer, "added_tokens_decoder", {}).values()})
    return {token: tokenizer.convert_tokens_to_ids(token) for token in special if _CODE.fullmatch(token)}


def _frame(ids: Sequence[int], written: Sequence[int]) -> Frame:
    """What stands before and after the text that was `written`."""
    n = len(written)
    at = next((i for i in range(len(ids) - n + 1) if list(ids[i : i + n]) == list(written)), len(ids))
    return tuple(ids[:at]), tuple(ids[at + n :])
