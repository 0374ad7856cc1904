"""How sharply heads attend: on weights whose entropy is known, and on every checkpoint that comes with the app."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.sharpness import EVEN, ON_ONE_KEY, mean_sharpness, measure_sharpness
from model.checkpoints.store import available_checkpoints, load_checkpoint

SENTENCES = (
    "The old man who lived next door gave the children an apple.",
    "I have never seen such a beautiful sunset in my life.",
    "If it rains tomorrow, we will stay at home and read a book.",
    "A boy in a red shirt throws a ball to his dog.",
)
"""of nobody's training text but for chance"""


@pytest.fixture
def trace(translator):
    return translator.trace("A dog runs.", "Ein Hund läuft.")


def with_weights(trace, weights):
    """The trace with the same row of weights everywhere in its encoder, whose rows see all keys."""
    keys = trace.attention("encoder_self", 0).pattern.shape[-1]
    row = np.resize(np.asarray(weights(keys), np.float32), keys)
    attentions = {
        place: replace(attention, pattern=np.broadcast_to(row, attention.pattern.shape).copy())
        for place, attention in trace.attentions.items()
        if place[0] == "encoder_self"
    }
    return replace(
        trace, attentions=attentions, kinds=tuple(kind for kind in trace.kinds if kind.name == "encoder_self")
    )


def test_equal_weights_are_even_and_a_single_key_is_not(trace):
    for weights, even, one in ((lambda n: np.full(n, 1 / n), 1.0, 0.0), (lambda n: np.eye(n)[0], 0.0, 1.0)):
        measured = mean_sharpness(measure_sharpness([with_weights(trace, weights)]))
        assert measured[:2] == pytest.approx((even, one), abs=1e-6)


def test_rows_with_fewer_than_three_keys_are_not_counted(translator):
    """The first two rows of a decoder have no choice, or one of two keys."""
    trace = translator.trace("A dog runs.", "Ein Hund läuft.")
    attention = trace.attention("decoder_self", 0)
    even = [
        -(row[: t + 1] * np.log(np.maximum(row[: t + 1], 1e-300))).sum() / np.log(t + 1)
        for t, row in enumerate(attention.pattern[0].astype(float))
        if t >= 2
    ]
    place = next(each for each in measure_sharpness([trace]) if (each.kind, each.layer) == ("decoder_self", 0))
    assert place.evenness[0] == pytest.approx(np.mean(even))
    assert place.largest[0] == pytest.approx(np.abs(attention.scaled[0][attention.mask[0]]).max())


def test_a_row_counts_once_however_long_its_sentence_is(translator):
    traces = [translator.trace(text, text) for text in ("A dog runs.", "A dog runs and a dog runs and a dog runs.")]
    whole, parts = measure_sharpness(traces), [measure_sharpness([each]) for each in traces]
    rows = [len(each.attention("encoder_self", 0).pattern[0]) for each in traces]
    assert whole[0].evenness == pytest.approx(
        sum(n * part[0].evenness for n, part in zip(rows, parts, strict=True)) / sum(rows)
    )
    assert whole[0].largest == pytest.approx(np.max([part[0].largest for part in parts], axis=0))


@pytest.mark.parametrize("name", available_checkpoints())
def test_the_heads_of_each_shipped_checkpoint_can_be_read(name):
    opened = load_checkpoint(name, device="cpu")
    even, on_one_key, _ = mean_sharpness(measure_sharpness(opened.trace(text) for text in SENTENCES))
    assert even >= EVEN
    assert on_one_key <= ON_ONE_KEY
