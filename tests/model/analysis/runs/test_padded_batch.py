"""A sentence in a padded batch, and the mask on either side of the softmax (claims 5 and 7)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.heads.softmax import future_mass, mask_orders
from model.analysis.runs.padded_batch import room_for_pads, run_padded
from model.interventions import AttentionTemperature, LiftCausalMask
from tests.model.by_hand import softmax
from tests.model.strategies import KINDS, Run, few, runs

SCORES = st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=9)


@few
@given(runs(changed=False), st.integers(1, 5), st.data())
def test_7_pads_get_exactly_nothing_and_change_nothing(run: Run, pads: int, data: st.DataObject) -> None:
    kind, layer = data.draw(st.sampled_from(list(run.trace.attentions)))
    lone = run.trace.attention(kind, layer)
    padded = run_padded(run.translator, run.trace, kind, layer, pads)
    own = len(lone.key_tokens)
    assert padded.pattern.shape == (lone.n_heads, len(lone.query_tokens), own + pads)
    assert padded.pad_weight == 0
    assert not padded.pattern[..., own:].any()
    assert not padded.mask[..., own:].any()
    assert np.array_equal(padded.mask[..., :own], lone.mask)
    assert np.isfinite(padded.scaled).all(), "pads have scores like any token: only the mask keeps them out"
    assert padded.difference == np.abs(padded.pattern[..., :own] - lone.pattern).max()
    assert padded.difference <= padded.largest_difference <= 5e-5
    assert padded.logits_difference <= 5e-5
    assert len(padded.companion) == len(run.trace.src_tokens) + pads


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_the_positions_cannot_hold_is_refused(translator, kind):
    trace = translator.trace("a dog")
    room = room_for_pads(translator, trace)
    assert run_padded(translator, trace, kind, 0, room).pads == room
    for pads in (0, room + 1):
        with pytest.raises(ValueError, match=f"can take 1 to {room} pads"):
            run_padded(translator, trace, kind, 0, pads)


def test_a_change_is_at_work_in_the_batch_too(translator, trace):
    cold = translator.rerun(trace, (AttentionTemperature(0.5),))
    assert run_padded(translator, cold, "cross", 1, 3).difference < 1e-5


@given(SCORES, st.floats(0.5, 4), st.data())
def test_renormalising_after_is_masking_before_and_zeroing_alone_is_not(
    scores: list[float], tau: float, data: st.DataObject
) -> None:
    scaled = np.array(scores)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    orders = mask_orders(scaled, mask, tau)
    free = softmax(scaled / tau)
    np.testing.assert_allclose(orders.after, np.where(mask, free, 0), atol=1e-12)
    np.testing.assert_allclose(orders.renormalised, orders.before, atol=1e-9)
    assert orders.before.sum() == pytest.approx(1.0 if mask.any() else 0.0)
    assert orders.after.sum() == pytest.approx(1 - free[~mask].sum())


def test_only_before_survives_hidden_scores_that_are_much_larger():
    scaled = np.array([0, 1, 300], dtype=np.float32)
    orders = mask_orders(scaled, np.array([True, True, False]))
    assert orders.before.sum() == pytest.approx(1)
    assert not orders.after.any()
    assert not orders.renormalised.any()


def test_the_future_is_what_stands_after_each_query(translator):
    plain = translator.trace("a dog", "Ein Hund mit einer Katze.")
    lifted = translator.trace("a dog", "Ein Hund mit einer Katze.", interventions=(LiftCausalMask(),))
    assert not future_mass(plain.attention("decoder_self", 1).pattern).any()
    pattern = lifted.attention("decoder_self", 1).pattern
    mass = future_mass(pattern)
    for head, query in np.ndindex(mass.shape):
        assert mass[head, query] == pytest.approx(pattern[head, query, query + 1 :].sum(), abs=1e-6)
    assert (mass[:, :-1] > 0).all()
    assert not mass[:, -1].any()
