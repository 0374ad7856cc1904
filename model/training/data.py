"""Parallel text: reading, sampling and encoding it, and training batches."""

import gzip
import lzma
import random
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from model.checkpoints.tokenizer import Tokenizer
from model.network.batch import pad_batch
from model.network.config import BOS, EOS

Pair = tuple[list[int], list[int]]


def read_pairs(paths: Iterable[Path | str]) -> list[tuple[str, str]]:
    """All (source, target) lines of UTF-8 files, plain, `.gz` or `.xz`, one `source<TAB>target` a line.

    Raises:
        ValueError: a line does not have exactly one tab, or a file is empty, not UTF-8, or a broken archive; the
            message names file and line.
    """
    pairs = []
    for path in map(Path, paths):
        for number, line in enumerate(_lines(path), start=1):
            fields = line.split("\t")
            if len(fields) != 2:
                raise ValueError(f"{path}, line {number}: expected source<TAB>target, found {len(fields)} field(s)")
            pairs.append((fields[0], fields[1]))
    return pairs


def _lines(path: Path) -> list[str]:
    """Only a line feed ends a line: text may contain Unicode's other separators."""
    openers: dict[str, Callable] = {".xz": lzma.open, ".gz": gzip.open}
    try:
        with openers.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in file]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is truncated or not a {path.suffix} file: {error}") from error
    if not lines:
        raise ValueError(f"{path} is empty; expected lines of source<TAB>target")
    return lines


@dataclass(frozen=True)
class Text:
    """Sentence pairs of one file, and how often an epoch reads them."""

    pairs: Sequence[tuple[str, str]]
    weight: float = 1.0
    """2: twice per epoch; 0.3: a new random 30 % each epoch"""

    @classmethod
    def read(cls, name: str) -> "Text":
        """`FILE` or `FILE:WEIGHT`.

        Raises:
            ValueError: as for `read_pairs`, or the weight is not above 0.
        """
        path, _, weight = name.rpartition(":")
        if not path or not re.fullmatch(r"\d*\.?\d+", weight):
            return cls(read_pairs([name]))
        if float(weight) <= 0:
            raise ValueError(f"{name}: the weight must be above 0; to leave the file out, do not name it")
        return cls(read_pairs([path]), float(weight))


def sample_epoch(texts: Iterable[Text], seed: str) -> list[tuple[str, str]]:
    """One epoch's sentence pairs: each text as often as its weight says; fractions are drawn at random with `seed`."""
    rng = random.Random(seed)
    pairs: list[tuple[str, str]] = []
    for text in texts:
        whole = int(text.weight)
        pairs += list(text.pairs) * whole
        pairs += rng.sample(list(text.pairs), round((text.weight - whole) * len(text.pairs)))
    return pairs


def encode_pairs(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]], max_len: int, sampling: float = 0.0, seed: str = ""
) -> list[Pair]:
    """Ids of each pair: the source ends with </s>, the target starts with <s> and ends with </s>.

    Pairs longer than `max_len` tokens on either side are dropped. With `sampling` above 0 each segmentation is drawn at
    random with `seed`.
    """
    rng = random.Random(seed)

    def ids(text: str) -> list[int]:
        return tokenizer.sample(text, sampling, rng) if sampling else tokenizer.encode(text)

    encoded = (([*ids(src), EOS], [BOS, *ids(tgt), EOS]) for src, tgt in pairs)
    return [pair for pair in encoded if max(map(len, pair)) <= max_len]


@dataclass(frozen=True)
class Batch:
    """A training batch of padded token ids."""

    src: Tensor
    """(batch, source position)"""
    tgt_in: Tensor
    """(batch, target position): what the decoder reads, starting with <s>"""
    tgt_out: Tensor
    """(batch, target position): what it must predict, ending with </s>"""

    @classmethod
    def of(cls, pairs: Sequence[Pair], device: str = "cpu") -> "Batch":
        """Pad `pairs`, and shift the target by one between input and output."""
        tgt = pad_batch([tgt for _, tgt in pairs], device)
        return cls(src=pad_batch([src for src, _ in pairs], device), tgt_in=tgt[:, :-1], tgt_out=tgt[:, 1:])
