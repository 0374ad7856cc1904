"""One word in two sentences: the parts sum to how far its vectors are apart, and a part that is alike adds nothing."""

import numpy as np
import pytest

from model.analysis.runs.one_word import apart_by_part, cosine, mean_cosine, stream_steps
from model.analysis.written import head_of_part
from model.interventions import HeadGate
from tests.model.analysis.written.test_written import traced
from tests.model.strategies import FAMILIES, shaped


@pytest.mark.parametrize("name", ["post", "pre", "pre, RMSNorm, RoPE, wide shared keys"])
@pytest.mark.parametrize("family", FAMILIES)
def test_parts_sum_to_one_minus_the_cosine_of_the_last_step(name: str, family: str) -> None:
    opened = shaped(name, family)
    trace, other = traced(opened), opened.trace("a cat and a dog")
    stack = next(iter(trace.streams))
    for here, there in ((1, 1), (2, 4)):
        parts = apart_by_part(trace, other, stack, here, there)
        one, two = (stream_steps(run, stack)[-1].vectors[row] for run, row in ((trace, here), (other, there)))
        assert sum(parts.values()) == pytest.approx(1 - cosine(one, two), abs=1e-5)
        heads = [attention.n_heads for (kind, _), attention in trace.attentions.items() if kind == f"{stack}_self"]
        assert sum(head_of_part(part) is not None for part in parts) == sum(heads)


def test_the_same_word_in_the_same_sentence_is_not_apart() -> None:
    opened = shaped("post", "masked")
    trace = traced(opened)
    assert max(map(abs, apart_by_part(trace, opened.trace(trace.source), "encoder", 2, 2).values())) < 1e-12
    for step in stream_steps(trace, "encoder"):
        assert cosine(step.vectors[2], step.vectors[2]) == pytest.approx(1)


def test_heads_that_are_off_in_both_runs_add_nothing() -> None:
    opened = shaped("pre", "masked")
    off = (HeadGate(0.0, "encoder_self", 1, 2),)
    trace, other = (opened.trace(text, interventions=off) for text in ("a dog and a cat", "a cat and a dog"))
    parts = apart_by_part(trace, other, "encoder", 2, 4)
    assert parts["encoder_self 1.2"] == pytest.approx(0, abs=1e-12)
    assert abs(parts["encoder_self 1.1"]) > 1e-6


def test_the_mean_cosine_is_over_each_two_positions() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    pairs = [cosine(vectors[i], vectors[j]) for i in range(3) for j in range(i)]
    assert mean_cosine(vectors) == pytest.approx(np.mean(pairs))
    assert mean_cosine(vectors[:1]) == 1
