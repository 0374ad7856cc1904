"""How sharply heads attend: as their rows say, and on every checkpoint that comes with the app."""

import numpy as np
import pytest

from model.analysis.heads.sharpness import EVEN, ON_ONE_KEY, ONE_KEY, mean_sharpness, measure_sharpness
from model.checkpoints.store import available_checkpoints, load_checkpoint
from model.interventions import AttentionTemperature

SENTENCES = (
    "The old man who lived next door gave the children an apple.",
    "I have never seen such a beautiful sunset in my life.",
    "If it rains tomorrow, we will stay at home and read a book.",
    "A boy in a red shirt throws a ball to his dog.",
)
"""of nobody's training text but for chance"""


def rows_with_a_choice(attention, head):
    """The weights of each row that may attend to three keys or more, on those keys."""
    rows = zip(attention.pattern[head].astype(float), attention.mask[head], strict=True)
    return [weights[mask] for weights, mask in rows if mask.sum() >= 3]


def test_a_head_is_as_sharp_as_its_rows_which_count_once_however_long_their_sentences_are(translator):
    cold = (AttentionTemperature(0.2),)  # so that some rows lie on one key
    traces = [
        translator.trace("A dog runs.", "A cat."),
        translator.trace("A dog " * 9, "A cat " * 9, interventions=cold),
    ]
    places = measure_sharpness(traces)
    for place in places:
        attentions = [trace.attention(place.kind, place.layer) for trace in traces]
        for head in range(4):
            rows = [row for attention in attentions for row in rows_with_a_choice(attention, head)]
            even = [-(row * np.log(np.maximum(row, 1e-300))).sum() / np.log(len(row)) for row in rows]
            assert place.evenness[head] == pytest.approx(np.mean(even))
            assert place.on_one_key[head] == pytest.approx(np.mean([row.max() > ONE_KEY for row in rows]))
            scores = [np.abs(attention.scaled[head][attention.mask[head]]).max() for attention in attentions]
            assert place.largest[head] == pytest.approx(max(scores))
    means = (np.mean([getattr(place, name) for place in places]) for name in ("evenness", "on_one_key"))
    assert mean_sharpness(places) == pytest.approx((*means, max(place.largest.max() for place in places)))
    assert 0 < mean_sharpness(places)[1] < 1


@pytest.mark.parametrize("name", available_checkpoints())
def test_the_heads_of_each_shipped_checkpoint_can_be_read(name):
    opened = load_checkpoint(name, device="cpu")
    even, on_one_key, _ = mean_sharpness(measure_sharpness(opened.trace(text) for text in SENTENCES))
    assert even >= EVEN
    assert on_one_key <= ON_ONE_KEY
