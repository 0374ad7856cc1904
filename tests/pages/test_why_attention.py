"""Why attention: figures are formulas', small models' and the run's; times are asked for; what is typed is read."""

from collections.abc import Callable

import numpy as np
import pytest

from model.background import recall
from model.background.recurrence import (
    ADDITIVE,
    EXACT_MATCH,
    FIXED,
    TRANSFORMER,
    by_seed,
    read_results,
    run_letters_model,
)
from model.background.scoring_functions import multiplicative, scoring_costs
from model.background.stopwatch import LENGTHS, measure
from model.background.table_1 import layer_costs, paths
from model.trace import KIND_TITLES
from pages import page_of
from pages.compute.queue import model_queue
from pages.views.beyond import timing
from pages.views.beyond import why_attention as views
from pages.views.beyond.why_attention import DEFAULT, LONGEST, LOOKED_UP, RECALL_MODELS, clean_letters
from pages.views.shared import LETTER_MODELS
from tests.pages.conftest import TYPED
from tests.pages.figures import figure, lines, maps, numbers, words

PAGE = "pages/why_attention.py"
TIMED = ("Measured", "Scoring functions")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds: what they find is the machine's, and no test looks at it."""
    monkeypatch.setattr(timing, "measure", lambda *asked: measure(*asked, rounds=3))


def test_curves_marks_and_table_are_table_1_at_this_sentence(run_at: Callable) -> None:
    result = views.costs(run_at(), kernel=5, neighbours=4)
    n, d = len(run_at().trace.src_tokens), run_at().opened.config.d_model
    here = layer_costs(n, d, 5, 4)
    drawn = figure(result, "operations")["data"]
    for line, name in zip(drawn, here, strict=False):
        expected = [layer_costs(int(x), d, 5, 4)[name].operations for x in numbers(line["x"])]
        assert np.array_equal(numbers(line["y"]), expected)
    marks, crossing = drawn[len(here) :]
    assert list(numbers(marks["x"])) == [n] * len(here)
    assert list(numbers(marks["y"])) == [cost.operations for cost in here.values()]
    assert (list(numbers(crossing["x"])), list(numbers(crossing["y"]))) == ([d], [d**3])
    table = result.shows["table"]
    assert list(table["operations here"]) == [cost.operations for cost in here.values()]
    assert list(table["sequential here"]) == [1, n, 1, 1]
    assert list(table["path here"]) == pytest.approx([cost.path for cost in here.values()], abs=5e-3)
    whole = 2 * n * n * d + 4 * n * d * d
    compared = {"attention_term": n * n * d, "matrix": n * d * d, "whole": whole, "lstm": 8 * n * d * d}
    assert {name: result.facts[name] for name in compared} == pytest.approx(compared, rel=5e-3)


def test_ways_between_two_chosen_words(open_app: Callable, run_at: Callable) -> None:
    app = open_app(PAGE, **TYPED, why="Path length")
    last = len(run_at().trace.src_tokens) - 1

    def ends() -> list[tuple[list, list]]:
        drawn = figure(app, "why_attention-paths")["data"]
        return [(list(numbers(dots["x"])), list(numbers(dots["y"]))) for dots in drawn[3::4]]

    def ways(first: int, second: int) -> list[tuple[list, list]]:
        found = paths(first, second, 3, 8).values()
        return [([x for _, x in nodes], [y for y, _ in nodes]) for nodes in found]

    assert ends() == ways(0, last)
    app.selectbox(key="path_from").set_value(4).run()
    app.selectbox(key="path_to").set_value(1).run()
    assert ends() == ways(1, 4)
    names = {key: app.selectbox(key=key).options[place] for key, place in (("path_from", 4), ("path_to", 1))}
    linked = open_app(PAGE, **TYPED, why="Path length", **names)
    assert [linked.selectbox(key=key).value for key in names] == [4, 1]
    next(button for button in app.button if button.label == "The two most distant tokens").click().run()
    assert ends() == ways(0, last)


def test_nothing_is_timed_before_the_button_is_pressed(run_at: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody asked for a measurement")

    monkeypatch.setattr(timing, "measure", refuse)
    for view in page_of(PAGE).views:
        assert (view.on_request is not None) == (view.title in TIMED)
        assert view(run_at(), **({"outcome": None} if view.on_request else {})).blocks


def test_before_the_button_is_pressed_the_multiply_adds_of_both_layers_are_counted(run_at: Callable) -> None:
    run = run_at()
    d = run.opened.config.d_model
    result = views.measured(run, batch=4, outcome=None)
    attention, recurrent = (result.arrays()[f"counted_{name}_y"] for name in ("self_attention", "lstm"))
    for n, ours, theirs in zip(LENGTHS, attention, recurrent, strict=True):
        assert ours == 4 * (2 * n * n * d + 4 * n * d * d), "Q Kᵀ and the weighted sum, and four projections"
        assert theirs == 4 * 8 * n * d * d, "four gates, each of the input and of the state"
    assert result.facts["ratios"] == pytest.approx([recurrent[at] / attention[at] for at in (0, -1)])


@pytest.mark.usefixtures("short", "fresh_caches")
def test_layers_are_measured_on_request_and_kept(open_app: Callable) -> None:
    app = open_app(PAGE, **TYPED, why="Measured")
    app.button(key="why-time-layers").click().run()
    drawn = figure(app, "why_attention-times")["data"]
    table = app.dataframe[0].value
    for line, column in zip(drawn, ("attention: ms", "LSTM: ms"), strict=True):
        times = numbers(line["y"])
        assert list(numbers(line["x"])) == list(LENGTHS)
        assert (times > 0).all()
        assert list(table[column]) == pytest.approx(list(times))
    assert list(table["ratio"]) == pytest.approx(list(table["LSTM: ms"] / table["attention: ms"]))
    assert list(table["LSTM: steps"]) == list(LENGTHS)
    assert set(table["attention: steps"]) == {1}
    app.run()
    assert list(lines(app, "why_attention-times")[0]) == list(numbers(drawn[0]["y"]))
    app.segmented_control(key="time_batch").set_value(4).run()
    assert "Nothing is timed until" in words(app)


@pytest.mark.usefixtures("fresh_caches")
def test_a_second_visitor_is_told_to_wait(open_app: Callable) -> None:
    app = open_app(PAGE, **TYPED, why="Measured")
    with model_queue().exclusive("timing"):
        app.button(key="why-time-layers").click().run()
        assert "Another visitor is measuring" in words(app)
    app.run()
    assert "Another visitor is measuring" not in words(app)


@pytest.mark.usefixtures("fresh_caches")
def test_a_measurement_that_fails_leaves_the_machine_free(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    app = open_app(PAGE, **TYPED, why="Measured")
    monkeypatch.setattr(timing, "measure", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        app.button(key="why-time-layers").click().run()
    with model_queue().exclusive("timing") as free:
        assert free


@pytest.mark.parametrize("kind", KIND_TITLES)
def test_scores_are_those_of_the_chosen_head(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    result, attention, found = views.scoring(run, outcome=None), run.attention, multiplicative(run.attention, 2)
    expected = attention.scores[2], attention.scaled[2], found.scores
    for drawn, values in zip(maps(result, "scores"), expected, strict=True):
        assert drawn == pytest.approx(values, rel=1e-5, abs=1e-6)
    assert result.facts["error"] == pytest.approx(np.abs(found.total - attention.scores[2]).max(), rel=0.05)
    costs = scoring_costs(len(attention.query_tokens), len(attention.key_tokens), attention.d_k)
    assert list(result.shows["cost"]["multiply-adds"]) == [cost.multiply_adds for cost in costs.values()]


@pytest.mark.usefixtures("short")
def test_scoring_functions_are_measured_on_request(run_at: Callable) -> None:
    drawn = figure(views.scoring(run_at()), "times")["data"]
    assert [line["name"] for line in drawn] == list(scoring_costs(1, 1, 1))
    assert all((numbers(line["y"]) > 0).all() for line in drawn)


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


def test_maps_gradients_and_strips_are_the_runs_own_numbers(run_at: Callable) -> None:
    result = views.recurrence(run_at(), letters="planet", step=9)
    runs = {name: run_letters_model(name, "planet") for name in LETTER_MODELS}
    assert maps(result, "additive")[0] == pytest.approx(runs[ADDITIVE].patterns[0, 0], abs=1e-5)
    for drawn, run in zip(lines(result, "gradient"), runs.values(), strict=True):
        assert drawn == pytest.approx(run.gradient, rel=1e-3, abs=1e-9)
    fixed, strips = runs[FIXED], maps(result, "schedule")
    drawn = strips[0].reshape(-1, len(fixed.reads))
    assert drawn == pytest.approx(fixed.encoder[0].T, abs=1e-5)
    later, written = strips[1].reshape(-1, len(fixed.writes)), 9 - len(fixed.reads)
    assert later[:, :written] == pytest.approx(fixed.decoder[0].T[:, :written], abs=1e-5)
    assert np.isnan(later[:, written:]).all()


def test_a_length_that_no_model_has_seen_is_said(run_at: Callable) -> None:
    unseen = [views.recurrence(run_at(), letters=letters).facts["unseen"] for letters in ("planet", "abcdefghijkl")]
    typed = "a3 k7 f1 d5 k", "a1 b2 c3 d4 e5 f6 g7 h8 i9 b"
    unseen += [views.state_space(run_at(), pairs=pairs).facts["unseen"] for pairs in typed]
    assert unseen == [0, 12, 0, 9]


def test_play_goes_from_step_to_step_and_stops_at_the_last(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.widgets.controls.SECONDS_A_STEP", 0.0)
    app = open_app(PAGE, **TYPED, why="Recurrence and attention", letters="cat", rivals_step="5")
    last = int(app.slider(key="rivals_step").max)
    assert app.button(key="rivals_step-play").label == "Play"
    app.button(key="rivals_step-play").click().run()
    assert app.slider(key="rivals_step").value > 5
    for _ in range(last - app.slider(key="rivals_step").value):
        app.run()
    assert app.slider(key="rivals_step").value == last
    assert app.button(key="rivals_step-play").label == "Play"


def test_the_comparison_is_the_shipped_table(run_at: Callable) -> None:
    drawn = views.comparison(run_at()).shows["exact"].lines
    for name in (FIXED, ADDITIVE, TRANSFORMER):
        at, values = by_seed(read_results(), EXACT_MATCH, name)
        assert drawn[LETTER_MODELS[name]].x == pytest.approx(at)
        assert drawn[LETTER_MODELS[name]].y == pytest.approx(values.mean(axis=0))


@pytest.mark.parametrize("layer", [0, 1])
def test_the_maps_of_a_look_up_are_the_weights_and_equivalent_maps_of_the_runs(run_at: Callable, layer: int) -> None:
    result = views.state_space(run_at(), pairs="a3 k7 f1 d5 k", layer=layer, head=1, channel=17)
    runs = {name: recall.run_recall_model(name, "a3k7f1d5k") for name in RECALL_MODELS}
    expected = {
        "maps": [runs[recall.ATTENTION].maps[layer][1], runs[recall.STATE_SPACE].maps[layer][17]],
        "hybrid": [runs[recall.HYBRID].maps[1][1], runs[recall.HYBRID].maps[0][17]],
    }
    lower = np.tri(9, dtype=bool)
    for name, (weights, equivalent) in expected.items():
        drawn = list(result.shows[name].maps.values())
        drawn = drawn if name == "maps" else drawn[::-1]
        for one, values in zip(drawn, (weights, equivalent), strict=True):
            assert one.values[lower] == pytest.approx(values[lower], abs=1e-5)
        assert (drawn[0].scale.low, drawn[0].scale.high) == (0, 1)
        assert drawn[1].scale.high == -drawn[1].scale.low == pytest.approx(np.abs(equivalent).max(), rel=1e-4)


def test_at_first_the_head_and_channel_are_drawn_that_read_the_right_digit_most(run_at: Callable) -> None:
    runs = [recall.run_recall_model(name, "a3k7f1d5k") for name in (recall.ATTENTION, recall.STATE_SPACE)]
    for run, drawn in zip(runs, views.state_space(run_at()).shows["maps"].maps.values(), strict=True):
        row = np.abs(drawn.values[-1])
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
def test_what_is_no_question_gets_a_sentence_and_the_recorded_curves(
    run_at: Callable, typed: str, sentence: str
) -> None:
    result = views.state_space(run_at(), pairs=typed)
    assert sentence in result.facts["problem"]
    assert [*result.shows] == ["recall"]


def test_the_curves_of_recall_are_the_shipped_table_and_seeds_that_only_guess_are_counted(run_at: Callable) -> None:
    result = views.state_space(run_at())
    for name, title in RECALL_MODELS.items():
        pairs, values = recall.recall_by_seed(recall.read_recall_results(), name)
        line = result.shows["recall"].lines[title]
        assert line.x == pytest.approx(pairs)
        assert line.y == pytest.approx(values.mean(axis=0))
        assert line.between == (pytest.approx(values.min(axis=0)), pytest.approx(values.max(axis=0)))
    pairs, values = recall.recall_by_seed(recall.read_recall_results(), recall.ATTENTION)
    longest = recall.TRAINED_PAIRS[-1]
    guessers = (values[:, pairs == longest] <= recall.chance_of_a_digit(longest)).sum()
    assert (result.facts["guessers"], result.facts["seeds"]) == (guessers, len(values))


def test_every_example_can_be_read() -> None:
    for example in LOOKED_UP.options:
        assert recall.read_pairs(example)
