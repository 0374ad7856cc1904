"""Timing things side by side as their input grows.

Rounds are interleaved, so that what else the machine does hits all alike. A measurement is a generator:
whoever runs it can show progress, and stop.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.trace import Array

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
ROUNDS, FEWEST_ROUNDS = 25, 3
PATIENCE = 12.0
"""Seconds after which no further round begins: on a busy machine a round may take long."""

Contender = Callable[[int], Callable[[], object]]
"""length -> what is timed at that length, with its input made beforehand"""


@dataclass(frozen=True)
class Sample:
    """One call, timed."""

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
    conditions: str
    """where it ran"""


def timed(
    contenders: Mapping[str, Contender],
    device: str,
    lengths: Sequence[int] = LENGTHS,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Sample]:
    """Time each contender at each length once a round, in inference mode.

    Right before each timed call the same call runs once untimed: caches and threads are then warm. Rounds begin at
    another length each time, and contenders swap their order, so that no place in the round is always the same one's.
    After `PATIENCE` seconds no further round begins, once there are `FEWEST_ROUNDS`.

    Yields:
        contenders x lengths samples a round, each as soon as it is taken.
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
    """(length,): p of time ~ n^p between each length and the one before it; NaN for the first."""
    slopes = np.diff(np.log(seconds)) / np.diff(np.log(lengths))
    return np.concatenate([[np.nan], slopes])


def growth(lengths: Sequence[int], seconds: Array, last: int = 3) -> float:
    """p of time ~ n^p, fitted by least squares to the logarithms at the longest `last` lengths."""
    return float(np.polyfit(np.log(lengths[-last:]), np.log(seconds[-last:]), 1)[0])


def conditions(device: str) -> str:
    """Where a measurement runs, in words."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}"
    return f"the CPU with {torch.get_num_threads()} threads, PyTorch {torch.__version__}"


@torch.inference_mode()
def _seconds(call: Callable[[], object], device: str, clock: Callable[[], float]) -> float:
    """A GPU works on after the call returns: wait for it on both sides."""
    call()
    _finish(device)
    start = clock()
    call()
    _finish(device)
    return clock() - start


def _finish(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
