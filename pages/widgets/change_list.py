"""What if: experiments, and the list of changes, kept in the session and in the link, with undo and what builds one."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from model.analysis.positions.word_order import source_words
from model.interventions import (
    ForbidSource,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    Patch,
    PositionsOff,
    UniformAttention,
    describe,
)
from model.language import in_a_row, in_this_language, joined, later, sentence_of, tr
from model.needs import Need
from model.run import Run
from pages.views import Control
from pages.views.experiment.what_if import ACTS, CELL, CHANGED, CLICKS, edited_cells
from pages.widgets.change_builder import build
from pages.widgets.changes import (
    CHANGES,
    KEPT,
    MOVED,
    NOTES,
    PAST,
    begin_with,
    current_changes,
    keep_on,
    list_version,
    set_changes,
    undo,
    why_unsupported,
)
from viz.tokens import labels

MOST_CELLS = 12
"""cells named in one line of the list"""

Address = dict[str, Any]
"""kind, layer and head of an intervention; None = all"""


def with_changes(run: Run) -> dict[Control, Run]:
    """The run with the changes of the list; on a first visit that is one of the experiments.

    If the model cannot run with them, the page says why and shows it without.
    """
    begin_with(tuple(experiments(run).values())[:1])
    _take_clicked_cell(run)
    changes = current_changes(run.opened)
    st.session_state.pop(MOVED, None)
    try:
        return {CHANGED: run.forced(*run.trace.interventions, *changes)}
    except ValueError as error:
        text = tr("The model cannot run with these changes: {error} Showing it without them.", error=sentence_of(error))
        st.text(text)
        return {CHANGED: run}


def edit_changes(run: Run) -> dict[Control, Run]:
    """Draw experiments, the list of changes, and what builds another one; it sets nothing else."""
    show_experiments(run)
    show_list(run, current_changes(run.opened))
    return {}


def _take_clicked_cell(run: Run) -> None:
    """Mask or unmask, once, the cell of the map that was clicked."""
    clicked = st.session_state.pop(CELL.key, None)
    # A list that a button has changed may bring back the map of an earlier one, with the click that was made there.
    if MOVED in st.session_state or not clicked:
        return
    *cell, drawn = clicked
    acts = st.session_state.get(ACTS.key) or next(iter(CLICKS))
    changes, mask = current_changes(run.opened), run.attention.mask[run.head]
    # A click that another run brings back was taken up already: the map had one edited cell more or fewer.
    if drawn == len(edited_cells(changes, run.place, acts)) and np.all(np.array(cell) < mask.shape):
        field = "forbid" if mask[tuple(cell)] else "allow"
        set_changes(with_cell_toggled(changes, tuple(cell), field, run.place.address(acts)))


def with_cell_toggled(
    changes: tuple[Intervention, ...], cell: tuple[int, int], field: str, address: Address
) -> tuple[Intervention, ...]:
    """The changes with one cell, (query, key), added, or removed if it was there; one MaskEdit per address holds all
    its cells of a field, "forbid" or "allow"."""
    for i, change in enumerate(changes):
        if isinstance(change, MaskEdit) and replace(change, forbid=(), allow=()) == MaskEdit(**address):
            cells = getattr(change, field)
            cells = tuple(other for other in cells if other != cell) if cell in cells else (*cells, cell)
            edit = replace(change, **{field: cells})
            return (*changes[:i], *([edit] if edit.forbid or edit.allow else []), *changes[i + 1 :])
    return (*changes, MaskEdit(**{field: (cell,)}, **address))


def show_list(run: Run, changes: tuple[Intervention, ...]) -> None:
    """Each change in words, with buttons that move it up or remove it; beside them, a new one, undo and reset.

    `run` is without the changes; its source names the tokens that a change hides.
    """
    for note in st.session_state.pop(NOTES, []):
        st.text(tr("Note: {note}", note=note))
    left, right = st.columns(2, vertical_alignment="center")
    with left.container(key="what-if-list"):
        if not changes:
            words = tr(run.model_in_words)
            st.caption(tr("No changes: this is the model {words}. Pick one above, or build one.", words=words))
        for i, change in enumerate(changes):
            row = st.container(horizontal=True, wrap=False, vertical_alignment="center")
            row.container(width="stretch").text(
                f"{i + 1}. {tr(describe(change, run.opened.model))}{_details(change, run.trace.src_tokens)}"
            )
            if i:
                moved = (*changes[: i - 1], change, changes[i - 1], *changes[i + 1 :])
                _button(row, f"up_{i}", ":material/arrow_upward:", tr("Move change {number} up", number=i + 1), moved)
            rest = (*changes[:i], *changes[i + 1 :])
            _button(row, f"away_{i}", ":material/close:", tr("Remove change {number}", number=i + 1), rest)
    with right.container(horizontal=True, horizontal_alignment="right", key="what-if-acts"):
        with (
            st.popover(tr("Build a change"), icon=":material/add:", width="content"),
            st.container(key="what-if-builder"),
        ):
            st.fragment(in_this_language(build))(run, list_version())
        _offer_acts(changes)


def _offer_acts(changes: tuple[Intervention, ...]) -> None:
    """What can be done with the list as a whole; what cannot act is not drawn."""
    kept = st.session_state[KEPT]
    if st.session_state[PAST]:
        st.button(tr("Undo"), icon=":material/undo:", key="what_if_undo", on_click=undo)
    if changes:
        st.button(
            tr("No changes"), icon=":material/delete_sweep:", key="what_if_reset", on_click=set_changes, args=((),)
        )
    if changes or kept:
        st.button(
            tr("No longer on other pages") if kept else tr("On every page"),
            icon=":material/push_pin:",
            key="what_if_keep",
            on_click=keep_on,
            args=(not kept,),
            help=tr("All pages then show the model with these changes, and say so."),
        )


def experiments(run: Run) -> dict[str, Intervention]:
    """Changes that need one click, by their names: those that this model can make."""
    here = {"kind": run.kind, "layer": run.layer, "head": run.head}
    made: dict[str, Intervention] = {
        later("Uniform cross-attention"): UniformAttention("cross"),
        later("No positions"): PositionsOff(),
        later("Lift the causal mask"): LiftCausalMask(),
        later("Switch off this head"): HeadGate(0.0, **here),
    }
    if Need.CROSS_ATTENTION in run.opened.features:
        tokens = run.trace.src_tokens
        longest = max(source_words(tokens), key=lambda word: sum(len(tokens[i]) for i in word), default=(0,))
        made[later("Hide the longest word")] = ForbidSource(longest)
    return {name: change for name, change in made.items() if not why_unsupported(run.opened, change)}


def show_experiments(run: Run) -> None:
    """A button for each experiment, which replaces the list."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="what-if-experiments"):
        for name, change in experiments(run).items():
            st.button(
                tr(name),
                key=f"what_if_take_{name}",
                on_click=set_changes,
                args=((change,),),
                type="primary" if st.session_state[CHANGES] == (change,) else "secondary",
                help=in_a_row(tr(describe(change, run.opened.model)), tr("It replaces the list.")),
            )


def _button(place: Any, key: str, icon: str, label: str, changes: tuple[Intervention, ...]) -> None:
    options = {"on_click": set_changes, "args": (changes,), "type": "tertiary"}
    place.button(icon, key=f"what_if_{key}", help=label, **options)


def _details(change: Intervention, tokens: tuple[str, ...]) -> str:
    """The cells of a mask edit, the hidden tokens or the text of a patch, as plain text."""
    if isinstance(change, ForbidSource):
        hidden = labels([tokens[i] for i in change.positions if i < len(tokens)])
        return f" ({tr(joined(hidden))})" if hidden else f" ({tr('beyond the end of this sentence')})"
    if isinstance(change, Patch) and change.origin:
        return tr(" (“{text}”)", text=change.origin.source)
    if not isinstance(change, MaskEdit):
        return ""
    cells = [*change.forbid, *change.allow]
    named = ", ".join(f"({query}, {key})" for query, key in cells[:MOST_CELLS])
    return f" {tr('(query, key)')}: {named}{' …' if len(cells) > MOST_CELLS else ''}"
