"""What our own small runs measured (checkpoints/studies), held against the paper's Table 3 and against power laws."""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from model.background.table_3 import TABLE_3, Ablation
from model.beside import read_beside
from model.trace import Array

STUDIES = Path(__file__).parents[2] / "checkpoints" / "studies"

WARMUP = 250
"""steps, in every run of ablations.csv but no-warmup"""
LETTERS_WARMUP = 300
"""steps, of the runs of warm_up.csv; those without warm-up stay at its peak as long"""

LETTERS_STEPS = 300
"""of the runs of norm_and_residual.csv"""
DEPTHS = (2, 6, 12)
"""layers of the encoder, and of the decoder, of those runs"""
PLACEMENTS = ("post", "pre")
"""of the norm"""
WITHOUT = ("no-norm", "no-residual", "batch-norm")
"""those that change the norm or the residual connection, with 2 + 2 layers"""
NORMS, GRADIENTS = "norm_and_residual.csv", "gradients_by_layer.csv"
"""what the runs reached, and the gradients before training"""


def letters_run(norm: str, depth: int, rises: bool) -> str:
    """Name of the run with this placement of the norm and so many layers a stack, with warm-up or without it."""
    return f"{norm}-{depth}" if rises else f"{norm}-{depth}-no-warm-up"


def read_study(name: str) -> pd.DataFrame:
    """The table checkpoints/studies/<name>.csv; empty if it is not there."""
    path = STUDIES / f"{name}.csv"
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def study_arrays(name: str) -> dict[str, Array]:
    """The columns of checkpoints/studies/<name>.csv."""
    return {str(column): np.array(values.tolist()) for column, values in read_study(name).items()}


@dataclass(frozen=True)
class StudyRow:
    """One row of our Table 3."""

    changed: str
    """what differs from base, on screen"""
    paper: str = ""
    """what the paper changes in the row that comes closest; empty if it has none"""
    options: str = ""
    """what its command has other than that of base"""


ROWS = {name: StudyRow(**row) for name, row in read_beside(__file__).items()}
"""by the names in ablations.csv"""

Verdict = Literal["agrees", "disagrees", "within the seeds' spread", "one seed", "no such row"]


@dataclass(frozen=True)
class Comparison:
    """One row of our Table 3 beside the paper's."""

    name: str
    row: StudyRow
    parameters: int
    seeds: Array
    """(seed,): which they were"""
    perplexities: Array
    """(seed,) on the development text, per vocabulary piece"""
    bleus: Array
    """(seed,)"""
    paper: Ablation | None
    bleu_difference: float
    """of the means, from base"""
    perplexity_ratio: float
    """of the means, to base"""
    bleu_verdict: Verdict
    perplexity_verdict: Verdict


def our_table_3() -> list[Comparison]:
    """Each row of ablations.csv beside the paper's; none if that file is not there. A page asks for them five times."""
    path = STUDIES / "ablations.csv"
    return _compare_file(path, path.stat().st_mtime_ns) if path.exists() else []


@lru_cache(maxsize=4)
def _compare_file(path: Path, _changed: int) -> list[Comparison]:
    """Of a table that was last changed then."""
    return compare_with_paper(pd.read_csv(path))


def compare_with_paper(runs: pd.DataFrame) -> list[Comparison]:
    """Each row of ablations.csv that has runs, in the order of ROWS; none if base has no run."""
    columns = {column: values.to_numpy() for column, values in runs.items()}
    by_row = {name: np.flatnonzero(columns["row"] == name) for name in ROWS} if len(runs) else {}
    by_row = {
        name: {one: values[rows] for one, values in columns.items()} for name, rows in by_row.items() if len(rows)
    }
    if "base" not in by_row:
        return []
    base, papers_base, found = by_row["base"], TABLE_3[0], []
    for name, own in by_row.items():
        paper = next((row for row in TABLE_3 if row.change == ROWS[name].paper), None)
        bleus, perplexities = own["bleu"], own["perplexity"]
        expected = (paper.bleu - papers_base.bleu, paper.perplexity - papers_base.perplexity) if paper else (None, None)
        found.append(
            Comparison(
                name=name,
                row=ROWS[name],
                parameters=int(own["parameters"][0]),
                seeds=own["seed"],
                perplexities=perplexities,
                bleus=bleus,
                paper=paper,
                bleu_difference=float(bleus.mean() - base["bleu"].mean()),
                perplexity_ratio=float(perplexities.mean() / base["perplexity"].mean()),
                bleu_verdict=judge(bleus, base["bleu"], expected[0]),
                perplexity_verdict=judge(perplexities, base["perplexity"], expected[1]),
            )
        )
    return found


def judge(own: Array, base: Array, expected: float | None) -> Verdict:
    """True if our difference from base has the sign of the paper's, where it exceeds the range of the seeds, (seed,)
    each; `expected` is the paper's difference, None if it has no such row."""
    if min(len(own), len(base)) < 2:
        return "one seed"
    difference = own.mean() - base.mean()
    if abs(difference) <= max(np.ptp(own), np.ptp(base)):
        return "within the seeds' spread"
    if expected is None:
        return "no such row"
    return "agrees" if np.sign(difference) == np.sign(expected) else "disagrees"


T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447}
"""degrees of freedom -> 97.5 % quantile of Student's t"""


@dataclass(frozen=True)
class PowerLaw:
    """y proportional to x^-exponent, fitted by least squares to the logarithms."""

    exponent: float
    interval: float
    """half of the exponent's 95 % confidence interval, by Student's t with two degrees of freedom fewer than points"""
    n: int
    """points"""


def fit_power_law(x: Array, y: Array) -> PowerLaw:
    """The law through positive `x` and `y`, of three to eight points.

    Raises:
        ValueError: there are fewer or more, or all x are equal.
    """
    if len(x) - 2 not in T_95 or not np.ptp(x):
        raise ValueError(f"a power law with an interval needs 3 to 8 points at several x, got {len(x)}")
    log_x, log_y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    slope, intercept = np.polyfit(log_x, log_y, 1)
    residual = log_y - intercept - slope * log_x
    error = sqrt((residual**2).sum() / (len(x) - 2) / ((log_x - log_x.mean()) ** 2).sum())
    return PowerLaw(float(-slope), T_95[len(x) - 2] * error, len(x))


def ends_of_runs(curves: pd.DataFrame) -> pd.DataFrame:
    """The last row of each run of scaling.csv, smallest first, with non-embedding parameters and training compute.

    Compute is 6 N per token (Kaplan et al. 2020, section 2.1): 2 N for the forward and 4 N for the backward pass.
    """
    if not len(curves):
        return curves
    ends = curves.groupby("run", as_index=False).last()
    ends["n"] = ends["parameters"] - ends["embedding_parameters"]
    ends["compute"] = 6.0 * ends["n"] * ends["tokens"]
    return ends.sort_values("n", ignore_index=True)
