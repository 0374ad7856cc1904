"""Heads and layers: map, tables and scores are the run's, in every look; what cannot be drawn is refused."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.analysis.heads.head_summary import summarise
from model.analysis.heads.head_tables import TableOptions, head_tables, norm_weighted, rollout
from model.analysis.heads.head_weights import weight_arrays
from model.analysis.heads.many_sentences import score_arrays
from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT, load_checkpoint
from model.run import Run
from model.trace import KIND_TITLES as KINDS
from pages.views.attention.heads_and_layers import aligned, all_heads, heads, many, weights
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.conftest import TYPED
from tests.pages.figures import figure, maps, numbers, seen
from tests.viz.payload import unpack
from viz.tokens import labels

PAGE = "pages/heads_and_layers.py"


def equal(drawn: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.float32(drawn), np.float32(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_norms_words_and_hiding_are_the_models_tables(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    norms = heads(run, values="norms")
    equal(maps(norms, "map")[0], seen(norm_weighted(run.attention)[2], run.attention.mask[2]))
    largest = head_tables(run.trace, kind, TableOptions("norms")).values.max()
    assert figure(norms, "map")["layout"]["coloraxis"]["cmax"] == pytest.approx(largest)
    tables = head_tables(run.trace, kind, TableOptions("norms", words=True, hide=True, renormalise=True))
    look = heads(run, values="norms", words=True, hide=True, renormalise=True)
    equal(maps(look, "map")[0], seen(tables.values[1, 2], tables.mask[1, 2]))
    hidden = heads(run, hide=True)
    equal(hidden.facts["removed"], head_tables(run.trace, kind, TableOptions(hide=True)).removed[1, 2])
    again = maps(heads(run, hide=True, renormalise=True), "map")[0]
    assert np.nansum(again, axis=-1) == pytest.approx(1, abs=1e-5)
    assert np.nansum(maps(hidden, "map")[0], axis=-1) == pytest.approx(1 - hidden.facts["removed"], abs=1e-5)
    assert hidden.facts["head"] == summarise(run.attention)[2]


def test_a_click_on_a_token_of_the_lines_chooses_the_token_of_the_run(run_at: Callable) -> None:
    run = replace(run_at("decoder_self", 1, 2), query=4, key=2)
    for whole_words in (False, True):
        picture = heads(run, words=whole_words).shows["lines"]
        header, _ = unpack(picture.drawing.data)
        choices, (row, column) = header["choices"], header["choices"]["chosen"]
        assert {control.key for control in picture.sets["choose"].values()} == {"kind", "query", "key"}
        assert choices["kind"] == "decoder_self"
        for side, at, token in (("query", row, 4), ("key", column, 2)):
            firsts = choices[side]
            assert len(firsts) == len(header["queries" if side == "query" else "keys"])
            assert firsts[at] <= token < [*firsts[1:], len(run.trace.tgt_tokens)][at]
            assert whole_words or firsts == list(range(len(run.trace.tgt_tokens)))


def test_rollout_is_drawn_for_the_encoder_and_refused_elsewhere(run_at: Callable) -> None:
    run = run_at("encoder_self", 1)
    patterns = [run.trace.attention("encoder_self", layer).pattern for layer in (0, 1)]
    equal(maps(heads(run, values="rollout"), "map")[0], rollout(patterns)[1].astype(np.float32))
    for kind in ("decoder_self", "cross"):
        run = run_at(kind, 1)
        result = heads(run, values="rollout")
        assert result.facts["refused"]
        equal(maps(result, "map")[0], seen(run.attention.pattern[0], run.attention.mask[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_a_row_a_head_and_only_numbers_that_there_are(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    summaries = [head for layer in (0, 1) for head in summarise(run.trace.attention(kind, layer))]
    removed = head_tables(run.trace, kind, TableOptions(hide=True)).removed.reshape(len(summaries), -1)
    picture = all_heads(run, hide=True).shows["table"]
    table, places = picture.frame, [(head.layer, head.head) for head in summaries]
    assert list(zip(table["layer"], table["head"], strict=True)) == places
    for column, name in {
        "type": "type",
        "entropy (bits)": "entropy",
        "confidence": "confidence",
        "rule": "rule",
    }.items():
        assert list(table[column]) == [getattr(head, name) for head in summaries]
    assert list(table["hidden"]) == pytest.approx(list(removed.mean(axis=1)))
    assert list(table["hidden, most"]) == pytest.approx(list(removed.max(axis=1)))
    assert ("previous" in table) == (kind != "cross")
    assert "hidden" not in all_heads(run).shows["table"].frame
    assert [tuple(chosen.values()) for chosen in picture.chooses] == places
    assert places[picture.ticked] == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["score", "layer"])
def test_a_click_on_a_mark_opens_its_head_and_one_on_a_sentence_runs_it(
    run_at: Callable, kind: str, order: str, checkpoint_folder: Path
) -> None:
    translator = load_checkpoint(str(checkpoint_folder / DEFAULT_CHECKPOINT), "cpu")
    shows = many(replace(run_at(kind, 1, 2), checkpoint=translator), order=order).shows
    scores, table, best = (shows[name] for name in ("scores", "table", "best"))
    for place, row in enumerate(table.frame.itertuples()):
        assert scores.clicked({"point_index": place}) == {"place": place, "layer": row.layer, "head": row.head}
    (opened,) = scores.marks
    assert scores.chooses[opened.x] == {"layer": 1, "head": 2}
    assert [chosen["source"] for chosen in best.chooses] == list(best.frame.iloc[:, 1])


@pytest.mark.parametrize("name", ["BERT", "ModernBERT"])
def test_hidden_special_tokens_are_named_as_the_model_names_them(name: str, tmp_path: Path) -> None:
    opened = load_checkpoint(save_family(tmp_path / name, name), "cpu")
    trace = opened.trace("Two dogs run.")
    special = trace.attention("encoder_self", 0).key_special
    names = {token for token, hides in zip(trace.src_tokens, special, strict=True) if hides}
    facts = heads(Run.of(opened, trace), hide=True).facts
    assert names
    assert set(facts["hidden"]) == names


def test_the_ticked_row_is_the_chosen_head(open_app: Callable) -> None:
    app = open_app(PAGE, **TYPED, layer="1", head="2", heads_part="All heads in numbers")
    for head in (2, 3):
        app.select_slider(key="head").set_value(head).run()
        row = app.dataframe[0].value.iloc[app.session_state["heads_and_layers-table"]["selection"]["rows"][0]]
        assert (row["layer"], row["head"]) == (1, head)


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_the_head_are_drawn_and_read_as_a_dictionary(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    result, found = weights(run), weight_arrays(run.opened, run.trace, kind, 1, 2)
    for line, key in zip(result.shows["values"].lines.values(), ("qk", "ov"), strict=True):
        assert line.y == pytest.approx(found[key])
    assert result.facts["sizes"] == (32, 8, 8)
    assert result.facts["dictionary"] == result.facts["writes"] == (kind != "encoder_self")
    if kind == "encoder_self":
        return
    table = result.shows["dictionary"]
    assert len(table) == len(run.attention.key_tokens)
    best = labels(run.opened.tokenizer.tokens(found["run_ids"][:, 0]))
    for cell, piece, logit in zip(table.iloc[:, 2], best, found["run_logits"][:, 0], strict=True):
        assert cell.startswith(f"{piece} ({logit:.2g})")
    assert result.facts["copy_score"] == found["copy_score"]


@pytest.mark.parametrize("score", ["distance", "copy", "errors"])
def test_any_score_sorts_the_heads_and_names_the_opened_one(
    run_at: Callable, checkpoint_folder: Path, score: str
) -> None:
    run = replace(run_at("cross", 1, 2), checkpoint=load_checkpoint(str(checkpoint_folder / DEFAULT_CHECKPOINT), "cpu"))
    found = score_arrays(run.opened, run.trace, "cross", score)
    result = many(run, score=score)
    lines = figure(result, "scores")["data"]
    mean = numbers(lines[0]["y"])
    assert list(mean) == pytest.approx(sorted(found["mean"], reverse=score != "errors"))
    own = found["mean"][(found["layer"] == 1) & (found["head"] == 2)][0]
    better = mean[mean != own] < own if score == "errors" else mean[mean != own] > own
    assert (result.facts["row"]["mean"], result.facts["rank"]) == (pytest.approx(own), 1 + better.sum())
    if score == "distance":
        by_name = dict(zip(lines[1]["customdata"], numbers(lines[1]["y"]), strict=True))
        here = zip(found["layer"], found["head"], found["here"], strict=True)
        assert by_name == pytest.approx({f"{layer}.{head}": value for layer, head, value in here})
    else:
        assert len(lines) == 1, "no score of this sentence"
    *_, layers = figure(many(run, score=score, order="layer"), "scores")["data"]
    assert layers["customdata"] == [f"{layer}.{head}" for layer in (0, 1) for head in range(4)]
    assert numbers(layers["y"]) == pytest.approx(found["layer_mean"])


PAIRS = "A dog runs. = Ein Hund rennt. | Two cats sleep. = Zwei Katzen schlafen."


def test_every_head_is_scored_on_typed_pairs_against_silver(run_at: Callable) -> None:
    result = aligned(run_at(), reference="silver", pairs=PAIRS)
    arrays, facts = result.arrays(), result.facts
    assert (facts["pairs"], result.values["reference"]) == (2, "silver")
    for number, reading in enumerate(("what they predict", "what they read")):
        drawn = result.shows["map"].maps[f"rows as {reading}"].values
        np.testing.assert_array_equal(drawn, arrays["error_rates"][..., number])
    best = arrays["error_rates"].min(axis=-1)
    assert best[tuple(facts["listed"][0])] == best.min()
    table = result.shows["table"]
    assert table.chooses[0] == {"kind": "cross"} | dict(zip(("layer", "head"), facts["listed"][0], strict=True))
    assert list(np.minimum(table.frame["predicts"], table.frame["reads"])) == sorted(best.ravel())


@pytest.mark.parametrize("pairs", ["A dog runs.", "a = b = c", "a = ", " | ", "", "A dog = Ein Hund | cat"])
def test_typed_pairs_that_are_none_are_answered_with_how_to_write_them(pairs: str, run_at: Callable) -> None:
    result = aligned(run_at(), reference="silver", pairs=pairs)
    assert "is not a pair. Write: A dog runs. = Ein Hund rennt." in result.facts["problem"]
    assert not result.shows
    assert any("is not a pair" in block.text for block in result.blocks)


def test_gold_that_comes_with_a_checkpoint_is_offered_first_and_its_faults_are_named(
    checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / DEFAULT_CHECKPOINT
    shutil.copytree(checkpoint_folder / DEFAULT_CHECKPOINT, folder)
    gold = folder / "alignments.tsv"
    gold.write_text("# by hand\nA dog.\tEin Hund.\t0-0 1-1 2-2\nA cat.\tEine Katze.\t0-0 1?1\n", encoding="utf-8")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    opened = load_checkpoint(DEFAULT_CHECKPOINT, "cpu")
    run = Run.of(opened, opened.trace("A dog.", "Ein Hund."))
    result = aligned(run)
    assert (result.values["reference"], result.values["pairs"], result.facts["pairs"]) == ("gold", None, 2)
    assert set(result.facts["baselines"]) == {"diagonal", "silver"}
    gold.write_text("A dog.\tEin Hund.\t0-9\n", encoding="utf-8")
    assert "alignments.tsv, line 1: '0-9' names word 9" in aligned(run).facts["problem"]
