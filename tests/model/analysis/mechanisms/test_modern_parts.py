"""Parts since 2017 on the vectors of a run: each number is the model's, or follows from its tensors by the formula."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from model.analysis.mechanisms.modern_parts import (
    activations,
    cache_bytes,
    compare_norms,
    embedded_token,
    key_distances,
    norm_steps,
)
from model.analysis.positions.rotation import rotate_pairs, rotation_base
from model.checkpoints.language_model import LanguageModel
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import FAMILIES
from tests.model.checkpoints.huggingface.test_families import opened, traced
from tests.model.checkpoints.test_language_model import TEXT
from tests.model.checkpoints.test_language_model import opened as open_own


@pytest.fixture(scope="module")
def language_model(tokenizer) -> LanguageModel:
    return open_own(tokenizer)


@pytest.fixture(scope="module")
def modern(language_model) -> Trace:
    return language_model.trace(TEXT)


def test_the_pairs_are_the_runs_and_their_products_sum_to_its_score(modern):
    attention = modern.attention("decoder_self", 1)
    found, half = rotate_pairs(attention, head=2, query=6, key=3), attention.d_k // 2
    for i in range(half):
        assert found.q[0, i].tolist() == [attention.rotary.q[2, 6, i], attention.rotary.q[2, 6, i + half]]
        assert found.k[1, i].tolist() == [attention.k[2, 3, i], attention.k[2, 3, i + half]]
    assert found.products[1].sum() == pytest.approx(attention.scores[2, 6, 3], rel=1e-5)
    assert found.frequency == pytest.approx(10_000.0 ** (-2 * np.arange(half) / attention.d_k), rel=1e-5)
    assert found.angle == pytest.approx(np.stack([6 * found.frequency, 3 * found.frequency]))
    for before, after, angles in ((found.q[0], found.q[1], found.angle[0]), (found.k[0], found.k[1], found.angle[1])):
        turned = (before[:, 0] + 1j * before[:, 1]) * np.exp(1j * angles)
        assert np.stack([turned.real, turned.imag], -1) == pytest.approx(after, abs=1e-5)


def test_a_model_that_rotates_nothing_is_refused(trace):
    with pytest.raises(ValueError, match="does not rotate"):
        rotate_pairs(trace.attention("encoder_self", 0), 0, 0, 0)


@pytest.mark.parametrize(
    ("family", "stack", "own"), [("modern", "decoder", "RMSNorm"), ("trace", "encoder", "LayerNorm")]
)
def test_both_norms_read_the_vector_that_the_models_norm_reads(family, stack, own, request):
    trace = request.getfixturevalue(family)
    sublayer = trace.streams[stack].sublayers[1]
    found = compare_norms(trace, stack, 1, 2)
    x = torch.tensor(sublayer.norm_input[2]).double()
    width = len(x)
    assert found.layer_norm == pytest.approx(F.layer_norm(x, [width], eps=sublayer.norm.eps).numpy())
    assert found.rms_norm == pytest.approx(F.rms_norm(x, [width], eps=sublayer.norm.eps).numpy())
    assert found.layer_norm == pytest.approx((found.x - found.mean) / found.std)
    assert found.rms_norm == pytest.approx(found.x / found.rms)
    assert found.rms**2 == pytest.approx(found.mean**2 + found.std**2)
    assert found.cosine[1, 2] == pytest.approx(
        float(F.cosine_similarity(torch.tensor(found.layer_norm), torch.tensor(found.rms_norm), dim=0))
    )
    assert found.cosine.shape == (len(trace.streams[stack].sublayers), len(trace.streams[stack].tokens))
    assert sublayer.norm.kind == own
    result = found.layer_norm if own == "LayerNorm" else found.rms_norm
    beta = 0 if sublayer.norm.beta is None else sublayer.norm.beta
    assert sublayer.norm.gamma * result + beta == pytest.approx(sublayer.normed[2], abs=1e-5)


def test_a_gated_feed_forward_is_gate_times_up(language_model, modern):
    found = activations(language_model, modern, "decoder", 1, 4, most=5)
    sublayer = modern.sublayers[3]
    assert sublayer.name == "feed_forward"
    assert np.array_equal(found.activated, sublayer.gate[4])
    assert np.array_equal(found.up, sublayer.up[4])
    assert np.array_equal(found.hidden, sublayer.hidden[4])
    assert found.activated * found.up == pytest.approx(found.hidden, rel=1e-6)
    assert found.z / (1 + np.exp(-found.z)) == pytest.approx(found.activated, abs=1e-5)
    assert found.curve[1] == pytest.approx(found.curve[0] / (1 + np.exp(-found.curve[0])))
    assert found.error < 1e-5
    assert sorted(found.top) == sorted(np.argsort(np.abs(sublayer.hidden[4]))[-5:])


def test_a_feed_forward_of_2017_has_neither_gate_nor_up(translator, trace):
    found = activations(translator, trace, "encoder", 0, 1, most=1000)
    hidden = trace.streams["encoder"].sublayers[1].hidden[1]
    assert found.up is None
    assert np.array_equal(found.activated, hidden)
    assert np.maximum(found.z, 0) == pytest.approx(hidden, abs=1e-5)
    assert set(found.top) == set(np.flatnonzero(hidden)), "no neuron that is 0"


def test_the_keys_of_heads_that_share_them_are_the_same(modern, trace):
    shared = key_distances(modern.attention("decoder_self", 0))
    assert np.array_equal(shared == 0, np.kron(np.eye(2), np.ones((2, 2))).astype(bool))
    attention = trace.attention("cross", 1)
    own = key_distances(attention)
    assert np.array_equal(own == 0, np.eye(4, dtype=bool))
    assert own[1, 3] == np.abs(attention.k[1] - attention.k[3]).max()


def test_the_bytes_of_the_run_are_counted_in_its_arrays_and_lie_on_the_models_line(modern, trace):
    found = cache_bytes(modern, "decoder_self", 64)
    n = len(modern.tgt_tokens)
    layers = [modern.attention("decoder_self", layer) for layer in (0, 1)]
    arrays = [x[head] for attention in layers for head in (0, 2) for x in (attention.k, attention.v)]
    assert found["run"].tolist() == [n, sum(array.nbytes for array in arrays)]
    assert found["kv_heads"].tolist() == [4, 2, 1]
    assert found["bytes"][1, found["n"] == n] == found["run"][1]
    assert np.array_equal(found["bytes"][0], 2 * found["bytes"][1])
    assert found["n"].max() == 64
    old = cache_bytes(trace, "encoder_self", 128)
    assert old["kv_heads"].tolist() == [4, 1]
    assert old["bytes"][0, old["n"] == old["run"][0]] == old["run"][1]


@pytest.mark.parametrize(("d_key", "kv_heads"), [(12, 2), (4, 1), (16, 4)])
def test_the_bytes_of_keys_and_values_of_other_widths_lie_on_the_models_line(d_key, kv_heads, tokenizer):
    trace = open_own(tokenizer, d_key=d_key, n_kv_heads=kv_heads).trace(TEXT)
    found = cache_bytes(trace, "decoder_self", 64)
    mine = found["kv_heads"] == kv_heads
    assert found["bytes"][mine, found["n"] == found["run"][0]] == found["run"][1]
    assert found["run"][1] == 2 * found["run"][0] * kv_heads * (d_key + 8) * 4


def test_what_is_embedded_is_the_streams(trace):
    found = embedded_token(trace, "decoder", 1)
    assert np.array_equal(found["positional"], trace.tgt_embedded.positional[1])
    assert found["embedding"] + found["positional"] == pytest.approx(found["sum"], abs=1e-6)


@pytest.mark.parametrize(
    "name", ["Llama, grouped", "Gemma 2", "GPT-NeoX", "Phi", "Phi-3", "Qwen3", "ModernBERT", "gpt-oss"]
)
def test_the_pairs_of_hugging_face_models_and_what_is_not_rotated_sum_to_the_score(name):
    attention = traced(name).attentions[traced(name).kinds[0].name, 1]
    found, half = rotate_pairs(attention, 2, 6, 3), attention.rotary.cos.shape[-1]
    rest = attention.q[2, 6, 2 * half :].astype(float) @ attention.k[2, 3, 2 * half :]
    assert found.rest == pytest.approx(rest)
    scale = float(np.abs(attention.scores).max())
    assert found.score == pytest.approx(attention.scores[2, 6, 3], abs=1e-5 * scale)
    before = attention.rotary.q[2, 6].astype(float) @ attention.rotary.k[2, 3]
    assert found.unrotated_score == pytest.approx(before, abs=1e-5 * scale)
    assert found.scores[found.offsets == -3] == pytest.approx(attention.scores[2, 6, 3], abs=1e-4 * scale)
    assert np.linalg.norm(found.q[1], axis=1) == pytest.approx(
        found.factor * np.linalg.norm(found.q[0], axis=1), rel=1e-3
    )
    assert (found.factor > 1.01) == (name == "gpt-oss"), "YaRN, and no other"
    if half > 1 and name not in ("ModernBERT", "gpt-oss"):
        assert rotation_base(found.frequency, 2 * half) == pytest.approx(10_000, rel=1e-2)


def test_no_base_is_stated_for_angles_that_follow_none():
    frequency = 10_000.0 ** (-np.arange(8) / 8)
    assert rotation_base(frequency, 16) == pytest.approx(10_000)
    assert rotation_base(np.where(np.arange(8) > 4, frequency / 8, frequency), 16) is None
    assert rotation_base(frequency[:1], 2) is None


@pytest.mark.parametrize("name", FAMILIES)
def test_the_neurons_and_norms_of_hugging_face_models_are_the_runs(name):
    trace, model = traced(name), opened(name)
    for stack, stream in trace.streams.items():
        normed = norm_steps(trace, stack)
        found = compare_norms(trace, stack, len(normed) - 1, 2)
        assert normed[-1].norm(found.x) == pytest.approx(found.normed, rel=1e-4, abs=1e-5)
        own = found.layer_norm if normed[-1].norm.kind == "LayerNorm" else found.rms_norm
        beta = 0 if normed[-1].norm.beta is None else normed[-1].norm.beta
        assert normed[-1].norm.gamma * own + beta == pytest.approx(found.normed, rel=1e-4, abs=1e-5)
        sublayer = next(s for s in stream.sublayers if s.name == "feed_forward")
        if sublayer.hidden is None:
            with pytest.raises(LookupError, match="feed-forward"):
                activations(model, trace, stack, 0, 2)
            continue
        neurons = activations(model, trace, stack, 0, 2)
        assert neurons.error < 1e-5 * max(1, np.abs(neurons.z).max())
        product = neurons.activated if neurons.up is None else neurons.activated * neurons.up
        assert product == pytest.approx(sublayer.hidden[2], rel=1e-4, abs=1e-5)
