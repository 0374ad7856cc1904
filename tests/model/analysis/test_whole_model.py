"""The boxes of figure 1: every number is computed again from the Trace, in each family."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.whole_model import Box, box_arrays, model_boxes, switch_off_each
from model.background.sizes import multiply_adds
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.tokenizer import train_tokenizer
from model.interventions import ResidualOff, SublayerOff
from model.trace import Trace
from tests.model.checkpoints.test_language_model import MODERN, opened
from tests.model.tiny import SENTENCES, random_model

TEXT = "a dog and a cat"
FAMILIES = ("encoder_decoder", "decoder", "encoder")


@pytest.fixture(scope="module", params=FAMILIES)
def run(request, translator) -> tuple[Checkpoint, Trace]:
    if request.param == "encoder_decoder":
        return translator, translator.trace(TEXT, "Ein Hund mit einer Katze.")
    if request.param == "decoder":
        model = opened(translator.tokenizer)
        return model, model.trace(TEXT)
    tokenizer = train_tokenizer([source for source, _ in SENTENCES], 312, masked=True)
    config = replace(MODERN, vocab_size=312, n_encoder_layers=2, n_decoder_layers=0)
    model = MaskedModel("random", "0" * 64, random_model(config), tokenizer)
    return model, model.trace(TEXT)


def length(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt((vectors.astype(float) ** 2).sum(-1))


def by_name(run: tuple[Checkpoint, Trace]) -> dict[str, Box]:
    return {box.name: box for box in model_boxes(*run)}


def test_every_sublayer_has_the_lengths_and_shares_of_the_trace(run) -> None:
    boxes = by_name(run)
    for sublayer in run[1].sublayers:
        name = f"{sublayer.stack}.{sublayer.layer}.{sublayer.name}"
        box, pre = boxes[name], sublayer.placement == "pre"
        before, out = length(sublayer.before), length(sublayer.out)
        np.testing.assert_allclose(box.values["in"], length(sublayer.normed) if pre else before)
        np.testing.assert_allclose(box.values["out"], out)
        np.testing.assert_allclose(box.values["share"], out / (before + out))
        total = boxes[f"{name}.{'add' if pre else 'add_norm'}"]
        np.testing.assert_allclose(total.values["residual"], before)
        np.testing.assert_allclose(total.values["out"], length(sublayer.after))
        assert (f"{name}.norm" in boxes) == pre


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
    assert sum(box.parameters for box in boxes if not box.shared) == sum(checkpoint.parameters_by_part().values())
    lengths = [len(trace.streams[name].tokens) if name in trace.streams else 0 for name in ("encoder", "decoder")]
    work = multiply_adds(checkpoint.config, *lengths)
    assert sum(box.multiply_adds for box in boxes) == sum(part.total for part in work.values())
    shapes = {name: shape for box in boxes for name, shape in box.matrices.items()}
    config = checkpoint.config
    assert shapes["W_2"] == (config.d_ff, config.d_model)
    assert shapes["W_U"] == (config.d_model, config.vocab_size)
    assert shapes["E"] == (config.vocab_size, config.d_model)


def test_input_and_output_are_the_traces(run) -> None:
    boxes, trace = by_name(run), run[1]
    for name, stream in trace.streams.items():
        first = boxes.get(f"{name}.positions", boxes[f"{name}.embedding"])
        np.testing.assert_allclose(first.values["out"], length(stream.embedded.sum))
    softmax = boxes[f"{list(trace.streams)[-1]}.softmax"]
    np.testing.assert_allclose(softmax.values["text"], trace.target_probabilities)
    np.testing.assert_allclose(softmax.values["out"], trace.probabilities.max(-1))
    assert box_arrays(*run)["log_probability"] == trace.log_probability


def test_each_box_off_is_a_run_of_the_model(run) -> None:
    checkpoint, trace = run
    *_, found = switch_off_each(checkpoint, trace)
    stack = list(trace.streams)[-1]
    for switch, change in {"off": SublayerOff, "residual": ResidualOff}.items():
        after = checkpoint.rerun(trace, (change(stack, 1, "feed_forward"),))
        assert found[f"{stack}.1.feed_forward {switch}"] == after.log_probability
    switches = {f"{b.name} {s}" for b in model_boxes(*run) for s in b.switches() if not b.part.startswith("add")}
    assert set(found) == switches
