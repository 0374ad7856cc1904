"""What is on screen is what the model computed: twenty-two claims, and the error of a run for each of them.

Each error is measured twice, because a mistake keeps its size when the same run is computed in double precision, while
rounding shrinks by nine digits. Tests measure each claim for random models, sentences and interventions; one that
cannot be measured is held by tests named `test_<number>_...`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from model.analysis.double_precision import in_double_precision
from model.beside import read_beside
from model.proof import measures, rerun_measures
from model.proof.checks import chain_closes, hooks_change_nothing, rows_sum_to_one
from model.proof.measures import Case
from model.trace import Array


@dataclass(frozen=True)
class Claim:
    """One claim, how to measure it on a run, and the largest error allowed."""

    number: int
    title: str
    compared: str
    """what is compared with what"""
    measure: Callable[[Case], float | str] | None = None
    """the error, or a sentence on why the claim does not apply to the run; None: the claim is about figures, which
    only tests can check"""
    tolerance: float = 0.0
    """largest error in the run's own precision; 0: bit-equal"""
    double_tolerance: float = 0.0
    """largest error of the same run in double precision"""
    slow: bool = False
    """whether it runs the model many times"""
    why_not: Callable[[Case], str] = lambda _case: ""
    """of a slow claim: why it does not apply, where that is known without a run; empty if it may"""
    of_head: bool = False
    """whether it depends on the head of the `Case`, or on its attention"""
    double: bool = True
    """whether to measure it in double precision too"""
    part: str = ""
    """a or b, where one claim has two measurements"""

    @property
    def label(self) -> str:
        """Number and part, as on screen: "8a"."""
        return f"{self.number}{self.part}"


@dataclass(frozen=True)
class Measurement:
    """The error of one claim on one run."""

    claim: Claim
    error: float | None
    """in the run's own precision; None where the claim does not apply"""
    double: float | None
    """of the same run in double precision"""
    seconds: float
    """of computation, for both"""
    reason: str = ""
    """why the claim does not apply to this run; empty where it does"""

    @property
    def holds(self) -> bool:
        single = self.error is None or self.error <= self.claim.tolerance
        return single and (self.double is None or self.double <= self.claim.double_tolerance)


MEASURES: Mapping[str, Callable[[Case], float | str]] = {
    "1": rerun_measures.two_runs,
    "2": lambda case: hooks_change_nothing(case.opened, case.trace).error,
    "3": lambda case: chain_closes(case.opened, case.trace).error,
    "4": measures.contributions,
    "5": lambda case: rows_sum_to_one(case.trace).error,
    "6": rerun_measures.causality,
    "7": rerun_measures.padding,
    "8a": rerun_measures.cached_steps,
    "8b": rerun_measures.searches,
    "9": rerun_measures.identities,
    "10": rerun_measures.ablations,
    "12": measures.labels_and_scores,
    "14": measures.vocabulary,
    "15": measures.hidden_tokens,
    "16": measures.words,
    "17": measures.positions,
    "19": measures.addresses,
    "20": measures.weights_file,
    "21": measures.written,
    "22": rerun_measures.sentence_pairs,
}
"""by label; only tests can check the others, which are about figures"""
WHY_NOT = {"6": rerun_measures.sees_all, "8a": rerun_measures.cannot_decode, "8b": rerun_measures.cannot_decode}


def _read_claims() -> Iterator[Claim]:
    for row in read_beside(__file__)["claim"]:
        claim = Claim(**row)
        yield replace(claim, measure=MEASURES.get(claim.label), why_not=WHY_NOT.get(claim.label, claim.why_not))


CLAIMS = tuple(_read_claims())


def double_case(case: Case) -> Case:
    """The case with its run repeated in double precision, on the same tokens and with the same interventions.

    A Hugging Face model is not run again.
    """
    if not case.own_layers:
        return case
    twin = replace(case, opened=in_double_precision(case.opened))
    return replace(twin, trace=twin.again())


def measure_claim(claim: Claim, case: Case, double: Case) -> Measurement:
    """The claim's error on a run, and on the same run in double precision (`double_case`).

    Raises:
        ValueError: the claim is about figures, which only tests can check.
    """
    if claim.measure is None:
        raise ValueError(f"claim {claim.number} is about figures; the tests named test_{claim.number}_ check it")
    start = perf_counter()
    found = claim.measure(case)
    if isinstance(found, str):
        return Measurement(claim, None, None, perf_counter() - start, found)
    # Hugging Face models compute some steps in single precision, whatever the precision of their weights.
    double_error = claim.measure(double) if claim.double and case.own_layers else None
    return Measurement(claim, found, double_error, perf_counter() - start)


def measure_claims(case: Case, claims: Sequence[Claim]) -> Iterator[tuple[float, dict[Claim, Measurement]]]:
    """Measure claims one after another; yields the share that is done, and the measurements so far."""
    double, measured = double_case(case), {}
    for number, claim in enumerate(claims, start=1):
        measured[claim] = measure_claim(claim, case, double)
        yield number / len(claims), dict(measured)


def error_arrays(results: Mapping[Claim, Measurement]) -> dict[str, Array]:
    """Label, error and error in double precision of every measurable claim; NaN where there is none."""
    claims = [claim for claim in CLAIMS if claim.measure]
    rows = [(results[c].error, results[c].double) if c in results else (None, None) for c in claims]
    errors = np.array(rows, dtype=float).T
    return {"claim": np.array([claim.label for claim in claims]), "error": errors[0], "error_double": errors[1]}
