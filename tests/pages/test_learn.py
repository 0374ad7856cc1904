"""Learn: what each station says holds in its run, and each link opens what it says."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from model.ablations import ROWS
from model.analysis.heads.common_claims import mean_evenness
from model.analysis.heads.softmax import softmax_at
from model.analysis.mechanisms.modern_parts import compare_norms
from model.analysis.positions.position_table import wavelengths
from model.analysis.stream.residual_stream import StreamMeasures, measure_stream
from model.background.studies import WARMUP
from model.checkpoints.card import read_card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.needs import Need
from model.run import Place, Request, Run
from model.training.schedule import noam
from pages import page_of
from pages.lessons import lessons
from pages.lessons.station import Lesson, Station
from tests.pages.figures import tabs_of, words

pytest.importorskip("streamlit")

STATIONS = [
    pytest.param(station, id=lesson.name(i)) for lesson in lessons() for i, station in enumerate(lesson.stations)
]
SHIPPED = Path(__file__).parents[2] / "checkpoints"
PAGE = "pages/learn.py"


@cache
def opened(checkpoint: str):
    from model.checkpoints.store import load_checkpoint

    return load_checkpoint(str(SHIPPED / checkpoint), "cpu")


@cache
def view_of(checkpoint: str, source: str, place: Place) -> Run:

    request = Request(source)
    return Run(opened(checkpoint), request, run_of(checkpoint, source), place, source)


@cache
def run_of(checkpoint: str, source: str):
    """As the app runs it at first: a language model writes on."""
    translator = opened(checkpoint)
    writes = {"max_new_tokens": 12} if Need.LANGUAGE_MODEL in translator.features else {}
    return translator.trace(source, **writes)


def own_view(station: Station) -> Run:
    return view_of(station.checkpoint, station.source, Place(station.kind, station.layer, station.head))


@pytest.mark.parametrize("station", STATIONS)
def test_what_a_station_says_holds_in_its_run(station: Station) -> None:
    view = own_view(station)
    assert station.fits(view)
    answer = station.answer(view)
    assert answer.holds, answer.text
    assert "nan" not in answer.text
    assert "{" not in answer.text


@pytest.mark.parametrize("station", STATIONS)
@pytest.mark.parametrize("source", ["A", "Two dogs run."])
def test_an_answer_is_of_any_run(station: Station, source: str) -> None:
    where = station.source if "<mask>" in station.source else source
    answer = station.answer(view_of(station.checkpoint, where, Place(station.kind, 0, 0)))
    assert answer.text


def station_of(name: str) -> Station:
    return next(s for lesson in lessons() for i, s in enumerate(lesson.stations) if lesson.name(i) == name)


def pattern_of(view: Run) -> np.ndarray:
    return view.attention.pattern[view.head]


def path_of(view: Run) -> StreamMeasures:
    return measure_stream(view.trace, "encoder")


def scaled_of(view: Run) -> np.ndarray:
    return view.attention.scaled[view.head]


def mask_of(view: Run) -> np.ndarray:
    return view.attention.mask[view.head]


def share_of_previous(view: Run) -> float:
    """Of the rows from the second on, whose largest weight is on the token before them."""
    return float(np.mean(pattern_of(view)[1:].argmax(-1) == np.arange(len(pattern_of(view)) - 1)))


def cross_of(view: Run) -> list[np.ndarray]:
    return [pattern for (kind, _), a in view.trace.attentions.items() if kind == "cross" for pattern in a.pattern]


def weights_on_the_end(pattern: np.ndarray) -> float:
    return float(pattern[:, -2:].sum(axis=-1).mean())


def decoder_cosines(view: Run) -> np.ndarray:
    """(step, token): cosine of the decoder's stream to its input."""
    return measure_stream(view.trace, "decoder").to_start.T


def falls_ever_more_slowly(view: Run) -> bool:
    """Whether the first quarter of the logged steps has more than half of the fall of the loss."""
    log = [row for row in read_card(SHIPPED / view.opened.name).log if "dev_loss" in row]
    losses = np.array([row["dev_loss"] for row in log])
    return (losses[0] - losses[len(losses) // 4]) > 0.5 * (losses[0] - losses[-1])


def first_choice(view: Run, temperature: float) -> float:
    """The probability of the most probable token where the model begins to write."""
    logits = view.trace.logits[view.trace.first_written].astype(np.float64) / temperature
    return float(1 / np.exp(logits - logits.max()).sum())


def first_snapshot(view: Run):
    steps = snapshot_steps(SHIPPED / view.opened.name)
    return open_snapshot(view.opened, steps[0]).rerun(view.trace, ())


LOOK_FOR = {
    "positions.wavelengths": lambda view: (
        6 < wavelengths(view.opened.config.d_model)[0] < 7 < 64 < wavelengths(view.opened.config.d_model)[-1]
    ),
    "positions.habit": lambda view: (
        np.mean(pattern_of(view)[1:].argmax(-1) == np.arange(len(pattern_of(view)) - 1)) > 0.5
    ),
    "encoder-block.stream": lambda view: (
        view.trace.src_tokens[1] == "▁animal" and path_of(view).to_previous[1, 1:].min() > 0.75
    ),
    "encoder-block.norm": lambda view: (
        view.trace.src_tokens[14] == "</s>" and path_of(view).added[14, 4] > 10 * path_of(view).norm[14, 4]
    ),
    "decoder-block.mask": lambda view: (view.attention.mask[0].sum(-1) == 1 + np.arange(15)).all(),
    "decoder-block.shift": lambda view: (
        view.trace.tgt_tokens[0] == "<s>" and view.trace.next_tokens[:-1] == view.trace.tgt_tokens[1:]
    ),
    "decoder-block.memory": lambda view: (
        view.attention.key_tokens[pattern_of(view)[view.trace.next_tokens.index("▁Tier")].argmax()] == "▁animal"
    ),
    "decoder-block.cache": lambda view: ((pattern_of(view) > 0).sum(-1)[:2] == [1, 2]).all(),
    "lookup.mixture": lambda view: pattern_of(view).min() > 0,
    "lookup.limits": lambda view: (
        np.mean(softmax_at(scaled_of(view), mask_of(view), 0.05).max(-1) > 0.8) > 0.8
        and softmax_at(scaled_of(view), mask_of(view), 20.0).max() < 1.5 / len(view.trace.src_tokens)
    ),
    "lookup.direction": lambda view: pattern_of(view)[6, 4] > 3 * pattern_of(view)[4, 6],
    "scores.division": lambda view: (
        softmax_at(view.attention.scores[view.head], mask_of(view), 1.0).max(-1) >= pattern_of(view).max(-1) - 1e-6
    ).all(),
    "heads.previous": lambda view: share_of_previous(view) > 0.5,
    "honest.effect": lambda view: np.mean(pattern_of(view).max(-1) > 0.5) > 0.8,
    "honest.one-sentence": lambda view: share_of_previous(view) < 1,
    "honest.sink": lambda view: np.sum(pattern_of(view)[:, -1] > 0.3) > 3,
    "honest.received": lambda view: (
        view.trace.src_tokens[-2:] == (".", "</s>")
        and np.mean([weights_on_the_end(a) > 0.1 for a in cross_of(view)]) > 0.5
    ),
    "honest.decision": lambda view: (decoder_cosines(view)[-1] < decoder_cosines(view)[1] - 0.3).all(),
    "training.loss": lambda view: falls_ever_more_slowly(view),
    "training.beginning": lambda view: mean_evenness(first_snapshot(view)) > 0.9,
    "today.sampling": lambda view: first_choice(view, 0.1) > 0.5 and first_choice(view, 2.0) < 0.1,
    "today.norm": lambda view: compare_norms(view.trace, "decoder", 0, 2).cosine.min() > 0.95,
    "decoder-block.choice": lambda view: (
        view.trace.tgt_tokens[1:3] == ("▁Das", "▁Tier")
        and view.trace.candidates[1][0].probability > 0.9
        and view.trace.candidates[2][0].probability < 0.6
    ),
}
"""name of a station -> whether its "look for" is in a run; where the answer's own condition does not say it"""


@pytest.mark.parametrize("name", LOOK_FOR)
def test_what_a_station_says_to_look_for_is_there(name: str) -> None:
    assert LOOK_FOR[name](own_view(station_of(name)))


@pytest.mark.parametrize("checkpoint", ["en-de", "multi30k-tiny"])
def test_the_decoders_cosine_to_its_input_ends_far_below_its_beginning_but_rises_on_the_way(checkpoint: str) -> None:
    station = station_of("honest.decision")
    cosines = decoder_cosines(view_of(checkpoint, station.source, Place(station.kind, 1, 0)))
    assert (cosines[-1] < cosines[1] - 0.3).all()
    assert (np.diff(cosines, axis=0) > 0).any()


@pytest.mark.parametrize("checkpoint", ["en-de", "multi30k-tiny"])
@pytest.mark.parametrize("head", [0, 3])
def test_a_softmax_that_is_called_flat_or_not_is_so_in_any_head_of_any_translator(checkpoint: str, head: int) -> None:
    """At the products q k the gradient is divided by the root of d_k once more, which turns the comparison round."""
    place = Place("encoder_self", 1, head)
    view = view_of(checkpoint, station_of("scores.gradient").source, place)
    text = station_of("scores.gradient").answer(view).text
    rows = np.stack([pattern_of(view), softmax_at(view.attention.scores[head], mask_of(view), 1.0)]).astype(float)
    jacobians = rows[..., None] * np.eye(rows.shape[-1]) - rows[..., None] * rows[..., None, :]
    plain, sharp = np.linalg.eigvalsh(jacobians)[..., -1].mean(axis=-1)
    assert ("away from the flat regions" in text) is bool(sharp < plain)
    assert ("the bound is smaller with it" in text) is bool(plain / view.attention.d_k**0.5 < sharp)
    largest = np.linalg.eigvalsh(jacobians[0])[..., -1].max()
    assert f"{largest:.3f} in the largest row" in text


@pytest.mark.parametrize("checkpoint", ["en-de", "multi30k-tiny"])
@pytest.mark.parametrize("name", ["honest.effect", "honest.uniform", "heads.removal", "scores.division"])
@pytest.mark.parametrize("head", [0, 2])
def test_an_answer_says_only_what_its_run_shows(name: str, head: int, checkpoint: str) -> None:
    """Also in heads where the station's effect is not there."""
    station = station_of(name)
    view = view_of(checkpoint, station.source, Place(station.kind, station.layer, head))
    answer = station.answer(view)
    claims = {
        "honest.effect": ("a clear map", pattern_of(view).max(-1).mean() > 0.6),
        "honest.uniform": ("here the map matters", answer.holds),
        "heads.removal": ("stand in for each other", not answer.text.endswith("do not stand in for each other.")),
        "scores.division": ("nearly", False),
    }
    sentence, true = claims[name]
    assert (sentence in answer.text.replace("do not stand in", "")) == bool(true)


def test_the_run_without_warm_up_is_said_to_begin_at_a_higher_rate() -> None:
    (row,) = [command for name, command in ROWS.items() if name == "no-warmup"]
    assert row == "--warmup 0"
    step_1, peak = noam(1, 64, 0), noam(WARMUP, 64, WARMUP)
    text = station_of("training.warmup").answer(own_view(station_of("training.warmup"))).text
    assert f"**{step_1 / peak:.0f} times**" in text


@pytest.fixture
def open_shipped(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
    return open_app


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.slug)
def test_a_lesson_is_walked_from_its_card_to_its_end(lesson: Lesson, open_shipped: Callable) -> None:
    """Each station shows its own run and its live view; the last hint leads to the answer; the ticks are counted."""
    app = open_shipped(PAGE)
    app.button(key=f"lesson-{lesson.slug}").click().run()
    for number, station in enumerate(lesson.stations):
        assert not app.exception, station.slug
        assert dict(app.query_params)["station"] in (station.slug, [station.slug])
        assert app.text_area(key="source").value == station.source
        assert app.session_state["kind"] == station.kind
        assert (app.session_state["layer"], app.session_state["head"]) == (station.layer, station.head)
        assert station.do in words(app)
        assert "asks for" not in words(app)
        assert not [button for button in app.button if button.key == "station-return"]
        if number == 0:
            for hint in station.question.hints:
                assert hint not in words(app)
                app.button(key="rung").click().run()
                assert hint in words(app)
            app.button(key="rung").click().run()
            assert station.answer(own_view(station)).text in words(app)
        app.button(key="station-next").click().run()
    assert not app.exception
    assert f"{len(lesson.stations)} of {len(lesson.stations)} stations done" in words(app)


def test_a_link_opens_a_station_and_its_own_choices_stay(open_app: Callable) -> None:
    lesson = lessons()[1]
    query = {"lesson": lesson.slug, "station": lesson.stations[1].slug, "source": "Two dogs run.", "checkpoint": "tiny"}
    app = open_app(PAGE, **query)
    assert not app.exception
    assert lesson.stations[1].do in words(app)
    assert app.text_area(key="source").value == "Two dogs run."
    app.button(key="lessons").click().run()
    assert not app.exception
    assert [button.label for button in app.button if button.key == f"lesson-{lesson.slug}"] == ["Start"]
    app = open_app(PAGE, lesson="no-such", station="<b>")
    assert not app.exception
    assert lessons()[0].about in words(app)


def test_what_was_changed_can_be_taken_back_and_an_answer_that_no_longer_holds_says_so(open_shipped: Callable) -> None:
    lesson = next(lesson for lesson in lessons() if lesson.slug == "recurrence")
    station = lesson.stations[0]
    app = open_shipped(PAGE, lesson=lesson.slug, station=station.slug)
    for _ in range(3):
        app.button(key="rung").click().run()
    assert "This run does not show the effect" not in words(app)
    app.text_area(key="source").set_value("Hello.").run()
    assert not app.exception
    assert "This run does not show the effect" in words(app)
    app.button(key="station-return").click().run()
    assert app.text_area(key="source").value == station.source
    assert "This run does not show the effect" not in words(app)


LINKS = {(s.page, *s.tab.items(), s.checkpoint): s for lesson in lessons() for s in lesson.stations}


@pytest.mark.parametrize("station", LINKS.values(), ids=lambda station: f"{station.page} {station.tab.values()}")
def test_each_link_opens_the_tab_that_it_names(station: Station, open_shipped: Callable) -> None:
    app = open_shipped(page_of(f"{station.page}.py").path, **station.link, **station.tab)
    assert not app.exception
    assert "asks for" not in words(app)
    assert "This page needs" not in words(app)
    assert len(station.further) <= 40, "the link's label would be cut off"
    for parameter, title in station.tab.items():
        key, tabs = tabs_of(app)
        assert key == parameter
        assert title in tabs
