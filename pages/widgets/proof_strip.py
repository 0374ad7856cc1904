"""The proof at the foot of a page: checks that the picture shows what the model computed in this run."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from model.proof.checks import Check
from model.run import Run
from pages.compute.runs import check
from pages.widgets.controls import box
from pages.widgets.page_links import links
from viz.latex import error_text


def proof_strip(run: Run, other: Run | None = None) -> None:
    """One row of checks of the run on this page, each with its error and tolerance.

    Args:
        run: what is checked.
        other: the second run of a page that shows two; a check then holds if it holds for both.
    """
    _draw(run, *_checked(run, other))


def proof(run: Run, other: Run | None = None) -> tuple[str, Callable[[], None]]:
    """How many of the checks hold, with a symbol that says whether all do, and what draws them; as `proof_strip`."""
    runs, checks = _checked(run, other)
    held = sum(all(result.passed for result in results) for results in zip(*checks, strict=True))
    symbol = "verified" if held == len(checks[0]) else "error"
    return f":material/{symbol}: {held} of {len(checks[0])} checks hold", partial(_draw, run, runs, checks)


def _checked(run: Run, other: Run | None) -> tuple[list[Run], list[Sequence[Check]]]:
    runs = [run] if other is None or other.trace is run.trace else [run, other]
    return runs, [check(one.opened, one.trace) for one in runs]


def _draw(run: Run, runs: list[Run], checks: list[Sequence[Check]]) -> None:
    with st.container(border=True):
        said = "this run" if len(runs) == 1 else "both runs"
        if count := len(run.trace.interventions):
            said += f", with {count} {'change' if count == 1 else 'changes'} in the model"
        st.markdown(f"**The picture is the model**: checked on {said}")
        for column, results in zip(st.columns(len(checks[0])), zip(*checks, strict=True), strict=True):
            errors = " and ".join(error_text(result.error) for result in results)
            name = "error" if len(runs) == 1 else "errors"
            column.markdown(
                f"{_verdict(results)}  \n{results[0].title}  \n:small[{name} {errors}, {_limit(results[0])}]"
            )
        box("How is this checked?", "how-checked", _explain, checks[0])


def _explain(checks: Sequence[Check]) -> None:
    for result in checks:
        st.markdown(f"**{result.title}.** {result.explanation}")
    links(verification="All twenty-one claims, and how far this run is from each")


def _verdict(results: tuple[Check, ...]) -> str:
    return ":green[**✓ holds**]" if all(result.passed for result in results) else ":red[**✗ fails**]"


def _limit(result: Check) -> str:
    return f"allowed {error_text(result.tolerance)}" if result.tolerance else "none allowed"
