"""Timing several functions side by side at growing input lengths.

Rounds are interleaved, so that other load on the machine affects all functions alike. A measurement is a generator, so
the caller can show progress and stop.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.language import Sentence, sentence
from model.trace import Array

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
ROUNDS, FEWEST_ROUNDS = 25, 3
FITTED = 3
"""longest lengths that a power law is fitted to"""
PATIENCE = 12.0
"""Seconds after which no further round begins, for busy machines."""

Contender = Callable[[int], Callable[[], object]]
"""length -> the call to time at that length, with its input already prepared"""


@dataclass(frozen=True)
class Sample:
    """One timed call."""

    contender: str
    length: int
    seconds: float


@dataclass(frozen=True)
class Timings:
    """Medians over the rounds."""

    lengths: tuple[int, ...]
    rounds: int
    seconds: Mapping[str, Array]
    """contender -> (length,)"""
    samples: Mapping[str, Array]
    """contender -> (length, round), seconds"""
    conditions: Sentence
    """the device and software it ran on"""


def measure(
    contenders: Mapping[str, Contender],
    device: str,
    lengths: Sequence[int] = LENGTHS,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Sample]:
    """Time each contender at each length once a round, in inference mode.

    Each timed call is preceded by the same call untimed, to warm up caches and threads. Each round starts at another
    length and reverses the order of contenders, so that none always has the same position in the round. After
    `PATIENCE` seconds no further round begins, provided there are `FEWEST_ROUNDS`.

    Yields:
        contenders x lengths samples per round, each as soon as it is taken.
    """
    ready = {(name, length): prepare(length) for name, prepare in contenders.items() for length in lengths}
    began = clock()
    for turn in range(rounds):
        if turn >= FEWEST_ROUNDS and clock() - began > PATIENCE:
            return
        first = turn % len(lengths)
        for length in (*lengths[first:], *lengths[:first]):
            for name in list(contenders)[:: -1 if turn % 2 else 1]:
                yield Sample(name, length, _seconds(ready[name, length], device, clock))


def medians(samples: Sequence[Sample], device: str) -> Timings:
    """The median of each contender at each length.

    Raises:
        ValueError: a contender was not timed equally often at every length.
    """
    lengths = tuple(sorted({sample.length for sample in samples}))
    found: dict[str, dict[int, list[float]]] = {}
    for sample in samples:
        found.setdefault(sample.contender, {}).setdefault(sample.length, []).append(sample.seconds)
    by_name = {name: np.array([times.get(n, []) for n in lengths]) for name, times in found.items()}
    seconds = {name: np.median(times, axis=1) for name, times in by_name.items()}
    rounds = next(iter(by_name.values())).shape[1]
    return Timings(lengths, rounds, seconds, by_name, conditions(device))


def exponents(lengths: Sequence[int], seconds: Array) -> Array:
    """(length,): the exponent p of time ~ n^p between each length and the previous one; NaN for the first."""
    slopes = np.diff(np.log(seconds)) / np.diff(np.log(lengths))
    return np.concatenate([[np.nan], slopes])


def growth(lengths: Sequence[int], seconds: Array) -> float:
    """The exponent p of time ~ n^p, fitted by least squares to the logarithms at the `FITTED` longest lengths."""
    return fit_power(lengths, seconds)[1]


def fit_power(lengths: Sequence[int], seconds: Array) -> tuple[float, float]:
    """(c, p) of time = c n^p, fitted as in `growth`."""
    p, logarithm = np.polyfit(np.log(lengths[-FITTED:]), np.log(seconds[-FITTED:]), 1)
    return float(np.exp(logarithm)), float(p)


def conditions(device: str) -> Sentence:
    """The device and software of a measurement, in words."""
    version, threads = str(torch.__version__), torch.get_num_threads()
    if device.startswith("cuda"):
        return sentence("{gpu}, PyTorch {version}", gpu=torch.cuda.get_device_name(device), version=version)
    if threads == 1:
        return sentence("the CPU with 1 thread, PyTorch {version}", version=version)
    return sentence("the CPU with {threads} threads, PyTorch {version}", threads=threads, version=version)


@torch.inference_mode()
def _seconds(call: Callable[[], object], device: str, clock: Callable[[], float]) -> float:
    """A GPU call returns before it has finished, so synchronise before and after."""
    call()
    _finish(device)
    start = clock()
    call()
    _finish(device)
    return clock() - start


def _finish(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
