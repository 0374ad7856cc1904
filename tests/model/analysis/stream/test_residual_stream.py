"""The residual stream in numbers: sums, norms, cosines and neurons are those of the run."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.stream.residual_stream import (
    INPUT,
    STACKS,
    cosines,
    layer_norm,
    mean_cosine,
    measure_stream,
    neurons,
    residual_stream,
    step_name,
)
from model.checkpoints.translator import Translator
from tests.model.tiny import random_model

SENTENCES = ("A", "a dog and a cat", "A dog runs. " * 9)
TARGET = "Ein Hund und eine Katze."


@pytest.fixture(params=["post", "pre"])
def of_norm(request, translator, tiny_config) -> Translator:
    """The tiny model with its norm after each sub-layer, as in the paper, or before it."""
    if request.param == "post":
        return translator
    return replace(translator, model=random_model(replace(tiny_config, norm="pre")))


@pytest.mark.parametrize("source", SENTENCES)
def test_each_sublayer_adds_its_output_and_hands_on_the_next_ones_input(of_norm, source: str) -> None:
    trace = of_norm.trace(source, TARGET)
    for stack in STACKS:
        x = residual_stream(trace, stack)
        for step, sublayer in enumerate(trace.streams[stack].sublayers):
            assert np.array_equal(sublayer.before, x[step])
            assert np.array_equal(sublayer.added, sublayer.before + sublayer.out)
            assert np.array_equal(sublayer.after, x[step + 1])


def test_the_layer_norm_by_hand_is_the_models(of_norm) -> None:
    trace = of_norm.trace("a dog and a cat", TARGET)
    for sublayer in trace.sublayers:
        for position in range(len(sublayer.out)):
            norm = layer_norm(sublayer, position)
            assert norm.normed == pytest.approx(sublayer.normed[position], abs=5e-6)
            plain = (norm.normed - norm.beta) / norm.gamma
            assert plain.mean() == pytest.approx(0, abs=1e-9)
            assert plain.std() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("source", SENTENCES)
def test_a_path_measures_the_tensors_of_the_trace(translator, source: str) -> None:
    trace = translator.trace(source, TARGET)
    for stack in STACKS:
        found, sublayers = measure_stream(trace, stack), trace.streams[stack].sublayers
        assert found.steps == (INPUT, *map(step_name, sublayers))
        assert np.isnan(found.out[:, 0]).all()
        assert found.to_start[:, 0] == pytest.approx(1)
        for step, s in enumerate(sublayers, start=1):
            x, out = np.linalg.norm(s.before, axis=-1), np.linalg.norm(s.out, axis=-1)
            assert found.norm[:, step] == pytest.approx(np.linalg.norm(s.after, axis=-1), rel=1e-5)
            assert found.added[:, step] == pytest.approx(np.linalg.norm(s.before + s.out, axis=-1), rel=1e-5)
            assert found.share[:, step] == pytest.approx(out / (x + out), rel=1e-5)
            turned = (s.before * s.after).sum(axis=-1) / x / np.linalg.norm(s.after, axis=-1)
            assert found.to_previous[:, step] == pytest.approx(turned, abs=1e-5)
        assert found.to_start[:, 1] == pytest.approx(found.to_previous[:, 1])


def test_a_vector_is_like_itself_and_a_vector_of_zeros_like_nothing() -> None:
    vectors = np.array([[3.0, 4.0], [-6.0, -8.0], [4.0, -3.0], [0.0, 0.0]])
    expected = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert cosines(vectors) == pytest.approx(np.array(expected))
    assert mean_cosine(vectors[:2]) == pytest.approx(-1)
    assert np.isnan(mean_cosine(vectors[:1]))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_neurons_and_the_bias_sum_to_what_the_feed_forward_adds(translator, tiny_config, activation) -> None:
    model = random_model(replace(tiny_config, activation=activation))
    translator = replace(translator, model=model)
    trace = translator.trace("a dog and a cat", TARGET)
    for sublayer in (s for s in trace.sublayers if s.hidden is not None):
        found = neurons(translator, sublayer, 2, most=tiny_config.d_ff)
        block = getattr(model, sublayer.stack).layers[sublayer.layer].feed_forward
        total = found.contributions.sum(axis=0) + block.w_2.bias.numpy()
        assert total == pytest.approx(sublayer.out[2], abs=1e-5)
        assert found.error < 1e-5
        assert set(found.top) == set(np.flatnonzero(sublayer.hidden[2])), "a neuron at 0 writes nothing"
        assert found.written[found.top] == pytest.approx(np.linalg.norm(found.contributions, axis=-1))
        assert (np.diff(found.written[found.top]) <= 0).all()
        assert found.logits == pytest.approx(found.contributions @ model.output.weight.numpy().T, abs=1e-5)


def test_only_a_feed_forward_has_neurons(translator) -> None:
    trace = translator.trace("a dog", TARGET)
    with pytest.raises(ValueError, match="not 0 self-attention of the encoder"):
        neurons(translator, trace.sublayers[0], 0)


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"tie_embeddings": False, "positions": "learned"}])
def test_blocks_hold_all_parameters_of_their_stacks(tiny_config, changes) -> None:
    model = random_model(replace(tiny_config, **changes))
    parts, blocks = model.parameters_by_part(), model.parameters_by_block()
    for stack in STACKS:
        last = sum(p.numel() for p in getattr(model, stack).final_norm.parameters())
        assert sum(sum(block.values()) for (of, _), block in blocks.items() if of == stack) + last == parts[stack]
    d, f = tiny_config.d_model, tiny_config.d_ff
    assert blocks["decoder", 1] == {
        "self_attn": 4 * (d * d + d),
        "cross_attn": 4 * (d * d + d),
        "feed_forward": 2 * d * f + d + f,
        "norms": 6 * d,
    }
