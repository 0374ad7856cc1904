"""Family tree: what is drawn adds up to what is counted, a click draws another model, and every family opens it."""

import re
from pathlib import Path

import numpy as np
import pytest

from model.background.family import members
from model.background.then_and_now import tokens_of_log
from model.checkpoints.card import read_card
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.translator import Translator
from model.run import Run
from pages.views.beyond import family_tree
from pages.views.beyond.family_tree import pieces, trainings, tree, uses
from pages.views.examples import Examples
from pages.views.standalone import texts_of
from tests.pages.conftest import SHIPPED
from viz.latex import signed

PAGE = "pages/family_tree.py"


@pytest.fixture(scope="module")
def run(translator: Translator) -> Run:
    return Run.of(translator, translator.trace("a dog and a cat"))


def areas(result) -> dict[str, float]:
    """Width times height of all bars, by the title of the model."""
    sums: dict[str, float] = {}
    for trace in result.shows["scale"].to_dict()["data"]:
        for height, width, about in zip(trace["y"], trace["width"], trace["customdata"], strict=True):
            title = next(title for title in result.facts["totals"] if about.startswith(title))
            sums[title] = sums.get(title, 0) + height * width
    return sums


@pytest.mark.parametrize("beside", ["", "PaLM, 540B", "ViT, L/16"])
def test_the_areas_of_the_picture_are_the_parameters(run: Run, beside: str) -> None:
    result = tree(run, chosen="T5, 11B", beside=beside)
    assert areas(result) == pytest.approx(result.facts["totals"], rel=1e-9)
    if not beside:
        *_, own = result.facts["totals"].values()
        assert own == sum(run.opened.parameters_by_part().values())


def test_models_are_drawn_on_one_scale_and_beside_each_other(run: Run) -> None:
    drawn = tree(run, chosen="Mistral, 7B", beside="Mixtral, 8x7B").shows["scale"].to_dict()
    assert drawn["layout"]["yaxis"]["scaleanchor"] == "x"
    ends: dict[bool, list[float]] = {True: [], False: []}
    for trace in drawn["data"]:
        for x, width, about in zip(trace["x"], trace["width"], trace["customdata"], strict=True):
            ends[about.startswith("Mistral")] += [x - width / 2, x + width / 2]
    assert max(ends[True]) < min(ends[False])


def test_every_model_can_be_chosen_at_every_length(run: Run) -> None:
    for one in members():
        for n in (100, 1_000_000):
            result = tree(run, chosen=one.name, n=n)
            assert result.facts["total"] == one.total
            assert "nan" not in " ".join(texts_of(result.blocks)), one.name


def test_a_click_on_a_model_chooses_it_in_the_picture_and_in_the_table(run: Run) -> None:
    result = tree(run)
    years, table = result.shows["years"], result.shows["all"]
    assert table.frame["context"].tolist() == ["" if one.context is None else f"{one.context:,}" for one in members()]
    for place, one in enumerate(members()):
        assert years.clicked({"point_index": place})["member"] == one.name == table.chooses[place]["member"]
    assert tree.key("chosen") == "family_member"


def test_the_checkpoint_to_open_is_one_that_is_shipped() -> None:
    assert {one.nearest for one in members()} <= {path.parent.name for path in SHIPPED.glob("*/config.json")}


@pytest.mark.parametrize("name", ["lm", "mlm", "GPT-2", "Gemma 2"])
def test_other_families_stand_beside_a_member_whole(name: str, families: Path, others: dict[str, str]) -> None:
    opened = open_model(others[name]) if name in others else load_checkpoint(str(families / name), "cpu")
    result = tree(Run.of(opened, opened.trace("Two dogs run.")))
    *_, own = result.facts["totals"].values()
    assert own == sum(opened.parameters_by_part().values())
    assert areas(result) == pytest.approx(result.facts["totals"], rel=1e-9)


def test_the_text_is_cut_in_four_ways_that_end_where_the_text_ends(run: Run) -> None:
    result = pieces(run)
    assert [*result.shows["texts"].texts] == [*result.shows["counts"]["vocabulary"]]
    assert len(result.shows["texts"].texts) == 4
    assert list(result.shows["counts"]["pieces"])[-1] == len(run.trace.src_tokens)
    assert result.facts["bytes"] == len(run.trace.source.encode())


@pytest.mark.parametrize("name", ["lm", "mlm", "GPT-2", "Gemma 2"])
def test_the_own_vocabulary_reads_the_text_in_order_up_to_its_end(
    name: str, families: Path, others: dict[str, str]
) -> None:
    opened = open_model(others[name]) if name in others else load_checkpoint(str(families / name), "cpu")
    text = "Two dogs, naïve."
    (tokens, *_) = (stream.tokens for stream in opened.trace(text).streams.values())
    read = family_tree._read_by(tokens, text)
    assert read == sorted(read)
    assert read[-1] == len(text.replace(" ", "").encode())


def test_this_checkpoint_stands_last_among_the_trainings_with_the_operations_of_its_log() -> None:
    shipped = load_checkpoint(str(SHIPPED / DEFAULT_CHECKPOINT), "cpu")
    own = trainings(Run.of(shipped, shipped.trace("A dog.", beam_size=1))).facts["own"]
    parameters = sum(shipped.parameters_by_part().values())
    assert own["row"]["text"].endswith(" tokens of the target")
    assert own["row"]["operations"] == signed(6 * parameters * own["tokens"], ".1e")


def test_operations_have_no_more_digits_than_their_estimate(run: Run) -> None:
    table = trainings(run).shows["trainings"]
    assert ([*table.frame.columns[:2]], table.pinned) == (["model", "operations"], ("model",)), "what is compared"
    said = [cell for cell in table.frame["operations"] if cell]
    assert len(said) >= 4
    assert all(len(re.match(r"[\d.,]+", str(cell))[0].replace(".", "")) <= 2 for cell in said), said


def test_the_tokens_of_a_log_are_those_of_all_runs_of_the_training() -> None:
    """12 rows of three runs: the speed is a mean since the run began, the hours and the steps go on."""
    rows, step, hours, read = [], 0, 0.0, 0
    for tokens_a_step, seconds in ((1000, [5, 90, 8, 20]), (1000, [400, 7, 30, 2]), (2000, [9, 9, 9, 300])):
        tokens = began = 0.0
        for one in seconds:
            step, tokens, began, hours = step + 100, tokens + 100 * tokens_a_step, began + one, hours + one / 3600
            rows.append({"step": step, "hours": hours, "tokens_per_second": tokens / began})
        read += tokens
    assert tokens_of_log(rows) == pytest.approx(read)
    counted = [
        row | {"tokens": 7 * count} for row, count in zip(rows, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4], strict=True)
    ]
    assert tokens_of_log(counted) == 3 * 28
    assert tokens_of_log([{"step": 1.0}]) is tokens_of_log([]) is None


@pytest.mark.parametrize(("name", "millions"), {"en-de": 48.3, "multi30k-tiny": 35.7, "everyday-lm-2017": 6.25}.items())
def test_the_tokens_of_a_shipped_log(name: str, millions: float) -> None:
    assert tokens_of_log(read_card(SHIPPED / name).log) / 1e6 == pytest.approx(millions, rel=5e-3)


def test_a_copy_is_fine_tuned_on_request(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_tree, "held_out_pairs", lambda _: [])
    assert uses(run, outcome=None).facts["done"] is False
    done = uses(run)
    assert done.facts["own"][1] > done.facts["own"][0]
    assert not done.facts["held_out"]


def test_what_is_forgotten_is_measured_on_held_out_pairs_where_there_are_some(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("a dog " * run.opened.token_limit, "zu lang")]
    monkeypatch.setattr(family_tree, "held_out_pairs", lambda _: pairs)
    done = uses(run)
    forced = [run.opened.trace(*pair) for pair in pairs[:2]]
    before = np.mean([one.log_probability / len(one.next_ids) for one in forced])
    assert done.facts["others"][0] == pytest.approx(before, abs=1e-5)


def test_other_sentences_are_cut_where_the_models_positions_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a dog. " * run.opened.token_limit
    monkeypatch.setattr(family_tree, "held_out_pairs", lambda _: [])
    monkeypatch.setattr(family_tree, "examples_of", lambda _: Examples(sentences=(long, "a cat")))
    assert uses(run).facts["texts"] == 2
