"""An encoder-only checkpoint: text with <mask> in; the words that fit, or a Trace, out."""

from dataclasses import replace

import numpy as np
import pytest

from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.checkpoints.tokenizer import MASK, train_tokenizer
from model.interventions import HeadGate
from model.proof.checks import prove
from tests.model.checkpoints.test_language_model import MODERN, half_precision
from tests.model.tiny import random_model

LINES = ["A dog runs through the snow.", "Two dogs play.", "The old man reads a book in the garden."] * 30
TEXT = "The <mask> reads a <mask>."


@pytest.fixture(scope="module")
def masked_model() -> MaskedModel:
    tokenizer = train_tokenizer(LINES, 286, masked=True)
    config = replace(MODERN, vocab_size=286, n_encoder_layers=2, n_decoder_layers=0)
    return MaskedModel("random", "0" * 64, random_model(config), tokenizer)


def test_a_saved_masked_model_opens_as_one(masked_model, tmp_path):
    model = masked_model.model
    save_checkpoint(tmp_path / "mlm", model, masked_model.tokenizer, half_precision(model))
    assert load_checkpoint(str(tmp_path / "mlm"), device="cpu").fill(TEXT) == masked_model.fill(TEXT)


def test_each_mask_gets_the_most_probable_tokens_of_the_whole_vocabulary(masked_model):
    trace, filled = masked_model.trace(TEXT), masked_model.fill(TEXT, top=286)
    masks = [position for position, token in enumerate(trace.src_ids) if token == MASK]
    assert len(masks) == len(filled) == 2
    for position, guesses in zip(masks, filled, strict=True):
        assert sum(probability for _, probability in guesses) == pytest.approx(1)
        assert guesses[0][1] == pytest.approx(trace.probabilities[position].max())
        assert trace.logits[position, trace.next_ids[position]] == trace.logits[position, MASK + 1 :].max()


def test_a_row_should_predict_its_own_token(masked_model):
    trace = masked_model.trace("Two dogs play.")
    assert trace.next_ids == trace.src_ids
    assert (trace.source, trace.tgt_tokens) == ("Two dogs play.", ())
    assert all(check.passed for check in prove(masked_model, trace))
    assert not trace.attention("encoder_self", 0).causal


def test_a_text_may_fill_the_model_to_its_last_position_and_is_cut_where_it_would_not_fit(masked_model):
    full = replace(masked_model, most_tokens=10_000)
    texts = [" ".join(["Two dogs play."] * count) for count in range(1, 40)]
    fitting = [text for text in texts if full.fits(text)]
    assert 0 < len(fitting) < len(texts)
    lengths = [len(full.trace(text).src_ids) for text in fitting]
    piece = lengths[1] - lengths[0]
    assert lengths[-1] <= full.config.max_len < lengths[-1] + piece
    for text in texts[len(fitting) :]:
        with pytest.raises(ValueError, match="at most 64 fit"):
            full.trace(text)
        assert full.trace(full.truncate(text)).src_ids


def test_a_rerun_keeps_its_tokens_and_a_target_needs_one_token_a_mask(masked_model):
    trace = masked_model.trace(TEXT)
    with pytest.raises(ValueError, match="fill in one token a mask"):
        masked_model.trace(TEXT, "The man reads a long book.")
    changed = masked_model.rerun(trace, [HeadGate(0.0, layer=0)])
    assert changed.next_ids == trace.next_ids
    assert not np.array_equal(changed.logits, trace.logits)
    assert np.array_equal(masked_model.rerun(changed, ()).logits, trace.logits)


def test_a_text_without_a_mask_gets_a_sentence(masked_model):
    with pytest.raises(ValueError, match="Write it as a word of its own"):
        masked_model.fill("Two dogs play.")
