"""Pieces as they are written on screen."""

import pytest

from viz.tokens import MOST_ROOM, labels, text_width


def test_pieces_that_continue_a_word_have_a_hyphen_and_tokens_with_a_name_have_none() -> None:
    pieces = ["\u2581play", "ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "[cls]"]
    assert labels(pieces) == ["play", "-ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "-[cls]"]


def test_room_for_labels_grows_with_the_widest_and_has_a_limit() -> None:
    assert text_width(["i", "cat"]) < text_width(["cats"]) < text_width(["CATS"]) < text_width(["猫猫猫猫"])
    assert text_width(["cats"], size=24) == pytest.approx(2 * text_width(["cats"]), abs=1)
    assert text_width(["a" * 500]) == MOST_ROOM
    assert text_width([]) == 0
