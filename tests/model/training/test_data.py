"""Parallel files and batches."""

import gzip
import lzma
import re
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.network.batch import token_batches
from model.network.config import BOS, EOS, PAD
from model.training.data import Batch, Text, encode_pairs, read_pairs, read_texts, sample_epoch
from tests.model.strategies import few
from tests.model.tiny import SENTENCES, write_pairs

TEXT = "A dog.\tEin Hund.\nTwo dogs.\tZwei Hunde.\n"
PAIRS = [("A dog.", "Ein Hund."), ("Two dogs.", "Zwei Hunde.")]


FILES = {
    "plain.tsv": TEXT.encode(),
    "packed.tsv.gz": gzip.compress(TEXT.encode()),
    "packed.tsv.xz": lzma.compress(TEXT.encode()),
    "without a last line feed.tsv": TEXT.strip().encode(),
    "of Windows.tsv": TEXT.replace("\n", "\r\n").encode(),
    "with a mark at its start.tsv": TEXT.encode("utf-8-sig"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_whatever_wrote_them(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert read_pairs([path, str(path)]) == PAIRS * 2
    assert [line.split("\t")[0] for line in read_texts(path)] == ["A dog.", "Two dogs."]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "pairs.tsv"
    odd = ("one\u2028two\x85three\x0bfour\x1cfive", "eins")
    path.write_text("\t".join(odd) + "\n", encoding="utf-8")
    assert read_pairs([path]) == [odd]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.tsv", b"A dog.\tEin Hund.\nno tab\n", "line 2: expected source<TAB>target, found 1 field"),
        ("a.tsv", b"a\tb\tc\n", "line 1: expected source<TAB>target, found 3 field"),
        ("a.tsv", b"A dog.\tEin Hund.\n\nno tab", "line 3: expected source<TAB>target, found 1 field"),
        ("a.tsv", b"\n \t\n\tEin Hund.\n", "has 3 line(s), none with text"),
        ("a.tsv", b"\xef\xbb\xbfA dog.\tEin Hund.\nA caf\xe9.\tEin Caf\xc3\xa9.\n", "line 2 is not UTF-8: byte 0xE9"),
        ("a.tsv", b"", "is empty"),
        ("a.tsv", b"\xff\xfe\t\n", "line 1 is not UTF-8: byte 0xFF"),
        ("a.tsv.gz", b"not gzip", "is truncated or not a .gz file"),
        ("a.tsv.gz", gzip.compress(TEXT.encode() * 50, mtime=0)[:-20], "is truncated or not a .gz file"),
        ("a.tsv.xz", b"not xz", "is truncated or not a .xz file"),
        ("a.tsv.xz", lzma.compress(TEXT.encode() * 50)[:-20], "is truncated or not a .xz file"),
    ],
)
def test_a_broken_file_gets_a_sentence_that_names_the_place(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_pairs([path])
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "empty", ["", "  ", "A dog.\t", "\tEin Hund.", "\t", "\u200b\tEin Hund.", "A dog.\t\u00ad \ufeff"]
)
def test_pairs_with_an_empty_side_are_skipped_and_counted(tmp_path, capsys, empty):
    path = tmp_path / "pairs.tsv"
    first, second = TEXT.splitlines()
    path.write_text("\n".join([first, empty, second, empty]) + "\n", encoding="utf-8")
    assert read_pairs([path]) == PAIRS
    assert f"{path}: 2 of 4 lines skipped" in capsys.readouterr().err


def test_blank_lines_of_a_plain_text_are_skipped_and_counted(tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("One.\n\n \t\n\u200b\n  Two.\n", encoding="utf-8")
    assert read_texts(path) == ["One.", "  Two."]
    assert f"{path}: 3 of 5 lines skipped" in capsys.readouterr().err


def test_a_text_is_learned_as_it_is_read_later(tmp_path):
    path = write_pairs(tmp_path / "pairs.tsv", [("Cafe\u0301 \u00a0au lait", "Milch\u00adkaffee")])
    assert Text.read(str(path)).examples == [("Caf\u00e9 au lait", "Milchkaffee")]
    (line,) = Text.read(str(path), "decoder").examples
    assert line == "Caf\u00e9 \u00a0au lait\tMilchkaffee"


def test_pairs_that_are_too_long_on_either_side_are_left_out(tokenizer):
    pairs = [("a dog", "b"), ("a", "x" * 50), ("x" * 50, "b")]
    assert len(encode_pairs(tokenizer, pairs, max_len=20)) == 1
    src, tgt = encode_pairs(tokenizer, pairs[:1], max_len=100)[0]
    assert encode_pairs(tokenizer, pairs[:1], max_len=max(len(src), len(tgt)))
    assert not encode_pairs(tokenizer, pairs[:1], max_len=max(len(src), len(tgt)) - 1)


@few
@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 120), st.text(max_size=3))
def test_every_index_is_in_one_batch_and_no_batch_is_too_large(lengths, max_tokens, seed):
    batches = token_batches(lengths, max_tokens, seed)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert batch
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= max_tokens


@few
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.text(max_size=3))
def test_batches_hold_neighbours_in_length(lengths, seed):
    ranges = sorted((min(lengths[i] for i in b), max(lengths[i] for i in b)) for b in token_batches(lengths, 80, seed))
    assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(ranges))


def test_the_seed_decides_who_meets_whom():
    lengths = [5] * 40
    assert token_batches(lengths, 20, "0-0") == token_batches(lengths, 20, "0-0")
    assert token_batches(lengths, 20, "0-0") != token_batches(lengths, 20, "0-1")


def test_a_batch_is_padded_its_source_ends_and_its_target_is_shifted_by_one(tokenizer):
    pairs = encode_pairs(tokenizer, SENTENCES, max_len=100)
    batch = Batch.of(pairs)
    assert batch.src.shape == (len(pairs), max(len(src) for src, _ in pairs))
    assert batch.tgt_in.shape == batch.tgt_out.shape == (len(pairs), max(len(tgt) for _, tgt in pairs) - 1)
    assert torch.equal(batch.tgt_in[:, 1:], batch.tgt_out[:, :-1])
    for row, (source, target) in enumerate(SENTENCES):
        src, tgt = [*tokenizer.encode(source), EOS], [*tokenizer.encode(target), EOS]
        assert batch.src[row].tolist() == src + [PAD] * (batch.src.shape[1] - len(src))
        assert batch.tgt_in[row, 0] == BOS
        assert batch.tgt_out[row][batch.tgt_out[row] != PAD].tolist() == tgt


@few
@given(weight=st.floats(0.05, 3), seed=st.text(max_size=3))
def test_an_epoch_reads_each_text_as_often_as_its_weight_says(weight, seed):
    text, other = Text([(str(i), "") for i in range(40)], weight), Text([("other", "")])
    pairs = sample_epoch([text, other], seed)
    counts = Counter(pairs)
    assert counts.pop(("other", "")) == 1
    assert sum(counts.values()) == int(weight) * 40 + round((weight - int(weight)) * 40)
    assert all(int(weight) <= counts[pair] <= int(weight) + 1 for pair in text.examples)
    assert pairs == sample_epoch([text, other], seed)


def test_another_epoch_draws_other_pairs():
    text = Text([(str(i), "") for i in range(100)], 0.5)
    assert sample_epoch([text], "0") != sample_epoch([text], "1")


def test_a_file_may_be_named_with_its_weight(tmp_path):
    path = write_pairs(tmp_path / "pairs.tsv", PAIRS)
    for ending, weight in (("", 1.0), (":0.3", 0.3), (":2", 2.0)):
        assert Text.read(f"{path}{ending}") == Text(PAIRS, weight)
    with pytest.raises(ValueError, match="weight must be above 0"):
        Text.read(f"{path}:0")
