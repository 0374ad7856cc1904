"""The proof strip at the foot of every page: the picture is the model, checked for this run."""

from typing import TYPE_CHECKING

import streamlit as st

from pages.components.runs import check

if TYPE_CHECKING:
    from pages.components.frame import View


def proof_strip(view: "View") -> None:
    """One row of checks of the run on this page, each with its error and tolerance."""
    checks = check(view.translator, view.trace)
    with st.container(border=True):
        st.markdown("**The picture is the model**: checked just now, on this run")
        for column, found in zip(st.columns(len(checks)), checks, strict=True):
            mark = ":green[✓ holds]" if found.passed else ":red[✗ fails]"
            allowed = "must be 0" if found.tolerance == 0 else f"at most {found.tolerance:.0e}"
            column.markdown(f"**{found.title}** {mark}  \nerror {found.error:.1e}, {allowed}")
        with st.expander("How is this checked?"):
            for found in checks:
                st.markdown(f"**{found.title}.** {found.explanation}")
