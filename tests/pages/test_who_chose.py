"""Who chose this word, and why this score: sums, contrasts, clicks and what happens when a head is off."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from model.analysis.written import head_of_part, logit_parts_by_key
from model.checkpoints.translator import Translator
from model.interventions import HeadGate
from model.run import Run
from pages.views.attention.attention_step_by_step import why
from pages.views.experiment.who_chose import NOTHING, one_line, which_head
from pages.views.part_pictures import part_label, rank
from viz.tokens import labels

SOURCE, TARGET = "a dog and a cat", "Ein Hund und eine Katze."


@pytest.fixture(scope="module")
def run(translator: Translator) -> Run:
    return Run.of(translator, translator.trace(SOURCE, TARGET), "cross", 1, 2)


def test_the_bars_of_a_word_sum_to_its_lead_over_the_other_word(run: Run) -> None:
    row = 3
    other = next(one.id for one in run.trace.candidates[row] if one.id != run.trace.next_ids[row])
    lead = run.trace.logits[row, run.trace.next_ids[row]] - run.trace.logits[row, other]
    result = which_head(run, row=row, outcome=None)
    assert result.shows["parts"].values.sum() == pytest.approx(float(lead), abs=1e-4)
    assert result.facts["difference"] == pytest.approx(float(lead), abs=1e-4)
    alone = which_head(run, row=row, against=NOTHING, outcome=None).shows["parts"].values
    assert alone.sum() == pytest.approx(float(run.trace.logits[row, run.trace.next_ids[row]]), abs=1e-4)


def test_a_head_is_named_with_the_word_that_it_read(run: Run) -> None:
    """“it” of cross L1H2 ← it: the token through which it adds most, or takes most away."""
    result = which_head(run, row=3, outcome=None)
    picture, token, other = result.shows["parts"], run.trace.next_ids[3], result.facts["against"]
    (against,) = (one.id for one in run.trace.candidates[3] if one.token == other)
    by_key = logit_parts_by_key(run.opened, run.trace, 3, token, against)
    parts = dict(zip(result.numbers["part"], result.numbers["adds"], strict=True))
    heads = [name for name in by_key if any(shown.startswith(f"{part_label(name)} ← ") for shown in picture.names)]
    assert heads
    for name in heads:
        kind, layer, _ = head_of_part(name)
        keys = labels(run.trace.attention(kind, layer).key_tokens)
        most = by_key[name].argmax() if parts[name] >= 0 else by_key[name].argmin()
        assert f"{part_label(name)} ← {keys[most]}" in picture.names


def test_the_bars_stand_in_the_order_of_the_layers(run: Run) -> None:
    result = which_head(run, row=3, outcome=None)
    names = [*map(part_label, result.numbers["part"])]
    shown = [name.partition(" ← ")[0] for name in result.shows["parts"].names]
    places = [names.index(name) for name in shown if name in names]
    assert len(places) > 5
    assert places == sorted(places)


@pytest.mark.parametrize(
    "chosen", [{}, {"against": NOTHING}, {"typed": "Katze"}, {"row": 1}, {"row": 2, "typed": "Ein"}]
)
def test_the_headline_answers_what_the_picture_splits(run: Run, chosen: dict) -> None:
    shown, said = which_head(run, **chosen, outcome=None), one_line(run, **chosen)
    assert said.facts["head"] == shown.facts["first"][:2]
    for fact in ("word", "against", "difference"):
        assert said.facts[fact] == shown.facts[fact]
    (text,) = (block.text for block in said.blocks)
    assert said.facts["head"][0] in text
    assert ("lead" in text) == (said.facts["against"] is not None)


def test_the_page_shows_the_headline_of_what_is_typed_below_it(open_app: Callable[..., Any]) -> None:
    app = open_app("pages/who_chose.py", source=SOURCE, target=TARGET, wrote_typed="Katze").run()
    (answer,) = (one.value for one in app.markdown if one.value.startswith("Of all heads"))
    assert "over “K”" in answer


@pytest.mark.parametrize("typed", ["Hund", "  Katze ", "zzz", "🐕"])
def test_a_word_that_is_typed_takes_the_place_of_the_runner_up(run: Run, typed: str) -> None:
    token = run.opened.tokenizer.encode_next(run.opened.prepare(typed).strip())[0]
    result = which_head(run, row=2, typed=typed, outcome=None)
    runner_up = which_head(run, row=2, outcome=None).facts["against"]
    assert all(which_head(run, row=2, typed=blank, outcome=None).facts["against"] == runner_up for blank in ("", "   "))
    assert result.facts["against"] == run.opened.tokenizer.tokens([token])[0]
    lead = run.trace.logits[2, run.trace.next_ids[2]] - run.trace.logits[2, token]
    assert result.numbers["adds"].sum() == pytest.approx(float(lead), abs=1e-4)


def test_a_word_against_itself_is_said_to_be_no_contrast(run: Run) -> None:
    first = run.opened.tokenizer.encode_next("Ein")[0]
    result = which_head(run, row=run.trace.next_ids.index(first), typed="Ein", outcome=None)
    assert result.facts["same"]
    assert not result.numbers["adds"].any()
    assert any("cannot lead itself" in block.text for block in result.blocks)


def test_what_a_head_takes_along_is_measured_by_switching_it_off(run: Run) -> None:
    result, row = which_head(run, row=3), 3
    table = result.shows["table"]
    token = run.trace.next_ids[row]
    other = next(one.id for one in run.trace.candidates[row] if one.id != token)
    for place, lost in zip(table.chooses[:3], table.frame["lost when it is off"][:3], strict=True):
        off = run.forced(HeadGate(0.0, **place)).trace.logits[row].astype(float)
        before = run.trace.logits[row].astype(float)
        assert lost == pytest.approx((before[token] - before[other]) - (off[token] - off[other]), abs=1e-4)
    assert -1 <= result.facts["correlation"] <= 1


def test_a_click_on_a_product_opens_the_head_that_wrote_its_part(run: Run) -> None:
    picture = why(run).shows["products"]
    assert {control.key for control in picture.sets.values()} == {"kind", "layer", "head"}
    for name, chosen in zip((*picture.rows, *picture.columns), picture.chooses, strict=True):
        head = chosen["kind"], chosen["layer"], chosen["head"]
        assert part_label("{} {}.{}".format(*head)) == name or head == (run.kind, run.layer, run.head)


@pytest.mark.parametrize(("query", "key"), [(0, 0), (3, 2), (5, 4)])
def test_the_products_of_a_score_sum_to_it(run: Run, query: int, key: int) -> None:
    shows = why(run, query=query, key=key).shows
    score = run.attention.scores[run.head, query, key]
    assert shows["products"].values.sum() == pytest.approx(score, rel=1e-4, abs=1e-4)
    assert shows["largest"]["adds to q · k"].sum() == pytest.approx(score, rel=1e-4, abs=1e-4)


def test_in_the_first_layer_content_and_position_are_all_but_biases(translator: Translator) -> None:
    run = Run.of(translator, translator.trace(SOURCE, TARGET), "encoder_self", 0, 1)
    picture = why(run, query=2, key=1).shows["products"]
    embedded, attention = run.stream.embedded, run.attention
    w_q, w_k = (getattr(attention.projections, name)[1].astype(float) for name in ("w_q", "w_k"))
    vectors = {"embedding": embedded.embedding, "position": embedded.positional}
    for (i, own), (j, other) in product(vectors.items(), repeat=2):
        term = picture.values[picture.rows.index(i), picture.columns.index(j)]
        assert term == pytest.approx((own[2] @ w_q) @ (other[1] @ w_k), rel=1e-4, abs=1e-5)


def test_without_a_part_the_row_is_weighed_again(run: Run) -> None:
    facts = why(run, query=3, key=2).facts
    attention, head = run.attention, run.head
    row = attention.pre_softmax[head, 3].astype(float)
    row[2] = facts["without"] * attention.scale
    weights = np.exp(row - row.max()) * attention.mask[head, 3]
    assert facts["weight_without"] == pytest.approx(weights[2] / weights.sum(), rel=1e-5)
    assert facts["without"] == pytest.approx(facts["score"] - facts["removed"][2])


def test_a_part_that_was_switched_off_has_a_bar_of_no_height(translator: Translator) -> None:
    off = HeadGate(0.0, kind="cross", layer=1, head=2)
    trace = translator.trace(SOURCE, TARGET, interventions=(off,))
    result = which_head(replace(Run.of(translator, trace, "cross", 1, 2)), row=3, outcome=None)
    adds = dict(zip(result.numbers["part"], result.numbers["adds"], strict=True))
    assert adds["cross 1.2"] == 0
    assert any(value for name, value in adds.items() if head_of_part(name))


def test_the_largest_have_names_and_the_rest_is_summed() -> None:
    ranked = rank({"a": 1.0, "b": -3.0, "c": 0.5, "d": 0.25}, most=2)
    assert ranked.labels == ["b", "a", "2 others"]
    assert ranked.values.tolist() == [-3.0, 1.0, 0.75]
    assert rank({"a": 1.0}, most=2).labels == ["a"]
