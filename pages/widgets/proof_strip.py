"""The proof at the foot of a page: checks that the picture shows what the model computed in this run.

No tick stands beside a network that is not the one its folder describes, whatever holds of it.
"""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from model.language import listed, tr
from model.proof.checks import Check
from model.run import Run
from pages.compute.runs import check
from pages.widgets.controls import box
from pages.widgets.page_links import links
from viz.latex import error_text


def proof(run: Run, other: Run | None = None) -> tuple[str, Callable[[], None]]:
    """How many of the checks hold, with a symbol that says whether all do, and what draws them: one row of all checks.

    On a page that shows two runs, a check holds if it holds for both.
    """
    runs = [run] if other is None or other.trace is run.trace else [run, other]
    checks = [check(one.opened, one.trace) for one in runs]
    held = sum(all(result.passed for result in results) for results in zip(*checks, strict=True))
    counts = {"held": held, "count": len(checks[0])}
    if _departs(runs):
        text = tr("Not as the folder says; {held} of {count} checks hold of what runs", **counts)
    else:
        text = tr("{held} of {count} checks hold", **counts)
    symbol = "verified" if held == len(checks[0]) and not _departs(runs) else "error"
    return f":material/{symbol}: {text}", partial(_draw, run, runs, checks)


def _departs(runs: list[Run]) -> bool:
    return any(one.opened.departures for one in runs)


def _draw(run: Run, runs: list[Run], checks: list[Sequence[Check]]) -> None:
    with st.container(border=True):
        st.markdown(_subject(len(runs), len(run.trace.interventions)))
        if _departs(runs):
            st.markdown(
                tr(":red[**But the network is not the one that the folder describes**]: see the red line above.")
            )
        for column, results in zip(st.columns(len(checks[0])), zip(*checks, strict=True), strict=True):
            errors = listed(error_text(result.error) for result in results)
            name = tr("error") if len(runs) == 1 else tr("errors")
            title, most = tr(results[0].title), results[0].tolerance
            allowed = tr("allowed {error}", error=error_text(most)) if most else tr("none allowed")
            column.markdown(f"{_verdict(results, _departs(runs))}  \n{title}  \n:small[{name} {errors}, {allowed}]")
        box(tr("How is this checked?"), "how-checked", _explain, checks[0])


def _subject(runs: int, changes: int) -> str:
    """Of what the checks are."""
    if runs == 1 and changes == 0:
        return tr("**The picture is the model**: checked on this run")
    if runs == 1 and changes == 1:
        return tr("**The picture is the model**: checked on this run, with 1 change in the model")
    if runs == 1:
        return tr("**The picture is the model**: checked on this run, with {count} changes in the model", count=changes)
    if changes == 0:
        return tr("**The picture is the model**: checked on both runs")
    return tr("**The picture is the model**: checked on both runs, with {count} changes in the model", count=changes)


def _explain(checks: Sequence[Check]) -> None:
    for result in checks:
        st.markdown(f"**{tr(result.title)}.** {tr(result.explanation)}")
    links(verification=tr("All twenty-two claims, and how far this run is from each"))


def _verdict(results: tuple[Check, ...], departs: bool) -> str:
    if not all(result.passed for result in results):
        return tr(":red[**✗ fails**]")
    return tr("**holds of what runs**") if departs else tr(":green[**✓ holds**]")
