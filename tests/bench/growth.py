"""How time and memory of one recorded run grow with the sentence, up to the longest that the checkpoint holds."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from model.checkpoints.store import load_checkpoint
from model.network.config import SPECIAL_TOKENS
from model.network.encoder_decoder import Transformer
from model.tracer import record
from tests.bench.recording import once
from tests.bench.rounds import measured
from tests.bench.table import Row

LENGTHS = (32, 64, 128, 256, 512)
ROUNDS = 7
STEEPEST = 2.0
"""exponent: a table of attention weights has tokens times tokens cells, and nothing has more"""


def growth(checkpoint: str, lengths: Sequence[int] = LENGTHS, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for each length, and the exponents of tokens that fit time and memory of the three longest."""
    model = _long_enough(load_checkpoint(checkpoint, "cpu").model, max(lengths))
    ids = torch.randint(
        len(SPECIAL_TOKENS), model.config.vocab_size, (max(lengths),), generator=torch.Generator().manual_seed(0)
    )
    ids = ids.tolist()
    work = {str(n): once(lambda n=n: record(model, [ids[:n], ids[:n]])) for n in lengths}
    measured(work, 1)
    seconds = {int(n): 1 / statistics.median(rates) for n, rates in measured(work, rounds).items()}
    sizes = {n: _bytes(model, ids[:n]) for n in lengths}
    for n in lengths:
        yield Row(f"forward and record, {n} tokens", f"{1000 * seconds[n]:.0f} ms, {sizes[n] / 1e6:.0f} MB")
    for name, found in (("time", seconds), ("memory of what is recorded", sizes)):
        longest = sorted(found)[-3:]
        value = f"{longest[0]} to {longest[-1]} tokens"
        yield Row(f"{name} grows as tokens to the power of", value, "", exponent(found), STEEPEST, unit="")


def _long_enough(model: Transformer, length: int) -> Transformer:
    """The checkpoint's model, or one of its size with random weights where it has too few positions."""
    if model.config.max_len >= length:
        return model
    return Transformer(replace(model.config, max_len=length)).eval()


def _bytes(model: Transformer, ids: Sequence[int]) -> int:
    """Of all recorded arrays; those that share their memory count once."""
    arrays = record(model, [ids, ids]).values()
    return sum({array.__array_interface__["data"][0]: array.nbytes for array in arrays}.values())


def exponent(found: Mapping[int, float], longest: int = 3) -> float:
    """Least-squares slope of ln(value) over ln(length), of the `longest` lengths."""
    xs, ys = zip(*((math.log(n), math.log(found[n])) for n in sorted(found)[-longest:]), strict=True)
    return statistics.linear_regression(xs, ys).slope
