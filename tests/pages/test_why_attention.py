"""The page on why attention without a browser: figures are formulas' and the run's, times are asked for."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.background.scoring_functions import multiplicative, scoring_costs
from model.background.stopwatch import LENGTHS
from model.background.table_1 import layer_costs, paths
from model.trace import KIND_TITLES
from pages import page_of
from pages.compute.queue import model_queue
from pages.views.beyond import timing
from tests.pages.figures import PRINTED, figure, numbers, read_number

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE = "pages/why_attention.py"
TABS = [view.title for view in page_of(PAGE).views]
TIMED = ("Measured", "Scoring functions")
TEXT = "Ein Hund mit einer Katze."
SOURCE = "a dog and a cat"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds: what they find is the machine's, and no test looks at it."""
    monkeypatch.setattr(timing, "measure", lambda contenders, device, lengths: _timed(contenders, device, lengths))


def _timed(contenders, device, lengths):
    from model.background.stopwatch import measure

    return measure(contenders, device, lengths, rounds=3)


def words(app) -> str:
    return " ".join(element.value for kind in (app.markdown, app.caption, app.info) for element in kind)


def open_page(open_app: Callable, **query: str):
    app = open_app(PAGE, **({"source": SOURCE, "target": "Typed", "typed": TEXT} | query))
    assert not app.exception
    return app


def test_operations_are_compared_by_table_1_and_in_full(open_app: Callable, translator: "Translator") -> None:
    said = words(open_page(open_app))
    n, d = len(translator.trace(SOURCE, TEXT).src_tokens), translator.model.config.d_model
    attention, matrix, lstm = 2 * n * n * d + 4 * n * d * d, n * d * d, 8 * n * d * d
    assert f"**{d / n:.3g} times {'fewer' if n < d else 'more'} operations than** a recurrent layer" in said
    assert (
        f"{attention / 1e6:.3g} million multiply-adds: **{attention / matrix:.3g} times more operations than**" in said
    )
    assert f"**{lstm / attention:.3g} times fewer operations than** an LSTM ({lstm / 1e6:.3g} million)" in said


def test_curves_marks_and_table_are_table_1_at_this_sentence(open_app: Callable, translator: "Translator") -> None:
    app = open_page(open_app, kernel="5", neighbours="4")
    n, d = len(translator.trace(SOURCE, TEXT).src_tokens), translator.model.config.d_model
    here = layer_costs(n, d, 5, 4)
    drawn = figure(app, "why_attention-operations")["data"]
    for line, name in zip(drawn, here, strict=False):
        expected = [layer_costs(int(x), d, 5, 4)[name].operations for x in numbers(line["x"])]
        assert np.array_equal(numbers(line["y"]), expected)
    marks, crossing = drawn[len(here) :]
    assert list(numbers(marks["x"])) == [n] * len(here)
    assert list(numbers(marks["y"])) == [cost.operations for cost in here.values()]
    assert (list(numbers(crossing["x"])), list(numbers(crossing["y"]))) == ([d], [d**3])
    table = app.dataframe[0].value
    assert list(table["operations here"]) == [cost.operations for cost in here.values()]
    assert list(table["sequential here"]) == [1, n, 1, 1]
    assert list(table["path here"]) == pytest.approx([cost.path for cost in here.values()], abs=5e-3)
    assert f"**n = {n}** tokens" in words(app)


def test_ways_between_two_chosen_words(open_app: Callable, translator: "Translator") -> None:
    app = open_page(open_app, why="Path length")
    last = len(translator.trace(SOURCE, TEXT).src_tokens) - 1

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
    linked = open_page(open_app, why="Path length", **names)
    assert [linked.selectbox(key=key).value for key in names] == [4, 1]
    next(button for button in app.button if button.label == "The two most distant tokens").click().run()
    assert ends() == ways(0, last)
    assert not app.exception


def test_nothing_is_timed_before_the_button_is_pressed(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody asked for a measurement")

    monkeypatch.setattr(timing, "measure", refuse)
    for part in TABS:
        app = open_page(open_app, why=part)
        assert ("Nothing is timed until" in words(app)) == (part in TIMED)


@pytest.mark.usefixtures("short")
def test_layers_are_measured_on_request_and_kept(open_app: Callable) -> None:
    app = open_page(open_app, why="Measured")
    app.button(key="why-time-layers").click().run()
    assert not app.exception
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
    assert "thread" in words(app)
    app.run()
    assert list(numbers(figure(app, "why_attention-times")["data"][0]["y"])) == list(numbers(drawn[0]["y"]))
    app.segmented_control(key="time_batch").set_value(4).run()
    assert "Nothing is timed until" in words(app)


def test_a_second_visitor_is_told_to_wait(open_app: Callable) -> None:
    app = open_page(open_app, why="Measured")
    with model_queue().exclusive("timing"):
        app.button(key="why-time-layers").click().run()
        assert not app.exception
        assert "Another visitor is measuring" in words(app)
    app.run()
    assert "Another visitor is measuring" not in words(app)


def test_a_measurement_that_fails_leaves_the_machine_free(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, uncaught: list[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    app = open_page(open_app, why="Measured")
    monkeypatch.setattr(timing, "measure", fail)
    app.button(key="why-time-layers").click().run()
    assert str(uncaught.pop()) == "out of memory"
    with model_queue().exclusive("timing") as free:
        assert free


@pytest.mark.parametrize("kind", KIND_TITLES)
def test_scores_are_those_of_the_chosen_head(open_app: Callable, translator: "Translator", kind: str) -> None:
    app = open_page(open_app, why="Scoring functions", kind=KIND_TITLES[kind], layer="1", head="2")
    attention = translator.trace(SOURCE, TEXT).attention(kind, 1)
    found = multiplicative(attention, 2)
    maps = [numbers(heat["z"]) for heat in figure(app, "why_attention-scores")["data"]]
    for drawn, expected in zip(maps, (attention.scores[2], attention.scaled[2], found.scores), strict=True):
        assert drawn == pytest.approx(expected, rel=1e-5, abs=1e-6)
    said = read_number(re.search(rf"largest difference \*\*{PRINTED}\*\*", words(app))[1])
    assert said == pytest.approx(np.abs(found.total - attention.scores[2]).max(), rel=0.05)
    costs = scoring_costs(len(attention.query_tokens), len(attention.key_tokens), attention.d_k)
    assert list(app.dataframe[0].value["multiply-adds"]) == [cost.multiply_adds for cost in costs.values()]


@pytest.mark.usefixtures("short")
def test_scoring_functions_are_measured_on_request(open_app: Callable) -> None:
    app = open_page(open_app, why="Scoring functions")
    app.button(key="why-time-scoring").click().run()
    assert not app.exception
    drawn = figure(app, "why_attention-times")["data"]
    assert [line["name"] for line in drawn] == list(scoring_costs(1, 1, 1))
    assert all((numbers(line["y"]) > 0).all() for line in drawn)
