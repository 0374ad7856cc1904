"""The page on heads without a browser: its map is the run's tensor in every look, its words say what was left out."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.heads.head_summary import summarise
from model.analysis.heads.head_tables import TableOptions, head_tables, norm_weighted, rollout
from model.analysis.heads.head_weights import weight_arrays
from model.analysis.heads.many_sentences import SCORES, score_arrays
from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT, load_checkpoint
from model.run import Run
from model.trace import KIND_TITLES as KINDS
from pages.views.attention.heads_and_layers import aligned, all_heads, heads, many
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.figures import figure, numbers, words
from tests.viz.payload import unpack
from viz.tokens import labels

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace

PAGE = "pages/heads_and_layers.py"
TEXT = "Ein Hund mit einer Katze."
SENTENCE = {"source": "a dog and a cat", "target": "Typed", "typed": TEXT}


@pytest.fixture(scope="module")
def trace(translator: "Translator") -> "Trace":
    return translator.trace(SENTENCE["source"], TEXT)


def drawn(app) -> np.ndarray:
    return numbers(figure(app, "heads_and_layers-map")["data"][0]["z"])


def seen(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.where(mask, values, np.nan).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_11_the_map_is_the_chosen_heads_weights(open_app: Callable, trace: "Trace", kind: str) -> None:
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], layer="1", head="2")
    assert not app.exception
    attention = trace.attention(kind, 1)
    assert np.array_equal(drawn(app), seen(attention.pattern[2], attention.mask[2]), equal_nan=True)
    summary = summarise(attention)[2]
    assert f"layer 1, head 2: {summary.type}." in words(app)
    assert summary.rule[1:] in words(app)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_words_and_hiding_are_the_models_tables(open_app: Callable, trace: "Trace", kind: str) -> None:
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], layer="1", head="2", heads_values="Norm-weighted")
    attention = trace.attention(kind, 1)
    assert np.array_equal(drawn(app), seen(norm_weighted(attention)[2], attention.mask[2]), equal_nan=True)
    largest = head_tables(trace, kind, TableOptions("norms")).values.max()
    assert figure(app, "heads_and_layers-map")["layout"]["coloraxis"]["cmax"] == pytest.approx(largest)
    app.toggle(key="heads_words").set_value(True).run()
    app.toggle(key="heads_hide").set_value(True).run()
    app.toggle(key="heads_again").set_value(True).run()
    assert not app.exception
    tables = head_tables(trace, kind, TableOptions("norms", words=True, hide=True, renormalise=True))
    assert np.array_equal(drawn(app), seen(tables.values[1, 2], tables.mask[1, 2]), equal_nan=True)


def test_a_click_on_a_token_of_the_lines_chooses_the_token_of_the_run(trace: "Trace", translator: "Translator") -> None:
    run = replace(Run.of(translator, trace, "decoder_self", 1, 2), query=4, key=2)
    for whole_words in (False, True):
        picture = heads(run, words=whole_words).shows["lines"]
        header, _ = unpack(picture.drawing.data)
        choices, (row, column) = header["choices"], header["choices"]["chosen"]
        assert {control.key for control in picture.sets["choose"].values()} == {"kind", "query", "key"}
        assert choices["kind"] == "decoder_self"
        for side, at, token in (("query", row, 4), ("key", column, 2)):
            firsts = choices[side]
            assert len(firsts) == len(header["queries" if side == "query" else "keys"])
            assert firsts[at] <= token < [*firsts[1:], len(trace.tgt_tokens)][at]
            assert whole_words or firsts == list(range(len(trace.tgt_tokens)))


def test_a_link_opens_the_same_look(open_app: Callable, trace: "Trace") -> None:
    look = {"heads_values": "Norm-weighted", "heads_kinds": "true", "heads_hide": "true"}
    asked = SENTENCE | look | {"heads_lines": "All heads of the layer", "kind": KINDS["decoder_self"]}
    app = open_app(PAGE, **asked, layer="1", head="3")
    assert not app.exception
    attention = trace.attention("decoder_self", 1)
    expected = seen(norm_weighted(attention)[3], attention.mask[3])[1:, 1:]
    assert np.array_equal(drawn(app), expected, equal_nan=True)
    assert app.segmented_control(key="heads_lines").value == "layer"


@pytest.mark.parametrize("kind", KINDS)
def test_15_hiding_a_token_states_its_mass_and_whether_rows_sum_to_one(
    open_app: Callable, trace: "Trace", kind: str
) -> None:
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], heads_hide="true")
    removed = head_tables(trace, kind, TableOptions(hide=True)).removed
    assert f"{removed[0, 0].mean():.2%} of a row on average" in words(app)
    assert f"at most {removed[0, 0].max():.2%}, in row" in words(app)
    assert "were not renormalised" in words(app)
    app.toggle(key="heads_again").set_value(True).run()
    assert "were renormalised" in words(app)
    values = drawn(app)
    assert np.nansum(values, axis=-1) == pytest.approx(1, abs=1e-5)


def test_rollout_is_drawn_for_the_encoder_and_refused_with_a_reason_elsewhere(
    open_app: Callable, trace: "Trace"
) -> None:
    app = open_app(PAGE, **SENTENCE, layer="1", heads_values="Rollout")
    patterns = [trace.attention("encoder_self", layer).pattern for layer in (0, 1)]
    assert np.array_equal(drawn(app), rollout(patterns)[1].astype(np.float32))
    for kind, reason in (("decoder_self", "would ignore"), ("cross", "two different sentences")):
        app.segmented_control(key="kind").set_value(kind).run()
        assert not app.exception
        assert reason in words(app)
        attention = trace.attention(kind, 1)
        assert np.array_equal(drawn(app), seen(attention.pattern[0], attention.mask[0]), equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_of_all_heads_and_the_rules_are_written_out(open_app: Callable, trace: "Trace", kind: str) -> None:
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], heads_words="true", heads_part="All heads in numbers")
    found = [head for layer in (0, 1) for head in summarise(trace.attention(kind, layer))]
    table = app.dataframe[0].value
    assert list(table["type"]) == [head.type for head in found]
    assert list(table["confidence"]) == pytest.approx([head.confidence for head in found])
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], heads_part="Rules and formulas")
    assert {head.type.split()[-1] for head in found} <= set(words(app).replace("*", "").replace(":", "").split())


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_a_row_a_head_and_only_numbers_that_there_are(trace: "Trace", kind: str) -> None:
    run = Run.of(None, trace, kind, 1, 2)
    summaries = [head for layer in (0, 1) for head in summarise(trace.attention(kind, layer))]
    removed = head_tables(trace, kind, TableOptions(hide=True)).removed.reshape(len(summaries), -1)
    picture = all_heads(run, hide=True).shows["table"]
    table, places = picture.frame, [(head.layer, head.head) for head in summaries]
    assert list(zip(table["layer"], table["head"], strict=True)) == places
    assert list(table["entropy (bits)"]) == [head.entropy for head in summaries]
    assert list(table["rule"]) == [head.rule for head in summaries]
    assert list(table["hidden"]) == pytest.approx(list(removed.mean(axis=1)))
    assert list(table["hidden, most"]) == pytest.approx(list(removed.max(axis=1)))
    assert ("previous" in table) == (kind != "cross")
    assert "hidden" not in all_heads(run).shows["table"].frame
    assert [tuple(chosen.values()) for chosen in picture.chooses] == places
    assert places[picture.ticked] == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["score", "layer"])
def test_a_click_on_a_mark_opens_its_head_and_one_on_a_sentence_runs_it(
    trace: "Trace", kind: str, order: str, checkpoint_folder: Path
) -> None:
    translator = load_checkpoint(str(checkpoint_folder / DEFAULT_CHECKPOINT), "cpu")
    shows = many(Run.of(translator, trace, kind, 1, 2), order=order).shows
    scores, table, best = (shows[name] for name in ("scores", "table", "best"))
    for place, row in enumerate(table.frame.itertuples()):
        assert scores.clicked({"point_index": place}) == {"place": place, "layer": row.layer, "head": row.head}
    (opened,) = scores.marks
    assert scores.chooses[opened.x] == {"layer": 1, "head": 2}
    assert [chosen["source"] for chosen in best.chooses] == list(best.frame.iloc[:, 1])


def test_a_language_model_is_not_said_to_read_a_source_where_rollout_is_refused(open_family: Callable) -> None:
    lm = words(open_family(PAGE, checkpoint="lm", source="Two dogs", new_tokens="3", heads_values="Rollout"))
    assert "Rollout is drawn for encoder self-attention only" in lm
    assert "cross-attention" not in lm.partition("Rollout is drawn")[2].partition("shown instead")[0]


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
    app = open_app(PAGE, **SENTENCE, layer="1", head="2", heads_part="All heads in numbers")
    for head in (2, 3):
        app.select_slider(key="head").set_value(head).run()
        row = app.dataframe[0].value.iloc[app.session_state["heads_and_layers-table"]["selection"]["rows"][0]]
        assert (row["layer"], row["head"]) == (1, head)


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_the_head_are_drawn_and_read_as_a_dictionary(
    open_app: Callable, translator: "Translator", trace: "Trace", kind: str
) -> None:
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], layer="1", head="2", heads_part="Weights of the head")
    assert not app.exception
    found = weight_arrays(translator, trace, kind, 1, 2)
    for drawn_line, key in zip(figure(app, "heads_and_layers-values")["data"], ("qk", "ov"), strict=True):
        assert numbers(drawn_line["y"]) == pytest.approx(found[key])
    assert r"$ = 32 singular values at most $d_k$ = 8" in words(app)
    if kind == "encoder_self":
        assert "the encoder writes no tokens" in words(app)
        return
    table = app.dataframe[0].value
    assert len(table) == len(trace.attention(kind, 1).key_tokens)
    best = labels(translator.tokenizer.tokens(found["run_ids"][:, 0]))
    for cell, piece, logit in zip(table.iloc[:, 2], best, found["run_logits"][:, 0], strict=True):
        assert cell.startswith(f"{piece} ({logit:.2g})")
    assert f"Copy score {found['copy_score']:.3f}".replace("-", "−") in words(app)


@pytest.mark.parametrize(("kind", "score"), [("cross", "distance"), ("cross", "copy"), ("cross", "errors")])
def test_any_score_sorts_the_heads_and_names_the_opened_one(
    open_app: Callable, translator: "Translator", trace: "Trace", kind: str, score: str
) -> None:
    query = {"many_score": SCORES[score], "heads_part": "Over many sentences", "layer": "1", "head": "2"}
    app = open_app(PAGE, **SENTENCE, kind=KINDS[kind], **query)
    assert not app.exception
    found = score_arrays(translator, trace, kind, score)
    lines = figure(app, "heads_and_layers-scores")["data"]
    mean = numbers(lines[0]["y"])
    assert list(mean) == pytest.approx(sorted(found["mean"], reverse=score != "errors"))
    own = found["mean"][(found["layer"] == 1) & (found["head"] == 2)][0]
    place = 1 + int((mean[mean != own] < own if score == "errors" else mean[mean != own] > own).sum())
    assert f"**{own:.3f}**".replace("-", "−") in words(app)
    assert f"number {place} of 8" in words(app)
    if score == "distance":
        by_name = dict(zip(lines[1]["customdata"], numbers(lines[1]["y"]), strict=True))
        here = {f"{layer}.{head}": value for layer, head, value in zip(*map(found.get, PLACED), strict=True)}
        assert by_name == pytest.approx(here)
        assert "8 sentences" in words(app)
        assert "on this one" in words(app)
    else:
        assert len(lines) == 1, "no score of this sentence"
    assert ("**silver**, not gold" in words(app)) == (score == "errors")
    app.segmented_control(key="many_order").set_value("layer").run()
    *_, layers = figure(app, "heads_and_layers-scores")["data"]
    assert layers["customdata"] == [f"{layer}.{head}" for layer in (0, 1) for head in range(4)]
    assert numbers(layers["y"]) == pytest.approx(found["layer_mean"])


PLACED = ("layer", "head", "here")


PAIRS = "A dog runs. = Ein Hund rennt. | Two cats sleep. = Zwei Katzen schlafen."


def test_every_head_is_scored_on_typed_pairs_against_silver(translator: "Translator", trace: "Trace") -> None:
    result = aligned(Run.of(translator, trace), reference="silver", pairs=PAIRS)
    arrays, facts = result.arrays(), result.facts
    assert (facts["pairs"], facts["reference"]) == (2, "silver")
    for number, reading in enumerate(("what they predict", "what they read")):
        drawn = result.shows["map"].maps[f"rows as {reading}"].values
        np.testing.assert_array_equal(drawn, arrays["error_rates"][..., number])
    best = arrays["error_rates"].min(axis=-1)
    assert best[tuple(facts["listed"][0])] == best.min()
    table = result.shows["table"]
    assert table.chooses[0] == {"kind": "cross"} | dict(zip(("layer", "head"), facts["listed"][0], strict=True))
    assert list(np.minimum(table.frame["predicts"], table.frame["reads"])) == sorted(best.ravel())


@pytest.mark.parametrize("pairs", ["A dog runs.", "a = b = c", "a = ", " | ", "", "A dog = Ein Hund | cat"])
def test_typed_pairs_that_are_none_are_answered_with_how_to_write_them(
    pairs: str, translator: "Translator", trace: "Trace"
) -> None:
    result = aligned(Run.of(translator, trace), reference="silver", pairs=pairs)
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
