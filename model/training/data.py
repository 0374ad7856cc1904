"""Text to train on: reading, sampling and encoding it, and training batches."""

import gzip
import logging
import lzma
import random
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.typed_text import prepare_text
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, PAD, Family

logger = logging.getLogger(__name__)

Pair = tuple[list[int], list[int]]
Example = str | tuple[str, str]
"""a line of text, or a sentence and its translation"""

MASK_RATE, KEEP_RATE, REPLACE_RATE = 0.15, 0.1, 0.1
"""Share of the tokens that a masked language model must guess; of these, shares that stay, or are replaced by a random
token instead of <mask> (Devlin et al. 2019, section 3.1)"""


def read_pairs(paths: Iterable[Path | str]) -> list[tuple[str, str]]:
    """All (source, target) lines of UTF-8 files, plain, `.gz` or `.xz`, one `source<TAB>target` a line.

    Blank lines and pairs with an empty side are skipped; how many they are is logged as a warning.

    Raises:
        ValueError: a line does not have exactly one tab, or a file has no pair, is not UTF-8, or is a broken archive;
            the message names file and line.
    """
    pairs = []
    for path in map(Path, paths):
        lines = read_lines(path)
        read = [line.split("\t") for line in lines]
        for number, (line, fields) in enumerate(zip(lines, read, strict=True), start=1):
            if len(fields) != 2 and not _blank(line):
                raise ValueError(f"{path}, line {number}: expected source<TAB>target, found {len(fields)} field(s)")
        kept = [(fields[0], fields[1]) for fields in read if len(fields) == 2 and not any(map(_blank, fields))]
        _report_skipped(path, len(lines), len(kept), "pairs with an empty side")
        pairs += kept
    return pairs


def read_texts(path: Path | str) -> list[str]:
    """The lines of a file of plain text, but blank ones; raises and warns as `read_pairs` does."""
    lines = read_lines(path)
    kept = [line for line in lines if not _blank(line)]
    _report_skipped(path, len(lines), len(kept), "blank lines")
    return kept


def _blank(text: str) -> bool:
    return not prepare_text(text, "encoder_decoder")


def _report_skipped(path: Path | str, lines: int, kept: int, what: str) -> None:
    if not kept:
        raise ValueError(f"{path} has {lines:,} line(s), none with text: all are {what}")
    if kept < lines:
        logger.warning("%s: %s of %s lines skipped: %s", path, f"{lines - kept:,}", f"{lines:,}", what)


def read_lines(path: Path | str) -> list[str]:
    """The lines of a UTF-8 file, plain, `.gz` or `.xz`; only a line feed ends one.

    Raises:
        ValueError: the file is empty, not UTF-8, or a broken archive; the message names file and line.
    """
    path = Path(path)
    openers: dict[str, Callable] = {".xz": lzma.open, ".gz": gzip.open}
    try:
        with openers.get(path.suffix, open)(path, "rb") as file:
            lines = decode_lines(file, str(path))
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is truncated or not a {path.suffix} file: {error}") from error
    if not lines:
        raise ValueError(f"{path} is empty; expected lines of text")
    return lines


def decode_lines(file: Iterable[bytes], name: str) -> list[str]:
    """UTF-8 lines of bytes without their ends, and without the mark that some editors put before the first one; `name`
    is that of the file, for the message.

    Raises:
        ValueError: a line is not UTF-8; the message names it.
    """
    lines = []
    for number, line in enumerate(file, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number} is not UTF-8: byte 0x{line[error.start]:02X} at place {error.start + 1} of the "
                "line cannot be read. Save the text as UTF-8."
            ) from error
        lines.append(text.rstrip("\r\n"))
    return lines


@dataclass(frozen=True)
class Text:
    """Examples of one file, and how often an epoch reads them."""

    examples: Sequence[Example]
    weight: float = 1.0
    """2: twice per epoch; 0.3: a new random 30 % each epoch"""

    @classmethod
    def read(cls, name: str, family: Family = "encoder_decoder") -> "Text":
        """`FILE` or `FILE:WEIGHT`, as a model of the family reads it: pairs for a translator, else lines.

        Raises:
            ValueError: as for `read_pairs`, or the weight is not above 0.
        """
        path, _, weight = name.rpartition(":")
        if not path or not re.fullmatch(r"\d*\.?\d+", weight):
            path, weight = name, "1"
        if float(weight) <= 0:
            raise ValueError(f"{name}: the weight must be above 0; to leave the file out, do not name it")
        if family != "encoder_decoder":
            return cls([prepare_text(line, family) for line in read_texts(path)], float(weight))
        pairs = ((prepare_text(source, family), prepare_text(target, family)) for source, target in read_pairs([path]))
        return cls(list(pairs), float(weight))


def sample_epoch(texts: Iterable[Text], seed: str) -> list[Example]:
    """One epoch's examples: each text as often as its weight says; fractions are drawn at random with `seed`."""
    rng = random.Random(seed)
    examples: list[Example] = []
    for text in texts:
        whole = int(text.weight)
        examples += list(text.examples) * whole
        examples += rng.sample(list(text.examples), round((text.weight - whole) * len(text.examples)))
    return examples


def encode_pairs(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]], max_len: int, sampling: float = 0.0, seed: str = ""
) -> list[Pair]:
    """Ids of each pair: the source ends with </s>, the target starts with <s> and ends with </s>.

    Pairs longer than `max_len` tokens on either side are dropped. With `sampling` above 0 each segmentation is drawn at
    random with `seed`.
    """
    segment = _segmenter(tokenizer, sampling, seed)
    encoded = (([*segment(src), EOS], [BOS, *segment(tgt), EOS]) for src, tgt in pairs)
    return [pair for pair in encoded if max(map(len, pair)) <= max_len]


def encode_lines(
    tokenizer: Tokenizer, lines: Iterable[str], max_len: int, sampling: float = 0.0, seed: str = ""
) -> list[list[int]]:
    """Ids of each line, from <s> to </s>; one of more than `max_len` + 1 tokens is cut into several."""
    segment = _segmenter(tokenizer, sampling, seed)
    encoded = ([BOS, *segment(line), EOS] for line in lines)
    # Each piece begins with the token that the piece before it ends with, so that every token is predicted once.
    return [ids[start : start + max_len + 1] for ids in encoded for start in range(0, len(ids) - 1, max_len)]


def _segmenter(tokenizer: Tokenizer, sampling: float, seed: str) -> Callable[[str], list[int]]:
    rng = random.Random(seed)
    return (lambda text: tokenizer.sample(text, sampling, rng)) if sampling else tokenizer.encode


@dataclass(frozen=True)
class Batch:
    """A training batch of sentence pairs: padded token ids."""

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

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model is called with."""
        return self.src, self.tgt_in

    @property
    def targets(self) -> Tensor:
        """What each of its rows must predict; PAD where it need not."""
        return self.tgt_out


@dataclass(frozen=True)
class LineBatch:
    """A training batch of lines: padded token ids."""

    tokens: Tensor
    """(batch, position): what the model reads"""
    targets: Tensor
    """(batch, position): what each row must predict; PAD where it need not"""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model is called with."""
        return (self.tokens,)

    @classmethod
    def of_next_tokens(cls, lines: Sequence[list[int]], device: str = "cpu") -> "LineBatch":
        """Pad `lines`; each row predicts the token that follows."""
        ids = pad_batch(lines, device)
        return cls(tokens=ids[:, :-1], targets=ids[:, 1:])

    @classmethod
    def of_masked_tokens(
        cls, lines: Sequence[list[int]], mask: int, vocab_size: int, seed: str, device: str = "cpu"
    ) -> "LineBatch":
        """Pad `lines` and hide some of their tokens, drawn with `seed`: at least one in each line that has any. Behind
        <mask>, whose id is `mask`, come those that random replacements are drawn from."""
        numbers = torch.Generator().manual_seed(random.Random(seed).getrandbits(63))
        ids = pad_batch(lines)
        text = (ids != PAD) & (ids != BOS) & (ids != EOS)
        draws = torch.rand(ids.shape, generator=numbers).masked_fill(~text, torch.inf)
        chosen = text & ((draws < MASK_RATE) | (draws == draws.amin(dim=1, keepdim=True)))
        fate = torch.rand(ids.shape, generator=numbers)
        others = torch.randint(mask + 1, vocab_size, ids.shape, generator=numbers)
        hidden = torch.where(fate < REPLACE_RATE, others, torch.full_like(ids, mask))
        hidden = torch.where(fate >= 1 - KEEP_RATE, ids, hidden)
        tokens, targets = torch.where(chosen, hidden, ids), ids.masked_fill(~chosen, PAD)
        return cls(tokens.to(device), targets.to(device))
