"""The three ways to cut a text lose nothing of it, and byte-level BPE cuts as the library of the same name does."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
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
    write_merges,
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
def test_no_byte_of_a_text_is_lost_by_any_of_them(text: str) -> None:
    for name, cut in cut_text(text).items():
        whole = bytes_of(cut.pieces).decode().replace("▁", " ")
        assert (whole if name == BYTES else " ".join(whole.split())) == (
            text if name == BYTES else " ".join(text.split())
        )
        assert cut.size == VOCABULARY


def test_the_three_are_no_copies_of_each_other() -> None:
    cuts = [cut_text(text) for text in TEXTS]
    for one, other in ((UNIGRAM, BPE), (BPE, BYTES), (UNIGRAM, BYTES)):
        assert any(cut[one].pieces != cut[other].pieces for cut in cuts)


@given(st.text(max_size=40))
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
    assert read_merges(write_merges(merges)) == {pair: rank for rank, pair in enumerate(merges)}


@pytest.mark.parametrize("text", TEXTS)
def test_merges_are_applied_as_the_tokenizers_library_does(text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    merges = read_merges((PIECES / "byte-level-bpe.txt").read_text(encoding="ascii"))
    letters = byte_letters(tokenizers)

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


def byte_letters(tokenizers) -> list[str]:
    """How the library writes each byte: those that are printed as themselves, the others as letters from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    letters = [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]
    assert set(letters) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    return letters
