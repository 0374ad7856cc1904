"""Hugging Face models are read as they compute: 27 families, bit for bit, with every step repeated."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import nn
from transformers.modeling_outputs import ModelOutput
from transformers.pytorch_utils import Conv1D

from model.analysis.runs.patching import read_activations
from model.analysis.stream.residual_stream import neurons
from model.analysis.sweep import log_probability, sweep
from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedCheckpoint
from model.interventions import (
    AttentionTemperature,
    FrozenPattern,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    Patch,
    PatternMask,
    PositionsOff,
    SublayerOff,
    UniformAttention,
    Unscaled,
    ValueZeroing,
    describe,
)
from model.proof.checks import prove
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import FAMILIES, SOURCE, TARGET, tiny_model
from tests.model.checkpoints.huggingface.published import model_of

IDS = [int(word) for word in SOURCE.split()]
LEAST = torch.finfo(torch.float32).min
HIDDEN_CELLS = ((5, 2), (9, 0), (12, 7))


@lru_cache
def opened(name: str) -> HookedCheckpoint:
    return open_model(model_of(name))


def traced(name: str, *changes: Intervention, source: str = SOURCE) -> Trace:
    target = TARGET if len(opened(name).model.stacks) == 2 else None
    return opened(name).trace(source, target, interventions=changes)


def eager(name: str) -> nn.Module:
    """The same model as transformers computes it, without any hook of ours."""
    model = model_of(name)
    model.set_attn_implementation("eager")
    return model


@torch.inference_mode()
def run_own(model: nn.Module, trace: Trace, **more: object) -> ModelOutput:
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    return model(**dict(zip(("input_ids", "decoder_input_ids"), texts, strict=False)), **more)


def logits(model: nn.Module, trace: Trace, **more: object) -> np.ndarray:
    return run_own(model, trace, **more).logits[0].numpy()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_step_is_the_models_own(name: str) -> None:
    model, trace = opened(name), traced(name)
    own = run_own(eager(name), trace, output_attentions=True)
    assert np.array_equal(trace.logits, own.logits[0].numpy())
    for kind in trace.kinds:
        theirs = own["attentions" if len(trace.streams) == 1 else f"{kind.name.removesuffix('_self')}_attentions"]
        for layer, weights in zip(kind.layers, theirs, strict=True):
            assert np.array_equal(trace.attention(kind.name, layer).pattern, weights[0].numpy())
    watching, chain, rows = prove(model, trace)
    assert watching.error == 0
    assert chain.error < 1e-6
    assert rows.error < 1e-6
    assert not model.notes
    assert set(trace.exact.values()) == {0.0}
    layers = sum(len(kind.layers) for kind in trace.kinds)
    own_layers = sum(len(kind.layers) for kind in trace.kinds if not kind.crosses)
    assert len(trace.attentions) == layers
    assert len(trace.sublayers) == layers + own_layers
    assert all(attention.projections for attention in trace.attentions.values())
    # The models are no easy case: attention is far from uniform, and no mask is forgotten.
    assert max(np.ptp(attention.pattern) for attention in trace.attentions.values()) > 0.15
    for attention in trace.attentions.values():
        assert attention.causal == (not attention.mask[:, 0, 1:].any())
    np.testing.assert_allclose(model.read_logits(trace.sublayers[-1].after), trace.logits, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Gemma 2", "gpt-oss", "BERT", "T5"])
def test_a_wrong_number_is_noticed(name: str) -> None:
    model, trace = opened(name), traced(name)
    place, attention = next(iter(trace.attentions.items()))
    learned = attention.projections
    swapped = replace(learned, w_o=learned.w_o[[1, 0, 2, 3]])
    lies = [
        replace(attention, projections=swapped),
        replace(attention, k=attention.k[[1, 2, 3, 0]]),
        replace(attention, pattern=attention.pattern[[1, 0, 2, 3]]),
    ]
    if attention.rotary:
        lies.append(replace(attention, rotary=replace(attention.rotary, interleaved=not attention.rotary.interleaved)))
    if attention.sink is not None:
        lies.append(replace(attention, sink=attention.sink + 1))
    for lie in lies:
        told = replace(trace, attentions={**trace.attentions, place: lie})
        assert prove(model, told)[1].error > 1e-2


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Qwen3", "GPT-NeoX", "BERT", "ALBERT", "BART"])
def test_temperature_is_the_models_own_scaling_divided(name: str) -> None:
    copied = eager(name)
    for module in copied.modules():
        if isinstance(getattr(module, "scaling", None), float):
            module.scaling /= 0.5
    trace = traced(name, AttentionTemperature(0.5))
    assert np.array_equal(trace.logits, logits(copied, trace))


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Gemma 2", "GPT-NeoX", "BERT", "T5", "BART"])
def test_a_gated_head_is_its_rows_of_w_o_set_to_zero(name: str) -> None:
    kind = traced(name).kinds[-1].name
    silenced, off = eager(name), eager(name)
    for model, part in ((silenced, slice(16, 24)), (off, slice(None))):
        w_o = w_o_of(name, model, kind)
        with torch.no_grad():
            (w_o.weight[part] if isinstance(w_o, Conv1D) else w_o.weight[:, part]).zero_()
            if model is off and w_o.bias is not None:
                w_o.bias.zero_()
    trace = traced(name, HeadGate(0.0, kind, 1, 2))
    assert np.array_equal(trace.logits, logits(silenced, trace))
    stack, sublayer = trace.kind(kind).queries, "cross_attn" if kind == "cross" else "self_attn"
    trace = traced(name, SublayerOff(stack, 1, sublayer))
    assert np.array_equal(trace.logits, logits(off, trace))


def w_o_of(name: str, model: nn.Module, kind: str) -> nn.Module:
    """W_O of layer 1 in a copy of the model."""
    found = opened(name).model
    w_o = found.parts_of(found.attentions()[kind, 1][1]).w_o
    return model.get_submodule(next(path for path, module in found.model.named_modules() if module is w_o))


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Qwen3", "GPT-NeoX", "BERT", "ALBERT"])
def test_an_edited_mask_is_one_given_to_the_model(name: str) -> None:
    n = len(IDS)
    mask = torch.zeros(1, 1, n, n)
    if traced(name).kinds[0].causal:
        trace = traced(name, LiftCausalMask())
        assert np.array_equal(trace.logits, logits(eager(name), trace, attention_mask=mask))
        mask.masked_fill_(torch.ones(n, n, dtype=torch.bool).triu(1), LEAST)
    for query, key in HIDDEN_CELLS:
        mask[..., query, key] = LEAST
    trace = traced(name, MaskEdit(forbid=HIDDEN_CELLS))
    assert np.array_equal(trace.logits, logits(eager(name), trace, attention_mask=mask))


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Gemma 3", "T5", "BART"])
def test_a_sparse_pattern_writes_the_same_with_a_cache_and_without(name: str) -> None:
    for change in (PatternMask(2), PatternMask(2, global_tokens=(0,))):
        assert change.position_free == (not change.global_tokens)
        uncached = (change, HeadGate(1.0, mode="mean"))  # which does nothing, but needs all positions
        written = opened(name).generate(SOURCE, (change,), 8)
        assert written == opened(name).generate(SOURCE, uncached, 8)
        assert len(written) > 2


@pytest.mark.parametrize("name", ["GPT-2", "Gemma 3", "gpt-oss", "ALBERT", "M2M100"])
def test_changes_of_patterns_and_values(name: str) -> None:
    plain = traced(name)
    kind = plain.kinds[-1].name
    frozen = traced(name, FrozenPattern.of(plain.attention(kind, 1).pattern, kind, 1))
    if plain.attention(kind, 1).sink is None:  # a frozen row sums to 1
        assert np.array_equal(frozen.logits, plain.logits)
    even = traced(name, UniformAttention(kind, 1)).attention(kind, 1)
    np.testing.assert_allclose(even.pattern, even.mask / even.mask.sum(-1, keepdims=True), rtol=1e-6)
    assert not traced(name, ValueZeroing((3,), kind, 1)).attention(kind, 1).v[:, 3].any()
    unscaled = traced(name, Unscaled(kind, 1)).attention(kind, 1)
    np.testing.assert_allclose(unscaled.scaled, unscaled.scores, rtol=1e-5, atol=1e-6)
    for changed in (even, unscaled):
        assert np.abs(changed.pattern - plain.attention(kind, 1).pattern).max() > 1e-2


@pytest.mark.parametrize("name", ["GPT-2", "OPT", "Marian"])
def test_positions_off_is_a_table_of_zeros(name: str) -> None:
    off = eager(name)
    for embedding in opened(name).model.embeddings.values():
        path = next(path for path, module in opened(name).model.model.named_modules() if module is embedding.table)
        with torch.no_grad():
            off.get_submodule(path).weight.zero_()
    trace = traced(name, PositionsOff())
    assert not any(stream.embedded.rows for stream in trace.streams.values())
    assert np.array_equal(trace.logits, logits(off, trace))
    assert prove(opened(name), trace)[1].passed


@pytest.mark.parametrize("name", ["Llama, grouped", "ALBERT", "T5"])
def test_eight_threads_share_one_model(name: str) -> None:
    taus = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
    alone = {tau: traced(name, AttentionTemperature(tau)) for tau in taus}
    assert len({trace.logits.tobytes() for trace in alone.values()}) == len(taus)
    with ThreadPoolExecutor(len(taus)) as pool:
        together = pool.map(lambda tau: (alone[tau], traced(name, AttentionTemperature(tau))), 2 * taus)
    for one, other in together:
        assert np.array_equal(one.logits, other.logits)
        for place, attention in one.attentions.items():
            assert np.array_equal(attention.pattern, other.attentions[place].pattern)
            assert np.array_equal(attention.out, other.attentions[place].out)


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "T5"])
def test_what_a_neuron_is_said_to_promote_is_what_the_output_makes_of_it(name: str) -> None:
    """T5, whose embeddings are tied, multiplies its logits by a factor."""
    found, trace = opened(name), traced(name)
    stream = list(trace.streams.values())[-1]
    last = [sublayer for sublayer in stream.sublayers if sublayer.name == "feed_forward"][-1]
    promoted = neurons(found, last, 3)
    raised = found.head_in_double(stream.final[3] + promoted.contributions) - found.head_in_double(stream.final[3:4])
    assert promoted.logits == pytest.approx(raised, rel=1e-6, abs=1e-12)
    assert (found.logits_head.scale == 1) == (name != "T5")


# A sweep and a patch put numbers in at the same points: each family has one of the two.
@pytest.mark.parametrize("name", [*FAMILIES][::2])
def test_a_sweep_scores_the_text_as_a_run_with_each_change_does(name: str) -> None:
    checkpoint, trace = opened(name), traced(name, AttentionTemperature(0.8))
    gates = [HeadGate(0.0, kind.name, kind.layers[-1], 1, "mean") for kind in trace.kinds]
    stack = list(trace.streams)[-1]
    points = ("self_attn_residual.before", "feed_forward_residual.before", "self_attn.z", "feed_forward.out")
    paths = [path for point in points if checkpoint.model.edits_reach(path := f"{stack}.layers.1.{point}")]
    patches = [(Patch(path, values, ((2, 4),)),) for path, values in read_activations(checkpoint, trace, paths).items()]
    in_rows = [(gate,) for gate in gates] + [tuple(gates), *patches]
    for changes in (in_rows, [(), (Unscaled(),), (gates[0], Unscaled())]):
        for change, swept in zip(changes, sweep(checkpoint, trace, changes), strict=True):
            expected = checkpoint.rerun(trace, (*trace.interventions, *change)).log_probability
            assert log_probability(swept, trace.next_ids) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("together", [True, False])
def test_a_sweep_runs_changes_together_unless_the_rows_of_a_batch_touch_one_another(together: bool) -> None:
    checkpoint, passes = open_model(tiny_model("GPT-2")), []
    mlp = checkpoint.model.model.transformer.h[0].mlp
    if not together:
        mlp.register_forward_hook(lambda _, __, out: 2 * out - out.mean(0, keepdim=True))
    trace = checkpoint.trace(SOURCE)
    changes = [(HeadGate(0.0, "decoder_self", layer, head),) for layer in range(3) for head in range(4)]
    expected = [checkpoint.rerun(trace, change).logits for change in changes]
    checkpoint.model.model.register_forward_pre_hook(lambda *_: passes.append(1))
    for swept, alone in zip(sweep(checkpoint, trace, changes), expected, strict=True):
        np.testing.assert_allclose(swept, alone, atol=1e-4)
    assert (len(passes) == 1) == together


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_that_are_not_scaled_are_said_to_be_so_by_the_models_own_factor(name: str) -> None:
    sentence = describe(Unscaled(), opened(name).model)
    scales = {attention.scale for attention in traced(name).attentions.values()}
    widths = {attention.d_k for attention in traced(name).attentions.values()}
    if scales == {1}:
        assert "does not scale" in sentence
    elif scales == {next(iter(widths)) ** -0.5}:
        assert "not divided by √dₖ" in sentence
    else:
        assert "√dₖ" not in sentence
        assert len(scales) > 1 or f"not multiplied by {scales.pop():.4g}." in sentence
