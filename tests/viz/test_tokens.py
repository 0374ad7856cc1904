"""Pieces as they are written on screen."""

from viz.tokens import labels


def test_pieces_that_continue_a_word_have_a_hyphen_and_tokens_with_a_name_have_none() -> None:
    pieces = ["\u2581play", "ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "[cls]"]
    assert labels(pieces) == ["play", "-ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "-[cls]"]
