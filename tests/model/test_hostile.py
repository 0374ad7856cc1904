"""A sample of the hostile strings of tests/soak/hostile.py; `python -m tests.soak` runs ten thousand."""

from tests.soak.hostile import run, strings


def test_hostile_text_gets_an_answer_or_a_sentence_and_never_becomes_markup():
    assert run(75) == []


def test_the_strings_are_the_same_each_time_and_hold_what_they_promise():
    drawn = list(strings(1500))
    assert drawn == list(strings(1500))
    everything = "".join(drawn)
    assert {ord(character) >> 16 for character in everything} >= {0, 1, 2, 3, 14, 15, 16}
    parts = [*"\x00\ud800\u202e\u0301\u200b", "<script>", "$$", "](javascript:", "DROP TABLE", "../.."]
    assert [part for part in parts if part not in everything] == []
    assert max(map(len, drawn)) == 100_000
    assert any(text and not text.strip() for text in drawn)
