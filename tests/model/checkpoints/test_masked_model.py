"""An encoder-only checkpoint: text with <mask> in; the words that fit, or a Trace, out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.checkpoints.masked_model import FillStep, MaskedModel
from model.checkpoints.store import load_checkpoint
from model.checkpoints.tokenizer import MASK, train_tokenizer
from model.interventions import HeadGate
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.test_language_model import opened

LINES = ["A dog runs through the snow.", "Two dogs play.", "The old man reads a book in the garden."] * 30
TEXT = "The <mask> reads a <mask>."


@pytest.fixture(scope="module")
def masked_model() -> MaskedModel:
    return opened(train_tokenizer(LINES, 286, masked=True), n_encoder_layers=2, n_decoder_layers=0)


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


@pytest.fixture(scope="module")
def models(masked_model, tmp_path_factory) -> dict[str, MaskedModel]:
    """Ours, and one that `transformers` wrote."""
    folder = save_family(tmp_path_factory.mktemp("filled") / "BERT", "BERT")
    return {"ours": masked_model, "BERT": load_checkpoint(str(folder), "cpu")}


def read_gaps(model: MaskedModel, count: int) -> list[int]:
    """The tokens of a text with so many gaps, a word before each of them."""
    mask = model.tokenizer.mask_token
    return list(model.trace(" ".join(["a", mask, "dog", mask, "reads", mask][: 2 * count])).src_ids)


def fill_by_hand(
    model: MaskedModel, ids: Sequence[int], order: Sequence[int] | None, tokens: Sequence[int] | None = None
) -> list[FillStep]:
    """The same steps by plain calls of the network: after each the whole text is read anew."""
    ids, steps = list(ids), []
    while model.tokenizer.mask in ids:
        with torch.inference_mode():
            p = model.model(torch.tensor([ids]))[0].double().softmax(-1).numpy()
        allowed = p.copy()
        allowed[:, sorted(model.tokenizer.special_ids)] = 0
        gaps = [gap for gap, token in enumerate(ids) if token == model.tokenizer.mask]
        guesses = {gap: (int(allowed[gap].argmax()), float(allowed[gap].max())) for gap in gaps}
        gap = order[len(steps)] if order is not None else max(gaps, key=lambda gap: guesses[gap][1])
        token = guesses[gap][0] if tokens is None else tokens[gap]
        steps.append(FillStep(tuple(ids), gap, token, float(np.log(p[gap, token])), guesses))
        ids[gap] = token
    return steps


def assert_same(found: Sequence[FillStep], wanted: Sequence[FillStep]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert (one.ids, one.position, one.token) == (other.ids, other.position, other.token)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        assert {gap: token for gap, (token, _) in one.guesses.items()} == {g: t for g, (t, _) in other.guesses.items()}
        assert [p for _, p in one.guesses.values()] == pytest.approx([p for _, p in other.guesses.values()], rel=1e-4)


@pytest.mark.parametrize("name", ["ours", "BERT"])
def test_gaps_are_filled_one_after_another_each_after_a_pass_over_all_that_is_filled(name, models):
    model, ids = models[name], read_gaps(models[name], 3)
    gaps = [place for place, token in enumerate(ids) if token == model.tokenizer.mask]
    whole = [token if token != model.tokenizer.mask else ids[1] + place for place, token in enumerate(ids)]
    totals = set()
    for order in (None, gaps, gaps[::-1], [gaps[1], gaps[2], gaps[0]]):
        for tokens in (None, whole):
            steps = list(model.fill_steps(ids, order, tokens))
            assert_same(steps, fill_by_hand(model, ids, order, tokens))
            assert sorted(step.position for step in steps) == gaps
        totals.add(round(sum(step.log_probability for step in steps), 4))
    assert len(totals) > 1, "the same tokens have another probability in another order"


@pytest.mark.parametrize("name", ["ours", "BERT"])
def test_the_trace_of_a_step_is_the_pass_that_was_made(name, models):
    model, gate = models[name], (HeadGate(0.0, layer=0, head=1),)
    for step in model.fill_steps(read_gaps(models[name], 2), interventions=gate):
        trace = model.trace_step(step, gate)
        assert trace.src_ids == step.ids
        assert trace.next_ids[step.position] == step.token
        assert np.log(trace.target_probabilities[step.position]) == pytest.approx(step.log_probability, abs=1e-5)
        best = {gap: (trace.next_ids[gap], trace.probabilities[gap, trace.next_ids[gap]]) for gap in step.guesses}
        assert best == {gap: (token, pytest.approx(p, rel=1e-5)) for gap, (token, p) in step.guesses.items()}
        assert all(check.passed for check in prove(model, trace))
