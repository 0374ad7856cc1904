"""Three ways to cut a text into pieces, trained on the same sentences and of the same size: checkpoints/pieces.

Unigram (Kudo 2018) and BPE (Sennrich et al. 2016) are SentencePiece's. Byte-level BPE (Radford et al. 2019) is here: it
merges bytes, so that any text can be written, in the order in which the merges were learned.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

import regex
import sentencepiece as spm

PIECES = Path(__file__).parents[2] / "checkpoints" / "pieces"
WORDS = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
"""what no merge crosses: GPT-2's pattern"""
UNIGRAM, BPE, BYTES = "unigram", "BPE", "byte-level BPE"
VOCABULARY = 4000

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class Cut:
    """A text in pieces."""

    pieces: tuple[str, ...]
    """a space before a word is ▁; a byte that is no character alone is <0x..>"""
    ends: tuple[int, ...]
    """of each piece: how many bytes of the text it ends after, blanks not counted"""
    size: int
    """of the vocabulary"""


def cut_text(text: str) -> Mapping[str, Cut]:
    """The text in the pieces of each of the three."""
    read = bytes_read(text)
    cuts = {name: _cut(text, read, _processor(file)) for name, file in ((UNIGRAM, "unigram"), (BPE, "bpe"))}
    merges = _merges()
    pieces = [piece for word in WORDS.findall(text) for piece in apply_merges(_bytes_of(word), merges)]
    ends = (read[end] for end in accumulate(map(len, pieces)))
    return cuts | {BYTES: Cut(tuple(map(_shown, pieces)), tuple(ends), 256 + len(merges))}


def _cut(text: str, read: Sequence[int], processor: spm.SentencePieceProcessor) -> Cut:
    """By SentencePiece, which places a character that it spells in bytes at the last of these."""
    pieces, ends = processor.encode(text, return_type="proto").pieces, [0]
    for piece in pieces:
        early = processor.is_byte(piece.id) and not piece.surface
        ends.append(max(read[piece.end], ends[-1] + early))
    return Cut(tuple(piece.piece for piece in pieces), tuple(ends[1:]), len(processor))


def bytes_read(text: str) -> list[int]:
    """How many of the first 0, 1, 2 ... bytes of a text are not of blanks."""
    sizes = [(len(one.encode("utf-8", errors="replace")), not one.isspace()) for one in text]
    return [*accumulate((counts for size, counts in sizes for _ in range(size)), initial=0)]


def learn_merges(texts: Iterable[str], count: int) -> list[Pair]:
    """At most `count` merges of byte-level BPE: again and again, the pair of neighbours that is most frequent, as long
    as one is there twice; of equal pairs the one first in order of bytes."""
    words = Counter(word for text in texts for word in WORDS.findall(text))
    cut = {word: _bytes_of(word) for word in words}
    pairs: Counter[Pair] = Counter()
    where: dict[Pair, set[str]] = {}
    for word, pieces in cut.items():
        for pair in pairwise(pieces):
            pairs[pair] += words[word]
            where.setdefault(pair, set()).add(word)
    merges: list[Pair] = []
    while len(merges) < count and pairs:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        for word in list(where.pop(best)):
            for pair in pairwise(cut[word]):
                pairs[pair] -= words[word]
            cut[word] = _merged(cut[word], best)
            for pair in pairwise(cut[word]):
                pairs[pair] += words[word]
                where.setdefault(pair, set()).add(word)
        pairs.pop(best, None)
    return merges


def apply_merges(pieces: Sequence[bytes], merges: Mapping[Pair, int]) -> list[bytes]:
    """The pieces of a word, single bytes at first, merged in the order in which the merges, with their ranks, were
    learned."""
    pieces = list(pieces)
    while known := [pair for pair in pairwise(pieces) if pair in merges]:
        pieces = _merged(pieces, min(known, key=merges.__getitem__))
    return pieces


def read_merges(text: str) -> dict[Pair, int]:
    """The merges of a text with a line for each, both halves in hexadecimal, with ranks."""
    pairs = (line.split() for line in text.splitlines())
    return {(bytes.fromhex(left), bytes.fromhex(right)): rank for rank, (left, right) in enumerate(pairs)}


def _merged(pieces: Sequence[bytes], pair: Pair) -> list[bytes]:
    """From left to right; of three equal pieces the first two are merged."""
    result: list[bytes] = []
    place = 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            result.append(pieces[place] + pieces[place + 1])
            place += 2
        else:
            result.append(pieces[place])
            place += 1
    return result


def _bytes_of(word: str) -> list[bytes]:
    # A lone surrogate is no text: UTF-8 cannot write it.
    return [bytes([byte]) for byte in word.encode("utf-8", errors="replace")]


def _shown(piece: bytes) -> str:
    try:
        return piece.decode("utf-8").replace(" ", "▁")
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in piece)


@cache
def _processor(name: str) -> spm.SentencePieceProcessor:
    return spm.SentencePieceProcessor(model_proto=(PIECES / f"{name}.model").read_bytes())


@cache
def _merges() -> Mapping[Pair, int]:
    return read_merges((PIECES / "byte-level-bpe.txt").read_text(encoding="ascii"))
