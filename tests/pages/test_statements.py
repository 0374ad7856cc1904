"""Sentences on screen that state something about a run hold on both shipped checkpoints."""

import numpy as np
import pytest

from model.analysis.distributions import total_variation
from model.analysis.heads.softmax import softmax_at, uniform_weights
from model.analysis.stream.residual_stream import STACKS, measure_stream
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from tests.pages.frame.test_examples import BY_CHECKPOINT, SHIPPED


@pytest.fixture(scope="module", params=BY_CHECKPOINT)
def shipped(request: pytest.FixtureRequest) -> Translator:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
        return load_checkpoint(request.param, "cpu")


def examples(translator: Translator) -> list[str]:
    return [example.sentence for example in BY_CHECKPOINT[translator.name].showing][:4]


def test_without_the_division_the_largest_weights_are_far_larger(shipped: Translator) -> None:
    scaled, undivided = [], []
    for sentence in examples(shipped):
        for attention in shipped.trace(sentence, beam_size=1).attentions.values():
            rows = attention.mask.sum(axis=-1) > 1
            scaled.append(attention.pattern.max(axis=-1)[rows])
            undivided.append(softmax_at(attention.scores, attention.mask, 1.0).max(axis=-1)[rows])
    assert np.concatenate(undivided).mean() > np.concatenate(scaled).mean() + 0.2


def test_on_the_whole_the_stream_drifts_away_from_the_input(shipped: Translator) -> None:
    for sentence in examples(shipped):
        trace = shipped.trace(sentence, beam_size=1)
        for stack in STACKS:
            cosine = measure_stream(trace, stack).to_start
            assert (cosine[:, -1] < cosine[:, 1]).mean() > 0.8
            assert (np.diff(cosine, axis=1) > 0).mean() < 0.3


def test_before_training_cross_attention_is_nearly_even_and_layer_0_least(
    shipped: Translator,
) -> None:
    steps = snapshot_steps(SHIPPED / shipped.name)
    if not steps:
        pytest.skip("ships no snapshots: the sentence is not shown")
    for sentence in examples(shipped):
        target = shipped.trace(sentence, beam_size=1).translation
        trace = open_snapshot(shipped, min(steps)).trace(sentence, target=target)
        uneven = {
            address: total_variation(attention.pattern, uniform_weights(attention.mask)).mean()
            for address, attention in trace.attentions.items()
        }
        kinds = {kind: [uneven[k, layer] for k, layer in uneven if k == kind] for kind, _ in uneven}
        assert min(steps) == 0
        assert max(kinds["cross"]) < 0.2
        for kind in ("encoder_self", "decoder_self"):
            assert kinds[kind][0] == max(kinds[kind]) > 1.5 * max(kinds["cross"])
