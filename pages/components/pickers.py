"""What the home page lets the person pick inside its run."""

import streamlit as st

from model.trace import Array
from pages.components.frame import View

POSITION_CHART = "certainty"
"""key of the chart whose bars are the positions of the translation"""


def position_clicked() -> None:
    """A click on a bar of the chart chooses its position."""
    points = st.session_state[POSITION_CHART]["selection"]["points"]
    if points:
        st.session_state["position"] = points[0]["point_index"]


def target_position(rows: list[str]) -> int:
    """A position of the translation.

    Args:
        rows: what each decoder row reads and predicts.
    """
    last = len(rows) - 1
    if st.session_state.get("position") is not None:
        st.session_state["position"] = min(st.session_state["position"], last)
    chosen = st.number_input(f"Position, 0 to {last}", 0, last, key="position", bind="query-params", width=200) or 0
    st.text(f"This row {rows[chosen]}.")
    return chosen


def alignment_weights(view: View) -> tuple[Array, str]:
    """Cross-attention weights (target position, source position), and what they are in words."""
    layer = min(view.layer, view.translator.model.config.n_decoder_layers - 1)
    pattern = view.trace.attention("cross", layer).pattern
    mean, one = f"Mean of the {len(pattern)} heads", f"Head {view.head} alone"
    which = st.segmented_control(
        "Heads",
        ("mean", "one"),
        default="mean",
        required=True,
        format_func={"mean": mean, "one": one}.__getitem__,
        key="alignment-heads",
        persist_state="session",
        label_visibility="collapsed",
    )
    if which == "one":
        return pattern[view.head], f"Cross-attention weights of layer {layer}, head {view.head}"
    return pattern.mean(axis=0), f"Cross-attention weights of layer {layer}, averaged over its {len(pattern)} heads"
