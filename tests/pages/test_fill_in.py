"""Fill in: the model's own guesses and weights, words hidden with a click, and any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.store import load_checkpoint
from model.checkpoints.tokenizer import MASK_TOKEN
from model.run import Run
from pages.frame.beside.hide_words import hide_word
from pages.views.explore import fill_in
from pages.views.explore.fill_in import gap_by_gap, guesses
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.test_masked_model import fill_by_hand
from tests.pages.figures import figure, numbers, said, words
from tests.pages.test_views import check

PAGE = "pages/fill_in.py"
TEXT = f"Two {MASK_TOKEN} run through the {MASK_TOKEN}."


@pytest.fixture
def model(families):
    return load_checkpoint(str(families / "mlm"), "cpu")


def test_each_hidden_token_has_its_own_pictures_and_all_candidates_are_exported(model):
    run = Run.of(model, model.trace(TEXT))
    places = [place for place, label in enumerate(run.trace.row_tokens) if MASK_TOKEN in label]
    assert list(guesses.offers(run)["place"].options) == places
    for place, filled in zip(places, model.fill(TEXT, top=10), strict=True):
        result = guesses(run, place=place)
        check(result)
        shown = np.sort(numbers(figure(result, "candidates")["data"][0]["x"])[:10])
        assert shown == pytest.approx(np.sort([probability for _, probability in filled]), rel=1e-5)
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
    assert guesses(run).facts["word"] == ("" if MASK_TOKEN in text else "run"), "the last content word is hidden then"


def test_a_click_on_a_word_hides_it(open_family):
    app = open_family(PAGE, checkpoint="mlm", source="Two dogs run, quickly.")
    assert "Nothing is hidden" in said(app)
    app.pills(key="fill-words").set_value(2).run()
    assert app.session_state["source"] == f"Two dogs {MASK_TOKEN}, quickly."
    assert "Nothing is hidden" not in said(app)
    assert app.pills(key="fill-words").value is None


@given(words=st.lists(st.text(st.characters(exclude_categories=("Z", "C")), min_size=1), min_size=1), data=st.data())
def test_hiding_a_word_leaves_the_others_and_punctuation(words, data):
    number = data.draw(st.integers(0, len(words) - 1))
    hidden = hide_word(" ".join(words), number, MASK_TOKEN).split()
    assert len(hidden) == len(words)
    assert MASK_TOKEN in hidden[number]
    assert [*hidden[:number], *hidden[number + 1 :]] == [*words[:number], *words[number + 1 :]]
    assert hide_word("(dogs),", 0, MASK_TOKEN) == f"({MASK_TOKEN}),"


GAPS = "Two <mask> run <mask> the <mask> and <mask> <mask>."


@pytest.fixture(scope="module")
def filled(families, tmp_path_factory):
    """Runs of a text with five gaps: of our model, and of one that `transformers` wrote."""
    bert = save_family(tmp_path_factory.mktemp("filled") / "BERT", "BERT")
    runs = {}
    for name, folder in {"ours": families / "mlm", "BERT": bert}.items():
        opened = load_checkpoint(str(folder), "cpu")
        trace = opened.trace(GAPS.replace(MASK_TOKEN, opened.tokenizer.mask_token))
        runs[name] = Run.of(opened, trace, layer=1, head=1)
    return runs


@pytest.mark.parametrize("name", ["ours", "BERT"])
@pytest.mark.parametrize("order", ["surest", "left", "random"])
def test_each_step_shows_the_pass_before_it_and_which_guesses_it_changed(name, order, filled):
    run = filled[name]
    first = gap_by_gap(run, order=order)
    positions = first.numbers[f"{order}_position"].tolist()
    steps = fill_by_hand(run.opened, run.trace.src_ids, None if order == "surest" else positions)
    assert [step.position for step in steps] == positions
    grid = first.shows["guesses"].arrays()["probability"]
    for column, step in enumerate(steps):
        known = dict(zip(first.numbers["positions"].tolist(), grid[:, column], strict=True))
        shown = {gap: p for gap, p in known.items() if np.isfinite(p)}
        assert shown == {gap: pytest.approx(p, rel=1e-4) for gap, (_, p) in step.guesses.items()}
        after = steps[column + 1].guesses if column + 1 < len(steps) else {}
        changed = {gap for gap, (token, _) in after.items() if token != step.guesses[gap][0]}
        result = gap_by_gap(run, order=order, step=column + 1, outcome=first.values["outcome"])
        assert {int(text.split(":")[0]) for text in result.facts["changed"]} == changed
        weights = run.opened.trace_step(step).attention(run.kind, 1).pattern[1][step.position]
        assert np.array_equal(result.arrays()["weights_attention_weight"], weights)
        if column == 0:
            check(result)


def test_a_step_changes_other_guesses(filled):
    """Or the tests above would compare nothing."""
    assert any(result.facts["changed"] for run in filled.values() for result in [gap_by_gap(run)])


@pytest.mark.parametrize("name", ["ours", "BERT"])
def test_the_text_has_another_log_p_in_each_other_order(name, filled):
    run = filled[name]
    result = gap_by_gap(run, order="left")
    order, log_p, apart = (result.shows["orders"][column].tolist() for column in result.shows["orders"])
    assert order[0] == "Left to right"
    whole = [*run.trace.src_ids]
    for position, token in zip(result.numbers["left_position"], result.numbers["left_token"], strict=True):
        whole[position] = int(token)
    orders = [result.numbers["left_position"].tolist(), None, result.numbers["random_position"].tolist()]
    totals = [sum(s.log_probability for s in fill_by_hand(run.opened, run.trace.src_ids, o, whole)) for o in orders]
    assert log_p == pytest.approx(totals, abs=1e-3)
    assert apart == pytest.approx([total - totals[0] for total in totals], abs=1e-3)
    assert result.facts["apart"] > 0


def test_a_seed_is_an_order(filled):
    def order(seed):
        return tuple(gap_by_gap(filled["ours"], order="random", seed=seed).numbers["random_position"].tolist())

    assert order(3) == order(3)
    assert len({order(seed) for seed in range(5)}) > 1
    assert "seed" not in gap_by_gap.offers(filled["ours"]), "the other orders are drawn by nothing"


def test_a_text_without_gaps_hides_every_second_content_word_and_one_with_too_many_says_so(model, monkeypatch):
    run = Run.of(model, model.trace("Two dogs run through the snow."))
    result = gap_by_gap(run)
    assert result.run.trace.src_ids == run.trace.src_ids
    assert (result.facts["gaps"], result.facts["words"]) == (3, "“Two”, “run”, “snow”")
    monkeypatch.setattr(fill_in, "MOST_GAPS", 1)
    refused = gap_by_gap(Run.of(model, model.trace(TEXT)))
    assert (refused.facts["filled"], dict(refused.shows)) == (False, {})
    assert not gap_by_gap.offers(Run.of(model, model.trace(TEXT)))
    check(refused)


@pytest.mark.usefixtures("fresh_caches")
def test_a_model_that_takes_longer_waits_for_the_button(open_family, monkeypatch):
    monkeypatch.setattr(fill_in, "QUICK_PARAMETERS", 0)
    app = open_family(PAGE, checkpoint="mlm", source=TEXT, part="Gap by gap")
    assert "6 passes" in words(app)
    app.button(key="fill_gaps").click().run()
    assert "fills position" in words(app)
