"""The proof strip at the foot of every page: the picture is the model, checked for this run."""

from typing import TYPE_CHECKING

import streamlit as st

from model.proof.checks import Check
from pages.compute.runs import check
from pages.widgets.page_links import links

if TYPE_CHECKING:
    from pages.frame.view import View


def proof_strip(view: "View", other: "View | None" = None) -> None:
    """One row of checks of the run on this page, each with its error and tolerance.

    Args:
        view: whose run is checked.
        other: one more, where the page shows two runs: a check holds if it holds for both.
    """
    runs = [view] if other is None or other.trace is view.trace else [view, other]
    checks = [check(run.translator, run.trace) for run in runs]
    with st.container(border=True):
        said = "this very run" if len(runs) == 1 else "both runs"
        st.markdown(f"**The picture is the model**: checked on {said}")
        for column, found in zip(st.columns(len(checks[0])), zip(*checks, strict=True), strict=True):
            errors = ", ".join(_number(one.error) for one in found)
            name = "error" if len(runs) == 1 else "errors left, right:"
            column.markdown(f"{_verdict(found)}  \n{found[0].title}  \n:small[{name} {errors}, {_limit(found[0])}]")
        with st.expander("How is this checked?"):
            for one in checks[0]:
                st.markdown(f"**{one.title}.** {one.explanation}")
            links(verification="All twenty claims, and how far this run is from each")


def _verdict(found: tuple[Check, ...]) -> str:
    return ":green[**✓ holds**]" if all(one.passed for one in found) else ":red[**✗ fails**]"


def _limit(found: Check) -> str:
    return f"allowed {_number(found.tolerance)}" if found.tolerance else "none allowed"


def _number(value: float) -> str:
    return f"{value:.1e}" if value else "0"
