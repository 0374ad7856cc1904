"""What is read of a text: composed letters, nothing invisible, and white space where it is text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.typed_text import list_changes, prepare_text

FAMILIES = ("encoder_decoder", "encoder", "decoder")
AWKWARD = st.text(
    st.sampled_from(
        "a \u0301\u0327\u00e9\u200b\u200c\u200d\ufe0f\u180b\u180e\u00ad\u034f\u0628\u064e\u0915\u094d\u845b"
    )
    | st.sampled_from(
        "\U0001f469\U0001f4bb\U0001f3fd\u2764\U0001f3f4\U000e0067\U000e007f\0\n\t\x1c\x85\u2028\u115f\uac00"
    )
    | st.characters(),
    max_size=12,
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("cafe\u0301", "caf\u00e9"),
        ("A\u030angstro\u0308m", "\u00c5ngstr\u00f6m"),
        ("co\u00adop", "coop"),
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("\ufeffA dog.", "A dog."),
        ("\u200eA\u202e dog\u202c \u2066runs\u2069\u061c.", "A dog runs."),
        ("Auf\u200clage, Wag\u200den", "Auflage, Wagen"),
        ("e\u00ad\u0301", "\u00e9"),
        ("cat\ufe0f, do\U000e0041g", "cat, dog"),
        ("a\0b\x07\x7fc", "abc"),
    ],
)
def test_what_nobody_sees_never_reaches_a_model(typed: str, read: str, family: str) -> None:
    assert prepare_text(typed, family) == read


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f469\u200d\U0001f4bb, \U0001f469\U0001f3fd\u200d\U0001f4bb and \u2764\ufe0f\u200d\U0001f525",
        "1\ufe0f\u20e3 \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: without its non-joiner another word
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Hindi: the joiners choose the form of a letter
        "\u845b\U000e0100",  # a variant of a Chinese character
    ],
)
def test_what_changes_the_look_of_its_neighbours_stays(text: str) -> None:
    assert prepare_text(text, "decoder") == text


@pytest.mark.parametrize(
    "gap", ["\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\u00a0", "  "]
)
def test_white_space_is_one_space_to_models_of_lines_and_text_to_a_language_model(gap: str) -> None:
    typed = f"{gap}A{gap}dog.{gap}"
    assert prepare_text(typed, "encoder_decoder") == prepare_text(typed, "encoder") == "A dog."
    assert prepare_text(typed, "decoder") == typed


@pytest.mark.parametrize("family", FAMILIES)
@given(text=AWKWARD)
def test_a_prepared_text_stays_as_it_is(text: str, family: str) -> None:
    prepared = prepare_text(text, family)
    assert prepare_text(prepared, family) == prepared == unicodedata.normalize("NFC", prepared)
    assert list_changes(prepared, prepared) == []


def test_each_difference_is_named_but_not_the_space_around_a_text() -> None:
    def said(typed: str, family: str = "encoder_decoder") -> str:
        return " ".join(list_changes(typed, prepare_text(typed, family)))

    assert said("A dog.\n") == said(" cafe\u0301") == ""
    for typed in ("A\ndog.", "A  dog.", "A\u2028dog."):
        assert "single spaces" in said(typed)
        assert said(typed, "decoder") == ""
    assert "SOFT HYPHEN, ZERO WIDTH SPACE" in said("co\u00adop\u200b \u00ad")
    assert "U+0000" in said("a\0b", "decoder")
    assert "single spaces" not in said("co\u00adop")
