"""The tab that teaches a copy a correction: it learns, is undone, is found by its id, waits in line, says why not."""

import weakref
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model import correction
from model.checkpoints.checkpoint import parameters_hash
from model.checkpoints.store import DEFAULT_CHECKPOINT
from pages.compute import trainings
from pages.compute.runs import Request, open_translator, run
from pages.widgets import correction as widget
from tests.pages import figures
from tests.pages.training_tab import open_tab, words

pytestmark = pytest.mark.usefixtures("checkpoint_folder", "fresh_caches")

open_page = partial(open_tab, "Fine-tune on a correction")
WANTED = "zwei Hunde"


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> trainings.Trainings:
    """Two copies at most, which learn at a rate for so small a model, and three sentences to measure them on."""
    pairs = [("a dog", "ein Hund"), ("two dogs", "zwei Hunde"), ("a cat", "eine Katze")]
    monkeypatch.setattr(correction, "RATE", 3e-3)
    monkeypatch.setattr(correction, "held_out_pairs", lambda _: pairs)
    kept = trainings.Trainings(trainings.MOST_CORRECTIONS)
    monkeypatch.setattr(widget, "all_trainings", lambda _: kept)
    return kept


@pytest.fixture
def shared_weights() -> Iterator[None]:
    """The model that everybody sees has the same weights after the test as before."""
    model = open_translator(DEFAULT_CHECKPOINT, "cpu").model
    before = parameters_hash(model)
    yield
    assert parameters_hash(model) == before


def teach(page: AppTest, text: str = WANTED) -> None:
    page.text_area(key=widget.TEXT).set_value(text)
    page.button(key=f"{widget.TEXT}-send").click().run()


def test_before_anything_is_typed_the_loss_of_each_token_of_the_run_is_drawn() -> None:
    trace = run(open_translator(DEFAULT_CHECKPOINT, "cpu"), Request("a dog"))
    (bars,) = figures.lines(open_page(), "correction-before")
    np.testing.assert_allclose(bars, -trace.target_log_probabilities)


@pytest.mark.usefixtures("shared_weights")
def test_a_correction_is_taught_undone_and_found_by_its_id(kept: trainings.Trainings) -> None:
    page = open_page()
    teach(page)
    (name,) = kept._kept
    copy = kept.find(name)
    assert copy.learned
    assert f"the copy writes | {WANTED}" in words(page)
    assert "Learned after" in words(page)
    assert "Which heads moved most?" in words(page)
    assert "BLEU on 3 sentences" in words(page)
    assert f"{copy.bytes / 1e6:.0f} MB now" in words(page)
    reload = open_page(**{widget.ID: name})
    assert f"the copy writes | {WANTED}" in words(reload)
    reload.button(key="correction-undo").click().run()
    assert copy.now().hash == parameters_hash(open_translator(DEFAULT_CHECKPOINT, "cpu").model)
    assert "No step has been taken" in words(reload)
    assert reload.button(key="correction-undo").disabled
    reload.button(key="correction-steps").click().run()
    assert copy.learned
    reload.button(key="correction-end").click().run()
    assert len(kept) == 0
    assert widget.ID not in reload.query_params


@pytest.mark.usefixtures("shared_weights")
def test_two_learn_at_once_and_the_third_sees_its_place_until_one_ends(kept: trainings.Trainings) -> None:
    pages = [open_page() for _ in range(4)]
    for page in pages:
        teach(page)
    assert [kept.find(name) is None for name in kept._kept] == [False, False, True, True]
    assert "1 ahead of you" in words(pages[2])
    assert "2 ahead of you" in words(pages[3])
    pages[2].button(key=f"{widget.ID}-leave").click().run()
    assert pages[2].text_area(key=widget.TEXT).value == WANTED
    pages[3].run()
    assert "1 ahead of you" in words(pages[3])
    pages[0].button(key="correction-end").click().run()
    pages[3].run()
    assert f"the copy writes | {WANTED}" in words(pages[3])


def test_a_copy_that_no_page_shows_gives_its_memory_back_although_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = [0.0], []
    kept = trainings.Trainings(2, clock=lambda: now[0], call_later=lambda _, function: calls.append(function))
    monkeypatch.setattr(widget, "all_trainings", lambda _: kept)
    teach(open_page())
    (name,) = kept._kept
    copy = weakref.ref(kept.find(name))
    weights = weakref.ref(next(copy()._copy.parameters()))
    assert copy().learned
    now[0] = trainings.KEPT_SECONDS + 1
    (look,) = calls
    look()
    assert copy() is weights() is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), ("Hund " * 2000, "Shorten it"), ("Hund " * 30, "Shorten it"), (None, "writes this already")],
)
def test_what_cannot_be_learned_gets_a_sentence_and_keeps_what_was_typed(
    kept: trainings.Trainings, text: str | None, said: str
) -> None:
    page = open_page()
    text = page.text_area(key=widget.TEXT).value if text is None else text
    teach(page, text)
    assert said in words(page)
    assert page.text_area(key=widget.TEXT).value == text
    assert len(kept) == 0


def test_what_was_typed_for_one_sentence_is_not_offered_for_another() -> None:
    page = open_page()
    written = page.text_area(key=widget.TEXT).value
    page.text_area(key=widget.TEXT).set_value(WANTED).run()
    assert page.text_area(key=widget.TEXT).value == WANTED
    page.text_area(key="source").set_value("two dogs").run()
    other = page.text_area(key=widget.TEXT).value
    assert other not in (WANTED, written, "")


def test_an_id_that_is_gone_gets_a_sentence_and_a_new_start() -> None:
    page = open_page(**{widget.ID: "0" * 16})
    assert "is gone: " in words(page)
    assert page.text_area(key=widget.TEXT)


def test_another_family_is_told_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "can_learn", lambda _: False)
    assert "needs a translator" in words(open_page())
