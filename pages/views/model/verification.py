"""Verification: the claims that every picture shows what the model computed, measured on this run."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from model.checkpoints.checkpoint import Checkpoint
from model.language import in_a_row
from model.proof.checks import chain_closes, rows_sum_to_one
from model.proof.claims import (
    CLAIMS,
    Claim,
    Measurement,
    error_arrays,
    in_double_precision,
    measure_claim,
    measure_claims,
)
from model.proof.measures import Case
from model.proof.rerun_measures import causality
from model.proof.steps import READ, verify_steps
from model.trace import CHAIN_TOLERANCE, Trace
from pages.views import OnRequest, Result, Run, answer, view
from viz.forms import Table
from viz.labels import say_label
from viz.special.verification import ClaimRow, errors_chart

MEASURABLE = tuple(claim for claim in CLAIMS if claim.measure)
WAITING, DOES_NOT_APPLY = "not measured yet", "does not apply to this run"
MOST_NOTES = 3
"""of what could not be read of a model: often the same in each layer"""

Measured = Mapping[Claim, Measurement]


def _slow(run: Run) -> list[Claim]:
    """The claims that apply to this run, and run the model many times; none of them depends on the head."""
    case = _case(run)
    return [claim for claim in MEASURABLE if claim.slow and not claim.why_not(case)]


def _case(run: Run) -> Case:
    return Case(run.opened, run.trace, run.kind, run.layer, run.head)


SLOW = OnRequest(
    "Also measure the claims that run the model many times",
    "claims-slow",
    lambda run: measure_claims(_case(run), _slow(run)),
    lambda run: (run.opened, run.trace) if _slow(run) else None,
)


def _measure(opened: Checkpoint, trace: Trace, kind: str, layer: int, head: int, labels: tuple[str, ...]) -> Measured:
    claims = [claim for claim in MEASURABLE if claim.label in labels]
    *_, (_, measured) = measure_claims(Case(opened, trace, kind, layer, head), claims)
    return measured


def _measured(run: Run, outcome: Measured | None) -> Measured:
    """All measurements so far, in the order of the claims; another head repeats only what depends on it."""
    quick = set(MEASURABLE) - set(_slow(run))
    first = run.trace.kinds[0]
    places = {False: (first.name, first.layers[0], 0), True: (run.kind, run.layer, run.head)}
    measured = dict(outcome or {})
    for of_head, place in places.items():
        labels = tuple(claim.label for claim in MEASURABLE if claim in quick and claim.of_head == of_head)
        measured |= run.compute(_measure, run.opened, run.trace, *place, labels)
    return {claim: measured[claim] for claim in MEASURABLE if claim in measured}


def _row(claim: Claim, result: Measurement | None) -> ClaimRow:
    error, double = (result.error, result.double) if result else (None, None)
    note = WAITING if result is None else DOES_NOT_APPLY if error is None else ""
    return ClaimRow(claim.label, claim.title, error, claim.tolerance, double, claim.double_tolerance, note)


@view(
    "Every comparison",
    code=(measure_claim, in_double_precision, chain_closes, rows_sum_to_one, causality),
    on_request=SLOW,
)
def errors(run: Run, outcome: Measured | None = None) -> Result:
    """How many comparisons hold, and the error of each in single and in double precision."""
    measured = _measured(run, outcome)
    made = [result for result in measured.values() if result.error is not None]
    gaps: dict[str, list[str]] = {}
    for claim, result in measured.items():
        if result.reason:
            gaps.setdefault(result.reason, []).append(claim.label)
    notes = run.trace.notes
    facts = {
        "made": len(made),
        "waiting": len(MEASURABLE) - len(measured),
        "broken": [f"{result.claim.label}, {result.claim.title}" for result in made if not result.holds],
        "exact": sum(result.error == 0 for result in made),
        "worst": max((result.error for result in made), default=0.0),
        "double": max((result.double for result in made if result.double is not None), default=None),
        "claims": len({claim.number for claim in CLAIMS}),
        "by_tests": [claim.label for claim in CLAIMS if not claim.measure],
        "gaps": gaps,
        "notes": in_a_row(*notes[:MOST_NOTES]),
        "more_notes": max(len(notes) - MOST_NOTES, 0),
    }
    rows = [_row(claim, result) for claim, result in measured.items()]
    return Result({"errors": errors_chart(rows)}, facts, error_arrays(measured))


@view("Measured on this run", on_request=SLOW)
def table(run: Run, outcome: Measured | None = None) -> Result:
    """Every error with the largest one allowed."""
    measured = _measured(run, outcome)
    rows = [_row(claim, measured.get(claim)) for claim in MEASURABLE]
    holds = "holds of what runs" if run.opened.departures else "✓ holds"
    verdicts = {claim: holds if result.holds else "✗ fails" for claim, result in measured.items()}
    seconds = [measured[claim].seconds if claim in measured else None for claim in MEASURABLE]
    frame = pd.DataFrame(
        {
            "claim": [row.number for row in rows],
            "in short": [row.title for row in rows],
            "verdict": [row.note or verdicts[claim] for claim, row in zip(MEASURABLE, rows, strict=True)],
            "error": np.array([row.error for row in rows], float),
            "allowed": [row.allowed for row in rows],
            "error in double": np.array([row.double for row in rows], float),
            "allowed in double": [row.double_allowed for row in rows],
            "seconds": np.array(seconds, float),
        }
    )
    return Result({"table": Table(frame, "%.1e", {"seconds": "%.3f"})})


@view("All claims in plain words", on_request=SLOW)
def claims(run: Run, outcome: Measured | None = None) -> Result:
    """All claims, each with what is compared and its result."""
    measured = _measured(run, outcome)
    states = {claim: result.reason or ("holds" if result.holds else "fails") for claim, result in measured.items()}
    rows = [
        {name: getattr(claim, name) for name in ("label", "title", "compared")}
        | {"state": states.get(claim, "waiting") if claim.measure else "tests"}
        for claim in CLAIMS
    ]
    return Result(facts={"claims": rows, "departs": bool(run.opened.departures)})


@view("Every step of this run", code=(verify_steps,))
def steps(run: Run) -> Result:
    """Each step of the run with its state: read, different, or unreadable."""
    found = run.compute(verify_steps, run.opened, run.trace)
    frame = pd.DataFrame(
        {
            "path": [say_label(step.place) for step in found],
            "computes": [say_label(step.name) for step in found],
            "state": [step.state for step in found],
            "difference": np.array([step.difference for step in found], float),
        }
    ).sort_values("difference", ascending=False, na_position="first", kind="stable")
    read = int((frame["state"] == READ).sum())
    return Result(
        {"steps": Table(frame, "%.1e", most_rows=10)}, {"read": read, "steps": len(frame), "tolerance": CHAIN_TOLERANCE}
    )


@answer
def one_line(run: Run) -> Result:
    """How far the queries of the chosen layer are from their input times W_Q, computed once more; where that matrix
    could not be read, its scores from the products of queries and keys."""
    attention, known = run.attention, run.attention.projections is not None
    pairs = attention.recompute("q") if known else [(attention.q @ attention.k.swapaxes(1, 2), attention.scores)]
    errors = [float(np.abs(one - other).max()) for one, other in pairs]
    return Result(facts={"error": max(errors), "numbers": pairs[-1][1].size, "matrices": known})
