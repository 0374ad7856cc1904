"""The changes made on the page What if, in the session and in the link; they can be kept on for all pages."""

import streamlit as st

from model.checkpoints.checkpoint import Checkpoint
from model.interventions import Intervention, describe
from model.interventions.link import decode, encode

CHANGES, PAST, NOTES, EDITION = "what_if_changes", "what_if_past", "what_if_notes", "what_if_edition"
IN_LINK, ADDED = "changes", "add"
KEPT = "kept"
"""in the session whether the changes are kept on; in the URL 1 if they are"""
MOST_UNDONE = 50
MOST_NAMED = 3
"""changes in the banner"""


def kept_changes(opened: Checkpoint | None, editing: bool) -> tuple[Intervention, ...]:
    """The changes that a page runs with: those of the list if they are kept on, else none.

    Args:
        opened: None if the checkpoint could not be opened.
        editing: whether this is the page that makes the changes and runs without and with them.
    """
    state = st.session_state
    state.setdefault(KEPT, st.query_params.get(KEPT) == "1")
    if not state[KEPT]:
        st.query_params.pop(KEPT, "")
        return ()
    st.query_params[KEPT] = "1"
    return () if editing or opened is None else current_changes(opened)


def show_kept(changes: tuple[Intervention, ...], opened: Checkpoint | None) -> None:
    """A banner that names the changes at work on this page, with a button that takes them off."""
    if not changes:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="kept-banner"):
        named = " ".join(describe(change, opened.model) for change in changes[:MOST_NAMED])
        more = " …" if len(changes) > MOST_NAMED else ""
        st.markdown(f":material/science: **The model is changed on every page.** {named}{more}", width="stretch")
        st.button("Take off", key="kept_off", on_click=keep_on, args=(False, True), help="The list on What if stays.")


def keep_on(kept: bool, elsewhere: bool = False) -> None:
    """Keep the changes on for all pages, or no longer; `elsewhere`: asked for on another page than What if."""
    st.session_state[KEPT] = kept
    if elsewhere:
        st.query_params.pop(IN_LINK, "")


def current_changes(opened: Checkpoint) -> tuple[Intervention, ...]:
    """The changes, from the session or, on a first visit, the link; those that do not fit the model are dropped."""
    state = st.session_state
    if CHANGES not in state:
        state[CHANGES], state[PAST] = (), []
        try:
            state[CHANGES] = decode(st.query_params.get(IN_LINK, ""))
        except ValueError as error:
            _note(f"{error} Showing the model without changes.")
    _take_added()
    misfits = [change for change in state[CHANGES] if why_unsupported(opened, change)]
    if misfits:
        for change in misfits:
            _note(f"Dropped, because this checkpoint has no such layer or head: {describe(change)}")
        set_changes(tuple(change for change in state[CHANGES] if change not in misfits))
    _to_link()
    return state[CHANGES]


def why_unsupported(opened: Checkpoint, change: Intervention) -> str:
    """Why the change does not fit the model; empty if it does."""
    try:
        opened.check_intervention(change)
    except ValueError as error:
        return str(error)
    return ""


def set_changes(changes: tuple[Intervention, ...]) -> None:
    """Replace the list in session and link; one too long for a link is refused with a note."""
    state = st.session_state
    try:
        encode(changes)
    except ValueError as error:
        _note(str(error))
        return
    if changes != state[CHANGES]:
        state[PAST] = [*state[PAST], state[CHANGES]][-MOST_UNDONE:]
        state[CHANGES] = changes
        state[EDITION] = list_version() + 1
    _to_link()


def add(change: Intervention) -> None:
    """Put a change at the end of the list."""
    set_changes((*st.session_state[CHANGES], change))


def list_version() -> int:
    """How many times the list has changed."""
    return st.session_state.get(EDITION, 0)


def undo() -> None:
    state = st.session_state
    if state[PAST]:
        state[CHANGES] = state[PAST].pop()
        state[EDITION] = list_version() + 1
    _to_link()


def _take_added() -> None:
    """Add, once, what a link on another page asks for."""
    text = st.query_params.pop(ADDED, "")
    try:
        added = tuple(change for change in decode(text) if change not in st.session_state[CHANGES])
    except ValueError as error:
        _note(str(error))
    else:
        set_changes((*st.session_state[CHANGES], *added))


def _note(sentence: str) -> None:
    st.session_state.setdefault(NOTES, []).append(sentence)


def _to_link() -> None:
    """Write the changes to the URL; callbacks do too, so that the sidebar's link is up to date."""
    if text := encode(st.session_state[CHANGES]):
        st.query_params[IN_LINK] = text
    elif IN_LINK in st.query_params:
        del st.query_params[IN_LINK]
