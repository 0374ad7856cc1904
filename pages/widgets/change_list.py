"""What if: the list of changes, kept in the session and in the link, with undo, beside what builds them."""

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
    PositionsOff,
    UniformAttention,
    describe,
)
from model.needs import Need
from model.run import Run
from pages.views import Control
from pages.views.what_if import ACTS, CELL, CHANGED, CLICKS, edited_cells
from pages.widgets.change_builder import build
from pages.widgets.changes import (
    KEPT,
    NOTES,
    PAST,
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


def edit_changes(run: Run) -> dict[Control, Run]:
    """Draw what builds a change, the list of them, and experiments.

    Returns:
        the run with the changes; if the model cannot run with them, the page says why and shows it without.
    """
    _take_clicked_cell(run)
    changes = current_changes(run.opened)
    left, right = st.columns(2)
    with left.container(border=True, height=400, key="what-if-builder"):
        build(run, list_version())
    with right.container(border=True, height=400, key="what-if-list"):
        show_list(run, changes)
    show_experiments(run)
    try:
        return {CHANGED: run.forced(*run.trace.interventions, *changes)}
    except ValueError as error:
        st.text(f"The model cannot run with these changes: {error} Showing it without them.")
        return {CHANGED: run}


def _take_clicked_cell(run: Run) -> None:
    """Mask or unmask, once, the cell of the map that was clicked."""
    clicked = st.session_state.pop(CELL.key, None)
    if not clicked:
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
    """The changes with one cell added, or removed if it was there.

    Args:
        changes: the list.
        cell: (query, key).
        field: "forbid" or "allow".
        address: where; one MaskEdit per address holds all its cells.
    """
    for i, change in enumerate(changes):
        if isinstance(change, MaskEdit) and replace(change, forbid=(), allow=()) == MaskEdit(**address):
            cells = getattr(change, field)
            cells = tuple(other for other in cells if other != cell) if cell in cells else (*cells, cell)
            edit = replace(change, **{field: cells})
            return (*changes[:i], *([edit] if edit.forbid or edit.allow else []), *changes[i + 1 :])
    return (*changes, MaskEdit(**{field: (cell,)}, **address))


def show_list(run: Run, changes: tuple[Intervention, ...]) -> None:
    """Each change in words, with buttons that move it up or remove it; undo and reset.

    Args:
        run: the run without the changes; its source names the tokens that a change hides.
        changes: the list.
    """
    st.markdown("**Your changes**, in order")
    for note in st.session_state.pop(NOTES, []):
        st.text(f"Note: {note}")
    if not changes:
        st.caption(
            f"None yet: this is the model {run.model_in_words}. Add a change, pick an experiment, or click on a cell "
            "below."
        )
    for i, change in enumerate(changes):
        row = st.container(horizontal=True, wrap=False, vertical_alignment="center")
        row.container(width="stretch").text(
            f"{i + 1}. {describe(change, run.opened.model)}{_details(change, run.trace.src_tokens)}"
        )
        moved = (*changes[: i - 1], change, changes[i - 1], *changes[i + 1 :]) if i else changes
        _button(row, f"up_{i}", ":material/arrow_upward:", f"Move change {i + 1} up", moved, disabled=i == 0)
        rest = (*changes[:i], *changes[i + 1 :])
        _button(row, f"away_{i}", ":material/close:", f"Remove change {i + 1}", rest)
    kept = st.session_state[KEPT]
    st.button(
        "No longer on other pages" if kept else "Keep on, on every page",
        icon=":material/push_pin:",
        key="what_if_keep",
        on_click=keep_on,
        args=(not kept,),
        disabled=not changes and not kept,
        width="stretch",
        help="All pages then show the model with these changes, and say so.",
    )
    back, reset = st.columns(2)
    back.button(
        "Undo",
        icon=":material/undo:",
        key="what_if_undo",
        on_click=undo,
        disabled=not st.session_state[PAST],
        width="stretch",
    )
    reset.button(
        "No changes",
        icon=":material/delete_sweep:",
        key="what_if_reset",
        on_click=set_changes,
        args=((),),
        disabled=not changes,
        width="stretch",
    )


def show_experiments(run: Run) -> None:
    """One-click experiments; each replaces the list."""
    here = {"kind": run.kind, "layer": run.layer, "head": run.head}
    experiments = {
        "Switch off this head": HeadGate(0.0, **here),
        "Uniform cross-attention": UniformAttention("cross"),
        "No positions": PositionsOff(),
        "Lift the causal mask": LiftCausalMask(),
    }
    if Need.CROSS_ATTENTION in run.opened.features:
        experiments["Hide the longest source word"] = ForbidSource(_longest_word(run.trace.src_tokens))
    experiments = {name: made for name, made in experiments.items() if not why_unsupported(run.opened, made)}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Or pick an experiment, which replaces your list:", width="content")
        for name, change in experiments.items():
            st.button(
                name,
                key=f"what_if_take_{name}",
                on_click=set_changes,
                args=((change,),),
                help=describe(change, run.opened.model),
            )


def _longest_word(tokens: tuple[str, ...]) -> tuple[int, ...]:
    """Positions of the longest source word."""
    return max(source_words(tokens), key=lambda word: sum(len(tokens[i]) for i in word), default=(0,))


def _button(
    place: Any, key: str, icon: str, label: str, changes: tuple[Intervention, ...], disabled: bool = False
) -> None:
    place.button(
        icon,
        key=f"what_if_{key}",
        help=label,
        on_click=set_changes,
        args=(changes,),
        disabled=disabled,
        type="tertiary",
    )


def _details(change: Intervention, tokens: tuple[str, ...]) -> str:
    """The cells of a mask edit or the hidden tokens, as plain text."""
    if isinstance(change, ForbidSource):
        hidden = labels([tokens[i] for i in change.positions if i < len(tokens)])
        return f" ({', '.join(hidden)})" if hidden else " (beyond the end of this sentence)"
    if not isinstance(change, MaskEdit):
        return ""
    cells = [*change.forbid, *change.allow]
    named = ", ".join(f"({query}, {key})" for query, key in cells[:MOST_CELLS])
    return f" (query, key): {named}{' …' if len(cells) > MOST_CELLS else ''}"
