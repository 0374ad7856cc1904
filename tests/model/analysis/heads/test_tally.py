"""Heads over a corpus: sums that go on where they were, distributions of the single sentences, likeness of heads."""

import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from model.analysis.heads.grammar import DIRECTIONS, NEAREST, OFFSETS
from model.analysis.heads.many_sentences import (
    DISTRIBUTIONS,
    Distributions,
    Gain,
    _describe_grammar,
    describe_distributions,
    describe_heads,
    percentile_of,
    read_distributions,
    read_heads,
)
from model.analysis.heads.tally import FARTHEST, SCORES, Tally, measure, signed_distances
from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path, load_checkpoint
from model.commands import head_scores
from model.run import Request
from tests.model.tiny import SENTENCES


@pytest.fixture(scope="module")
def tally(translator, runs):
    tally = Tally(translator)
    for run in runs:
        tally.add(run)
    return tally


@pytest.fixture
def opened(folder):
    return load_checkpoint(folder.name, "cpu")


def test_a_tally_that_was_stopped_ends_as_one_that_was_not(translator, tally, runs, tmp_path):
    texts = [run.source for run in runs]
    first = Tally(translator, folder=tmp_path)
    first.resume("key", texts)
    first.add(runs[0])
    first.save("key")
    first.add(runs[1])  # which is lost: nobody saved it
    again = Tally(translator, folder=tmp_path)
    again.resume("key", texts)
    assert again.runs == 1
    for run in runs[1:]:
        again.add(run)
    again.save("key")
    assert describe_heads(again) == describe_heads(tally)


def test_a_tally_of_something_else_begins_anew(translator, runs, tmp_path):
    first = Tally(translator, folder=tmp_path)
    first.add(runs[0])
    first.save("one thing")
    second = Tally(translator, folder=tmp_path)
    second.resume("another", [run.source for run in runs])
    assert (second.runs, second.texts, second.sums) == (0, [], {})
    assert not list(tmp_path.iterdir())


def test_memory_and_sums_do_not_grow_with_the_runs(translator, runs, tmp_path):
    sizes = []
    tally = Tally(translator, folder=tmp_path)
    for _ in range(2):
        for run in runs:
            tally.add(run)
        tally.save("key")
        sizes.append(sum(each.nbytes for each in tally.sums.values()))
        assert not tally._rows
    assert sizes[0] == sizes[1]


def test_percentiles_and_bars_are_of_the_single_sentences(tally):
    how = describe_distributions(tally)
    for place, column in tally.columns():
        for name, scores in column.scores.items():
            percentiles, counts = how.of(place, name)
            assert percentiles[[0, 50, 100]] == pytest.approx([scores.min(), np.median(scores), scores.max()], abs=1e-6)
            assert counts.sum() == len(scores)
        assert len(column.scores) == sum(not np.isnan(how.of(place, name)[0]).any() for name in SCORES)


def test_a_drawn_sentence_lies_in_its_tenth(tally):
    how = describe_distributions(tally)
    columns = dict(tally.columns())
    seen = 0
    for (head, score, tenth, number), text in np.ndenumerate(how.drawn):
        if text >= 0:
            value = columns[how.places[head]].scores[how.scores[score]][tally.texts.index(how.texts[text])]
            cuts = how.percentiles[head, score]
            assert how.values[head, score, tenth, number] == pytest.approx(value)
            assert cuts[10 * tenth] - 1e-6 <= value <= cuts[10 * tenth + 10] + 1e-6
            seen += 1
    assert seen >= len(how.places)


@pytest.mark.parametrize(
    ("value", "expected"), [(-1.0, 0), (0.0, 15), (5.0, 65), (10.0, 100), (11.0, 100), (0.5, 32.5)]
)
def test_a_percentile_counts_the_smaller_half_of_the_equal(value, expected):
    percentiles = np.concatenate([np.zeros(31), np.linspace(0, 10, 71)[1:]])  # 0, 0, ... up to 10
    left = percentile_of(value, percentiles)
    assert left == pytest.approx(expected, abs=3)
    assert 0 <= left <= 100


def test_offsets_are_shares_and_agree_with_the_scores(tally):
    how = describe_distributions(tally)
    assert how.offsets.sum(axis=-1) == pytest.approx(np.ones(len(how.places)), abs=1e-4)
    for head, offsets in zip(describe_heads(tally), how.offsets, strict=True):
        if "previous" in head.mean:
            shares = [head.mean[name] for name in ("previous", "same", "next")]
            assert offsets[FARTHEST - 1 : FARTHEST + 2] == pytest.approx(shares, abs=0.05)  # weighted otherwise


def test_a_cross_attention_of_equal_lengths_is_measured_from_its_diagonal():
    apart = signed_distances(True, 4, 4)
    assert (apart == signed_distances(False, 4, 4)).all()
    assert signed_distances(True, 3, 5).tolist() == [[0, 1, 2, 3, 4], [-2, -1, 0, 1, 2], [-4, -3, -2, -1, 0]]


def test_heads_are_as_alike_as_they_are_named(tally, runs):
    """The correlation of two heads, from their weights, is that in the table, and a head is not like itself."""
    head = next(one for one in describe_heads(tally) if one.kind == "cross")
    layer, number, said = head.alike[0]
    assert (layer, number) != (head.layer, head.head)
    mine, other = [], []
    for run in runs:
        for found, (where, which) in ((mine, (head.layer, head.head)), (other, (layer, number))):
            attention = run.attention("cross", where)
            found.append((attention.pattern[which] - 1 / attention.pattern.shape[-1]).ravel())
    mine, other = np.concatenate(mine).astype(float), np.concatenate(other).astype(float)
    assert said == pytest.approx(mine @ other / np.sqrt((mine @ mine) * (other @ other)), abs=1e-6)
    assert [each for *_, each in head.alike] == sorted((each for *_, each in head.alike), reverse=True)


def test_heads_with_the_same_matrices_are_most_alike_by_them(tally, runs):
    head = next(one for one in describe_heads(tally) if one.kind == "encoder_self")
    layer, number, said = head.alike_ov[0]
    products = []
    for where, which in ((head.layer, head.head), (layer, number)):
        learned = runs[0].attention("encoder_self", where).projections
        products.append((learned.w_v[which].astype(float) @ learned.w_o[which]).ravel())
    mine, other = products
    assert said == pytest.approx(mine @ other / np.linalg.norm(mine) / np.linalg.norm(other), abs=1e-6)


def test_the_pieces_attended_to_are_those_with_more_than_equal_weights(tally, runs):
    head = describe_heads(tally)[0]
    piece, ratio, count = head.keys[0]
    got = equal = often = 0.0
    for run in runs:
        attention = run.attention(head.kind, head.layer)
        places = [i for i, token in enumerate(attention.key_tokens) if token == piece]
        got += attention.pattern[head.head][:, places].sum()
        equal += len(attention.query_tokens) * len(places) / len(attention.key_tokens)
        often += len(places)
    assert (ratio, count) == (pytest.approx(got / equal, rel=1e-5), often)
    assert all(not token.startswith("<") for token, *_ in (*head.keys, *head.queries))


def test_the_command_translates_itself_goes_on_and_leaves_nothing_behind(opened, tmp_path, monkeypatch):
    data = tmp_path / "lines.txt"
    data.write_text("".join(f"{source}\n" for source, _ in SENTENCES), encoding="utf-8")
    command = ["--checkpoint", DEFAULT_CHECKPOINT, "--data", str(data), "--of", "tests"]
    monkeypatch.setattr(head_scores, "BLOCK", 2)
    saves, save = [], Tally.save

    def stop(tally, key):
        save(tally, key)
        saves.append(tally.runs)
        if len(saves) == 1:
            raise ValueError("stopped")

    monkeypatch.setattr(Tally, "save", stop)
    with pytest.raises(ValueError, match="stopped"):
        head_scores.main(command)
    head_scores.main(command)
    found, how = read_heads(opened), read_distributions(opened)
    assert saves[:2] == [2, min(4, len(SENTENCES))]
    assert (found.sentences, found.own_translations, found.targets) == (len(SENTENCES), True, {})
    assert 0 < found.seconds["recording"] < found.seconds["all"]
    assert how.places == tuple(head.place for head in found.heads)
    assert not (checkpoint_path(DEFAULT_CHECKPOINT) / head_scores.UNFINISHED).exists()
    # The value beside a sentence is that of the run that the app opens with it.
    assert found.beam_size == Request("").beam_size
    run_of = cache(opened.trace)
    for head in found.heads:
        for text, value in head.best:
            trace = run_of(text)
            scores, _ = measure(opened, trace, trace.attention(head.kind, head.layer))[head.head]
            assert value == pytest.approx(scores[head.shows], rel=2e-3, abs=1e-4)


def test_lines_that_were_learned_from_are_left_out_however_they_are_typed(tmp_path):
    data, known = tmp_path / "lines.txt", tmp_path / "train.tsv"
    data.write_text("It is late.\nA dog runs.\nHe sleeps.\n", encoding="utf-8")
    known.write_text("a dog runs\tEin Hund rennt.\n", encoding="utf-8")
    assert head_scores.read_sentences(data, [known]) == [("It is late.",), ("He sleeps.",)]
    with pytest.raises(ValueError, match="no line"):
        head_scores.read_sentences(data, [data])


def test_a_missing_damaged_or_foreign_file_gets_a_sentence(opened):
    path = checkpoint_path(DEFAULT_CHECKPOINT) / DISTRIBUTIONS
    path.unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"has no heads\.npz"):
        read_distributions(opened)
    for content in (b"", b"PK\x03\x04 no archive", json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"damaged.*head_scores"):
            read_distributions(opened)


def test_what_is_chosen_on_one_half_of_the_sentences_is_judged_on_the_other():
    """400 words of one relation in each half: the best offset and part of speech of the first fail on the second."""
    shape = 2, len(DIRECTIONS), 1
    words, hits = np.full(shape, 400.0), np.full((*shape, 1), 240.0)
    offsets, nearest = np.zeros((*shape, len(OFFSETS))), np.zeros((*shape, len(NEAREST)))
    offsets[0, :, 0, 3], offsets[1, :, 0, 3], offsets[1, :, 0, 5] = 200, 40, 390
    nearest[0, :, 0, 7], nearest[1, :, 0, 7] = 100, 236
    sums = {f"relation {name} encoder_self": part for name, part in
            {"words": words, "hits": hits, "offsets": offsets, "nearest": nearest}.items()}  # fmt: skip
    tally = SimpleNamespace(
        places=[("encoder_self", 0, 0)], kinds={"encoder_self": None}, relations=("nsubj",), sums=sums, runs=800
    )
    none = np.zeros((1, 1, 1))
    how = Distributions((("encoder_self", 0, 0),), (), none, none, (), none, none, none, **_describe_grammar(tally))
    assert (how.yardstick == np.float32(0.1)).all()
    assert (how.offset == OFFSETS[3]).all()
    assert how.chosen == pytest.approx(0.1)
    beyond = how.beyond(("encoder_self", 0, 0))
    assert (beyond.tag, beyond.side) == NEAREST[7]
    assert beyond.by_offset.value == pytest.approx(0.5)
    assert beyond.by_nearest.value == pytest.approx(0.01, rel=1e-3)
    assert beyond.by_offset.low > 0 > beyond.by_nearest.low
    assert not beyond.survives
    assert beyond._replace(by_nearest=Gain(0.1, 0.01, 0.2)).survives
    assert not beyond._replace(by_offset=Gain(0.09, 0.01, 0.2), by_nearest=Gain(0.1, 0.01, 0.2)).survives
