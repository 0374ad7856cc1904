"""The head that the home page opens with: the rule on hand-made weights, and on both shipped checkpoints."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.aligned_head import alignment_scores, best_aligned_head
from model.checkpoints.store import load_checkpoint
from model.trace import Trace


def with_last_cross(trace: Trace, patterns: list[np.ndarray]) -> Trace:
    """The run with these weights in the first heads of its last cross-attention, and uniform ones in the others."""
    attention = trace.attention("cross", 1)
    pattern = np.full_like(attention.pattern, 1 / len(trace.src_tokens))
    pattern[: len(patterns)] = patterns
    return replace(trace, attentions={**trace.attentions, ("cross", 1): replace(attention, pattern=pattern)})


def test_a_diagonal_beats_a_sharp_column_a_sink_and_equal_weights(translator) -> None:
    trace = translator.trace("a dog and a cat", target="Ein Hund und eine Katze.")
    queries, keys = len(trace.tgt_tokens), len(trace.src_tokens)
    diagonal, column, sink = (np.zeros((queries, keys)) for _ in range(3))
    diagonal[np.arange(queries), np.linspace(0, keys - 1, queries).round().astype(int)] = 1
    column[:, 1] = 1
    sink[:, -1] = 1
    changed = with_last_cross(trace, [column, sink, diagonal])
    scores = alignment_scores(changed, 1)
    assert best_aligned_head(changed) == (1, 2)
    assert scores[2] > scores[0] > scores[1] == 0
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize(
    ("checkpoint", "sentence"),
    [("en-de", "The bank is closed today, but the shop is open."), ("multi30k-tiny", "Two young men are cooking.")],
)
def test_the_best_aligned_head_of_a_shipped_checkpoint_aligns(checkpoint: str, sentence: str) -> None:
    trace = load_checkpoint(checkpoint).trace(sentence)
    layer, head = best_aligned_head(trace)
    assert layer == max(number for kind, number in trace.attentions if kind == "cross")
    scores = alignment_scores(trace, layer)
    assert head == scores.argmax()
    pattern = trace.attention("cross", layer).pattern
    words = ~np.array(trace.streams["encoder"].tokens.special)
    looked_at = {
        int(row[words].argmax()) for row in pattern[head][~np.array(trace.streams["decoder"].predicts.special)]
    }
    assert len(looked_at) >= 0.6 * words.sum(), "it reads most of the sentence, not one word of it"
    assert scores[head] > alignment_scores(trace, layer).mean()
    assert scores[head] > 0.5
