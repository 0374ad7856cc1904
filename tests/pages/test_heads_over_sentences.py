"""Tabs on a head over a corpus: where a sentence lies, sentences of each tenth, a finder, grammar and meaning."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads import many_sentences
from model.analysis.heads.grammar import kinds_of_work
from model.analysis.heads.many_sentences import SCORES, read_distributions, read_heads
from model.analysis.heads.tally import measure
from model.run import Request, Run
from pages.frame.sidebar.sidebar import TARGETS
from pages.views.attention.heads_and_layers import find, many, one_head, over_sentences, works
from tests.model.tiny import SENTENCES
from tests.pages.figures import figure

pytestmark = pytest.mark.usefixtures("checkpoint_folder")
KINDS = ("encoder_self", "decoder_self", "cross")


@pytest.fixture
def run(translator):
    """A sentence that was measured, so that its place among all is known."""
    return lambda kind, layer=1, head=2: Run.of(translator, translator.trace(*SENTENCES[0]), kind, layer, head)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_has_its_place_among_all(run, translator, kind):
    here = run(kind)
    result = one_head(here)
    name = next(name for name, title in SCORES.items() if title == result.facts["called"])
    assert result.facts["here"] == pytest.approx(measure(translator, here.trace, here.attention)[2][0][name])
    scores = [measure(translator, each := translator.trace(*pair), each.attention(kind, 1))[2][0] for pair in SENTENCES]
    below = np.mean([one[name] < result.facts["here"] - 1e-6 for one in scores])
    least = np.mean([one[name] <= result.facts["here"] + 1e-6 for one in scores])
    # A percentile of eight sentences is one of eight steps, between which it may lie.
    assert 100 * (below - 1 / 7) <= result.facts["percentile"] <= 100 * (least + 1 / 7)
    assert result.arrays()["counts"].sum() == len(SENTENCES)


@pytest.mark.parametrize("kind", KINDS)
def test_every_measure_of_a_head_can_be_chosen_and_the_first_is_its_own(run, kind):
    here = run(kind)
    offer = one_head.offers(here)["measure"]
    assert offer.start == read_heads(here.opened).head(kind, 1, 2).shows
    for name in offer.options:
        result = one_head(here, measure=name)
        assert result.facts["called"] == SCORES[name]
        tenths = result.shows["tenths"].frame
        assert list(tenths["tenth"]) == sorted(tenths["tenth"])
        assert set(tenths["sentence"]) <= {source for source, _ in SENTENCES}
        assert result.blocks


@pytest.mark.parametrize("before", [{"target": "Greedy"}, {"target": "Typed", "typed": "Ein Hund."}])
def test_a_click_on_a_sentence_opens_the_run_whose_value_stands_beside_it(open_app, run, before):
    place = {"kind": "Cross", "layer": "1", "head": "2", "heads_part": "One head over many sentences"}
    app = open_app("pages/heads_and_layers.py", source="Two dogs.", **before, **place)
    table = one_head(run("cross")).shows["most"]
    for chosen, value in [*zip(table.chooses, table.frame["score"], strict=True)][::3]:
        for name, control in table.sets.items():
            app.session_state[control.key] = control.take(chosen[name])
        drawn = figure(app.run(), "heads_and_layers-histogram")["layout"]["shapes"]
        assert [shape["x0"] for shape in drawn] == pytest.approx([value], rel=2e-3, abs=1e-4)


def test_sentences_that_the_model_translated_itself_are_opened_with_its_own_translation(run, monkeypatch):
    here = run("cross")
    own = replace(read_heads(here.opened), own_translations=True, beam_size=Request("").beam_size, targets={})
    monkeypatch.setattr(over_sentences, "read_heads", lambda _: own)
    for table in (many(here).shows["best"], *map(one_head(here).shows.get, ("tenths", "most", "least"))):
        assert {each["target"] for each in table.chooses} == {"beam"} <= {*TARGETS}
        assert [control.key for control in table.sets.values()] == ["source", "target"]


def test_a_click_on_a_sentence_or_a_head_chooses_it(run):
    result = one_head(run("cross"))
    for name in ("tenths", "most", "least"):
        table = result.shows[name]
        texts = table.frame.iloc[:, -1]
        assert [each["source"] for each in table.chooses] == list(texts)
    alike = result.shows["alike"]
    assert [each["layer"] for each in alike.chooses] == list(alike.frame["layer"])
    assert {"layer": 1, "head": 2} not in alike.chooses


@pytest.mark.parametrize("first", ["most", "least"])
def test_the_finder_sorts_all_heads_of_all_kinds_that_have_the_measure(run, first):
    here = run("cross")
    for name, title in find.offers(here)["find_by"].options.items():
        result = find(here, find_by=name, first=first)
        values = list(result.shows["heads"].frame[title])
        assert values == sorted(values, reverse=first == "most")
        heads = [head for head in read_heads(here.opened).heads if name in head.mean]
        assert len(values) == len(heads)
        top = result.shows["heads"].chooses[0]
        best = (max if first == "most" else min)(head.mean[name] for head in heads)
        found = next(head for head in heads if head.place == (top["kind"], top["layer"], top["head"]))
        assert found.mean[name] == best
        assert result.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_does_the_work_whose_rule_its_numbers_meet(run, kind, monkeypatch):
    monkeypatch.setattr(many_sentences, "GAIN_WORDS", 1)  # of the eight sentences of the tests
    here = run(kind)
    result = works(here)
    head, how = read_heads(here.opened).head(kind, 1, 2), read_distributions(here.opened)
    expected = [one.name for one in kinds_of_work(head.mean, how.gains(head.place)) if one.does]
    assert result.facts["does"] == expected
    table = result.shows["works"].frame
    assert list(table.loc[table["does it"] == "yes", "work"]) == expected
    assert ("relations" in result.shows) == (kind == "encoder_self")
    assert result.blocks


def test_relations_stand_beside_the_best_fixed_offset_and_the_best_head_of_each_is_found(run, monkeypatch):
    monkeypatch.setattr(many_sentences, "GAIN_WORDS", 1)
    here = run("encoder_self")
    result, how = works(here), read_distributions(here.opened)
    table = result.shows["relations"].frame
    assert np.allclose(table["gain"], table["correct"] - table["best offset"])
    assert list(table["gain"]) == sorted(table["gain"], reverse=True)
    rows = [how.row(place) for place in how.places if place[0] == "encoder_self"]
    for _, best in result.shows["best"].frame.iterrows():
        relation = how.relations.index(best["relation"])
        direction = ("to the governor", "to the dependent").index(best["looks"])
        assert best["correct"] == pytest.approx(how.hits[rows, direction, relation].max())


@pytest.mark.parametrize("view", [one_head, find, works])
def test_without_measurements_there_is_a_sentence_that_says_how_to_make_them(view, language_run):
    result = view(language_run)
    assert "python -m model.commands.head_scores" in result.facts["problem"]
    assert not result.shows
    assert result.blocks


@pytest.fixture
def language_run():
    from tests.model.analysis.heads.test_induction import language_model_of

    opened = language_model_of(False)
    return Run.of(opened, opened.trace("A dog runs."))
