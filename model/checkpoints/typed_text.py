"""What a model of this project reads of a text: the same in the app, the Python face and the command lines."""

import unicodedata

import regex

from model.language import sentence
from model.network.config import Family

# Nobody sees Unicode's default ignorable characters, nor those that control a device, but a tokenizer does. Some
# change what a reader sees, and those stay: joiners in an emoji and in scripts whose letters join, variants of a
# character, and the letters of a flag.
_JOINED = (
    r"[\p{L}--[\p{Latin}\p{Greek}\p{Cyrillic}\p{Hebrew}\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Common}\p{Inherited}"
    r"\p{Default_Ignorable_Code_Point}]][\p{M}--\p{Default_Ignorable_Code_Point}]*"
)
_WITH_VARIANTS = r"[[\p{Emoji}\p{Han}\p{Mongolian}\p{Myanmar}]--\p{Default_Ignorable_Code_Point}]"
_INVISIBLE = regex.compile(
    rf"""
    (?=[\p{{Default_Ignorable_Code_Point}}[\p{{Cc}}--[\s\x1C-\x1F]]])
    (?: (?: (?<=\p{{Extended_Pictographic}}[\uFE0F\p{{Emoji_Modifier}}]?) \u200D (?=\p{{Extended_Pictographic}})
        | (?<=\U0001F3F4) [\U000E0020-\U000E007E]+ \U000E007F
        | (?<={_JOINED}) [\u200C\u200D]
        | (?<={_WITH_VARIANTS}) [\p{{Variation_Selector}}\u180E]
        ) (*SKIP)(*FAIL)
    | . )
    """,
    regex.VERBOSE | regex.VERSION1 | regex.DOTALL,
)


def one_line(text: str) -> str:
    """`text` with each run of white space, line breaks included, as one space, and none around it."""
    return " ".join(text.split())


def prepare_text(text: str, family: Family) -> str:
    """`text` as a model of this project reads it; a prepared text, prepared again, stays as it is.

    Letters with marks are composed (NFC), and characters that nobody sees are left out. Translators and masked models
    were trained on lines: to them a line break is a strange byte, so they read one line. To a language model white
    space is text.
    """
    seen = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return seen if family == "decoder" else one_line(seen)


def list_changes(text: str, prepared: str) -> list[str]:
    """A sentence on each difference between a text and what is read of it, but none on the white space around it."""
    changes = []
    if one_line(text) != text.strip() and prepared != text and prepared == one_line(prepared):
        changes.append(
            sentence("Line breaks and runs of white space became single spaces: it was trained on single lines.")
        )
    if hidden := _INVISIBLE.findall(text) if prepared != text else ():
        names = dict.fromkeys(unicodedata.name(character, f"U+{ord(character):04X}") for character in hidden)
        changes.append(sentence("Invisible characters were left out: {names}.", names=", ".join(names)))
    return changes
