"""Learn: what each station says holds in its run, and each link opens what it says."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from model.analysis.heads.evenness import mean_evenness
from model.analysis.heads.softmax import softmax_at
from model.analysis.mechanisms.modern_parts import compare_norms
from model.analysis.positions.position_table import wavelengths
from model.analysis.stream.residual_stream import StreamMeasures, measure_stream
from model.background.studies import WARMUP
from model.checkpoints.card import read_card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import load_checkpoint
from model.commands.ablations import ROWS
from model.language import speaking
from model.needs import Need
from model.run import Place, Request, Run
from model.training.schedule import noam
from pages import page_of
from pages.lessons import lessons
from pages.lessons.question import Asked
from pages.lessons.station import Lesson, Station
from pages.text import languages
from tests.pages.conftest import SHIPPED
from tests.pages.figures import words

STATIONS = [
    pytest.param(station, id=lesson.name(i)) for lesson in lessons() for i, station in enumerate(lesson.stations)
]
PAGE = "pages/learn.py"


@cache
def opened(checkpoint: str):
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
    assert not re.search(r"\{[{%]", answer.text)


@pytest.mark.parametrize("station", STATIONS)
def test_an_answer_is_of_any_run(station: Station) -> None:
    for source in [station.source] if "<mask>" in station.source else ["A", "Two dogs run."]:
        assert station.answer(view_of(station.checkpoint, source, Place(station.kind, 0, 0))).text


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
    "positions.habit": lambda view: share_of_previous(view) > 0.5,
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
    "honest.one-sentence": lambda view: share_of_previous(view) > 0.8,
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
        (view.trace.tgt_tokens[1], view.trace.tgt_tokens[9]) == ("▁Das", "▁weil")
        and view.trace.candidates[1][0].probability > 0.8
        and view.trace.candidates[9][0].probability < 0.6
        and {"▁es", "▁sie"} <= {each.token for each in view.trace.candidates[9]}
    ),
}
"""name of a station -> whether its "look for" is in a run; where the answer's own condition does not say it"""


@pytest.mark.parametrize("name", LOOK_FOR)
def test_what_a_station_says_to_look_for_is_there(name: str) -> None:
    assert LOOK_FOR[name](own_view(station_of(name)))


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


CHOSEN = [one for one in STATIONS if one.values[0].question.options]
TASKS = {
    "exercises.verb": {"query": "{sat}"},
    "exercises.article": {"query": "{The}"},
    "exercises.cold": {"tau": 0.3},
    "exercises.hot": {"tau": 3.0},
    "exercises.standard": {"tau": 1.0},
}
"""name of a station -> the controls that a person sets there; {word} is its position"""


def asked_of(station: Station, view: Run | None = None) -> Asked | None:
    return station.question.asked_of(view or own_view(station))


@pytest.mark.parametrize("station", CHOSEN)
def test_a_question_has_one_right_option_and_the_others_differ_from_it(station: Station) -> None:
    asked = asked_of(station)
    assert len(set(asked.options)) == len(asked.options) >= 3
    assert len(asked.right) == 1
    assert not [option for option in asked.options if re.search(r"\{[{%]|nan|\\\\", option)]


def test_the_right_options_do_not_always_stand_in_the_same_place() -> None:
    for name in ("interview", "exercises"):
        chosen = next(lesson for lesson in lessons() if lesson.slug == name).stations
        places = [asked_of(station).right[0] for station in chosen if station.question.options]
        assert max(map(places.count, places)) <= max(len(places) // 2, 2), name


@pytest.mark.parametrize("code", languages())
def test_neither_the_longest_nor_the_shortest_option_is_usually_the_right_one(code: str) -> None:
    with speaking(languages()[code]):
        everything = [one for lesson in lessons() for one in lesson.stations if one.question.options]
        asked = [asked_of(station) for station in everything]
    for extreme in (max, min):
        lengths = [([len(option) for option in one.options], one.right[0]) for one in asked]
        told = [own for own, right in lengths if own[right] == extreme(own) and own.count(own[right]) == 1]
        assert len(told) <= len(asked) / 3, extreme


@pytest.mark.parametrize("head", [0, 3])
def test_what_is_to_be_computed_by_hand_is_the_softmax_and_the_product_of_the_numbers_in_the_question(
    head: int,
) -> None:
    place = Place("encoder_self", 1, head)
    for slug in ("dot-product", "softmax"):
        station = station_of(f"first-steps.{slug}")
        view = view_of("en-de", station.source, place)
        asked = asked_of(station, view)
        lists = [
            [float(number.replace("−", "-")) for number in some.split(", ")]
            for some in re.findall(r"−?\d+\.\d+(?:, −?\d+\.\d+){2}", asked.text)
        ]
        right = asked.options[asked.right[0]].replace("−", "-")
        if slug == "dot-product":
            assert float(right) == pytest.approx(np.dot(*lists), abs=0.005 + 1e-9)
        else:
            powers = np.exp(lists[0])
            assert [float(one) for one in right.split(", ")] == pytest.approx(powers / powers.sum(), abs=0.005 + 1e-9)


def test_the_shape_of_a_product_is_that_of_the_runs_queries() -> None:
    station = station_of("first-steps.matrix-product")
    asked = asked_of(station)
    assert asked.options[asked.right[0]] == " × ".join(map(str, own_view(station).attention.q.shape[1:]))


def test_the_exercises_agree_with_modules_and_with_random_vectors() -> None:
    size, spread = station_of("exercises.size"), station_of("exercises.variance")
    own = torch.nn.MultiheadAttention(512, 8, bias=False)
    asked = asked_of(size)
    assert asked.options[asked.right[0]] == f"{own.head_dim}, and {sum(p.numel() for p in own.parameters()):,}"
    mean, variance = (
        float(number.replace("−", "-"))
        for number in re.search(
            r"mean (−?\d+\.\d+), variance (\d+\.\d+)", spread.answer(own_view(spread)).text
        ).groups()
    )
    d_k = own_view(spread).attention.d_k
    assert abs(mean) < 5 * (d_k / 20_000) ** 0.5
    assert abs(variance / d_k - 1) < 0.1


def test_of_four_mistakes_the_one_is_right_whose_rows_do_not_sum_to_one() -> None:
    station = station_of("beyond.mistakes")
    for head in (0, 2):
        asked = asked_of(station, view_of("en-de", station.source, Place("decoder_self", 1, head)))
        assert asked.options[asked.right[0]] == "Softmax over the queries"


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_ticked_when_it_is_done_and_not_before(name: str, open_shipped: Callable) -> None:
    station = station_of(name)
    app = open_shipped(PAGE, lesson="exercises", station=station.slug)
    assert "✓ Done" not in words(app)
    number = [one.slug for one in station_lesson(name).stations].index(station.slug) + 1
    assert [button.label for button in app.button if button.key == f"station-{number - 1}"] == [f"{number}"]
    tokens = own_view(station).attention.query_tokens
    for key, value in TASKS[name].items():
        position = tokens.index(f"\u2581{value[1:-1]}") if isinstance(value, str) else value
        app.session_state[key] = position
    app.run()
    assert "✓ Done" in words(app)
    assert [button.label for button in app.button if button.key == f"station-{number - 1}"] == [f"{number} ✓"]
    assert station.answer(own_view(station)).text[:40] in words(app)


WALKED = [lesson for lesson in lessons() if lesson.slug in ("first-steps", "lookup", "today")]
"""a lesson that begins with options, one with hints, one of two other models: the others differ in texts and views"""


def options_of(app: Any) -> Any:
    return next(group for group in app.main.button_group if str(group.key).startswith("guess-"))


def station_lesson(name: str) -> Lesson:
    return next(lesson for lesson in lessons() if name.startswith(f"{lesson.slug}."))


@pytest.mark.parametrize("right", [True, False])
def test_a_question_is_answered_right_or_wrong_and_can_be_asked_again(right: bool, open_shipped: Callable) -> None:
    station = station_of("exercises.size")
    app = open_shipped(PAGE, lesson="exercises", station="size")
    answer, asked = station.answer(own_view(station)).text, asked_of(station)
    assert answer not in words(app)
    guess = next(i for i in range(len(asked.options)) if (i in asked.right) == right)
    options_of(app).set_value(guess).run()
    assert ("✓ Right" in words(app), "✗ Not this one" in words(app)) == (right, not right)
    assert answer in words(app)
    app.button(key="guess-next-exercises.size").click().run()
    assert answer not in words(app)


@pytest.mark.parametrize("lesson", WALKED, ids=lambda lesson: lesson.slug)
def test_a_lesson_is_walked_from_its_card_to_its_end(lesson: Lesson, open_shipped: Callable) -> None:
    """Each station shows its own run and its live view; the last hint leads to the answer; what is answered is ticked,
    and not what one has only gone past."""
    app = open_shipped(PAGE)
    app.button(key=f"lesson-{lesson.slug}").click().run()
    for number, station in enumerate(lesson.stations):
        assert dict(app.query_params)["station"] in (station.slug, [station.slug])
        assert app.text_area(key="source").value == station.source
        assert app.session_state["kind"] == station.kind
        assert (app.session_state["layer"], app.session_state["head"]) == (station.layer, station.head)
        assert station.do in words(app)
        assert "asks for" not in words(app)
        assert not [button for button in app.button if button.key == "station-return"]
        if number == 0 and not station.question.hints:
            options_of(app).set_value(0).run()
        elif number == 0:
            for hint in station.question.hints:
                assert hint not in words(app)
                app.button(key="rung").click().run()
                assert hint in words(app)
            app.button(key="rung").click().run()
            assert station.answer(own_view(station)).text in words(app)
        app.button(key="station-next").click().run()
    assert f"1 of {len(lesson.stations)} stations done" in words(app)


def test_every_patch_of_the_shipped_sentence_is_made_without_a_button(open_shipped: Callable) -> None:
    app = open_shipped(PAGE, lesson="honest", station="patched-place")
    assert not app.exception
    assert not [button for button in app.button if button.key == "learn_patches"]
    assert app.get("plotly_chart")


def test_a_link_opens_a_station_and_its_own_choices_stay(open_app: Callable) -> None:
    lesson = next(lesson for lesson in lessons() if lesson.slug == "lookup")
    query = {"lesson": lesson.slug, "station": lesson.stations[1].slug, "source": "Two dogs run.", "checkpoint": "tiny"}
    app = open_app(PAGE, **query)
    assert lesson.stations[1].do in words(app)
    assert app.text_area(key="source").value == "Two dogs run."
    app.button(key="lessons").click().run()
    assert [button.label for button in app.button if button.key == f"lesson-{lesson.slug}"] == ["Start"]
    app = open_app(PAGE, lesson="no-such", station="<b>")
    assert lessons()[0].about in words(app)


def test_what_was_changed_can_be_taken_back_and_an_answer_that_no_longer_holds_says_so(open_shipped: Callable) -> None:
    lesson = next(lesson for lesson in lessons() if lesson.slug == "recurrence")
    station = lesson.stations[0]
    app = open_shipped(PAGE, lesson=lesson.slug, station=station.slug)
    for _ in range(3):
        app.button(key="rung").click().run()
    assert "This run does not show the effect" not in words(app)
    app.text_area(key="source").set_value("Hello.").run()
    assert "This run does not show the effect" in words(app)
    app.button(key="station-return").click().run()
    assert app.text_area(key="source").value == station.source
    assert "This run does not show the effect" not in words(app)


@pytest.mark.parametrize("station", STATIONS)
def test_each_link_names_a_tab_that_its_page_has_for_its_model(station: Station) -> None:
    page, run = page_of(f"{station.page}.py"), own_view(station)
    assert set(page.needs) <= run.opened.features
    assert len(station.further) <= 40, "the link's label would be cut off"
    for title in (station.tab[page.tabs_key],) if station.tab else ():
        views = [view for view in page.views if (view.tab or view.title) == title and not view.missing(run)]
        assert views
        controls = {view.key(name) for view in views for name in view.controls}
        assert {*station.tab} - {page.tabs_key} <= controls


def presented(app: Any) -> list[str]:
    """What the row of Present names."""
    (row,) = (found.proto for found in app.get("bidi_component") if found.proto.component_name == "present")
    return json.loads(row.json)["names"]


def test_a_station_is_presented_with_its_picture_alone_and_the_keys_go_on_to_the_next(open_app: Callable) -> None:
    lesson = lessons()[1]
    app = open_app(PAGE, lesson=lesson.slug, station=lesson.stations[0].slug, present="true")
    assert presented(app)[1] == lesson.stations[0].title
    assert not app.header
    app.button(key="present-Next").click().run()
    assert presented(app)[1] == lesson.stations[1].title
    assert app.button(key="present-Back").disabled is False
    app.button(key="present-leave").click().run()
    assert app.button(key="station-next")
    app = open_app(PAGE, present="true")
    assert all(app.button(key=f"lesson-{one.slug}") for one in lessons())
