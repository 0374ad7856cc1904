"""The proof strip at the foot of every page: the picture is the model, checked for this run."""

from typing import TYPE_CHECKING

import streamlit as st

from model.proof import Check
from pages.components.cards import links
from pages.components.runs import check

if TYPE_CHECKING:
    from pages.components.frame import View


def proof_strip(view: "View") -> None:
    """One row of checks of the run on this page, each with its error and tolerance."""
    checks = check(view.translator, view.trace)
    with st.container(border=True):
        st.markdown("**The picture is the model**: checked on this very run")
        for column, found in zip(st.columns(len(checks)), checks, strict=True):
            column.markdown(
                f"{_verdict(found)}  \n{found.title}  \n:small[error {_number(found.error)}, {_limit(found)}]"
            )
        with st.expander("How is this checked?"):
            for found in checks:
                st.markdown(f"**{found.title}.** {found.explanation}")
            links(how_it_is_known="All twenty claims, and how far this run is from each")


def _verdict(found: Check) -> str:
    return ":green[**✓ holds**]" if found.passed else ":red[**✗ fails**]"


def _limit(found: Check) -> str:
    return f"allowed {_number(found.tolerance)}" if found.tolerance else "none allowed"


def _number(value: float) -> str:
    return f"{value:.1e}" if value else "0"
