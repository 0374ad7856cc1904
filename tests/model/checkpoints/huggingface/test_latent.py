"""Multi-head latent attention is read as its three steps, A, RMSNorm and B, and as one matrix a head."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import transformers as hf

from model.analysis.written import score_parts
from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedCheckpoint
from model.interventions import HeadGate
from model.needs import Need
from model.proof.checks import prove
from model.proof.steps import verify_steps
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import _COMMON, SOURCE, randomised
from tests.model.checkpoints.huggingface.test_families import logits
from tests.viz.payload import decode
from viz.steps.head import Choice, head_of
from viz.steps.steps import picture

SIZES = {
    **_COMMON,
    **{"num_hidden_layers": 2, "num_key_value_heads": 4, "moe_intermediate_size": 16},
    **{"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    **{"q_lora_rank": 10, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6},
    **{"first_k_dense_replace": 1},
}
MODELS = {
    "DeepSeek-V2": ("DeepseekV2", {}),
    "DeepSeek-V2, queries without a latent vector": ("DeepseekV2", {"q_lora_rank": None}),
    "DeepSeek-V3": ("DeepseekV3", {}),
    "DeepSeek-V3, biases and halves": ("DeepseekV3", {"attention_bias": True, "rope_interleave": False}),
}


def tiny(name: str) -> hf.PreTrainedModel:
    family, changed = MODELS[name]
    config = getattr(hf, f"{family}Config")(**SIZES | changed)
    return randomised(lambda: getattr(hf, f"{family}ForCausalLM")(config))


@lru_cache
def opened(name: str) -> HookedCheckpoint:
    return open_model(tiny(name))


@lru_cache
def traced(name: str) -> Trace:
    return opened(name).trace(SOURCE)


@pytest.mark.parametrize("name", MODELS)
def test_every_step_is_read_and_the_logits_are_those_of_eager_attention(name: str) -> None:
    model, trace = opened(name), traced(name)
    eager = tiny(name)
    eager.set_attn_implementation("eager")
    assert np.array_equal(trace.logits, logits(eager, trace))
    assert not model.notes
    assert Need.MATRICES in model.features
    assert model.config.positions == "rope"
    assert all(step.read for step in verify_steps(model, trace))
    assert all(check.passed for check in prove(model, trace))
    latents = trace.attention("decoder_self", 1).latents
    assert (latents.q is None) == ("without" in name)


@pytest.mark.parametrize("name", MODELS)
def test_with_the_norms_scale_frozen_one_matrix_a_head_gives_the_three_steps(name: str) -> None:
    attention = traced(name).attention("decoder_self", 1)
    for side, latent in (("q", attention.latents.q), ("k", attention.latents.k), ("v", attention.latents.v)):
        if latent is None:
            continue
        x = (attention.query_input if side == "q" else attention.key_input).astype(np.float64)
        learned = attention.projections
        frozen = x @ getattr(learned, f"w_{side}") + getattr(learned, f"b_{side}")[:, None]
        np.testing.assert_allclose(frozen / latent.divisors, latent.made, atol=1e-5, rtol=1e-5)
        assert latent.direct.sum() == (SIZES["qk_rope_head_dim"] if side == "k" else 0)
    rotary = attention.rotary
    assert rotary.start == SIZES["qk_nope_head_dim"]
    np.testing.assert_allclose(rotary.turn(rotary.k), attention.k, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_score_is_the_sum_over_what_wrote_its_query_and_its_key(name: str) -> None:
    attention = traced(name).attention("decoder_self", 1)
    _, _, pairs = score_parts(traced(name), "decoder_self", 1, 2, 9, 4)
    assert float(pairs.sum()) == pytest.approx(float(attention.scores[2, 9, 4]), rel=1e-5, abs=1e-5)


def test_a_wrong_latent_vector_is_noticed() -> None:
    model, trace = opened("DeepSeek-V3"), traced("DeepSeek-V3")
    place, attention = next(iter(trace.attentions.items()))
    k = attention.latents.k
    for lie in (replace(k, normed=k.normed[::-1]), replace(k, compressed=2 * k.compressed), replace(k, w_a=-k.w_a)):
        told = replace(attention, latents=replace(attention.latents, k=lie))
        assert prove(model, replace(trace, attentions={**trace.attentions, place: told}))[1].error > 1e-2


def test_a_change_acts_and_a_saved_run_keeps_the_three_steps(tmp_path: Path) -> None:
    model, trace = opened("DeepSeek-V3"), traced("DeepSeek-V3")
    gated = model.trace(SOURCE, interventions=(HeadGate(0.0, "decoder_self", 0, 1),))
    assert not np.array_equal(gated.logits, trace.logits)
    assert all(check.passed for check in prove(model, gated))
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz").attention("decoder_self", 0).latents.v
    assert np.array_equal(again.normed, trace.attention("decoder_self", 0).latents.v.normed)


@pytest.mark.parametrize("name", ["DeepSeek-V3", "DeepSeek-V3, biases and halves"])
def test_the_first_step_of_a_head_shows_a_norm_and_b(name: str) -> None:
    attention = traced(name).attention("decoder_self", 1)
    _, drawn = decode(picture(0, head_of(attention, 2), Choice(), "title"))
    assert not {"W_Q", "W_K", "W_V"} & drawn.keys()
    for side, whole in (("Q", "Q_pre"), ("K", "K_pre"), ("V", "V")):
        part = {symbol: drawn[f"{symbol}_{side}"]["values"] for symbol in "ACNB"}
        x = drawn["X"]["values"]
        bias = drawn[f"a_{side}"]["values"] if attention.projections.biases else 0
        np.testing.assert_allclose(x @ part["A"] + bias, part["C"], atol=1e-5)
        beside = drawn["R_K"]["values"] if side == "K" else 0
        np.testing.assert_allclose(part["N"] @ part["B"] + beside, drawn[whole]["values"], atol=1e-5)
