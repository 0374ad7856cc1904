"""The table of what was measured: value, ratio, budget and verdict, as text for the terminal and for the README."""

from collections.abc import Sequence
from dataclasses import dataclass

UNITS = ("×", "MB", "")
"""of ratios and budgets: times something else, megabytes, an exponent. A time is none of them: it is another on each
machine, and a budget of milliseconds would be missed on a slow one although nothing has become worse."""


@dataclass(frozen=True)
class Row:
    """One thing that was measured.

    Raises:
        ValueError: `unit` is none of UNITS, or there is nothing `beside` which it is so many times as much.
    """

    what: str
    value: str
    """with its unit"""
    beside: str = ""
    """what it was measured beside in the same rounds, with its value"""
    ratio: float | None = None
    """this to that; with `least`, how many times better"""
    budget: float | None = None
    """None: measured to be known"""
    least: bool = False
    """whether the ratio has to be at least the budget, not at most"""
    unit: str = "×"
    """of ratio and budget"""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"a ratio in {self.unit!r}: state a time beside another one of the same run")
        if self.ratio is not None and self.unit == "×" and not self.beside:
            raise ValueError(f"{self.what}: {self.ratio:g} times what?")

    @property
    def verdict(self) -> str:
        if self.ratio is None or self.budget is None:
            return ""
        kept = self.ratio >= self.budget if self.least else self.ratio <= self.budget
        return "OK" if kept else "MISSED"

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:,.{1 if self.ratio >= 10 else 2}f} {self.unit}"
        budget = "" if self.budget is None else f"{'≥' if self.least else '≤'} {self.budget:g} {self.unit}"
        return [self.what, self.value, self.beside, ratio.rstrip(), budget.rstrip(), self.verdict]


HEADINGS = ["measured", "value", "beside", "ratio", "budget", ""]


def text(title: str, rows: Sequence[Row]) -> list[str]:
    """Lines for the terminal, columns under each other; the title first, an empty line last."""
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    return [title, *(line.rstrip() for line in lines), ""]


def markdown(rows: Sequence[Row]) -> list[str]:
    """The same as lines of a Markdown table."""
    table = [HEADINGS, ["---", "--:", "--:", "--:", "--:", "---"], *(row.cells() for row in rows)]
    return [f"| {' | '.join(line)} |" for line in table]
