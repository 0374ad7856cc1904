"""The boxes of figure 1: every number is computed again from the Trace, in each family."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.stream.whole_model import Box, box_arrays, model_boxes, switch_off_each
from model.background.sizes import multiply_adds
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import NormOff, ResidualOff, SublayerOff
from model.needs import Need
from model.proof.checks import prove
from model.trace import Trace
from tests.model.analysis.heads.test_induction import language_model_of
from tests.model.checkpoints.huggingface.test_families import opened as opened_of_others
from tests.model.checkpoints.huggingface.test_families import traced

TEXT = "a dog and a cat"
FAMILIES = ("encoder_decoder", "decoder", "encoder")
OTHERS = ("GPT-2", "OPT", "Llama, grouped", "Qwen3", "Gemma 2", "GPT-NeoX", "Phi", "gpt-oss", "BERT", "ALBERT")
OTHERS += ("ModernBERT", "T5", "Marian")
"""Hugging Face models: norms before, after, on both sides and beside; shared layers; a mixture of experts"""
WHOLE = ("GPT-2", "Llama, grouped", "Qwen3", "Gemma 2", "GPT-NeoX", "gpt-oss", "T5")
"""of these, all parameters have a box"""


@pytest.fixture(scope="module", params=[*FAMILIES, *OTHERS])
def run(request, translator) -> tuple[Checkpoint, Trace]:
    if request.param in OTHERS:
        return replace(opened_of_others(request.param), name=request.param), traced(request.param)
    if request.param == "encoder_decoder":
        return translator, translator.trace(TEXT, "Ein Hund mit einer Katze.")
    model = language_model_of(masked=request.param == "encoder")
    return model, model.trace(TEXT)


def length(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt((vectors.astype(float) ** 2).sum(-1))


def by_name(run: tuple[Checkpoint, Trace]) -> dict[str, Box]:
    return {box.name: box for box in model_boxes(*run)}


def test_every_sublayer_has_the_lengths_and_shares_of_the_trace(run) -> None:
    boxes = by_name(run)
    for sublayer in run[1].sublayers:
        name = f"{sublayer.stack}.{sublayer.layer}.{sublayer.name}"
        box, pre = boxes[name], sublayer.norm_first
        before, out = length(sublayer.before), length(sublayer.out)
        np.testing.assert_allclose(box.values["in"], length(sublayer.normed) if pre else before)
        np.testing.assert_allclose(box.values["share"], out / (before + out))
        total = boxes[f"{name}.{'add' if pre else 'add_norm'}"]
        np.testing.assert_allclose(total.values["residual"], before)
        np.testing.assert_allclose(total.values["update"], out)
        np.testing.assert_allclose(total.values["out"], length(sublayer.after))
        last = boxes.get(f"{name}.norm_after", box)
        assert (last is box) == (sublayer.placement != "sandwich")
        np.testing.assert_allclose(last.values["out"], out)
        assert (f"{name}.norm" in boxes) == (pre and sublayer.norm is not None)
        if f"{name}.norm" in boxes:
            np.testing.assert_allclose(boxes[f"{name}.norm"].values["in"], length(sublayer.norm_input))
        assert box.beside == (sublayer.placement == "parallel") == ("residual" not in box.switches())


def test_every_attention_has_its_weights_and_the_largest_of_them(run) -> None:
    boxes, trace = by_name(run), run[1]
    for (kind, layer), attention in trace.attentions.items():
        stack, name = trace.kind(kind).queries, "cross_attn" if attention.crosses else "self_attn"
        box = boxes[f"{stack}.{layer}.{name}"]
        np.testing.assert_array_equal(np.isnan(box.pattern), ~attention.mask)
        np.testing.assert_array_equal(box.pattern[attention.mask], attention.pattern[attention.mask])
        for row in range(len(attention.query_tokens)):
            head, key = (int(box.values[each][row]) for each in ("head", "key"))
            assert attention.pattern[head, row, key] == box.values["weight"][row] == attention.pattern[:, row].max()
            assert box.values["q"][row] == pytest.approx(length(attention.q[:, row].ravel()))
            assert box.values["z"][row] == pytest.approx(length(attention.concat[row]))
        heads = sorted({attention.kv_head.index(i) for i in attention.kv_head} if attention.kv_head else range(4))
        keys = [length(attention.k[heads, i].ravel()) for i in range(len(attention.key_tokens))]
        assert box.values["k"][0] == pytest.approx(np.mean(keys))


def test_the_boxes_have_all_parameters_and_all_multiply_adds_once(run) -> None:
    checkpoint, trace = run
    boxes = model_boxes(*run)
    counted = sum(box.parameters for box in boxes if not box.shared)
    total = sum(checkpoint.parameters_by_part().values())
    # BERT's token types and the dense layer of its head, for example, have no box.
    assert counted == total if is_whole(checkpoint) else 0.3 * total < counted < total
    config, shapes = checkpoint.config, {name: shape for box in boxes for name, shape in box.matrices.items()}
    assert shapes["W_U"][1] == shapes["E"][0] == config.vocab_size
    if config.d_ff:
        assert shapes["W_2"] == (config.d_ff, config.d_model)
        matrices = 1 + len({"W_1", "W_gate"} & set(shapes))
        lengths = {name: len(stream.tokens) for name, stream in trace.streams.items()}
        work = multiply_adds(config, *(lengths.get(name, 0) for name in ("encoder", "decoder")))
        expected = sum(part.total for name, part in work.items() if name.endswith(("self", "cross")))
        feed_forwards = sum(lengths[box.stack] for box in boxes if box.part == "feed_forward")
        expected += feed_forwards * matrices * config.d_model * config.d_ff
        expected += len(trace.logits) * shapes["W_U"][0] * config.vocab_size
        assert sum(box.multiply_adds for box in boxes) == expected


def is_whole(checkpoint: Checkpoint) -> bool:
    return Need.OWN_LAYERS in checkpoint.features or checkpoint.name in WHOLE


def test_input_and_output_are_the_traces(run) -> None:
    boxes, trace = by_name(run), run[1]
    for name, stream in trace.streams.items():
        first = boxes.get(f"{name}.positions", boxes[f"{name}.embedding"])
        np.testing.assert_allclose(first.values["out"], length(stream.embedded.sum), rtol=1e-6)
        if stream.embedded.normed is not None:
            np.testing.assert_allclose(boxes[f"{name}.norm_first"].values["out"], length(stream.embedded.normed))
    softmax = boxes[f"{list(trace.streams)[-1]}.softmax"]
    np.testing.assert_allclose(softmax.values["text"], trace.target_probabilities)
    np.testing.assert_allclose(softmax.values["out"], trace.probabilities.max(-1))
    assert box_arrays(model_boxes(*run), trace)["log_probability"] == trace.log_probability


def test_each_box_off_is_a_run_of_the_model(run) -> None:
    checkpoint, trace = run
    *_, found = switch_off_each(checkpoint, trace)
    stack = list(trace.streams)[-1]
    beside = trace.sublayers[-1].placement == "parallel"
    own = Need.OWN_LAYERS in checkpoint.features
    kinds = {"off": SublayerOff} | ({} if beside else {"residual": ResidualOff}) | ({"norm": NormOff} if own else {})
    for switch, change in kinds.items():
        after = checkpoint.rerun(trace, (change(stack, 1, "feed_forward"),))
        assert found[f"{stack}.1.feed_forward {switch}"] == after.log_probability
    switches = {
        f"{b.name} {s}" for b in model_boxes(*run) for s in b.switches() if b.part == b.sublayer or not b.sublayer
    }
    assert set(found) == switches


def test_a_norm_that_is_left_out_keeps_its_box_and_its_switch(run) -> None:
    checkpoint, trace = run
    stack = list(trace.streams)[-1]
    change = NormOff(stack, 1, "feed_forward")
    if Need.OWN_LAYERS not in checkpoint.features:
        with pytest.raises(ValueError, match="the norms of this model cannot be left out"):
            checkpoint.rerun(trace, (change,))
        assert not any("norm" in box.switches() for box in model_boxes(checkpoint, trace))
        return
    after = checkpoint.rerun(trace, (change,))
    before, boxes = model_boxes(checkpoint, trace), model_boxes(checkpoint, after)
    assert [(box.name, box.parameters, box.switches()) for box in boxes] == [
        (box.name, box.parameters, box.switches()) for box in before
    ]
    place = next(sub for sub in after.sublayers if (sub.stack, sub.layer, sub.name) == (stack, 1, "feed_forward"))
    assert place.norm is None
    assert np.array_equal(place.normed, place.before if place.placement == "pre" else place.added)
    left_out = [box.name for box in boxes if box.facts.get("norm") == "left out"]
    assert left_out == [f"{stack}.1.feed_forward.{'norm' if place.placement == 'pre' else 'add_norm'}"]
    assert all(check.passed for check in prove(checkpoint, after))
