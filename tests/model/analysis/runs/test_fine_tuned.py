"""Fine-tuning a copy raises log p of its text and leaves the model of all visitors as it was."""

import numpy as np
import pytest
import torch

from model.analysis.runs.fine_tuned import fine_tune


def test_a_copy_learns_its_text_and_the_opened_model_stays_bit_for_bit(translator) -> None:
    before = [weight.clone() for weight in translator.model.parameters()]
    trace, *others = (translator.trace(text, beam_size=1) for text in ("a dog", "a cat", "two dogs and a cat"))
    *_, last = fine_tune(translator, trace, others, steps=4)
    assert last.own.shape == (5,)
    assert last.others.shape == (5, 2)
    assert last.own[0] == pytest.approx(trace.log_probability / len(trace.next_ids), rel=1e-5)
    assert last.own[-1] > last.own[0]
    assert not np.array_equal(last.others[0], last.others[-1])
    assert all(torch.equal(old, new) for old, new in zip(before, translator.model.parameters(), strict=True))
    assert np.array_equal(translator.rerun(trace, ()).logits, trace.logits)
    assert not any(weight.grad is not None for weight in translator.model.parameters())
