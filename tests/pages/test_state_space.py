"""Why attention, State space models: the maps are the runs' own; what is typed is read, or refused with a sentence."""

from collections.abc import Callable

import numpy as np
import pytest

from model.background import recall
from pages.views.beyond.why_attention import LOOKED_UP, RECALL_MODELS
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")
pytestmark = pytest.mark.usefixtures("checkpoint_folder")
PAGE, TAB = "pages/why_attention.py", {"why": "State space models"}


@pytest.mark.parametrize("layer", [0, 1])
def test_the_maps_are_the_attention_weights_and_equivalent_maps_of_the_runs(open_app: Callable, layer: int) -> None:
    chosen = {"recall_layer": f"layer {layer}", "recall_head": "head 1", "recall_channel": "channel 17"}
    app = open_app(PAGE, **TAB, recall_pairs="a3 k7 f1 d5 k", **chosen)
    assert not app.exception
    runs = {name: recall.run_recall_model(name, "a3k7f1d5k") for name in RECALL_MODELS}
    expected = {
        "maps": [runs[recall.ATTENTION].maps[layer][1], runs[recall.STATE_SPACE].maps[layer][17]],
        "hybrid": [runs[recall.HYBRID].maps[1][1], runs[recall.HYBRID].maps[0][17]],
    }
    lower = np.tri(9, dtype=bool)
    for name, (weights, equivalent) in expected.items():
        picture = figure(app, f"why_attention-{name}")
        drawn = [trace for trace in picture["data"] if trace.get("coloraxis")]
        drawn = drawn if name == "maps" else drawn[::-1]
        for trace, values in zip(drawn, (weights, equivalent), strict=True):
            assert numbers(trace["z"]).astype(float)[lower] == pytest.approx(values[lower], abs=1e-5)
        ranges = [picture["layout"][trace["coloraxis"]] for trace in drawn]
        assert (ranges[0]["cmin"], ranges[0]["cmax"]) == (0, 1)
        assert ranges[1]["cmax"] == -ranges[1]["cmin"] == pytest.approx(np.abs(equivalent).max(), rel=1e-4)


def test_at_first_the_head_and_channel_are_drawn_that_read_the_right_digit_most(open_app: Callable) -> None:
    app = open_app(PAGE, **TAB)
    runs = [recall.run_recall_model(name, "a3k7f1d5k") for name in (recall.ATTENTION, recall.STATE_SPACE)]
    traces = [trace for trace in figure(app, "why_attention-maps")["data"] if trace.get("coloraxis")]
    for run, trace in zip(runs, traces, strict=True):
        row = np.abs(numbers(trace["z"]).astype(float)[-1])
        shares = [np.abs(one[:, -1, 3]) / np.abs(one[:, -1]).sum(axis=-1) for one in run.maps]
        assert row[3] / row.sum() == pytest.approx(max(share.max() for share in shares), abs=1e-5)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("hello", "Type pairs of a letter and a digit"),
        ("<b>x</b>", "Type pairs of a letter and a digit"),
        ("a3 k7 z", "is in no pair"),
        ("a3 a7 a", "is in two pairs"),
    ],
)
def test_what_is_no_question_gets_a_sentence_and_the_recorded_curves(open_app: Callable, typed, sentence) -> None:
    app = open_app(PAGE, **TAB, recall_pairs=typed)
    assert not app.exception
    assert sentence in words(app)
    assert figure(app, "why_attention-recall")["data"]


def test_a_length_that_no_model_has_seen_is_said(open_app: Callable) -> None:
    assert "No model has seen" not in words(open_app(PAGE, **TAB, recall_pairs="a3 k7 f1 d5 k"))
    assert "No model has seen 9 pairs in training" in words(
        open_app(PAGE, **TAB, recall_pairs="a1 b2 c3 d4 e5 f6 g7 h8 i9 b")
    )


def test_the_curves_are_the_shipped_table(open_app: Callable) -> None:
    app = open_app(PAGE, **TAB)
    lines = {trace["name"]: trace for trace in figure(app, "why_attention-recall")["data"] if trace.get("name")}
    for name, title in RECALL_MODELS.items():
        pairs, values = recall.recall_by_seed(recall.read_recall_results(), name)
        assert numbers(lines[title]["x"]).astype(float) == pytest.approx(pairs)
        assert numbers(lines[title]["y"]).astype(float) == pytest.approx(values.mean(axis=0))
        ends = lines[title]["error_y"]
        assert numbers(ends["array"]) == pytest.approx(values.max(axis=0) - values.mean(axis=0))
        assert numbers(ends["arrayminus"]) == pytest.approx(values.mean(axis=0) - values.min(axis=0))


def test_seeds_that_have_only_learned_to_guess_are_counted(open_app: Callable) -> None:
    pairs, values = recall.recall_by_seed(recall.read_recall_results(), recall.ATTENTION)
    longest = recall.TRAINED_PAIRS[-1]
    guessers = (values[:, pairs == longest] <= recall.chance_of_a_digit(longest)).sum()
    assert f"{guessers} of {len(values)} training runs" in words(open_app(PAGE, **TAB))


def test_every_example_can_be_read() -> None:
    for example in LOOKED_UP.options:
        assert recall.read_pairs(example)
