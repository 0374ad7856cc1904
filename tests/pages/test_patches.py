"""The tab Patch without a browser: its numbers are runs of the model, of any family, and its links bring it back."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from model.analysis.runs.patching import patch_from, stream_path
from model.checkpoints.translator import Translator
from model.interventions import Patch
from model.interventions.link import decode
from model.language import speaking, tr
from model.run import Request, Run
from pages.compute.runs import compute
from pages.text import languages
from pages.views.experiment import side_by_side, two_texts
from tests.pages.figures import figure, words
from viz.tokens import labels

LEFT, RIGHT = "a dog and a cat", "a dog and a sat"


@pytest.fixture(scope="module")
def pair(translator: Translator) -> tuple[Run, Run]:
    """The left and the right run."""
    left = Run.of(translator, translator.trace(LEFT, beam_size=2), "cross")
    left = replace(left, request=Request(LEFT, beam_size=2), compute=compute)  # each run once, as on the page
    return left, replace(left, trace=translator.trace(RIGHT, beam_size=2), request=Request(RIGHT, beam_size=2))


def changed(pair: tuple[Run, Run]) -> int:
    """The first position at which the texts differ."""
    one, two = (run.trace.src_tokens for run in pair)
    return next(i for i in range(len(one)) if one[i] != two[i])


def test_one_patch_is_the_run_with_it_and_the_model_writes_again(pair: tuple[Run, Run]) -> None:
    left, right = pair
    place = changed(pair)
    result = side_by_side.patch(left, right=right, place="stream encoder", layer=1, at=str(place))
    other = left.opened.trace_ids(RIGHT, left.trace.next_ids)
    patch = patch_from(left.opened, other, stream_path("encoder", 1), (place,))
    run = left.opened.rerun(left.trace, (patch,))
    assert np.array_equal(result.numbers["logits_patched"], run.logits)
    assert np.array_equal(result.numbers["logits_right"], other.logits)
    again = result.shows["again"]
    assert again.after == left.opened.translate([LEFT], 2, interventions=(patch,))[0]
    assert again.before == left.trace.translation
    (linked,) = decode(result.facts["link"])
    assert (linked.source, linked.positions) == (RIGHT, ((place, place),))


def test_the_map_is_that_of_single_patches_and_a_click_makes_one(pair: tuple[Run, Run]) -> None:
    left, right = pair
    result = side_by_side.patches(left, right=right)
    values = result.shows["encoder_map"].maps[""].values
    click = result.shows["encoder_map"].clicked({"customdata": [1, changed(pair), ""]})
    one = side_by_side.patch(left, right=right, **click)
    assert one.facts["share"] == pytest.approx(values[1, changed(pair)], abs=1e-3)
    heads = result.shows["head_map"].values["cross"]
    click = result.shows["head_map"].clicked({"customdata": ["cross", 1, 2, ""]})
    one = side_by_side.patch(left, right=right, **click)
    assert one.facts["share"] == pytest.approx(heads[1, 2], abs=1e-3)
    # The texts differ in one token alone: its embedding brings everything back.
    positions = two_texts.both_of(left, right, "same").pairs["encoder"]
    if [left.trace.src_tokens[i] != right.trace.src_tokens[j] for i, j in positions].count(True) == 1:
        assert values[0, changed(pair)] == pytest.approx(1, abs=1e-3)


def test_every_address_can_be_patched_or_says_why_not(pair: tuple[Run, Run]) -> None:
    left, right = pair
    places = two_texts.PLACE.offer(left, {"right": right}).options
    assert len(places) == 2 + 3 + 5 + 3 * 5
    for place, targets in zip(places, cycle(("same", "own")), strict=False):
        result = side_by_side.patch(left, right=right, targets=targets, place=place, layer=1)
        assert result.facts["problem"] or np.isfinite(result.facts["after"])
        assert result.blocks


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("all", ((0, 1), (2, 2))),
        ("", ((0, 1), (2, 2))),
        ("2", ((2, 2),)),
        ("0", ((0, 1),)),
        ("3-1; 5", ((3, 1), (5, 5))),
        ("3-1\uff0c5", ((3, 1), (5, 5))),
    ],
)
def test_positions_by_hand_are_pairs_of_left_and_right(typed: str, expected: tuple) -> None:
    assert two_texts.positions_at(((0, 1), (2, 2)), typed) == expected


def test_all_positions_are_named_in_any_language() -> None:
    for one in languages().values():
        with speaking(one):
            for typed in ("all", tr("all")):
                assert two_texts.positions_at(((0, 1), (2, 2)), typed) == ((0, 1), (2, 2))


@pytest.mark.parametrize("typed", ["x", "1-2-3", "-1", "1.5", "<b>", "9" * 9, "99", "0-99", "1, 1"])
def test_positions_that_are_none_are_a_sentence(pair: tuple[Run, Run], typed: str) -> None:
    result = side_by_side.patch(pair[0], right=pair[1], place="stream encoder", at=typed)
    assert result.facts["problem"]
    assert "3 is" not in result.facts["problem"]


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ("It was too tired.", "It was too wide."),
        ("A ball rolls to the dog.", "A ball rolls to the cat."),
        ("The children sing a song.", "The song sing a song."),
        ("7 30 11", "11 30 11"),
    ],
)
def test_a_text_is_compared_with_itself_but_for_one_word(translator: Translator, source: str, other: str) -> None:
    run = replace(Run.of(translator, translator.trace(source, beam_size=1), "cross"), request=Request(source))
    assert two_texts.second(run, run).trace.source == other


def test_where_the_right_side_is_no_other_text_in_the_same_model_a_word_is_changed(pair: tuple[Run, Run]) -> None:
    left, right = pair
    one = replace(left, trace=replace(left.trace, checkpoint_hash="1" * 64))
    for given in (left, one):
        for view in (side_by_side.patch, side_by_side.patches, side_by_side.one_word):
            result = view(left, right=given)
            assert result.facts["state"] in ("open", "read")
            assert result.facts["second"] == "a cat and a cat"
            assert view is side_by_side.patch or "one word changed" in str(result.blocks)
    assert two_texts.second(left, right) is right
    assert side_by_side.patch(left, right=right).facts["second"] == ""


@pytest.mark.parametrize("source", ["dog's", "the", "?"])
def test_a_text_none_of_whose_words_can_be_changed_is_said_to_be_so(translator: Translator, source: str) -> None:
    run = replace(Run.of(translator, translator.trace(source, beam_size=1), "cross"), request=Request(source))
    found = two_texts.second(run, run)
    result = side_by_side.patch(run, right=run)
    assert (result.facts["state"] == "run") == (found is run) == (source != "dog's")
    assert (two_texts.TARGETS.offer(run, {"right": run}) is None) == (found is run)
    if found is run:
        blocks = str(side_by_side.patches(run, right=run).blocks + result.blocks)
        assert "choose “Sentences”" in blocks
    other = replace(run, trace=replace(run.trace, checkpoint_hash="1" * 64))
    assert side_by_side.patch(run, right=other).facts["state"] == ("models" if found is run else "open")


def test_a_first_visit_of_both_tabs_shows_pictures_and_a_button_for_the_sentence(open_app: Callable) -> None:
    for part, chart in (("Patch", "side_by_side-words"), ("One word in two sentences", "side_by_side-cosines")):
        app = open_app("pages/side_by_side.py", source=LEFT, target="Greedy", part=part)
        assert figure(app, chart)["data"]
        app.button(key="set-side_mode-side_sentence").click().run()
        assert app.text_area(key="side_sentence").value == "a cat and a cat"
        assert "one word changed" not in words(app)


def test_the_page_patches_and_what_if_opens_the_patch_of_a_link(open_app: Callable) -> None:
    here = {"source": LEFT, "target": "Greedy", "side_mode": "Sentences", "side_sentence": RIGHT}
    app = open_app("pages/side_by_side.py", **here, part="Patch", patch_place="stream encoder", patch_layer="1")
    assert "with the patch" in words(app)
    assert "Most comes back through" in words(app)
    text = (
        f'[["Patch",{{"path":"{stream_path("encoder", 1)}","source":"{RIGHT}",'
        f'"target":"Ein Hund mit einer Katze.","positions":[[4,4]]}}]]'
    )
    opened = open_app("pages/what_if.py", source=LEFT, target="Greedy", changes=text)
    assert RIGHT in words(opened)
    (change,) = opened.session_state["what_if_changes"]
    assert isinstance(change, Patch)
    assert opened.query_params["changes"] == text
    hostile = text.replace(RIGHT, "![x](https://example.org/x.png)").replace('"target"', '"target":1,"_"')
    refused = open_app("pages/what_if.py", source=LEFT, target="Greedy", changes=hostile)
    assert "Patch" in words(refused)


def test_one_word_in_two_sentences_is_split_by_part_and_a_third_may_lack_it(pair: tuple[Run, Run]) -> None:
    left, right = pair
    result = side_by_side.one_word(left, right=right)
    assert result.numbers["adds"].sum() == pytest.approx(1 - result.facts["top"], abs=1e-4)
    assert len(result.shows["cosines"].lines) == 2
    with_third = side_by_side.one_word(left, right=right, third=LEFT)
    assert len(with_third.shows["cosines"].lines) == 4, "each two of three, and the mean of the left"
    assert side_by_side.one_word(left, right=right, third="x").facts["problem"] == "third"


def test_the_words_lead_from_their_probability_on_the_left_to_the_patched_one_beside_that_of_the_right_run(
    pair: tuple[Run, Run],
) -> None:
    left, right = pair
    result = side_by_side.patch(left, right=right, targets="same", place="stream encoder", layer=1, at="all")
    arrays, every = result.arrays(), labels(left.opened.tokenizer.tokens(range(len(left.opened.tokenizer))))
    for name, run in (("left", "before"), ("patched", "patched"), ("right", "right")):
        powers = np.exp(arrays[f"logits_{run}"][result.facts["row"]].astype(float))
        chances = dict(zip(every, powers / powers.sum(), strict=True))
        np.testing.assert_allclose(
            [chances[word] for word in arrays["words_names"]], arrays[f"words_{name}"], rtol=1e-4
        )
    traces = [one for one in result.shows["words"].draw().content["data"] if one["mode"] == "markers"]
    for trace in traces:
        np.testing.assert_array_equal(trace["y"], arrays[f"words_{trace['name']}"])
    assert len(traces) == 3
