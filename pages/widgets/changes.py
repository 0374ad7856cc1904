"""The changes at work, in the session and in the link: temperatures, and what is kept on of What if for all pages."""

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from model.analysis.runs.patching import resolve_patch
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import KINDS, AttentionTemperature, Intervention, Patch, PatchFrom, describe, place_in_words
from model.interventions.link import decode, encode
from model.language import in_a_row, sentence_of, tr, tr_error
from model.run import Place
from pages.compute.runs import compute
from pages.widgets.controls import follow_click

CHANGES, PAST, NOTES, EDITION = "what_if_changes", "what_if_past", "what_if_notes", "what_if_edition"
MOVED = "what_if_moved"
"""in the session until the list is shown that was changed last"""
IN_LINK, ADDED = "changes", "add"
NONE = "[]"
"""in the URL: no changes, as the page What if begins with one"""
KEPT = "kept"
"""in the session whether the changes are kept on; in the URL 1 if they are"""
MOST_UNDONE = 50
TEMPERATURES = "temperatures"
"""in the session and in the URL: temperatures that were set at other places than the chosen one"""
FOLLOWED, SET = "temperature-followed", "temperature-set"
"""in the session: the place and the scope of the slider in the run before; its temperature"""


def kept_changes(opened: Checkpoint | None, editing: bool) -> tuple[Intervention, ...]:
    """The changes that a page runs with: those of the list if they are kept on, else none.

    Nor any where the checkpoint could not be opened, or on the page that makes the changes: it runs without and with
    them.
    """
    state = st.session_state
    state.setdefault(KEPT, st.query_params.get(KEPT) == "1")
    if not state[KEPT]:
        st.query_params.pop(KEPT, "")
        return ()
    st.query_params[KEPT] = "1"
    return () if editing or opened is None else current_changes(opened)


def show_active(changes: tuple[Intervention, ...], here: AttentionTemperature | None, model: Any) -> None:
    """Draw a line for each change at work in the run, with a button that removes it.

    `here` is the one among them that the slider has set at the chosen place.
    """
    if not changes:
        return
    with st.container(key="active-changes", gap="xxsmall"):
        for number, change in enumerate(changes):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                if change == here or change in st.session_state.get(TEMPERATURES, ()):
                    place = place_in_words(change, short=True)  # in one line of the sidebar
                    text = tr("τ = {tau:g} in {place}", tau=change.tau, place=place)
                else:
                    text = tr(describe(change, model))
                st.caption(text, width="stretch")
                removes = {"on_click": _remove, "args": (change, change == here)}
                st.button(
                    ":material/close:",
                    key=f"remove-{number}",
                    help=tr("Remove this change"),
                    type="tertiary",
                    **removes,
                )


def _remove(change: Intervention, here: bool) -> None:
    """Before the page runs again: the model is without this change."""
    state = st.session_state
    if here:
        state["tau"] = 1.0
    elif change in state.get(TEMPERATURES, ()):
        state[TEMPERATURES] = tuple(one for one in state[TEMPERATURES] if one != change)
    else:
        set_changes(tuple(one for one in state[CHANGES] if one != change))
        if not state[CHANGES]:
            keep_on(False)


def stay_where_set(place: Place) -> None:
    """Before the slider is drawn: a temperature stays at the head or layer for which it was set.

    When another place is chosen, the slider has what was set there, or 1; when the slider is to act on more, or on
    less, at the same place, the temperature goes along.
    """
    state = st.session_state
    before, scope, tau = state.get(FOLLOWED), state.get("scope", "head"), state.get("tau", 1.0)
    if before is None or before == (place, scope):
        return
    (old_place, old_scope), old_tau = before, state[SET]
    address, old_address = place.address(scope), old_place.address(old_scope)
    elsewhere = {_address(one): one for one in state.get(TEMPERATURES, ())}
    if scope == old_scope and address != old_address and old_tau != 1:
        elsewhere[tuple(old_address.items())] = AttentionTemperature(old_tau, **old_address)
    found = elsewhere.pop(tuple(address.items()), None)
    if tau == (1.0 if scope != old_scope else old_tau) and address != old_address:
        follow_click("tau", found.tau if found else 1.0)
    state[TEMPERATURES] = in_order_of_places(elsewhere.values())


def in_order_of_places(temperatures: Iterable[AttentionTemperature]) -> tuple[AttentionTemperature, ...]:
    """Those of the whole model first, then by kind, layer and head, whichever was set first.

    So the list stays as it is when another head is chosen, and a run that is known is found again.
    """

    def place(change: AttentionTemperature) -> tuple[int, ...]:
        kind = -1 if change.kind is None else KINDS.index(change.kind)
        return (kind, *(-1 if number is None else number for number in (change.layer, change.head)))

    return tuple(sorted(temperatures, key=place))


def temperatures_elsewhere(
    opened: Checkpoint | None, place: Place, scope: str, tau: float, notes: list[str]
) -> tuple[Intervention, ...]:
    """The temperatures that were set at other places than the slider's, from the session or, on a first visit, the
    link.

    `notes` gets a sentence on each that could not be read, or does not fit the model.
    """
    state = st.session_state
    state[FOLLOWED], state[SET] = (place, scope), tau
    if TEMPERATURES not in state:
        state[TEMPERATURES] = _temperatures_of_link(place.address(scope), notes)
    if opened is not None:
        for change in (one for one in state[TEMPERATURES] if why_unsupported(opened, one)):
            state[TEMPERATURES] = tuple(one for one in state[TEMPERATURES] if one != change)
            notes.append(
                tr("Dropped, because this checkpoint has no such layer or head: {change}", change=describe(change))
            )
    if text := encode(state[TEMPERATURES]):
        st.query_params[TEMPERATURES] = text
    else:
        st.query_params.pop(TEMPERATURES, "")
    return state[TEMPERATURES]


def _temperatures_of_link(address: Mapping[str, Any], notes: list[str]) -> tuple[AttentionTemperature, ...]:
    try:
        asked = decode(st.query_params.get(TEMPERATURES, ""))
    except ValueError as error:
        notes.append(in_a_row(tr_error(error), tr("Showing the model without these temperatures.")))
        return ()
    # What acts at the chosen place is said by the slider.
    taken = [one for one in asked if isinstance(one, AttentionTemperature) and _address(one) != tuple(address.items())]
    return in_order_of_places({_address(one): one for one in taken}.values())


def _address(change: AttentionTemperature) -> tuple[tuple[str, Any], ...]:
    parts = {"kind": change.kind, "layer": change.layer, "head": change.head}
    return tuple((name, part) for name, part in parts.items() if part is not None)


def keep_on(kept: bool) -> None:
    """Keep the changes on for all pages, or no longer."""
    st.session_state[KEPT] = kept


def begin_with(changes: tuple[Intervention, ...]) -> None:
    """On a first visit by no link that says which: the changes to begin with."""
    state = st.session_state
    if CHANGES not in state and not {IN_LINK, ADDED} & {*st.query_params}:
        state[CHANGES], state[PAST] = changes, []


def current_changes(opened: Checkpoint) -> tuple[Intervention, ...]:
    """The changes, from the session or, on a first visit, the link; those that do not fit the model are dropped."""
    state = st.session_state
    if CHANGES not in state:
        state[CHANGES], state[PAST] = (), []
        try:
            state[CHANGES] = decode(st.query_params.get(IN_LINK, ""))
        except ValueError as error:
            _note(in_a_row(tr_error(error), tr("Showing the model without changes.")))
    _take_added(opened)
    state[CHANGES] = resolve_patches(opened, state[CHANGES])
    misfits = [change for change in state[CHANGES] if why_unsupported(opened, change)]
    if misfits:
        for change in misfits:
            _note(tr("Dropped, because this checkpoint has no such layer or head: {change}", change=describe(change)))
        set_changes(tuple(change for change in state[CHANGES] if change not in misfits))
    _to_link()
    return state[CHANGES]


def resolve_patches(opened: Checkpoint, changes: tuple[Intervention, ...]) -> tuple[Intervention, ...]:
    """The changes with the values of each patch, read in a run of its text by this checkpoint.

    One whose text cannot be read is left out, with a note.
    """
    resolved = []
    for change in changes:
        origin = change.origin if isinstance(change, Patch) else change
        if isinstance(origin, PatchFrom):
            try:
                resolved.append(compute(resolve_patch, opened, origin))
            except ValueError as error:
                text = tr(
                    "Dropped, because the text that its values come from cannot be used: {error}",
                    error=sentence_of(error),
                )
                _note(text)
        else:
            resolved.append(change)
    return tuple(resolved)


def why_unsupported(opened: Checkpoint, change: Intervention) -> str:
    """Why the change does not fit the model; empty if it does."""
    try:
        opened.check_intervention(change)
    except ValueError as error:
        return tr_error(error)
    return ""


def set_changes(changes: tuple[Intervention, ...]) -> None:
    """Replace the list in session and link; one too long for a link is refused with a note."""
    state = st.session_state
    try:
        encode(changes)
    except ValueError as error:
        _note(tr_error(error))
        return
    if changes != state[CHANGES]:
        state[PAST] = [*state[PAST], state[CHANGES]][-MOST_UNDONE:]
        state[CHANGES], state[MOVED] = changes, True
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
        state[CHANGES], state[MOVED] = state[PAST].pop(), True
        state[EDITION] = list_version() + 1
    _to_link()


def _take_added(opened: Checkpoint) -> None:
    """Add, once, what a link on another page asks for."""
    text = st.query_params.pop(ADDED, "")
    try:
        asked = resolve_patches(opened, decode(text))
        added = tuple(change for change in asked if change not in st.session_state[CHANGES])
    except ValueError as error:
        _note(tr_error(error))
    else:
        set_changes((*st.session_state[CHANGES], *added))


def _note(sentence: str) -> None:
    st.session_state.setdefault(NOTES, []).append(sentence)


def _to_link() -> None:
    """Write the changes to the URL; callbacks do too, so that the link to the page is up to date."""
    st.query_params[IN_LINK] = encode(st.session_state[CHANGES]) or NONE
