"""What the home page lets the person pick inside its run."""

import streamlit as st

from model.trace import Array
from pages.compute.runs import translate
from pages.frame.examples import SHOWING, Example, largest_weight
from pages.frame.fields import KINDS, SEE
from pages.frame.open_page import View
from pages.widgets.canvas import token_lines
from pages.widgets.page_links import way
from viz.canvas.lines import lines
from viz.drawing import Drawing
from viz.tokens import labels

ALIGNMENT_LINES = "alignment-lines"
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
    asked = st.query_params.get("position", "0")
    if "position" not in st.session_state and asked not in map(str, range(len(rows))):
        st.info(f"The link asks for a position that is not there; they are 0 to {last}.", icon=":material/info:")
    if st.session_state.get("position") is not None:
        st.session_state["position"] = min(st.session_state["position"], last)
    chosen = st.number_input(f"Position, 0 to {last}", 0, last, key="position", bind="query-params", width=200) or 0
    st.text(f"This row {rows[chosen]}.")
    return chosen


def alignment_weights(view: View) -> tuple[Array, str]:
    """Cross-attention weights (target position, source position), and what they are in words."""
    last = view.translator.model.config.n_decoder_layers - 1
    layer = min(view.layer, last)
    n_heads = view.translator.model.config.n_heads
    names = {
        "last": f"Last layer, mean of its {n_heads} heads",
        "layer": f"Layer {layer}, mean of its {n_heads} heads",
        "head": f"Layer {layer}, head {view.head}",
    }
    which = st.segmented_control(
        "Heads",
        list(names),
        default="last",
        required=True,
        format_func=names.__getitem__,
        key="alignment",
        persist_state="session",
        label_visibility="collapsed",
    )
    if which == "head":
        pattern = view.trace.attention("cross", layer).pattern
        return pattern[view.head], f"Cross-attention weights of layer {layer}, head {view.head}"
    layer = last if which == "last" else layer
    pattern = view.trace.attention("cross", layer).pattern
    return pattern.mean(axis=0), f"Cross-attention weights of layer {layer}, averaged over its {n_heads} heads"


def alignment_code(view: View) -> str:
    """The Python expression of what `alignment_weights` chose."""
    which, last = st.session_state.get("alignment") or "last", view.translator.model.config.n_decoder_layers - 1
    layer = last if which == "last" else min(view.layer, last)
    return f"trace.attention('cross', {layer}).pattern" + ("[head]" if which == "head" else ".mean(axis=0)")


def alignment_lines(view: View, weights: Array, what: str) -> Drawing:
    """The alignment as lines, for those who come first: it is there before the map is.

    Args:
        view: the run.
        weights: (target position, source position).
        what: they are, in words.
    """
    attention = view.trace.attention("cross", 0)
    payload = lines(
        weights[None],
        labels(attention.query_tokens),
        labels(attention.key_tokens),
        predicts=labels(view.trace.next_tokens),
        measure=what,
    )
    return token_lines(payload, ALIGNMENT_LINES)


SENTENCES_AT_ONCE = 16


MANY = 200
"""sentences from which on the search is greedy"""


def whole_translation(view: View) -> None:
    """On request, sentence by sentence, with progress; nothing where the views show everything."""
    if view.source == view.trace.source:
        return
    parts = tuple(part.strip() for part in view.translator.parts(view.source))
    st.button(
        f"Translate all of it: {len(parts):,} sentences",
        icon=":material/translate:",
        on_click=_ask_for_all,
        args=(view.source,),
    )
    if st.session_state.get("whole") != view.source:
        return
    beam_size = 1 if len(parts) > MANY else 4
    bar = st.progress(0.0, f"0 of {len(parts):,} sentences")
    translated: list[str] = []
    for start in range(0, len(parts), SENTENCES_AT_ONCE):
        some = parts[start : start + SENTENCES_AT_ONCE]
        translated += translate(view.translator, some, beam_size, view.trace.interventions)
        bar.progress(len(translated) / len(parts), f"{len(translated):,} of {len(parts):,} sentences")
    bar.empty()
    st.caption("Each sentence by itself, " + ("beam 4." if beam_size == 4 else "greedy, because they are many."))
    st.code(" ".join(translated), language=None, wrap_lines=True, height=240)


def _ask_for_all(text: str) -> None:
    st.session_state["whole"] = text


def show_example(view: View) -> None:
    """Where the sentence is one of the ten and the run looks where it should: that weight, and the ways to its head."""
    for example in SHOWING:
        if example.sentence == view.source and (found := largest_weight(example, view.trace)):
            _show(example, *found)


def _show(example: Example, query: int, key: int, weight: float) -> None:
    row = f"“{example.query[0]}”" if example.kind == "encoder_self" else f"the step that predicts “{example.query[0]}”"
    with st.container(border=True, key="example-note"):
        st.text(
            f"{example.label} In {KINDS[example.kind].lower()}, layer {example.layer}, head {example.head}, {row} "
            f"gives its largest weight, {weight:.2f}, to “{example.key[0]}”. {example.why}"
        )
        with st.container(horizontal=True):
            head = f"{example.kind}.{example.layer}.{example.head}"
            way("See this head", "heads_and_layers", **{SEE: head})
            way("This weight, step by step", "attention_step_by_step", **{SEE: f"{head}.{query}.{key}"})
