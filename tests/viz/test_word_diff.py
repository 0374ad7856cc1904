"""Two texts beside each other: every word is there, only the changed ones are marked, and nothing becomes markup."""

import re

from viz.word_diff import word_diff


def parts(text: str, tag: str) -> list[str]:
    return re.findall(f"<{tag}>(.*?)</{tag}>", text)


def test_only_words_that_one_text_has_are_marked():
    found = word_diff("Der Hund läuft schnell .", "Der Hund rennt schnell . Ja")
    assert parts(found, "del") == ["läuft"]
    assert parts(found, "ins") == ["rennt", "Ja"]


def test_equal_texts_have_no_mark_and_empty_ones_say_so():
    assert not parts(word_diff("Ja .", "Ja ."), "ins") + parts(word_diff("Ja .", "Ja ."), "del")
    assert "(nothing)" in word_diff("", "Ja")


def test_a_text_never_becomes_markup():
    found = word_diff("<b>x</b>", "<script>alert(1)</script> \u202e", ("<i>", "&"))
    assert "<script" not in found
    assert "<b>" not in found
    assert "<i>" not in found
    assert "U+202E" in found
