"""Any text has tokens, and comes back from them as it was."""

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from model.config import BOS, EOS, PAD, SPECIAL_TOKENS
from model.tokenizer import Tokenizer, train_tokenizer
from tests.model.strategies import few, shared_tokenizer
from tests.model.tiny import SENTENCES

MARKS = ["\u2581", "\ufdd0", "\ufdd1", "\ufdd2", " ", "\n", "\r", "\t", "\0", "\ufeff", "\u00a0", "\u2028", "\x85"]
WORDS = ["</s>", "<unk>", "<0x0A>", "dog", "straße", "语", "e\u0301", "\U0001f469\u200d\U0001f4bb", "\u202e", "\ufffd"]
troublesome = st.sampled_from(MARKS) | st.sampled_from(WORDS)


@few
@given(
    st.text(max_size=30) | st.lists(troublesome | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)
)
@example("")
@example(" ")
@example("  two  spaces  ")
@example("\u2581\ufdd0\ufdd1\ufdd0\ufdd2\u2581")
@example("<pad><s>A dog</s><0x41>")
@example("\0\n\r\n\t\0")
def test_any_text_comes_back_as_it_was(text):
    tokenizer = shared_tokenizer()
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(len(SPECIAL_TOKENS) <= i < len(tokenizer) for i in ids), "no text writes a special token"


@few
@given(st.text(max_size=20), st.floats(0.05, 1))
def test_a_drawn_segmentation_is_of_the_same_text(text, sampling):
    tokenizer = shared_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text, sampling)) == text


@few
@given(st.text(st.characters(categories=["Cs"]) | st.characters(), max_size=10))
def test_a_lone_surrogate_becomes_one_replacement_character(text):
    expected = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert shared_tokenizer().decode(shared_tokenizer().encode(text)) == expected


def test_sampling_varies_and_its_seed_repeats_it(tokenizer):
    def drawn(seed: int) -> list[list[int]]:
        sentencepiece.set_random_generator_seed(seed)
        return [tokenizer.encode(text, 0.1) for pair in SENTENCES for text in pair]

    assert drawn(1) == drawn(1) != drawn(2)
    assert tokenizer.encode(SENTENCES[0][0]) == tokenizer.encode(SENTENCES[0][0])


def test_start_end_and_padding_leave_no_trace_in_the_text(tokenizer):
    ids = tokenizer.encode("Two dogs")
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Two dogs"
    assert tokenizer.decode([]) == tokenizer.decode([BOS, EOS]) == ""


def test_tokens_are_the_pieces_with_the_start_of_a_word_marked(tokenizer):
    pieces = tokenizer.tokens(tokenizer.encode("Two dogs"))
    assert "".join(pieces) == "\u2581Two\u2581dogs"
    assert tuple(tokenizer.tokens(range(4))) == SPECIAL_TOKENS


def test_a_vocabulary_has_exactly_the_size_asked_for_and_is_the_same_every_time(tokenizer):
    again = train_tokenizer((text for pair in SENTENCES for text in pair), 360)
    assert len(again) == 360
    assert again.serialized == tokenizer.serialized


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_vocabulary_that_the_text_cannot_fill_is_refused_in_a_sentence(size):
    with pytest.raises(ValueError, match=f"no vocabulary of {size} pieces from this text"):
        train_tokenizer(["A dog."], size)


@pytest.mark.parametrize("serialized", [b"", b"not a model", b"\x80\x04\x95pickle"])
def test_bytes_that_are_no_vocabulary_are_refused(serialized):
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        Tokenizer(serialized)


def test_a_vocabulary_with_other_special_tokens_is_refused():
    from io import BytesIO

    foreign = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text for pair in SENTENCES for text in pair),
        model_writer=foreign,
        vocab_size=100,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"the first tokens must be .*, found \('<unk>', '<s>'"):
        Tokenizer(foreign.getvalue())
