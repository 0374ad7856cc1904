"""What heads do over many sentences: means of the single sentences, names by the same rules, a file that is checked."""

import json
import shutil
from itertools import zip_longest

import numpy as np
import pytest

from model.analysis.heads.alignments import CONVENTIONS, alignment_error_rate, count_links, make_links, word_weights
from model.analysis.heads.head_summary import summarise
from model.analysis.heads.head_weights import weight_arrays
from model.analysis.heads.induction import induction_scores
from model.analysis.heads.many_sentences import (
    BEST,
    FILE,
    NOT_OF_A_SENTENCE,
    SCORES,
    describe_heads,
    read_heads,
    score_arrays,
)
from model.analysis.heads.silver_alignments import METHOD, silver_alignments
from model.analysis.heads.tally import Tally, share_on_rarest
from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path, load_checkpoint
from model.commands import head_scores
from tests.conftest import FIXTURE
from tests.model.analysis.heads.test_induction import language_model_of
from tests.model.tiny import SENTENCES


@pytest.fixture
def opened(folder):
    shutil.copy(FIXTURE / FILE, folder)
    return load_checkpoint(folder.name, "cpu")


@pytest.fixture(scope="module")
def links():
    return silver_alignments(SENTENCES, SENTENCES)


def measure_heads(opened, traces, links=()):
    tally = Tally(opened)
    for trace, linked in zip_longest(traces, links):
        tally.add(trace, linked)
    return describe_heads(tally)


def count_head_links(trace, layer, links):
    return count_links(make_links(word_weights(trace, layer)[CONVENTIONS.index("predicts")]), links)


@pytest.fixture(scope="module")
def heads(translator, runs, links):
    return measure_heads(translator, runs, links)


def test_each_mean_and_spread_is_that_of_the_single_sentences(heads, runs):
    assert len(heads) == len({(head.kind, head.layer, head.head) for head in heads}) == 2 * 3 * 4
    for head in heads:
        single = [summarise(run.attention(head.kind, head.layer))[head.head] for run in runs]
        for name in head.mean.keys() - {"rarest", *NOT_OF_A_SENTENCE}:
            values = [getattr(summary, name) for summary in single]
            assert head.mean[name] == pytest.approx(np.mean(values))
            assert head.spread[name] == pytest.approx(np.std(values))
        kinds = [summary.type for summary in single]
        assert head.types == {name: kinds.count(name) / len(runs) for name in set(kinds)}


MISSING = {
    "encoder_self": {"copy", "induction", "errors"},
    "decoder_self": {"induction", "errors"},
    "cross": {"previous", "same", "next", "induction", "meaning"},
}
"""of a translator: its encoder writes no tokens, only cross-attention aligns, and nothing in it has to repeat"""


def test_each_kind_has_the_scores_that_make_sense_for_it(heads):
    for head in heads:
        assert head.mean.keys() == SCORES.keys() - MISSING[head.kind]
        assert head.spread.keys() == head.mean.keys() - set(NOT_OF_A_SENTENCE)


def test_scores_that_are_not_of_a_sentence_are_those_of_their_own_functions(translator, heads, runs, links):
    counts = [
        sum(count_head_links(run, layer, each) for run, each in zip(runs, links, strict=True)) for layer in (0, 1)
    ]
    for head in heads:
        if head.kind == "cross":
            assert head.mean["errors"] == pytest.approx(alignment_error_rate(counts[head.layer])[head.head])
        if "copy" in head.mean:
            arrays = weight_arrays(translator, runs[0], head.kind, head.layer, head.head)
            assert head.mean["copy"] == pytest.approx(float(arrays["copy_score"]))


@pytest.mark.parametrize("masked", [False, True])
def test_language_models_have_an_induction_score_with_the_spread_over_its_sequences(masked):
    model = language_model_of(masked)
    found, kind = induction_scores(model), "encoder_self" if masked else "decoder_self"
    for head in measure_heads(model, [model.trace("A dog runs.")]):
        scores = found[kind, head.layer][head.head]
        assert (head.mean["induction"], head.spread["induction"]) == pytest.approx((scores.mean(), scores.std()))
        assert "copy" in head.mean


def test_without_alignments_there_is_no_error_rate(translator, runs):
    assert not any("errors" in head.mean for head in measure_heads(translator, runs[:1]))


def test_the_best_sentences_are_those_with_the_largest_score(heads, runs, translator):
    for head in heads:
        scores = [score for _, score in head.best]
        assert len(scores) == min(BEST, len(runs))
        assert scores == sorted(scores, reverse=True)
        text, largest = head.best[0]
        run = next(run for run in runs if run.source == text)
        (again,) = (each for each in measure_heads(translator, [run]) if _place(each) == _place(head))
        assert again.mean[head.shows] == pytest.approx(largest)


def test_the_rarest_piece_is_never_a_special_token(runs):
    attention = runs[0].attention("encoder_self", 0)
    rarity = np.arange(len(attention.key_tokens), dtype=float)  # the end token would be the rarest
    expected = attention.pattern[:, :, -2].sum(axis=-1) / attention.pattern.sum(axis=(-2, -1))
    assert share_on_rarest(attention, rarity) == pytest.approx(expected)


def test_the_command_writes_what_the_runs_say(opened, heads, data):
    named = ["--checkpoint", DEFAULT_CHECKPOINT, "--data", str(data), "--of", "the tests' sentences"]
    head_scores.main([*named, "--align-with", str(data)])
    found = read_heads(opened)
    assert found.aligned == f"{METHOD}, trained on these and on the {len(SENTENCES)} sentence pairs of pairs.tsv"
    assert (found.sentences, found.of) == (len(SENTENCES), "the tests' sentences")
    assert found.targets == dict(SENTENCES)
    assert found.command.startswith(
        f"python -m model.commands.head_scores --checkpoint {DEFAULT_CHECKPOINT} --data {data} --of "
    )
    for ours, theirs in zip(heads, found.heads, strict=True):
        assert (_place(ours), ours.type) == (_place(theirs), theirs.type)
        assert theirs.mean == pytest.approx(ours.mean, rel=1e-3, abs=1e-3)
        assert {text for text, _ in theirs.best} == {text for text, _ in ours.best}


@pytest.mark.parametrize("score", ["confidence", "rarest"])
def test_a_score_of_this_run_stands_beside_its_mean(opened, runs, score):
    columns = score_arrays(opened, runs[0], "cross", score)
    (one,) = {len(column) for column in columns.values()}
    assert one == 2 * 4
    expected = [head.mean[score] for head in measure_heads(opened, runs[:1]) if head.kind == "cross"]
    assert columns["here"] == pytest.approx(expected)


def test_scores_without_a_sentence_stand_beside_nothing_and_layers_have_their_means(opened, runs):
    for score in ("copy", "errors"):
        columns = score_arrays(opened, runs[0], "cross", score)
        assert np.isnan(columns["here"]).all()
        assert np.isnan(columns["spread"]).all()
    for layer in (0, 1):
        of_layer = columns["layer"] == layer
        assert columns["layer_mean"][of_layer] == pytest.approx(columns["mean"][of_layer].mean())


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weights": "x", "heads": [{"kind": "cross"}]}'])
def test_a_missing_or_damaged_file_gets_a_sentence(opened, content):
    path = checkpoint_path(DEFAULT_CHECKPOINT) / FILE
    other = {**json.loads(path.read_text("utf-8")), "weights": "0" * 64}
    path.write_text(content)
    with pytest.raises(ValueError, match=r"damaged.*python -m model.commands.head_scores"):
        read_heads(opened)
    path.write_text(json.dumps(other))
    with pytest.raises(ValueError, match="other weights"):
        read_heads(opened)
    path.unlink()
    with pytest.raises(ValueError, match=r"has no heads\.json"):
        read_heads(opened)


def _place(head):
    return head.kind, head.layer, head.head
