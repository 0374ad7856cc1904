"""Masks: maps, sums and leaks are those of the chosen head, and what runs again is a run of the model."""

from collections.abc import Callable

import numpy as np
import pytest

from model.analysis.heads.mask_shape import mask_shape
from model.analysis.heads.softmax import future_mass
from model.analysis.runs.padded_batch import run_padded
from model.interventions import LiftCausalMask
from model.trace import KIND_TITLES
from pages.views.attention.masks import lift, masks, orders, padding
from tests.pages.figures import ends, lines, maps

SOFTMAX = 100 * float(np.finfo(np.float32).eps)
"""Relative error of a float32 softmax: scaled scores differ by less than 30, so each power is off by at most 30 eps, in
the numerator and in the sum; adding up less than 40 terms is off by less than 40 eps."""


@pytest.mark.parametrize("kind", KIND_TITLES)
def test_the_maps_are_the_tensors_of_the_chosen_head_and_the_mask_is_counted(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    result, mask, scaled = masks(run), run.attention.mask[2], run.attention.scaled[2]
    expected = scaled, np.where(mask, scaled, np.nan), np.where(mask, run.attention.pattern[2], np.nan)
    for drawn, values in zip(maps(result, "maps"), expected, strict=True):
        np.testing.assert_array_equal(drawn, values)
    assert result.facts["mask"] == mask_shape(mask, run.attention.causal, run.attention.crosses)


def test_the_padded_batch_is_the_models(run_at: Callable) -> None:
    run = run_at("cross")
    result, padded = padding(run, pads=2), run_padded(run.opened, run.trace, "cross", 0, 2)
    alone, beside = maps(result, "padding")
    assert np.array_equal(beside[:, :-2], padded.pattern[0][:, :-2])
    assert np.isnan(beside[:, -2:]).all()
    assert np.array_equal(alone, run.attention.pattern[0])
    assert result.facts["padded"].pad_weight == 0


@pytest.mark.parametrize("kind", KIND_TITLES)
def test_three_ways_of_masking_state_their_sums(run_at: Callable, kind: str) -> None:
    run = run_at(kind)
    result = orders(run)
    attention = run.attention if kind == "decoder_self" else run_padded(run.opened, run.trace, kind, 0, 4)
    row = result.values["row"]
    mask, scaled = attention.mask[0, row], attention.scaled[0, row].astype(np.float64)
    assert not mask.all()
    assert np.ptp(scaled) < 30
    powers = np.exp(scaled - scaled.max())
    before, after, renormalised = lines(result, "orders")
    assert before.sum() == pytest.approx(1, rel=SOFTMAX)
    assert after.sum() == pytest.approx(powers[mask].sum() / powers.sum(), rel=SOFTMAX)
    assert not after[~mask].any()
    assert renormalised == pytest.approx(before, rel=SOFTMAX)
    assert result.facts["sums"] == pytest.approx([before.sum(), after.sum(), renormalised.sum()])
    assert (result.facts["visible"], result.facts["keys"]) == (mask.sum(), len(mask))


@pytest.mark.parametrize(("place", "layer"), [("all", None), ("layer", 1)])
def test_lifting_the_mask_runs_the_model_again_with_the_same_target(
    run_at: Callable, place: str, layer: int | None
) -> None:
    result = lift(run_at("decoder_self", 1), place=place)
    plain, lifted = (run_at("decoder_self", 1, 0, *changes).trace for changes in ((), (LiftCausalMask(layer),)))
    right = [trace.target_probabilities for trace in (plain, lifted)]
    for drawn, expected in zip(ends(result, "lift"), right, strict=True):
        assert drawn == pytest.approx(expected)
    mass = future_mass(lifted.attention("decoder_self", 1).pattern)
    assert np.array_equal(maps(result, "leak")[0], mass)
    assert list(result.shows["rows"]["after"]) == pytest.approx(list(right[1]))
    assert result.facts["rose"] == (right[1] > right[0]).sum()
    assert result.facts["fell"] == (right[1] < right[0]).sum()
    assert (result.facts["masked"], result.facts["mass"].max()) == (0, mass.max())
    assert lift(run_at("cross")).facts == {"causal": False, "hidden": 0}


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 2)])
def test_the_switch_shows_the_weights_of_the_same_scores_without_the_mask(
    run_at: Callable, layer: int, head: int
) -> None:
    run = run_at("decoder_self", layer, head)
    own, without = masks(run), masks(run, without=True)
    scores, _, weights = maps(without, "maps")
    np.testing.assert_allclose(scores, maps(own, "maps")[0], atol=1e-5)
    powers = np.exp(scores)
    np.testing.assert_allclose(weights, powers / powers.sum(-1, keepdims=True), atol=1e-5)
    assert (own.facts["lifted"], without.facts["lifted"], without.facts["before"]) == (False, True, 0)
    assert without.facts["later"] == pytest.approx(np.triu(weights, 1).sum(-1), abs=1e-5)


def test_the_switch_is_offered_where_there_is_a_causal_mask_that_is_not_lifted(run_at: Callable) -> None:
    assert [list(masks.offers(run_at(kind))) for kind in KIND_TITLES] == [[], ["without"], []]
    assert not masks.offers(run_at("decoder_self", 0, 0, LiftCausalMask()))
