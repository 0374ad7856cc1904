"""Attention, step by step: step and cell move, come with a link, and stay; test_every_family.py has the numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.run import Place, Request, Run
from pages.views.attention.attention_step_by_step import own_vectors
from tests.pages.conftest import SOURCE, TEXT
from tests.pages.figures import canvases
from tests.viz.payload import decode, unpack

PAGE = "pages/attention_step_by_step.py"
FORGED = ("99", "1-1-1", "1-2-3-4-5-6", "٣-0-0-0")


def stage(app) -> tuple[dict, dict]:
    """What the matrices component got."""
    return decode(canvases(app)[0])


def test_next_back_and_the_slider_move_the_step(open_app: Callable) -> None:
    app = open_app(PAGE)
    button = {name: next(b for b in app.button if b.label == name) for name in ("Back", "Next")}
    assert button["Back"].disabled
    button["Next"].click().run()
    assert app.slider(key="step").value == 2
    app.slider(key="step").set_value(7).run()
    assert next(b for b in app.button if b.label == "Next").disabled
    next(b for b in app.button if b.label == "Back").click().run()
    assert app.slider(key="step").value == 6
    assert stage(app)[0]["step"] == 5


def test_the_cell_comes_with_the_link_and_stays_with_the_widgets_and_on_other_pages(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, step="2", cell="3-4-5-6")
    assert stage(app)[0]["chosen"] == {"query": 3, "key": 4}
    app.selectbox(key="query").set_value(1).run()
    assert stage(app)[0]["chosen"] == {"query": 1, "key": 4}
    assert app.query_params["query"].startswith("1 ")
    assert app.query_params["cell_output"] == "6"
    assert "cell" not in app.query_params
    app.slider(key="step").set_value(7).run()
    assert stage(app)[0]["chosen"] == {"query": 1, "model": 6}
    app.switch_page("pages/translate.py").run()
    app.switch_page(PAGE).run()
    assert (stage(app)[0]["step"], stage(app)[0]["chosen"]) == (6, {"query": 1, "model": 6})


@pytest.mark.parametrize("cell", FORGED)
def test_a_forged_cell_falls_back_to_one_that_is_there(open_app: Callable, cell: str) -> None:
    app = open_app(PAGE, cell=cell, step="2")
    chosen = stage(app)[0]["chosen"]
    rows = stage(app)[1]["scores"]["rows"]["size"]
    assert 0 <= chosen["query"] < rows
    assert 0 <= chosen["key"] < rows


def test_the_temperature_of_the_run_reaches_the_softmax(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, step="5", tau="2", scope="Everywhere")
    header, matrices = stage(app)
    assert header["temperature"] == 2
    powers = np.exp(matrices["masked"]["values"].astype(float) / 2)
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), matrices["weights"]["values"], atol=1e-6)


@pytest.mark.parametrize("tau", [1.0, 0.3])
def test_the_vectors_of_a_head_begin_with_the_runs_weights_and_what_makes_them(
    translator: Translator, tau: float
) -> None:
    changes = () if tau == 1 else (AttentionTemperature(tau, kind="decoder_self", layer=1, head=1),)
    run = Run.start(translator, Request(SOURCE, TEXT, interventions=changes), Place("decoder_self", 1, 1), tau)
    result = own_vectors(run, source="head", token=3)
    header, arrays = unpack(result.shows["vectors"].drawing)
    for name in ("q", "k", "v", "pattern", "mask", "z"):
        assert np.array_equal(arrays[f"{run.attention.path}.{name}[1]"], getattr(run.attention, name)[1])
    assert header["scale"] * result.numbers["q"] @ result.numbers["k"].T == pytest.approx(
        run.attention.scaled[1], abs=1e-4
    )
    assert (header["row"], header["temperature"]) == (3, pytest.approx(tau))
    assert {*result.numbers["hull"]} <= {0, 1, 2, 3}, "what the mask hides is no corner"


@pytest.mark.parametrize("tau", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("values", ["10 0; 8 2; 1 9; 0 4", "1; 2; 3; 4", "1 0 0; 0 1 0; 0 0 1; 1 1 1"])
def test_z_of_typed_vectors_is_the_value_of_the_heaviest_key_at_a_low_temperature_and_near_the_mean_at_a_high_one(
    translator: Translator, tau: float, values: str
) -> None:
    run = replace(Run.of(translator, translator.trace(SOURCE, TEXT)), tau=tau)
    numbers = own_vectors(run, values=values).numbers
    v, scaled = numbers["v"], numbers["scores"] / 2**0.5 / tau
    weights = np.exp(scaled - scaled.max()) / np.exp(scaled - scaled.max()).sum()
    np.testing.assert_allclose(numbers["weights"], weights)
    np.testing.assert_allclose(numbers["z"], weights @ v)
    expected = {0.05: v[0], 20.0: v.mean(axis=0)}.get(tau, weights[0] @ v)
    np.testing.assert_allclose(numbers["z"][0], expected, atol=0.1 * np.ptp(v))
    corners = v[numbers["hull"]]
    assert (numbers["z"][0] >= corners.min(axis=0) - 1e-9).all()
    assert (numbers["z"][0] <= corners.max(axis=0) + 1e-9).all()
