"""The three ways to cut a text lose nothing of it, and byte-level BPE cuts as the library of the same name does."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.background.pieces import (
    BPE,
    BYTES,
    PIECES,
    UNIGRAM,
    VOCABULARY,
    WORDS,
    apply_merges,
    cut_text,
    learn_merges,
    read_merges,
)

TEXTS = (
    "The cat sat on the mat.",
    "She's unhappily  waiting, isn't she?\n\tYes -- 12,345 times!",
    "naïve Größe 😀 – 猫",
    "a",
    "",
)


def bytes_of(pieces: tuple[str, ...]) -> bytes:
    parts = re.findall(r"<0x[0-9A-F]{2}>|.", "".join(pieces), re.DOTALL)
    return b"".join(bytes.fromhex(part[3:5]) if len(part) == 6 else part.encode() for part in parts)


@pytest.mark.parametrize("text", TEXTS)
def test_each_piece_ends_after_its_bytes_and_the_last_one_after_all_that_are_not_of_blanks(text: str) -> None:
    whole = "".join(text.split()).encode()
    for cut in cut_text(text).values():
        for piece, (start, end) in zip(cut.pieces, pairwise((0, *cut.ends)), strict=True):
            spelled = bytes_of((piece.replace("▁", " "),)).decode(errors="surrogateescape").split()
            assert whole[start:end] == "".join(spelled).encode(errors="surrogateescape")
        assert not cut.ends or cut.ends[-1] == len(whole)


@pytest.mark.parametrize("text", TEXTS)
def test_no_byte_of_a_text_is_lost_by_any_of_them(text: str) -> None:
    for cut in cut_text(text).values():
        assert bytes_of(cut.pieces).decode().replace("▁", " ").split() == text.split()
        assert cut.size == VOCABULARY


def test_the_three_are_no_copies_of_each_other() -> None:
    cuts = [cut_text(text) for text in TEXTS]
    for one, other in ((UNIGRAM, BPE), (BPE, BYTES), (UNIGRAM, BYTES)):
        assert any(cut[one].pieces != cut[other].pieces for cut in cuts)


@given(st.text(max_size=40))
@example(TEXTS[1])
def test_any_text_can_be_cut_into_bytes_and_put_together_again(text: str) -> None:
    assert bytes_of(cut_text(text)[BYTES].pieces).decode().replace("▁", " ") == text.replace("▁", " ")


def test_the_first_merge_is_of_the_most_frequent_pair_and_none_crosses_a_word() -> None:
    texts = ["low lower lowest", "new newer newest", "low low"]
    merges = learn_merges(texts, 12)
    counts: Counter = Counter()
    for text in texts:
        for word in (" " + text).split(" ")[1:]:
            counts.update(pairwise(word))
    (left, right), *_ = merges
    assert counts[left.decode(), right.decode()] == max(counts.values())
    assert not [pair for pair in merges if b" " in pair[1]]
    written = "".join(f"{left.hex()} {right.hex()}\n" for left, right in merges)
    assert read_merges(written) == {pair: rank for rank, pair in enumerate(merges)}


@pytest.mark.parametrize("text", TEXTS)
def test_merges_are_applied_as_the_tokenizers_library_does(text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    merges = read_merges((PIECES / "byte-level-bpe.txt").read_text(encoding="ascii"))
    letters = pytest.importorskip("transformers.convert_slow_tokenizer").bytes_to_unicode()

    def written(piece: bytes) -> str:
        return "".join(letters[byte] for byte in piece)

    vocabulary = {written(bytes([byte])): byte for byte in range(256)}
    pairs = [(written(left), written(right)) for left, right in merges]
    vocabulary |= {left + right: 256 + rank for rank, (left, right) in enumerate(pairs)}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, pairs))
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    ours = [written(piece) for piece in cut_bytes(text, merges)]
    assert ours == library.encode(text).tokens


def cut_bytes(text: str, merges: dict) -> list[bytes]:
    return [
        piece for word in WORDS.findall(text) for piece in apply_merges([bytes([b]) for b in word.encode()], merges)
    ]
