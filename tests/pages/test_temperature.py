"""Softmax and temperature: what is drawn are the run's tensors and runs of the model, with other changes kept."""

import math
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from model.analysis.distributions import entropy
from model.analysis.heads.sharpness import ONE_KEY, measure_sharpness
from model.analysis.heads.softmax import (
    entropy_by_temperature,
    mean_entropy,
    one_hot_weights,
    product_statistics,
    softmax_at,
    uniform_weights,
)
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature, HeadGate
from model.run import Place, Request, Run
from pages.views.attention.temperature import before_and_after, divided, live, many, one_row
from tests.pages.conftest import SOURCE, TEXT, TYPED
from tests.pages.figures import ends, lines, maps
from tests.viz.payload import decode
from viz.forms import Canvas

PAGE = "pages/temperature.py"


def test_the_picture_gets_the_scores_of_the_run_and_says_its_temperature(run_at: Callable) -> None:
    run = run_at("decoder_self", 1, 2, AttentionTemperature(0.3, kind="decoder_self", layer=1))
    header, found = decode(next(shown.drawing for shown in live(run).shows.values() if isinstance(shown, Canvas)))
    attention = run.attention
    assert header["temperature"] == pytest.approx(float(attention.temperature[2]))
    assert np.array_equal(found["weights"]["values"], attention.pattern[2])
    assert np.array_equal(found["masked"]["values"], np.where(attention.mask[2], attention.scaled[2], -np.inf))


@pytest.mark.parametrize("tau", [1.0, 0.8])
def test_one_row_is_a_ridge_at_every_temperature_and_at_the_limits_that_of_the_run_in_bold(
    run_at: Callable, tau: float
) -> None:
    changes = () if tau == 1 else (AttentionTemperature(tau, kind="decoder_self", layer=1, head=1),)
    run = run_at("decoder_self", 1, 1, *changes)
    result, scaled, mask = one_row(run, row=3), run.attention.scaled[1], run.attention.mask[1]
    ridges = result.shows["row-panels"]
    first, *middle, last = ridges.rows.items()
    assert (first[0], last[0], ridges.bold) == ("τ → 0", "τ → ∞", f"τ = {tau:g}")
    expected = {name: softmax_at(scaled[3], mask[3], float(name.removeprefix("τ = "))) for name, _ in middle}
    expected |= {first[0]: one_hot_weights(scaled[3], mask[3]), last[0]: uniform_weights(mask[3])}
    for name, weights in ridges.rows.items():
        assert weights == pytest.approx(np.where(mask[3], expected[name], np.nan), nan_ok=True)
    assert ridges.rows[ridges.bold][mask[3]] == pytest.approx(run.attention.pattern[1, 3][mask[3]], abs=1e-6)
    row, head = lines(result, "entropy")
    curves = entropy_by_temperature(scaled, mask, np.logspace(-2, 2, 81))
    assert row == pytest.approx(curves[:, 3])
    assert head == pytest.approx(curves.mean(axis=1))


def test_without_the_division_the_model_runs_again(run_at: Callable) -> None:
    result, old = divided(run_at("cross", 1, 3)), run_at("cross", 1).attention
    other = run_at("cross", 1, 0, AttentionTemperature(1 / math.sqrt(old.d_k)))
    with_it, drawn, again = maps(result, "undivided")
    assert np.array_equal(with_it, old.pattern[3])
    assert drawn == pytest.approx(softmax_at(old.scores[3], old.mask[3], 1), abs=1e-6)
    assert np.array_equal(again, other.attention.pattern[3])
    statistics = [product_statistics(old, head) for head in range(4)]
    assert lines(result, "variances")[0] == pytest.approx([one.variance for one in statistics])
    assert lines(result, "probabilities")[-1] == pytest.approx(other.trace.target_probabilities)


@pytest.mark.usefixtures("fresh_caches")
def test_many_temperatures_are_written_at_when_asked_for(
    open_app: Callable, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A model that is far too cold or hot seldom ends a text by itself.
    monkeypatch.setattr("model.generation.steps.EXTRA_LENGTH", 5)
    app = open_app(PAGE, **TYPED, scope="Everywhere", part="Many temperatures")
    assert not app.dataframe
    app.button(key="temperature-run-many").click().run()
    table = app.dataframe[0].value
    for line, tau in ((0, 0.05), (4, 1.0), (8, 20.0)):
        changes = () if tau == 1 else (AttentionTemperature(tau),)
        trace = translator.trace(SOURCE, TEXT, interventions=changes)
        assert table["τ"][line] == f"{tau:g}"
        assert table["output"][line] == translator.translate([SOURCE], 4, interventions=changes)[0]
        assert table["ln probability of the plain output"][line] == pytest.approx(trace.log_probability)
        assert table["mean entropy, all heads (bits)"][line] == pytest.approx(mean_entropy(trace))
        here = entropy(trace.attention("encoder_self", 0).pattern[0]).mean()
        assert table["mean entropy, this head (bits)"][line] == pytest.approx(here)
    app.text_area(key="source").set_value("a cat").run()
    assert not app.dataframe


@pytest.mark.parametrize("scope", ["head", "layer", "everywhere"])
@pytest.mark.parametrize("changed", [False, True])
def test_before_is_the_same_run_at_tau_1_with_the_other_changes(
    translator: Translator, run_at: Callable, scope: str, changed: bool
) -> None:
    place = Place("cross", 1, 2)
    kept = (HeadGate(0.0, kind="encoder_self", layer=0, head=1),) if changed else ()
    changes = (AttentionTemperature(0.3, **place.address(scope)), *kept)
    result = before_and_after(Run.start(translator, Request(SOURCE, TEXT, interventions=changes), place, 0.3, scope))
    before, after = (run_at("cross", 0, 0, *found).trace for found in (kept, changes))
    points = ends(result, "probabilities")
    for drawn, name, trace in ((points[0], "before", before), (points[1], "after", after)):
        assert result.arrays()[f"log_probability_{name}"] == pytest.approx(trace.target_log_probabilities)
        assert drawn == pytest.approx(trace.target_probabilities)
    assert (result.facts["kept"], result.facts["moved"] == 0) == (len(kept), scope != "everywhere")


def test_other_changes_of_the_run_stay_in_the_runs_that_a_tab_compares(
    translator: Translator, run_at: Callable
) -> None:
    gate, place = HeadGate(0.0, kind="encoder_self", layer=0, head=1), Place("cross", 1, 2)
    changes = (AttentionTemperature(3.0, **place.address()), gate)
    run = Run.start(translator, Request(SOURCE, TEXT, interventions=changes), place, 3.0)
    plain = run_at("cross", 0, 0, gate).trace
    assert divided(run).arrays()["log_probability_before"] == pytest.approx(plain.target_log_probabilities)
    table = many(run).shows["runs-table"]
    line = table[table["τ"] == "1"]["ln probability of the plain output"]
    assert line.item() == pytest.approx(plain.log_probability)


def test_a_row_that_stays_on_one_key_leads_to_the_softest_head(translator: Translator) -> None:
    """With scores a hundred times as large no temperature up to 4 lets another key in; as trained, one does."""
    run = Run.start(translator, Request(SOURCE), Place("encoder_self", 0, 0))
    assert live(run, row=0).facts["softest"] is None
    assert softmax_at(run.attention.pre_softmax[0, 0], run.attention.mask[0, 0], 4).max() <= ONE_KEY
    sharp = replace(run.attention, scaled=run.attention.scaled * 1e3)
    trace = replace(run.trace, attentions={**run.trace.attentions, ("encoder_self", 0): sharp})
    softest = live(replace(run, trace=trace), row=0).facts["softest"]
    places = {
        Place(one.kind, one.layer, head): one.evenness[head]
        for one in measure_sharpness([trace])
        for head in range(len(one.evenness))
    }
    best = max(places, key=places.__getitem__)
    assert softest["name"] == best.title
    assert dict(parse_qsl(softest["link"])) == {name: str(value) for name, value in vars(best).items()}
