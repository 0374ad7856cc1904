"""The page on temperature without a browser: its figures are the run's tensors, its tabs hold at the extremes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
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
from model.interventions import AttentionTemperature, HeadGate
from model.run import Place, Request, Run
from pages.views.attention.temperature import before_and_after, divided, live, many
from pages.views.standalone import texts_of
from tests.pages.figures import figure, numbers, words
from tests.viz.payload import decode, unpack

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/temperature.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
TYPED = {"source": SOURCE, "target": "Typed", "typed": TEXT}
DECODER = "Decoder self-attention"


def payload(app) -> tuple:
    """What the live picture got."""
    return decode(next(found.proto.bytes for found in app.get("bidi_component") if found.proto.bytes))


def right(trace) -> np.ndarray:
    return trace.target_probabilities


@pytest.mark.parametrize(("kind", "name"), [("encoder_self", "Encoder self-attention"), ("decoder_self", DECODER)])
def test_the_picture_gets_the_scores_of_the_run_and_says_its_temperature(
    open_app: Callable, translator: "Translator", kind: str, name: str
) -> None:
    app = open_app(PAGE, **TYPED, kind=name, layer="1", head="2", tau="0.3", scope="Layer")
    assert not app.exception
    header, found = payload(app)
    change = AttentionTemperature(0.3, kind=kind, layer=1)
    attention = translator.trace(SOURCE, TEXT, interventions=(change,)).attention(kind, 1)
    assert header["temperature"] == pytest.approx(float(attention.temperature[2]))
    assert np.array_equal(found["weights"]["values"], attention.pattern[2])
    assert np.array_equal(found["masked"]["values"], np.where(attention.mask[2], attention.scaled[2], -np.inf))


def test_before_and_after_are_two_runs_of_the_model(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, tau="0.2", part="Before and after")
    assert not app.exception
    change = AttentionTemperature(0.2, kind="encoder_self", layer=0, head=0)
    plain, hot = (translator.trace(SOURCE, TEXT, interventions=changes) for changes in ((), (change,)))
    before, after, _ = (numbers(bar["y"]) for bar in figure(app, "temperature-probabilities")["data"])
    assert before == pytest.approx(right(plain))
    assert after == pytest.approx(right(hot))
    assert "Nothing upstream of this head changed" in words(app)
    app = open_app(PAGE, **TYPED, tau="0.2", scope="Everywhere", layer="1", part="Before and after")
    assert "its queries and keys changed" in words(app)


def test_one_row_is_drawn_at_every_temperature_and_at_the_limits(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, kind=DECODER, layer="1", head="1", part="One row")
    app.number_input(key="query").set_value(3).run()
    attention = translator.trace(SOURCE, TEXT).attention("decoder_self", 1)
    scaled, mask = attention.scaled[1], attention.mask[1]
    middle = [softmax_at(scaled[3], mask[3], tau) for tau in (0.05, 0.5, 1, 2, 20)]
    expected = [one_hot_weights(scaled[3], mask[3]), *middle, uniform_weights(mask[3])]
    bars = [numbers(bar["y"]) for bar in figure(app, "temperature-row-panels")["data"]]
    assert np.stack(bars) == pytest.approx(np.where(mask[3], np.stack(expected), np.nan), nan_ok=True)
    row, head = (numbers(line["y"]) for line in figure(app, "temperature-entropy")["data"])
    curves = entropy_by_temperature(scaled, mask, np.logspace(-2, 2, 81))
    assert row == pytest.approx(curves[:, 3])
    assert head == pytest.approx(curves.mean(axis=1))


def test_without_the_division_the_model_runs_again(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, kind="Cross-attention", layer="1", head="3", part="Divided by √dₖ")
    assert not app.exception
    plain = translator.trace(SOURCE, TEXT)
    change = AttentionTemperature(1 / math.sqrt(plain.attention("cross", 1).d_k))
    other = translator.trace(SOURCE, TEXT, interventions=(change,))
    with_it, drawn, again = (numbers(heat["z"]) for heat in figure(app, "temperature-undivided")["data"])
    old = plain.attention("cross", 1)
    assert np.array_equal(with_it, old.pattern[3])
    assert drawn == pytest.approx(softmax_at(old.scores[3], old.mask[3], 1), abs=1e-6)
    assert np.array_equal(again, other.attention("cross", 1).pattern[3])
    variances = numbers(figure(app, "temperature-variances")["data"][0]["y"])
    assert variances == pytest.approx([product_statistics(old, head).variance for head in range(4)])
    assert numbers(figure(app, "temperature-probabilities")["data"][1]["y"]) == pytest.approx(right(other))


def test_many_temperatures_run_only_when_asked_for(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, scope="Everywhere", part="Many temperatures")
    assert not app.dataframe
    app.button(key="temperature-run-many").click().run()
    assert not app.exception
    table = app.dataframe[0].value
    for line, tau in ((0, 0.05), (4, 1.0), (8, 20.0)):
        changes = () if tau == 1 else (AttentionTemperature(tau),)
        trace = translator.trace(SOURCE, TEXT, interventions=changes)
        assert table["τ"][line] == f"{tau:g}"
        assert table["output"][line] == translator.translate([SOURCE], 4, interventions=changes)[0]
        total = trace.target_log_probabilities.sum()
        assert table["ln probability of the plain output"][line] == pytest.approx(total)
        assert table["mean entropy, all heads (bits)"][line] == pytest.approx(mean_entropy(trace))
        here = entropy(trace.attention("encoder_self", 0).pattern[0]).mean()
        assert table["mean entropy, this head (bits)"][line] == pytest.approx(here)
    app.text_area(key="source").set_value("a cat").run()
    assert not app.dataframe


@pytest.mark.parametrize("tau", ["1", "0.3"])
def test_the_query_to_move_starts_with_the_runs_weights_and_what_makes_them(
    open_app: Callable, translator: "Translator", tau: str
) -> None:
    app = open_app(PAGE, **TYPED, kind=DECODER, layer="1", head="1", tau=tau, part="Move the query")
    assert not app.exception
    change = () if tau == "1" else (AttentionTemperature(0.3, kind="decoder_self", layer=1, head=1),)
    attention = translator.trace(SOURCE, TEXT, interventions=change).attention("decoder_self", 1)
    (data,) = (found.proto.bytes for found in app.get("bidi_component") if b'"shares"' in found.proto.bytes[:4000])
    header, arrays = unpack(data)
    for name in ("pattern", "mask", "v", "z"):
        assert np.array_equal(arrays[f"{attention.path}.{name}[1]"], getattr(attention, name)[1])
    keys, queries, rest = (arrays[f"plane.{name}"] for name in ("keys", "queries", "rest"))
    scores = header["scale"] * queries @ (keys + header["mean"]).T + rest
    assert scores == pytest.approx(attention.scaled[1], abs=1e-4)
    assert header["temperature"] == pytest.approx(float(tau))


@pytest.mark.parametrize("scope", ["head", "layer", "everywhere"])
@pytest.mark.parametrize("changed", [False, True])
def test_before_is_the_same_run_at_tau_1_and_called_as_trained_only_if_nothing_else_is_changed(
    translator: "Translator", scope: str, changed: bool
) -> None:
    place = Place("cross", 1, 2)
    kept = (HeadGate(0.0, kind="encoder_self", layer=0, head=1),) if changed else ()
    changes = (AttentionTemperature(0.3, **place.address(scope)), *kept)
    run = Run.start(translator, Request(SOURCE, TEXT, interventions=changes), place, 0.3, scope)
    result = before_and_after(run)
    before, after = (translator.trace(SOURCE, TEXT, interventions=found) for found in (kept, changes))
    assert result.arrays()["log_probability_before"] == pytest.approx(before.target_log_probabilities)
    assert result.arrays()["log_probability_after"] == pytest.approx(after.target_log_probabilities)
    text = "\n".join(texts_of(result.blocks))
    assert ("as trained" in text) == (not changed)
    assert ("the other change in the model" in text) == changed


def test_other_changes_of_the_run_stay_in_the_runs_that_a_tab_compares(translator: "Translator") -> None:
    gate = HeadGate(0.0, kind="encoder_self", layer=0, head=1)
    place = Place("cross", 1, 2)
    changes = (AttentionTemperature(3.0, **place.address()), gate)
    run = Run.start(translator, Request(SOURCE, TEXT, interventions=changes), place, 3.0)
    plain = translator.trace(SOURCE, TEXT, interventions=(gate,))
    assert divided(run).arrays()["log_probability_before"] == pytest.approx(plain.target_log_probabilities)
    table = many(run).shows["runs-table"]
    line = table[table["τ"] == "1"]["ln probability of the plain output"]
    assert line.item() == pytest.approx(plain.target_log_probabilities.sum())


def test_a_row_that_stays_on_one_key_leads_to_the_softest_head(translator: "Translator") -> None:
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
