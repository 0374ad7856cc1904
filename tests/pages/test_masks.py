"""The page on masks without a browser: its figures are the run's tensors, its tabs hold at the extremes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.heads.softmax import future_mass
from model.analysis.runs.padded_batch import run_padded
from model.checkpoints.huggingface import open_model
from model.interventions import LiftCausalMask, MaskEdit
from model.run import Run
from model.trace import KIND_TITLES
from pages.views.attention.masks import lift, masks
from pages.views.standalone import texts_of
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/masks.py"
DECODER = KIND_TITLES["decoder_self"]
TEXT = "Ein Hund mit einer Katze."
SOFTMAX = 100 * float(np.finfo(np.float32).eps)
"""Relative error of a float32 softmax: scaled scores differ by less than 30, so each power is off by at most 30 eps, in
the numerator and in the sum; adding up less than 40 terms is off by less than 40 eps."""


def drawn(app, key: str) -> list[np.ndarray]:
    """The maps' numbers, without those that only explain masked cells."""
    return [numbers(heat["z"]) for heat in figure(app, key)["data"] if "masked" not in heat["hovertemplate"]]


@pytest.mark.parametrize(("kind", "name"), KIND_TITLES.items())
def test_the_maps_are_the_tensors_of_the_chosen_head(
    open_app: Callable, translator: "Translator", kind: str, name: str
) -> None:
    app = open_app(PAGE, source="a dog and a cat", target="Typed", typed=TEXT, kind=name, layer="1", head="2")
    assert not app.exception
    attention = translator.trace("a dog and a cat", TEXT).attention(kind, 1)
    mask, scaled, pattern = attention.mask[2], attention.scaled[2], attention.pattern[2]
    before, after, weights = drawn(app, "masks-maps")
    assert np.array_equal(before, scaled)
    assert np.array_equal(after, np.where(mask, scaled, np.nan), equal_nan=True)
    assert np.array_equal(weights, np.where(mask, pattern, np.nan), equal_nan=True)
    assert f"**{(~mask).sum()} of {mask.size} cells**" in words(app)
    assert ("has no causal mask" in words(app)) == (kind != "decoder_self")


def test_the_padded_batch_is_the_models(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source="a dog and a cat", target="Typed", typed=TEXT, kind="Cross-attention", part="Padding")
    app.number_input(key="pads").set_value(2).run()
    padded = run_padded(translator, translator.trace("a dog and a cat", TEXT), "cross", 0, 2)
    alone, beside = drawn(app, "masks-padding")
    assert np.array_equal(beside[:, :-2], padded.pattern[0][:, :-2])
    assert np.isnan(beside[:, -2:]).all()
    assert alone.shape == (beside.shape[0], beside.shape[1] - 2)
    assert "**exactly 0**" in words(app)


@pytest.mark.parametrize(("kind", "name"), KIND_TITLES.items())
def test_three_ways_of_masking_state_their_sums(
    open_app: Callable, translator: "Translator", kind: str, name: str
) -> None:
    app = open_app(
        PAGE, source="a dog and a cat", target="Typed", typed=TEXT, kind=name, part="Before or after the softmax"
    )
    assert not app.exception
    before, after, renormalised = (numbers(bar["y"]) for bar in figure(app, "masks-orders")["data"])
    trace = translator.trace("a dog and a cat", TEXT)
    attention = trace.attention(kind, 0) if kind == "decoder_self" else run_padded(translator, trace, kind, 0, 4)
    row = app.number_input(key="query").value
    mask, scaled = attention.mask[0, row], attention.scaled[0, row].astype(np.float64)
    assert not mask.all()
    assert np.ptp(scaled) < 30
    powers = np.exp(scaled - scaled.max())
    assert before.sum() == pytest.approx(1, rel=SOFTMAX)
    assert after.sum() == pytest.approx(powers[mask].sum() / powers.sum(), rel=SOFTMAX)
    assert not after[~mask].any()
    assert renormalised == pytest.approx(before, rel=SOFTMAX)
    assert f"**{after.sum():.7g}** zeroed after" in words(app)


def test_lifting_the_mask_runs_the_model_again_with_the_same_target(
    open_app: Callable, translator: "Translator"
) -> None:
    app = open_app(
        PAGE, source="a dog and a cat", target="Typed", typed=TEXT, kind=DECODER, layer="1", part="Lift the causal mask"
    )
    assert not app.exception
    plain = translator.trace("a dog and a cat", TEXT)
    for place, layer in (("all", None), ("layer", 1)):
        app.segmented_control(key="lift").set_value(place).run()
        lifted = translator.trace("a dog and a cat", TEXT, interventions=(LiftCausalMask(layer),))
        right = [t.target_probabilities for t in (plain, lifted)]
        before, after, difference = (numbers(bar["y"]) for bar in figure(app, "masks-lift")["data"])
        assert before == pytest.approx(right[0])
        assert after == pytest.approx(right[1])
        assert difference == pytest.approx(right[1] - right[0])
        mass = future_mass(lifted.attention("decoder_self", 1).pattern)
        assert np.array_equal(numbers(figure(app, "masks-leak")["data"][0]["z"]), mass)
        assert list(app.dataframe[0].value["after"]) == pytest.approx(list(right[1]))
    assert "Rerun" in words(app)


def caption(trace, kind: str, layer: int = 0, view=masks) -> str:
    """The page's first sentences about a head's mask."""
    return texts_of(view(Run.of(None, trace, kind, layer)).blocks)[0]


@pytest.mark.parametrize("name", ["ModernBERT", "BERT", "Gemma 2", "Mistral"])
def test_the_caption_is_of_the_runs_mask_whether_or_not_a_window_hides_keys(name: str, tmp_path: Path) -> None:
    trace = open_model(save_family(tmp_path / name, name)).trace("Two dogs run and a cat sleeps in the snow.")
    (kind,) = trace.kinds
    for layer in kind.layers:
        mask = trace.attention(kind.name, layer).mask[0]
        text = caption(trace, kind.name, layer)
        distance = np.abs(np.subtract.outer(*[np.arange(len(mask))] * 2))
        hidden = int((~mask).sum())
        farthest = int(distance[mask].max())
        assert f"**{hidden} of {mask.size} cells**" in text
        assert ("no cell is masked" in text) == (hidden == 0)
        assert ("The causal mask hides" in text) == kind.causal
        assert ("positions away, a sliding window" in text) == (farthest < len(mask) - 1)
        if farthest < len(mask) - 1:
            assert f"at most {farthest} positions away" in text
    if name == "ModernBERT":
        assert {bool(trace.attention(kind.name, layer).mask.all()) for layer in kind.layers} == {True, False}


def test_the_caption_says_that_a_change_masks_or_opens_cells(translator: "Translator") -> None:
    def trace(change):
        return translator.trace("a dog and a cat", TEXT, interventions=(change,))

    forbidden = trace(MaskEdit(forbid=((0, 1), (2, 0)), kind="encoder_self"))
    assert "2 cells are masked by a pattern of this model or by a change in this run" in caption(
        forbidden, "encoder_self"
    )
    assert "no cell is masked" in caption(forbidden, "cross")
    crossed = trace(MaskEdit(forbid=((0, 1),), kind="cross"))
    assert "1 cell is masked by" in caption(crossed, "cross")
    opened = trace(MaskEdit(allow=((0, 1),), kind="decoder_self"))
    assert "opens some of these cells" in caption(opened, "decoder_self")
    lifted = caption(trace(LiftCausalMask(0)), "decoder_self")
    assert "A change in this run lifts it" in lifted
    assert "**0 of " in lifted


def test_a_windowed_encoder_is_not_said_to_attend_to_every_key(tmp_path: Path) -> None:
    trace = open_model(save_family(tmp_path / "model", "ModernBERT")).trace(
        "Two dogs run and a cat sleeps in the snow."
    )
    for layer in trace.kinds[0].layers:
        every = bool(trace.attention("encoder_self", layer).mask.all())
        assert ("may attend to all of them" in caption(trace, "encoder_self", layer, lift)) == every


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 2)])
def test_the_switch_shows_the_weights_of_the_same_scores_without_the_mask(
    translator: "Translator", layer: int, head: int
) -> None:
    trace = translator.trace("a dog and a cat", TEXT)
    run = Run.of(translator, trace, "decoder_self", layer, head)
    with_mask, without = masks(run), masks(run, without=True)
    own, open_maps = ([one.values for one in result.shows["maps"].maps.values()] for result in (with_mask, without))
    np.testing.assert_allclose(open_maps[0], own[0], atol=1e-5)
    powers = np.exp(own[0].astype(np.float64))
    np.testing.assert_allclose(open_maps[2], powers / powers.sum(-1, keepdims=True), atol=1e-5)
    assert not np.triu(own[2], 1).any()
    assert np.triu(open_maps[2], 1).any()
    text = " ".join(texts_of(without.blocks))
    assert f"{np.triu(open_maps[2], 1).sum(-1).mean():.1%}" in text
    assert "Rerun" not in " ".join(texts_of(with_mask.blocks))


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_the_switch_is_offered_where_there_is_a_causal_mask_alone(translator: "Translator", kind: str) -> None:
    trace = translator.trace("a dog and a cat", TEXT)
    assert not masks.offers(Run.of(translator, trace, kind))
    assert list(masks.offers(Run.of(translator, trace, "decoder_self"))) == ["without"]
    lifted = translator.trace("a dog and a cat", TEXT, interventions=(LiftCausalMask(),))
    assert not masks.offers(Run.of(translator, lifted, "decoder_self")), "what is lifted cannot be lifted again"
