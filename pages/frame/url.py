"""What a link may not say."""

from math import isfinite

import streamlit as st

TEXTS = {"source", "typed", "changes", "add", "prefix", "pe_order", "layers_token", "layers_step", "side_sentence"}
"""parameters that may hold any digits: their pages read them by themselves"""
DROPPED = "dropped-from-link"
"""in the session: what the next run says about parameters that were taken out of the link"""


def drop_endless_numbers() -> list[str]:
    """Take infinity, also as hundreds of digits, out of the link: a number widget raises on it before we see it.

    Returns:
        a sentence for each parameter that was taken out.
    """
    endless = [name for name in st.query_params if name not in TEXTS and _endless(st.query_params[name])]
    if endless:
        for name in endless:
            del st.query_params[name]
        st.session_state[DROPPED] = [
            f"The link asks for a {name} that is not there; you see another." for name in endless
        ]
        # What the link said at first is kept beside the parameters: only another run forgets it.
        st.rerun()
    return st.session_state.pop(DROPPED, [])


def _endless(text: str) -> bool:
    try:
        return not isfinite(float(text))
    except ValueError:
        return False
