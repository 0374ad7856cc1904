"""The tabs of the Verification page: the twenty claims, measured on the current run."""

import pandas as pd
import streamlit as st

from model.needs import Need
from model.proof.claims import (
    CLAIMS,
    Claim,
    Measurement,
    claim_arrays,
    double_case,
    error_arrays,
    measure_claim,
)
from model.proof.measures import Case
from model.proof.steps import READ, step_arrays
from model.trace import CHAIN_TOLERANCE
from pages.compute.cache import store, stored
from pages.compute.view import View
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.verification import Row, errors_table
from viz.tokens import as_markdown

MEASURABLE = tuple(claim for claim in CLAIMS if claim.measure)
WAITING = "not measured yet"
MOST_NOTES = 3
"""of what could not be read of a model: often the same in each layer"""
DOES_NOT_APPLY = "does not apply to this run"


def measure(view: View, slow: bool) -> dict[Claim, Measurement]:
    """The measurements of this run so far, in the order of the claims; the quick ones are always made.

    Args:
        view: the run, and the head of claim 10.
        slow: also measure the claims that run the model many times.
    """
    found = {claim: stored(*_case(view, claim)) for claim in MEASURABLE}
    case = Case(view.translator, view.trace, view.kind, view.layer, view.head)
    quick = {claim for claim in MEASURABLE if not claim.slow or claim.why_not(case)}
    wanted = [claim for claim in MEASURABLE if found[claim] is None and (slow or claim in quick)]
    if wanted:
        found |= _measure(view, wanted)
    return {claim: result for claim, result in found.items() if result is not None}


def _measure(view: View, claims: list[Claim]) -> dict[Claim, Measurement]:
    again = " again in double precision" if Need.OWN_LAYERS in view.translator.features else ""
    bar = st.progress(0.0, f"Running the model{again} …")
    case = Case(view.translator, view.trace, view.kind, view.layer, view.head)
    double, found = double_case(case), {}
    for number, claim in enumerate(claims):
        bar.progress(number / len(claims), f"Measuring claim {claim.label}: {claim.title} …")
        found[claim] = measure_claim(claim, case, double)
        store(found[claim], *_case(view, claim))
    bar.empty()
    return found


def rows(found: dict[Claim, Measurement]) -> list[Row]:
    """Rows of the figure: one for each measurable claim, the same in every run."""
    return [_row(claim, found.get(claim)) for claim in MEASURABLE]


def _row(claim: Claim, result: Measurement | None) -> Row:
    error, double = (result.error, result.double) if result else (None, None)
    note = WAITING if result is None else DOES_NOT_APPLY if error is None else ""
    return Row(claim.label, claim.title, error, claim.tolerance, double, claim.double_tolerance, note)


def show_summary(found: dict[Claim, Measurement]) -> None:
    """How many claims hold, in one sentence."""
    told = [result for result in found.values() if result.error is not None]
    broken = [result.claim for result in told if not result.holds]
    if broken:
        names = "; ".join(f"{claim.label}, {claim.title}" for claim in broken)
        st.markdown(f":red[**✗ {len(broken)} of the {len(told)} claims measured on this run fail**]: {names}.")
        return
    exact = sum(result.error == 0 for result in told)
    worst = max((result.error for result in told), default=0.0)
    doubles = [result.double for result in told if result.double is not None]
    st.markdown(
        f":green[**✓ All {len(told)} claims measured on this run hold**]: {exact} of them bit for bit, the others "
        f"within {worst:.1e}; "
        + (
            f"in double precision the same run is within {max(doubles):.1e}."
            if doubles
            else "a Hugging Face model is not run in double precision, because transformers computes some steps in "
            "single precision whatever the weights are."
        )
    )


def explain_gaps(view: View, found: dict[Claim, Measurement]) -> None:
    """Which claims do not apply to this run, and why; and what could not be read of the model."""
    reasons: dict[str, list[str]] = {}
    for claim, result in found.items():
        if result.reason:
            reasons.setdefault(result.reason, []).append(claim.label)
    lines = [
        f"**{', '.join(labels)}** {DOES_NOT_APPLY if len(labels) == 1 else 'do not apply to this run'}. {reason}"
        for reason, labels in reasons.items()
    ]
    if notes := view.trace.notes:
        more = f" And {len(notes) - MOST_NOTES} more." if len(notes) > MOST_NOTES else ""
        lines.append(f"**3** leaves out what could not be read. {as_markdown(' '.join(notes[:MOST_NOTES]))}{more}")
    if lines:
        st.caption("  \n".join(lines))


def show_steps(view: View) -> None:
    """Each step of the run with its state: read, different, or unreadable."""
    call = Call(step_arrays, view.translator, view.trace)
    frame = pd.DataFrame(call.result).rename(columns={"place": "where"})
    read = (frame["state"] == READ).sum()
    st.markdown(
        f"**{read} of {len(frame)} steps are read**: their equation, computed in double precision from what is shown "
        f"before them, gives what the model computed on this run, within {CHAIN_TOLERANCE:g} of the largest number."
    )
    number = st.column_config.NumberColumn(format="%.1e")
    st.dataframe(
        frame.sort_values("difference", ascending=False, na_position="first", kind="stable"),
        hide_index=True,
        column_config={"difference": number},
        placeholder="–",
    )
    export_tab(view, "verification-steps", call)


def explain_numbering() -> None:
    """Why the figure does not have one row for each of the twenty claims."""
    by_tests = [claim.label for claim in CLAIMS if not claim.measure]
    st.caption(
        f"There are {len({claim.number for claim in CLAIMS})} claims. {', '.join(by_tests[:-1])} and {by_tests[-1]} "
        "are about the figures themselves, so tests check them and they have no row here; 8 is measured in two "
        "parts, 8a and 8b."
    )


def table(found: dict[Claim, Measurement]) -> pd.DataFrame:
    """One line for each measurable claim."""
    seconds = [found[claim].seconds if claim in found else None for claim in MEASURABLE]
    return errors_table(rows(found), seconds)


def show_table(found: dict[Claim, Measurement]) -> None:
    """Every error with the largest one allowed."""
    number = st.column_config.NumberColumn
    said = {"error": "error", "allowed": "allowed", "error, double": "in double", "allowed, double": "allowed"}
    config = {name: number(label, format="%.1e", width="small") for name, label in said.items()}
    config |= {"seconds": number(format="%.3f", width="small"), "claim": st.column_config.TextColumn(width="small")}
    st.dataframe(table(found), hide_index=True, height="content", column_config=config, placeholder="–")
    st.caption(
        "Allowed 0 means bit for bit. Errors of claims 3, 4, 8a, 10 and 12 are relative to the largest number of "
        "their matrix where that is above 1, and those of angles in 17 to the largest angle. In 7 those of logits are "
        "relative to the largest logit, and with Hugging Face models those of weights to the largest score. Those of "
        "8b are absolute. Claim 20 counts hexadecimal digits. "
        "Seconds cover both precisions, on this machine."
    )


def show_words(found: dict[Claim, Measurement]) -> None:
    """All twenty claims, each with what is compared and its result."""
    for claim in CLAIMS:
        st.markdown(f"**{claim.label}. {claim.title}** — {_verdict(claim, found)}  \n{claim.compared}")
    st.caption(
        "Tests check every claim on random small models, sentences and interventions. Their names begin with the "
        "claim's number: `pytest -k test_6_` runs those of claim 6."
    )


def _verdict(claim: Claim, found: dict[Claim, Measurement]) -> str:
    result = found.get(claim)
    if claim.measure is None:
        return "about the figures: checked by tests"
    if result is None:
        return WAITING
    if result.error is None:
        return f"{DOES_NOT_APPLY}: {result.reason}"
    return ":green[✓ measured]" if result.holds else ":red[✗ fails]"


def waiting(found: dict[Claim, Measurement]) -> int:
    """How many claims have not been measured yet."""
    return len(MEASURABLE) - len(found)


def arrays(view: View, results: dict[Claim, Measurement]) -> Call:
    """What measures these claims again."""
    labels = [claim.label for claim in results]
    run = view.translator, view.trace, view.kind, view.layer, view.head
    return Call(claim_arrays, *run, labels, result=error_arrays(results))


def _case(view: View, claim: Claim) -> tuple[object, ...]:
    place = (view.kind, view.layer, view.head) if claim.of_head else ()
    return "claim", claim.title, view.translator, view.trace, place
