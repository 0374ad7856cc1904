"""Work that waits for a button: who asked, and what was found, kept for everybody."""

import streamlit as st


def asked(label: str, key: str, icon: str) -> bool:
    """A button; True in the run that its press starts."""
    st.button(label, key=key, icon=icon, on_click=_ask, args=(key,))
    return st.session_state.pop(f"{key}-asked", False)


def _ask(key: str) -> None:
    st.session_state[f"{key}-asked"] = True


@st.cache_resource(max_entries=96, show_spinner=False)
def kept_result(*case: object) -> list:  # noqa: ARG001 - the cache tells cases apart by it
    """Empty until the case has been worked out, then its result; shared by all, the oldest dropped."""
    return []
