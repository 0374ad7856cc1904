"""Any text has tokens, and comes back from them as it was."""

import math
import random
from collections import Counter
from io import BytesIO
from itertools import pairwise

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from model.checkpoints.tokenizer import N_SEGMENTATIONS, Tokenizer, train_tokenizer
from model.network.config import BOS, EOS, PAD, SPECIAL_TOKENS
from tests.model.strategies import few, shared_tokenizer
from tests.model.tiny import SENTENCES

MARKS = ["\u2581", "\ufdd0", "\ufdd1", "\ufdd2", " ", "\n", "\r", "\t", "\0", "\ufeff", "\u00a0", "\u2028", "\x85"]
WORDS = ["</s>", "<unk>", "<0x0A>", "dog", "straße", "语", "e\u0301", "\U0001f469\u200d\U0001f4bb", "\u202e", "\ufffd"]
troublesome = st.sampled_from(MARKS) | st.sampled_from(WORDS)


texts = st.text(max_size=30) | st.lists(troublesome | st.characters(exclude_categories=["Cs"]), max_size=12).map(
    "".join
)


@few
@given(texts)
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
def test_a_drawn_segmentation_is_of_the_same_text(text, alpha):
    tokenizer = shared_tokenizer()
    assert tokenizer.decode(tokenizer.sample(text, alpha, random.Random(0))) == text
    score = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.serialized).get_score
    coldest = sum(map(score, tokenizer.sample(text, 10_000.0, random.Random(0))))
    assert coldest == pytest.approx(sum(map(score, tokenizer.encode(text))), abs=0.01), "the likeliest, or its equal"


@few
@given(st.lists(st.sampled_from("\ud800\udbff\udc00\udfff") | st.characters(), max_size=10).map("".join))
def test_a_lone_surrogate_becomes_one_replacement_character(text):
    expected = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert shared_tokenizer().decode(shared_tokenizer().encode(text)) == expected


def test_segmentations_are_drawn_as_often_as_their_probability_to_the_power_of_alpha(tokenizer):
    """A word's pieces are independent in a unigram model: p(segmentation) is the product of theirs."""
    alpha, rng, draws = 0.3, random.Random(0), 20_000
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.serialized)
    cuts = pieces.nbest_encode("street", nbest_size=N_SEGMENTATIONS)
    weights = [math.exp(alpha * sum(map(pieces.get_score, cut))) for cut in cuts]
    drawn = Counter(tuple(tokenizer.sample("street", alpha, rng)) for _ in range(draws))
    assert len(cuts) > 3
    for cut, weight in zip(cuts, weights, strict=True):
        assert abs(drawn[tuple(cut)] / draws - weight / sum(weights)) < 0.02


def test_tokens_are_the_pieces_with_the_start_of_a_word_marked_and_special_ones_leave_no_trace(tokenizer):
    ids = tokenizer.encode("Two dogs")
    assert "".join(tokenizer.tokens(ids)) == "\u2581Two\u2581dogs"
    assert tuple(tokenizer.tokens(range(4))) == SPECIAL_TOKENS
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Two dogs"


def test_a_vocabulary_has_exactly_the_size_asked_for_and_is_the_same_every_time(tokenizer):
    again = train_tokenizer((text for pair in SENTENCES for text in pair), 360)
    assert len(again) == 360
    assert again.serialized == tokenizer.serialized


@pytest.mark.parametrize("serialized", [b"", b"not a model"])
def test_bytes_that_are_no_vocabulary_are_refused(serialized):
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        Tokenizer(serialized)


def test_a_vocabulary_with_other_special_tokens_is_refused():
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


@few
@given(texts)
@example("  two  spaces  ")
@example("\u2581\ufdd0\ufdd1\ufdd0\ufdd2\u2581")
@example("Hello wörld \U0001f642 x")
def test_each_token_knows_its_place_in_the_text(text):
    tokenizer = shared_tokenizer()
    ids = [BOS, *tokenizer.encode(text), EOS]
    found = tokenizer.describe(ids)
    assert found.text == tokenizer.decode(ids) == text
    assert found.special == (True, *[False] * (len(ids) - 2), True)
    assert found.spans[0] is found.spans[-1] is None
    spans = found.spans[1:-1]
    assert "".join(text[start:end] for start, end in dict.fromkeys(spans)) == text
    assert list(spans) == sorted(spans)
    starts = [label.startswith("\u2581") for label in found.labels[1:-1]]
    words = list(found.words[1:-1])
    steps = [now - before for before, now in pairwise([-1, *words])]
    assert set(steps) <= {0, 1}
    assert all(step for step, starts_word in zip(steps, starts, strict=True) if starts_word)
    if text.isascii() and text.replace(" ", "").isalpha():  # whatever else ends a word: test_words.py
        assert words == [max(sum(starts[: i + 1]) - 1, 0) for i in range(len(starts))]
