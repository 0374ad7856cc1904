"""Views that time several ways of computing side by side: the work, the curves and the table."""

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd

from model.background.stopwatch import LENGTHS, PATIENCE, ROUNDS, Contender, Timings, measure, medians
from model.trace import Array
from viz.forms import Line, Lines, Mark

MEASURE = "Measure on this machine"
ALONE = "timing"
"""two measurements at once would slow each other down"""


def time_side_by_side(
    contenders: Mapping[str, Contender], device: str, lengths: Sequence[int] = LENGTHS
) -> Iterator[tuple[float, Timings | None]]:
    """Time each contender at each length, as work on request.

    Yields:
        the share that is done, which grows once a round, because drawing it takes time too; at the end the medians.
    """
    start, share = monotonic(), 0.0
    samples, per_round = [], len(contenders) * len(lengths)
    for sample in measure(contenders, device, lengths):
        samples.append(sample)
        if len(samples) % per_round == 0:
            share = min(max(len(samples) / per_round / ROUNDS, (monotonic() - start) / PATIENCE), 1.0)
        yield share, None
    yield 1.0, medians(samples, device)


def time_points(timings: Timings, looks: Mapping[str, tuple[str, str]], **more: Any) -> dict[str, Line]:
    """Median times in milliseconds, with the middle half of the rounds as error bars; colour and symbol of each by its
    name."""
    lines = {}
    for name, (colour, symbol) in looks.items():
        low, middle, high = np.percentile(timings.samples[name] * 1e3, (25, 50, 75), axis=1)
        lines[name] = Line(timings.lengths, middle, colour, symbol, size=10, between=(low, high), **more)
    return lines


def time_chart(timings: Timings, lines: Mapping[str, Line], n: int | None = None) -> Lines:
    """Times over the length, both axes logarithmic, with a mark at the `n` tokens of the current text, if given."""
    return over_length(lines, timings.lengths, "milliseconds, median (log)", n, tickformat="~g")


def over_length(
    lines: Mapping[str, Line],
    lengths: Sequence[int],
    title: str,
    n: int | None = None,
    number: str = ".4g",
    tickformat: str | None = None,
) -> Lines:
    """What grows with the length, both axes logarithmic; `title` is what, and `n` as in `time_chart`."""
    marks = []
    if n is not None:
        side, shift = ("right", -6) if n > max(lengths) / 4 else ("left", 6)
        place = {"xanchor": side, "xshift": shift, "y": 0.02, "yanchor": "auto"}
        marks = [Mark(x=n, text=f"your sentence: {n}", at=place)]
    return Lines(
        lines,
        ("positions n (log)", title),
        number,
        "xy",
        lengths,
        height=400,
        marks=marks,
        layout={"yaxis": {"dtick": 1, "tickformat": tickformat}},
    )


def time_table(lengths: Sequence[int], columns: Mapping[str, Array | Sequence]) -> pd.DataFrame:
    """A row for each length."""
    table = pd.DataFrame({"n": list(lengths), **{name: list(values) for name, values in columns.items()}})
    table.attrs["floats"] = "%.3g"
    return table
