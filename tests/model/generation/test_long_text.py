"""Long text is cut where sentences end, and nothing of it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.generation.long_text import first_sentences, split_sentences

TEXTS = st.text(alphabet=st.sampled_from("aB .!?\n\"'\U0001f600"), max_size=200) | st.text(max_size=100)


@given(text=TEXTS, limit=st.integers(1, 50))
def test_the_parts_joined_are_the_text_and_each_fits(text, limit):
    parts = split_sentences(text, lambda part: len(part) <= limit)
    assert "".join(parts) == text
    assert all(len(part.rstrip()) <= limit for part in parts)


@given(text=TEXTS, limit=st.integers(1, 50))
def test_what_leads_is_a_beginning_that_fits_and_the_next_sentence_does_not(text, limit):
    shown = first_sentences(text, lambda part: len(part) <= limit)
    assert text.lstrip().startswith(shown)
    assert len(shown) <= limit
    assert bool(shown) == bool(text.strip())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("How are you? I am fine.", ["How are you? ", "I am fine."]),
        ('He said: "No!" She left.', ['He said: "No!" ', "She left."]),
        ("Dr. Smith met Mr. Jones. They spoke.", ["Dr. Smith met Mr. Jones. ", "They spoke."]),
        ("George W. Bush came.", ["George W. Bush came."]),
        ("Well ... maybe.", ["Well ... maybe."]),
        ("First line\nsecond line", ["First line\n", "second line"]),
        ("It costs 3.50 euros.", ["It costs 3.50 euros."]),
    ],
)
def test_sentences_end_where_a_reader_says_so(text, sentences):
    assert split_sentences(text, lambda _: True) == sentences


def test_a_sentence_that_is_too_long_is_cut_between_words():
    parts = split_sentences("one two three four five six", lambda part: len(part) <= 10)
    assert len(parts) > 1
    assert [word for part in parts for word in part.split()] == ["one", "two", "three", "four", "five", "six"]
