"""Fill in: the model's own guesses and weights, words hidden with a click, and any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("streamlit")
from model.checkpoints.store import load_checkpoint
from model.checkpoints.tokenizer import MASK_TOKEN
from model.run import Run
from pages.frame.beside.hide_words import hide_word
from pages.views.explore.fill_in import guesses
from tests.pages.figures import figure, numbers
from tests.pages.test_pages import holds, said
from tests.pages.test_views import check

PAGE = "pages/fill_in.py"
TEXT = f"Two {MASK_TOKEN} run through the {MASK_TOKEN}."


@pytest.fixture
def app(open_family):
    return open_family(PAGE, checkpoint="mlm", source=TEXT)


@pytest.fixture
def model(families):
    return load_checkpoint(str(families / "mlm"), "cpu")


def test_the_bars_are_the_probabilities_that_fill_gives(app, model):
    guesses = model.fill(TEXT, top=10)
    trace = model.trace(TEXT)
    places = [place for place, label in enumerate(trace.row_tokens) if MASK_TOKEN in label]
    assert len(places) == len(guesses) == 2
    for place, guess in zip(places, guesses, strict=True):
        app.segmented_control(key="fill_place").set_value(place).run()
        shown = np.sort(numbers(figure(app, "fill_in-candidates")["data"][0]["x"])[:10])
        assert shown == pytest.approx(np.sort([probability for _, probability in guess]), rel=1e-5)
        assert not app.exception
        assert holds(app) == 3


def test_the_weights_are_the_row_of_the_hidden_token(app, model):
    trace = model.trace(TEXT)
    place = next(place for place, label in enumerate(trace.row_tokens) if MASK_TOKEN in label)
    weights = trace.attention("encoder_self", 0).pattern[0, place]
    assert numbers(figure(app, "fill_in-weights")["data"][0]["y"]) == pytest.approx(weights, abs=1e-6)


def test_each_hidden_token_has_its_own_pictures_and_all_candidates_are_exported(model):
    run = Run.of(model, model.trace(TEXT))
    places = [place for place, label in enumerate(run.trace.row_tokens) if MASK_TOKEN in label]
    assert list(guesses.offers(run)["place"].options) == places
    for place in places:
        result = guesses(run, place=place)
        check(result)
        arrays = result.arrays()
        assert np.array_equal(arrays["weights"], run.attention.pattern[run.head, place])
        assert set(arrays["candidate_position"]) == set(places)
        assert arrays["candidate_probability"].tolist() == [
            candidate.probability for hidden in places for candidate in run.trace.candidates[hidden]
        ]


@pytest.mark.parametrize("text", ["Two dogs run.", f"Two {MASK_TOKEN} run."])
def test_there_is_nothing_to_choose_where_one_token_or_none_is_hidden(text, model):
    run = Run.of(model, model.trace(text))
    assert not guesses.offers(run)
    assert guesses(run).facts["hidden"] == (MASK_TOKEN in text)


def test_a_click_on_a_word_hides_it(open_family):
    app = open_family(PAGE, checkpoint="mlm", source="Two dogs run, quickly.")
    assert "Nothing is hidden" in said(app)
    app.pills(key="fill-words").set_value(2).run()
    assert app.session_state["source"] == f"Two dogs {MASK_TOKEN}, quickly."
    assert "Nothing is hidden" not in said(app)
    assert app.pills(key="fill-words").value is None
    assert not app.exception


def test_the_sidebar_asks_for_a_text_and_no_translation(app):
    assert [area.label for area in app.text_area] == ["Text, English"]
    assert not [control for control in app.segmented_control if control.key == "target"]


@given(words=st.lists(st.text(st.characters(exclude_categories=("Z", "C")), min_size=1), min_size=1), data=st.data())
def test_hiding_a_word_leaves_the_others_and_punctuation(words, data):
    number = data.draw(st.integers(0, len(words) - 1))
    hidden = hide_word(" ".join(words), number, MASK_TOKEN).split()
    assert len(hidden) == len(words)
    assert MASK_TOKEN in hidden[number]
    assert [*hidden[:number], *hidden[number + 1 :]] == [*words[:number], *words[number + 1 :]]
    assert hide_word("(dogs),", 0, MASK_TOKEN) == f"({MASK_TOKEN}),"
