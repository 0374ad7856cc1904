"""Measuring several ways of the same work by turns, and the table of what came out."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

WIDTH = 40
"""characters of a line's label"""


def measured(work: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """Name -> units of work per second, one a round.

    Each `work` is done once a round and returns how many units it did. Everyone's turn comes in every round, each
    time another one is first: a machine that slows down meanwhile slows all of them.
    """
    rates: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            started = time.perf_counter()
            units = work[name]()
            rates[name].append(units / (time.perf_counter() - started))
    return rates


def better(runs: Sequence[Mapping[str, list[float]]]) -> dict[str, list[float]]:
    """Everyone's rates in the run in which their median was highest."""
    return {name: max((rates[name] for rates in runs), key=statistics.median) for name in runs[0]}


def headings(unit: str, names: Sequence[str]) -> str:
    """The table's first line: who was measured, and the first of them over each of the others."""
    first, *others = names
    columns = [*names, *(f"{first} / {other}" for other in others)]
    return f"{unit:<{WIDTH}}" + "".join(f"{column:>29}" for column in columns)


def line(label: str, rates: Mapping[str, list[float]]) -> str:
    """Medians with the slowest and the fastest round, and the ratios of the medians."""
    medians = [statistics.median(measurements) for measurements in rates.values()]
    cells = [
        f"{median:,.1f} ({min(measurements):,.1f}-{max(measurements):,.1f})"
        for median, measurements in zip(medians, rates.values(), strict=True)
    ]
    cells += [f"{medians[0] / other:.2f}" for other in medians[1:]]
    return f"{label:<{WIDTH}}" + "".join(f"{cell:>29}" for cell in cells)
