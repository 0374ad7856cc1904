"""Why attention's small models: the figures are the runs' own numbers, whatever somebody types."""

from collections.abc import Callable

import numpy as np
import pytest

from model.background.recurrence import (
    ADDITIVE,
    EXACT_MATCH,
    FIXED,
    TRANSFORMER,
    by_seed,
    read_results,
    run_letters_model,
)
from pages.views.beyond.why_attention import DEFAULT, LONGEST, clean_letters
from pages.views.shared import LETTER_MODELS
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")
pytestmark = pytest.mark.usefixtures("checkpoint_folder")
PAGE, TAB = "pages/why_attention.py", {"why": "Recurrence and attention"}


@pytest.mark.parametrize(
    ("typed", "letters"),
    [
        ("cat", "cat"),
        ("C a T!", "cat"),
        ("", DEFAULT),
        ("🐕 1234", DEFAULT),
        ("<b>x</b>", "bxb"),
        ("אב\u202ez", "z"),
        ("a" * 100_000, "a" * LONGEST),
    ],
)
def test_only_letters_reach_the_models(typed: str, letters: str) -> None:
    assert clean_letters(typed) == letters


def test_maps_gradients_and_strips_are_the_runs_own_numbers(open_app: Callable) -> None:
    app = open_app(PAGE, **TAB, letters="planet", rivals_step="9")
    assert not app.exception
    runs = {name: run_letters_model(name, "planet") for name in LETTER_MODELS}
    weights = numbers(figure(app, "why_attention-additive")["data"][0]["z"]).astype(float)
    assert weights == pytest.approx(runs[ADDITIVE].patterns[0, 0], abs=1e-5)
    for line, run in zip(figure(app, "why_attention-gradient")["data"], runs.values(), strict=True):
        assert numbers(line["y"]).astype(float) == pytest.approx(run.gradient, rel=1e-3, abs=1e-9)
    strips = [trace for trace in figure(app, "why_attention-schedule")["data"] if trace["type"] == "heatmap"]
    drawn = numbers(strips[0]["z"]).astype(float).reshape(-1, len(runs[FIXED].reads))
    assert drawn == pytest.approx(runs[FIXED].encoder[0].T, abs=1e-5)
    later = numbers(strips[1]["z"]).astype(float).reshape(-1, len(runs[FIXED].writes))
    written = 9 - len(runs[FIXED].reads)
    assert later[:, :written] == pytest.approx(runs[FIXED].decoder[0].T[:, :written], abs=1e-5)
    assert np.isnan(later[:, written:]).all()


def test_play_goes_from_step_to_step_and_stops_at_the_last(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setattr("pages.widgets.controls.SECONDS_A_STEP", 0.0)
    app = open_app(PAGE, **TAB, letters="cat", rivals_step="5")
    last = int(app.slider(key="rivals_step").max)
    assert app.button(key="rivals_step-play").label == "Play"
    app.button(key="rivals_step-play").click().run()
    assert app.slider(key="rivals_step").value > 5
    for _ in range(last):
        app.run()
    assert app.slider(key="rivals_step").value == last
    assert app.button(key="rivals_step-play").label == "Play"
    assert not app.exception


def test_a_length_that_no_model_has_seen_is_said(open_app: Callable) -> None:
    assert "No model has seen" not in words(open_app(PAGE, **TAB, letters="planet"))
    assert "No model has seen 12 letters in training" in words(open_app(PAGE, **TAB, letters="abcdefghijkl"))


def test_the_comparison_is_the_shipped_table(open_app: Callable) -> None:
    app = open_app(PAGE, why="Three models compared")
    assert not app.exception
    lines = {
        t["name"]: t for t in figure(app, "why_attention-exact")["data"] if t.get("name") in LETTER_MODELS.values()
    }
    for name in (FIXED, ADDITIVE, TRANSFORMER):
        at, values = by_seed(read_results(), EXACT_MATCH, name)
        assert numbers(lines[LETTER_MODELS[name]]["x"]).astype(float) == pytest.approx(at)
        assert numbers(lines[LETTER_MODELS[name]]["y"]).astype(float) == pytest.approx(values.mean(axis=0))
