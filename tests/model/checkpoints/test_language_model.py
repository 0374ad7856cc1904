"""A decoder-only checkpoint: text in; its continuation, its probability or a Trace out."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given

from model import evaluate
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.store import save_checkpoint
from model.hooks import hook_points
from model.interventions import AttentionTemperature, HeadGate, PositionsOff, SublayerOff
from model.network.config import BOS, EOS, TransformerConfig
from model.network.network import Network
from model.proof.checks import prove
from model.trace import Turn, log_probabilities
from tests.model.network.test_families import parts
from tests.model.strategies import few
from tests.model.tiny import random_checkpoint

MODERN = TransformerConfig(
    d_model=32, n_heads=4, d_ff=48, n_encoder_layers=0, n_decoder_layers=2, dropout=0.0, max_len=64, norm="pre",
    positions="rope", activation="swiglu", norm_function="rms_norm", n_kv_heads=2, biases=False, scale_embeddings=False,
    qk_norm=True,
)  # fmt: skip
TEXT = "Two dogs run through the snow."


@pytest.fixture(scope="module")
def language_model(tokenizer) -> LanguageModel:
    return opened(tokenizer)


def opened(tokenizer, **changes) -> LanguageModel:
    return random_checkpoint(replace(MODERN, vocab_size=len(tokenizer), **changes), tokenizer)


def half_precision(model: Network) -> dict[str, torch.Tensor]:
    """Round the weights in place to what a file keeps of them, and return them."""
    for parameter in model.parameters():
        parameter.data.copy_(parameter.half())
    return dict(model.named_parameters())


def test_a_row_predicts_the_token_that_follows_and_the_last_one_the_end(language_model):
    trace = language_model.trace(TEXT)
    ids = tuple(language_model.tokenizer.encode(TEXT))
    assert (trace.tgt_ids, trace.next_ids) == ((BOS, *ids), (*ids, EOS))
    assert (trace.source, trace.src_tokens, trace.memory) == (TEXT, (), None)
    assert trace.translation == TEXT
    expected = log_probabilities(trace.logits)[range(len(ids) + 1), trace.next_ids].sum()
    assert language_model.log_probability(TEXT) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["Two dogs\n  run.", "\tTwo\n\ndogs ", "Two  dogs\u2028run. "])
def test_white_space_is_text_and_invisible_characters_are_not(language_model, text):
    assert language_model.truncate(text) == text
    for typed in (text, text.replace("dogs", "do\u00adgs\u200b")):
        trace = language_model.trace(typed)
        assert trace.next_ids == (*language_model.tokenizer.encode(text), EOS)
        assert trace.source == text
        assert language_model.continue_text([typed], max_new_tokens=0) == [text]


@pytest.mark.parametrize("cut", [1, 8, 12, len(TEXT)])
def test_a_given_continuation_is_read_as_one_text_wherever_it_is_cut(language_model, cut):
    """The pieces of the whole text, not of its two parts; what was given ends at the last piece inside it."""
    trace = language_model.trace(TEXT[:cut], TEXT[cut:])
    assert trace.next_ids == (*language_model.tokenizer.encode(TEXT), EOS)
    assert TEXT[:cut].startswith(trace.source)
    assert trace.source + trace.written == TEXT
    again = language_model.trace_ids(trace.source, trace.next_ids)
    assert (again.source, again.next_ids) == (trace.source, trace.next_ids)


@few
@given(parts())
def test_the_chain_closes_for_any_mix_of_parts(tokenizer, changes):
    """From the embeddings to the logits each step of the Trace follows from the one before it."""
    model = opened(tokenizer, **changes)
    changes = (AttentionTemperature(0.5, layer=1), HeadGate(0.0, head=2), SublayerOff(layer=0, name="feed_forward"))
    for interventions in ((), changes):
        trace = model.trace(TEXT, interventions=interventions)
        assert [check.title for check in prove(model, trace) if not check.passed] == []


def test_a_text_that_is_not_continued_is_not_read_token_by_token_too(tokenizer, monkeypatch):
    monkeypatch.setattr("model.checkpoints.language_model.steps_of", lambda _model: pytest.fail("nothing is written"))
    assert opened(tokenizer).trace(TEXT).attentions


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_with_and_without_the_cache_it_writes_the_same(language_model, temperature):
    """An intervention on positions turns the cache off; this one changes nothing else."""

    class Uncached(HeadGate):
        position_free = False

    arguments = {"max_new_tokens": 12, "temperature": temperature, "seed": 3}
    cached = language_model.continue_text([TEXT, "A"], **arguments)
    assert cached == language_model.continue_text([TEXT, "A"], **arguments, interventions=[Uncached(1.0)])


def test_sampling_depends_on_the_seed_alone_and_top_k_1_is_greedy(language_model):
    def write(**arguments):
        return language_model.continue_text(["The"], max_new_tokens=15, **arguments)

    assert write(seed=1) == write(seed=1)
    assert len({write(seed=seed)[0] for seed in range(5)}) > 1
    assert write(top_k=1, seed=5) == write(temperature=0) == write(top_p=1e-9, seed=6)
    assert write(temperature=0)[0].startswith("The")


def test_what_the_model_does_not_have_cannot_be_changed(language_model):
    assert not any(path.endswith("positional") for path in hook_points(language_model.model))
    with pytest.raises(ValueError, match="adds no positional encoding"):
        language_model.trace(TEXT, interventions=[PositionsOff()])
    with pytest.raises(ValueError, match="no attention kind='cross'"):
        language_model.trace(TEXT, interventions=[HeadGate(0.0, kind="cross")])


def test_what_the_trace_says_of_queries_and_keys_leads_from_the_input_to_the_scores(language_model):
    """Projection, norm, rotation; and each pair of query heads shares its keys."""
    attention = language_model.trace(TEXT).attention("decoder_self", 1)
    assert attention.kv_head == (0, 0, 1, 1)
    assert np.array_equal(attention.k[0], attention.k[1])
    assert not attention.projections.biases
    projected = attention.query_input @ attention.projections.w_q
    assert np.allclose(projected, attention.qk_norm.q, atol=1e-5)
    assert np.allclose(attention.qk_norm.q_norm(projected), attention.rotary.q, atol=1e-5)
    assert np.allclose(attention.rotary.turn(attention.rotary.q), attention.q, atol=1e-5)
    assert np.allclose(attention.q @ attention.k.swapaxes(1, 2), attention.scores, atol=1e-4)


def test_bad_input_gets_a_sentence(language_model):
    with pytest.raises(ValueError, match="The text is empty"):
        language_model.trace("  ")
    for target in (None, "there"):
        with pytest.raises(ValueError, match="has no chat template"):
            language_model.trace((Turn("user", "Hi"),), target)
    with pytest.raises(ValueError, match="at most 64 fit"):
        language_model.log_probability("word " * 100)
    with pytest.raises(ValueError, match="takes a list of texts"):
        language_model.continue_text("Once")
    with pytest.raises(ValueError, match="temperature must be above 0"):
        language_model.continue_text(["Once"], temperature=-1.0)
    assert language_model.continue_text([""], max_new_tokens=0) == [""]
    assert torch.is_grad_enabled()


def test_evaluates_last_line_is_bits_per_byte_the_end_of_each_line_included(language_model, tmp_path, capsys):
    lines = [TEXT, "A cat!", "Ein Hund, der älter ist."]
    save_checkpoint(
        tmp_path / "lm", language_model.model, language_model.tokenizer, half_precision(language_model.model)
    )
    (tmp_path / "dev.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    evaluate.main([f"--checkpoint={tmp_path / 'lm'}", f"--data={tmp_path / 'dev.txt'}", "--device=cpu"])
    (score,) = re.findall(r"^bits per byte = (\d+\.\d+) 3 lines", capsys.readouterr().out.splitlines()[-1])
    expected = -sum(map(language_model.log_probability, lines)) / np.log(2) / sum(len(line.encode()) for line in lines)
    assert float(score) == pytest.approx(expected, abs=1e-3)
