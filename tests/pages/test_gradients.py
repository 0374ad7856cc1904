"""The page "Gradients": every number is the model's, of two families; long work waits for its button."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model.analysis.heads.softmax import softmax_at, softmax_jacobian
from model.analysis.runs.attributions import MEASURES, judge, measure_tokens
from model.analysis.runs.gradients import distance_gradients, stream_gradients
from model.background import recurrence
from model.checkpoints.store import load_checkpoint
from model.interventions import ResidualOff, Unscaled
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")

PAGE, SOURCE, TEXT = "pages/gradients.py", "a dog and a cat", "Ein Hund mit einer Katze."
FAMILIES = ("translator", "lm")


@pytest.fixture(params=FAMILIES)
def opened(request: pytest.FixtureRequest, translator) -> tuple:
    """Model, run, and a function that opens the page on it."""
    if request.param == "translator":
        open_app = request.getfixturevalue("open_app")
        typed = {"source": SOURCE, "target": "Typed", "typed": TEXT}
        return translator, translator.trace(SOURCE, TEXT), lambda **query: open_app(PAGE, **typed, **query)
    folder: Path = request.getfixturevalue("families")
    open_lm: Callable = request.getfixturevalue("open_family")
    language_model = load_checkpoint(str(folder / "lm"), "cpu")
    return (
        language_model,
        language_model.trace("Two dogs run."),
        lambda **query: open_lm(PAGE, checkpoint="lm", source="Two dogs run.", new_tokens="0", **query),
    )


@pytest.mark.parametrize(
    ("opened", "weights"), [("translator", "as trained"), ("lm", "random, before training")], indirect=["opened"]
)
def test_the_layers_show_the_norms_of_four_runs(opened, weights):
    translator, trace, open_page = opened
    app = open_page(gradients_weights=weights)
    assert not app.exception
    seed = None if weights == "as trained" else 0
    runs = ((), (ResidualOff(),), (Unscaled(),), (ResidualOff(), Unscaled()))
    expected = [stream_gradients(translator, trace, changes, seed) for changes in runs]
    stacks = list(trace.streams)
    for stack in stacks:
        for drawn, right in zip(figure(app, f"gradients-{stack}")["data"], expected, strict=True):
            assert numbers(drawn["y"]) == pytest.approx(right[stack], rel=1e-6)
    factors = app.dataframe[0].value
    assert list(factors.iloc[:, 1]) == pytest.approx([e[stacks[0]][0] / e[stacks[0]][-1] for e in expected], rel=1e-3)


def test_the_jacobian_is_that_of_the_chosen_row_and_temperature(opened):
    translator, trace, open_page = opened
    kind = translator.kinds[-1].name
    title = {"cross": "Cross-attention", "decoder_self": "Decoder self-attention"}[kind]
    app = open_page(part="Through the softmax", kind=title, layer="1", head="2", gradients_row="3", gradients_tau="0.5")
    assert not app.exception
    attention = trace.attention(kind, 1)
    p = softmax_at(attention.pre_softmax[2, 3], attention.mask[2, 3], 0.5)
    (cells,) = figure(app, "gradients-jacobian")["data"]
    assert numbers(cells["z"]) == pytest.approx(np.diag(p) - np.outer(p, p), abs=1e-6)
    largest, frobenius = figure(app, "gradients-jacobian-size")["data"]
    found = softmax_jacobian(attention, 2, 3, 0.5, numbers(largest["x"]).tolist())
    assert numbers(largest["y"]) == pytest.approx(found.largest)
    assert numbers(frobenius["y"]) == pytest.approx(found.frobenius)
    top = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max()
    assert f"τ = 0.5: largest eigenvalue **{top:.3g}**" in words(app)
    assert "not divided by √dₖ" in words(app)


@pytest.mark.parametrize(
    ("opened", "weights"), [("translator", "as trained"), ("lm", "random, before training")], indirect=["opened"]
)
def test_the_gradient_over_distance_stands_beside_the_small_models(opened, weights):
    translator, trace, open_page = opened
    app = open_page(part="Over distance", gradients_distance_weights=weights)
    assert not app.exception
    trained = weights == "as trained"
    *_, found = distance_gradients(translator, trace, None if trained else 0)
    (line,) = figure(app, "gradients-distance")["data"]
    assert numbers(line["x"]).tolist() == found.distance.tolist()
    assert numbers(line["y"]) == pytest.approx(found.norm, rel=1e-3)
    _, values = recurrence.by_seed(
        recurrence.read_results(),
        recurrence.GRADIENT_AFTER if trained else recurrence.GRADIENT_BEFORE,
        recurrence.FIXED,
    )
    drawn = figure(app, "gradients-rivals")["data"][0]
    assert numbers(drawn["y"]) == pytest.approx(values.mean(axis=0))
    slope = np.exp(np.polyfit(found.distance, np.log(found.norm), 1)[0])
    assert app.dataframe[0].value["factor a step"][0] == pytest.approx(slope)


@pytest.mark.parametrize(("opened", "removal"), [("translator", "embedding"), ("lm", "attention")], indirect=["opened"])
@pytest.mark.usefixtures("fresh_caches")
def test_measures_and_curves_are_the_models_of_one_row_at_once_and_of_all_rows_at_a_button(opened, removal):
    translator, trace, open_page = opened
    app = open_page(part="Does attention explain?", layer="1")
    app.segmented_control(key="gradients_removal").set_value(removal).run()
    app.selectbox(key="gradients_at").set_value(2).run()
    assert not app.exception
    kind = translator.kinds[-1]
    seen = 3 if kind.causal else len(trace.src_tokens)
    *_, measures = measure_tokens(translator, trace, 1, [2])
    for drawn, name in zip(figure(app, "gradients-measures")["data"], MEASURES, strict=True):
        right = measures[name][0, :seen]
        assert numbers(drawn["y"]) == pytest.approx(right / right.sum(), abs=1e-3)
    check_verdict(app, *judge(translator, trace, 1, [2], removal))
    app.segmented_control(key="gradients_over").set_value("all").run()
    assert not app.get("plotly_chart"), "all rows wait"
    app.button(key="gradients_measure").click().run()
    assert not app.exception
    check_verdict(app, *judge(translator, trace, 1, range(len(trace.next_ids)), removal))
    drawn = figure(app, "gradients-measures")["data"][1]
    weights = measures["weights"][0, :seen]
    assert numbers(drawn["y"]) == pytest.approx(weights / weights.sum(), abs=1e-3), "those of the chosen row"


def check_verdict(app, *verdicts):
    verdict = verdicts[-1]
    for side, key in enumerate(("gradients-deletion", "gradients-insertion")):
        for drawn, log_p in zip(figure(app, key)["data"], verdict.log_p.mean(axis=0)[:, side], strict=True):
            assert numbers(drawn["y"]) == pytest.approx(log_p, abs=1e-3)
    (frame,) = (table.value for table in app.dataframe)
    assert list(frame["deletion: log p lost"]) == pytest.approx(verdict.deletion.mean(axis=0), abs=1e-3)
    assert list(frame["insertion: log p gained"]) == pytest.approx(verdict.insertion.mean(axis=0), abs=1e-3)
    gradient = frame["ρ with gradient"].to_numpy()[:4]
    assert gradient == pytest.approx(np.nanmean(verdict.agreement, axis=0)[:, 0], abs=0.02)


def test_a_closed_tab_computes_nothing(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in ("distance_gradients", "judge", "softmax_jacobian"):
        monkeypatch.setattr(f"pages.views.model.gradients.{name}", lambda *_, name=name: called.append(name))
    app = open_app(PAGE, source=SOURCE)
    assert not app.exception
    assert not called
