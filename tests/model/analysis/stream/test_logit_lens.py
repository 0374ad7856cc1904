"""The logit lens: its last line is the model, and its lists are those of the whole vocabulary."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.stream.logit_lens import logit_lens
from model.analysis.stream.residual_stream import residual_stream
from model.interventions import AttentionTemperature
from tests.model.tiny import random_model

TARGET = "Ein Hund und eine Katze."


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"tie_embeddings": False, "positions": "learned"}])
@pytest.mark.parametrize("source", ["A", "a dog and a cat", "A dog runs. " * 9])
def test_the_last_step_is_the_models_logits_bit_for_bit(translator, tiny_config, changes, source) -> None:
    model = random_model(replace(tiny_config, **changes))
    translator = replace(translator, model=model)
    trace = translator.trace(source, TARGET, interventions=(AttentionTemperature(0.5),))
    assert np.array_equal(translator.read_logits(residual_stream(trace, "decoder")[-1]), trace.logits)
    found = logit_lens(translator, trace)
    assert found.difference == 0
    assert (found.rank[-1] == 1).all()
    assert np.array_equal(found.predicted, trace.logits.argmax(axis=-1))
    assert found.probability[-1] == pytest.approx(trace.probabilities.max(axis=-1))


def test_every_step_lists_the_most_probable_tokens_of_the_whole_vocabulary(translator) -> None:
    trace = translator.trace("a dog and a cat", TARGET)
    found = logit_lens(translator, trace, most=4)
    weight = translator.model.output.weight.numpy().astype(np.float64)
    assert len(found.steps) == len(found.ends) == 1 + 3 * translator.model.config.n_decoder_layers
    assert [step for step, end in zip(found.steps, found.ends, strict=True) if end] == [
        "input",
        "0 feed-forward",
        "1 feed-forward",
    ]
    for step, x in enumerate(residual_stream(trace, "decoder")):
        powers = np.exp(x @ weight.T)
        expected = powers / powers.sum(axis=-1, keepdims=True)
        own = expected[np.arange(len(x)), found.predicted]
        assert found.probability[step] == pytest.approx(own, rel=1e-4)
        assert found.probabilities[step] == pytest.approx(-np.sort(-expected)[:, :4], rel=1e-4)
        assert np.take_along_axis(expected, found.top[step], -1) == pytest.approx(found.probabilities[step], rel=1e-4)
        assert np.array_equal(found.rank[step], 1 + (expected > own[:, None] * (1 + 1e-9)).sum(axis=-1))
