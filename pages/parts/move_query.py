"""Temperature, tab "Move the query": one query dragged through the plane of the head's keys, and its weights."""

import streamlit as st

from model.analysis.tab_arrays import plane_arrays
from pages.compute.view import View
from pages.parts.temperature import ROW
from pages.widgets.canvas import draw
from pages.widgets.chart import axis_labels
from pages.widgets.controls import set_controls
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.canvas.move_query import move_query
from viz.tokens import numbered

PLANE = "move-query"


def show_move_query(view: View, row: int) -> None:
    """The keys as points, the queries as squares; the chosen query moves, and its weights and z follow."""
    attention, head = view.attention, view.head
    arrays = Call(plane_arrays, attention, head)
    plane = arrays.result
    rows, _ = axis_labels(attention)
    drawing = move_query(
        {name: plane[name] for name in ("keys", "queries", "rest")}
        | {name: getattr(attention, name)[head] for name in ("pattern", "v", "z", "mask")},
        rows,
        numbered(attention.key_tokens),
        None if attention.bias is None else attention.bias[head],
        title=view.place.title,
        row=row,
        mean=plane["mean"].tolist(),
        shares=plane["shares"].tolist(),
        outside=plane["outside"].tolist(),
        scale=float(attention.scale),
        softcap=attention.softcap,
        sink=None if attention.sink is None else float(attention.sink[head]),
        temperature=float(attention.temperature[head]),
    )
    draw(drawing, PLANE, on_row_change=_take_row)
    st.caption(
        "Circles are this head's keys, larger and brighter with more weight; squares are its queries, and q is the "
        "chosen one. Drag q anywhere, or let it go on another square to choose that query. A key gains weight when q "
        "turns towards it and grows."
    )
    explain(
        "Only the dot products q · k enter the softmax. The plane spans the two directions in which the keys of this "
        "head differ most, their leading principal components; q is its part in that plane, which you move, and a "
        "remainder perpendicular to it, which stays. A weight therefore depends on the direction and the length of q, "
        "not on how near q is to a key in the picture.",
        r"""\begin{aligned} q &= U^\top p + r, \qquad U r = 0 \\
        q \cdot k_j &= p \cdot U k_j + r \cdot k_j \end{aligned}""",
        "3.2.1; principal components: Pearson 1901",
    )
    export_tab(view, f"keys-in-a-plane-{view.place.slug}", arrays, Picture("The query in the plane", PLANE, drawing))


def _take_row() -> None:
    row = st.session_state[PLANE].get("row")
    if row is not None:
        set_controls({ROW: int(row)})
