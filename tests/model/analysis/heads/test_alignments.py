"""Which heads align: one that was trained to is found first; files of gold are read strictly; what an error is."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.analysis.heads.alignments import (
    WORD,
    AlignedPair,
    AlignmentReport,
    Links,
    alignment_error_rate,
    count_links,
    diagonal_links,
    measure_alignment,
    read_gold,
    score_links,
    word_weights,
)
from model.analysis.heads.silver_alignments import silver_alignments
from model.background.recurrence import TRANSFORMER, VOCABULARY, read_letters_model
from model.checkpoints.huggingface.opening import open_model
from model.checkpoints.tokenizer import train_tokenizer
from model.checkpoints.translator import Translator
from model.network.encoder_decoder import Transformer
from model.training.reversal_task import reversals
from tests.model.checkpoints.huggingface.families import SOURCE, TARGET, tiny_model
from tests.model.tiny import SENTENCES

GOLD = Path(__file__).parents[4] / "checkpoints" / "en-de" / "alignments.tsv"


@pytest.fixture(scope="module")
def reverser():
    """The shipped Transformer that reverses letters, with a vocabulary that reads "c a t"."""
    letters = VOCABULARY[-26:]
    tokenizer = train_tokenizer((source for source, _ in reversals(500, seed=1)), 313)
    trained = read_letters_model(TRANSFORMER)
    model = Transformer(replace(trained.config, vocab_size=len(tokenizer)))
    weights = {name: tensor for name, tensor in trained.state_dict().items() if tensor.shape[:1] != (len(VOCABULARY),)}
    ids = [*range(len(VOCABULARY) - 26), *(tokenizer.encode(letter)[0] for letter in letters)]
    missing = model.load_state_dict(weights, strict=False).missing_keys
    assert all("embedding" in name or "output" in name for name in missing)
    with torch.no_grad():
        model.output.weight.zero_()
        model.output.weight[ids] = trained.output.weight
    return Translator("reverser", "hash", model.eval().requires_grad_(False), tokenizer)


def reversed_pairs(count, longest=6):
    """Pairs of letters and their reverse, linked as they were made."""
    pairs = [pair for pair in reversals(count, seed=7) if len(pair[0].split()) <= longest]
    turned = [np.eye(len(source.split()), dtype=bool)[::-1] for source, _ in pairs]
    return [AlignedPair(*pair, Links(sure, sure)) for pair, sure in zip(pairs, turned, strict=True)]


def test_the_trained_reverser_has_one_perfect_head_which_is_found_first(reverser):
    *_, (done, found) = measure_alignment(reverser, reversed_pairs(100, longest=7), "gold")
    best = found.alignment_heads
    assert done == 1
    assert best[0].aer == 0
    assert best[0].convention == "predicts"
    assert sum(one.aer == 0 for one in best) == 1
    written = json.loads(json.dumps(found.to_json()))
    assert (written["reference"], len(written["heads"]), len(written["layers"])) == ("gold", 8, 2)
    assert written["layers"][0].keys() | {"head"} == written["heads"][0].keys()
    assert written["alignment_heads"][0] == [best[0].layer, best[0].head]
    assert len(written["conventions"]) == len(best)
    (row,) = (row for row in written["heads"] if [row["layer"], row["head"]] == written["alignment_heads"][0])
    assert row["aer_predicts"] == 0 < 0.5 < row["aer_reads"]
    assert (row["precision"], row["recall"], row["f1"]) == (1, 1, 1)
    assert written["ctranslate2"]["alignment_layer"] == best[0].layer


def test_every_head_within_the_limit_is_listed_best_first_whatever_its_convention():
    wrong = np.array([[[0, 90], [50, 5]], [[6, 6], [90, 0]]])
    counts = np.stack([100 + 0 * wrong, 100 - wrong, 100 - wrong, 100 + 0 * wrong], axis=-1)
    found = AlignmentReport("gold", (2, 5), counts, counts)
    listed = [(one.layer, one.head, one.convention) for one in found.alignment_heads]
    assert listed == [(2, 0, "predicts"), (5, 1, "reads"), (2, 1, "reads")]  # 0.06 is too far, 0.05 is not


def test_ctranslate2_is_told_the_layer_and_the_number_of_first_heads_whose_mean_is_best():
    wrong = np.array([[9, 8, 7], [6, 5, 6]])
    counts = np.stack([100 + 0 * wrong, 100 - wrong, 100 - wrong, 100 + 0 * wrong], axis=-1)
    means = np.stack([counts, counts * 0 + counts[:1, :1]], axis=2)
    assert AlignmentReport("gold", (0, 3), means, means).ctranslate2 == (3, 2, pytest.approx(0.05))


@pytest.mark.parametrize("family", ["Marian", "BART", "M2M100", "T5"])
def test_heads_of_hugging_face_models_are_scored_too(family):
    opened = open_model(tiny_model(family), None, family)
    texts = [(SOURCE, TARGET), (TARGET, SOURCE)]
    pairs = [AlignedPair(*text, links) for text, links in zip(texts, silver_alignments(texts), strict=True)]
    *_, (_, found) = measure_alignment(opened, pairs, "silver")
    assert found.heads.shape == (3, 4, 2, 4)
    assert (found.pairs, found.left_out) == (2, 0)
    assert found.heads[..., 0].min() > 0
    assert ((found.error_rates >= 0) & (found.error_rates <= 1)).all()


def test_weights_are_summed_over_source_pieces_and_averaged_over_target_pieces(translator):
    source, target = "Newspaper outside.", "Zeitung draußen."
    trace = translator.trace(source, target)
    pattern = trace.attention("cross", 0).pattern.astype(float)
    weights = word_weights(trace, 0)
    texts = trace.streams["encoder"].tokens, trace.streams["decoder"].predicts
    keys, rows = ([_word_at(tokens, i) for i in range(len(tokens))] for tokens in texts)
    assert keys.count(0) > 1
    assert rows.count(0) > 1
    columns = [i for i, word in enumerate(keys) if word == 0]
    predicting = [i for i, word in enumerate(rows) if word == 0]
    reading = [i + 1 for i in predicting]
    for number, of_word in enumerate((predicting, reading)):
        expected = pattern[:, of_word][:, :, columns].sum(axis=-1).mean(axis=-1)
        np.testing.assert_allclose(weights[number, :, 0, 0], expected)


def test_pairs_that_the_model_cannot_read_are_left_out_and_counted(translator):
    links = silver_alignments(SENTENCES[:2])
    pairs = [AlignedPair(*text, each) for text, each in zip(SENTENCES[:2], links, strict=True)]
    long = " ".join(["dog"] * 600)
    many = AlignedPair(long, long, Links(np.eye(600, dtype=bool), np.eye(600, dtype=bool)))
    other = replace(pairs[0], source="Two more words than links.")
    *_, (_, found) = measure_alignment(translator, [many, *pairs, other], "silver")
    assert (found.pairs, found.left_out) == (2, 2)
    with pytest.raises(ValueError, match="None of the 1 sentence pairs could be scored"):
        list(measure_alignment(translator, [other], "silver"))


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_links_are_read_from_one_file_or_from_two_and_count_from_0_or_1(tmp_path):
    data = write(tmp_path / "pairs.tsv", "a b\tA B", "", "c\tC D")
    beside = write(tmp_path / "links.txt", "0-1 1?0", "", "0p1 0-0")
    from_one = write(tmp_path / "links1.txt", "1-2 2p1", "", "1?2 1-1")
    together = write(tmp_path / "gold.tsv", "# a comment", "a b\tA B\t0-1 1p0", "", "c\tC D\t0?1 0-0")
    found = [read_gold(beside, data), read_gold(from_one, data, first=1), read_gold(together)]
    for pairs in found:
        assert [(pair.source, pair.target) for pair in pairs] == [("a b", "A B"), ("c", "C D")]
        assert pairs[0].links.sure.tolist() == [[False, False], [True, False]]
        assert pairs[0].links.possible.tolist() == [[False, True], [True, False]]
        assert pairs[1].links.possible.tolist() == [[True], [True]]


@pytest.mark.parametrize("link", ["0:1", "0-", "-1-0", "0-1-1", "a-b", "0–1", "0-5", "2-0", "1.0-0", "S", "٠-0"])
def test_a_malformed_link_is_named_with_its_file_and_line(link, tmp_path):
    data = write(tmp_path / "pairs.tsv", "a b\tA B", "a b\tA B")
    beside = write(tmp_path / "links.txt", "0-0", f"1-1 {link}")
    together = write(tmp_path / "gold.tsv", "# a comment", f"a b\tA B\t{link}")
    for path, line in ((beside, 2), (together, 2)):
        with pytest.raises(ValueError, match=f"{path.name}, line {line}: '{link}'"):
            read_gold(path, data if path is beside else None)


def test_a_file_that_counts_from_1_is_refused_where_it_is_read_from_0_or_the_other_way(tmp_path):
    path = write(tmp_path / "gold.tsv", "a b\tA B\t1-1 2-2")
    with pytest.raises(ValueError, match=r"gold\.tsv, line 1: '2-2' names word 2 of the source.* count from 0"):
        read_gold(path)
    path = write(tmp_path / "gold.tsv", "a b\tA B\t0-0 1-1")
    with pytest.raises(ValueError, match="'0-0' names word 0 of the source"):
        read_gold(path, first=1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a\tA\t0-0", "a\tA"], r"line 2: expected source<TAB>target<TAB>links, found 2"),
        (["a\tA\t0-0", "a\t\t0-0"], "line 2: .* one of them empty"),
        (["a\tA\t0-0\tmore"], "line 1: .* found 4"),
        (["a\tA\t0?0"], "no sure link"),
        (["0-0"], "--data must name the sentence pairs"),
    ],
)
def test_a_file_of_gold_that_is_none_is_refused_in_a_sentence(lines, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_gold(write(tmp_path / "gold.tsv", *lines))


def test_a_file_of_links_needs_as_many_lines_as_there_are_pairs(tmp_path):
    data = write(tmp_path / "pairs.tsv", "a\tA", "b\tB")
    with pytest.raises(ValueError, match=r"1 lines of links for 2 lines of .*pairs\.tsv"):
        read_gold(write(tmp_path / "links.txt", "0-0"), data)


def test_marks_are_words_in_text_and_belong_to_words_in_tokenised_text(tmp_path):
    data = write(tmp_path / "pairs.tsv", "It isn't .\tNein .")
    links = write(tmp_path / "links.txt", "0-0 2-1")
    assert read_gold(links, data)[0].links.sure.shape == (2, 3)
    assert read_gold(links, data, split="marks")[0].links.sure.shape == (2, 5)
    assert read_gold(write(tmp_path / "gold.tsv", "It isn't.\tNein.\t0-0"))[0].links.sure.shape == (2, 5)


def test_the_shipped_gold_is_a_copy_neither_of_the_diagonal_nor_of_the_statistical_model():
    pairs = read_gold(GOLD)
    silver = silver_alignments([(pair.source, pair.target) for pair in pairs])
    others = {
        "diagonal": [diagonal_links(pair.links) for pair in pairs],
        "silver": [links.sure for links in silver],
        "silver_possible": [links.possible for links in silver],
    }
    assert len(pairs) == 120
    for made in others.values():
        counts = sum(count_links(links, pair.links) for links, pair in zip(made, pairs, strict=True))
        assert 0.1 < alignment_error_rate(counts) < 0.6
    assert score_links(sum(count_links(pair.links.sure, pair.links) for pair in pairs)).aer == 0


def test_the_error_rate_is_0_for_the_sure_links_and_1_for_none_of_them():
    made, all_sure = 4, 4
    assert alignment_error_rate(np.array([[made, 4, 4, all_sure]])) == pytest.approx([0])
    assert alignment_error_rate(np.array([[made, 0, 0, all_sure]])) == pytest.approx([1])
    # Three links, two of them sure and one possible only, of four sure ones: 1 - (2 + 3) / (3 + 4).
    assert alignment_error_rate(np.array([[3, 2, 3, 4]])) == pytest.approx([2 / 7])


def _word_at(tokens, position):
    """Number of the word that a piece is part of; None for a space."""
    span = tokens.spans[position]
    if span is None:
        return None
    words = enumerate(WORD.finditer(tokens.text))
    return next((i for i, word in words if word.start() < span[1] and span[0] < word.end()), None)
