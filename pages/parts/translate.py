"""The home page: which cross-attention weights it draws, which position it looks at, and long texts."""

import streamlit as st

from pages.compute.runs import translate
from pages.compute.view import KINDS, View
from pages.frame.examples import Example, examples_of, largest_weight, unfamiliar
from pages.frame.render import choose
from pages.frame.sidebar import SEE
from pages.views.names import ALIGNMENT, Alignment, align
from pages.widgets.canvas import draw
from pages.widgets.chart import clicked_point
from pages.widgets.controls import number
from pages.widgets.glossary import define
from pages.widgets.page_links import link_with
from viz.canvas.lines import lines
from viz.drawing import Drawing
from viz.tokens import as_markdown, labels

ALIGNMENT_LINES = "alignment-lines"
POSITION_CHART = "certainty"
"""key of the chart whose bars are the positions of the translation"""
SENTENCES_AT_ONCE = 16
MANY = 200
"""from this many sentences on, a long text is translated greedily"""


def choose_clicked_position() -> None:
    """A click on a bar of the chart chooses its position."""
    if point := clicked_point(POSITION_CHART):
        choose_at(point["point_index"])


def choose_at(position: int) -> None:
    """Choose a position of the translation."""
    st.session_state["position"] = position


def choose_position(rows: list[str]) -> int:
    """A position of the translation.

    Args:
        rows: what each decoder row reads and predicts.
    """
    last = len(rows) - 1
    asked = st.query_params.get("position", "0")
    if "position" not in st.session_state and asked not in map(str, range(len(rows))):
        st.info(f"The link asks for a position that is not there; they are 0 to {last}.", icon=":material/info:")
    chosen = number(f"Position, 0 to {last}", (0, last), 0, "position", width=200)
    st.text(f"This row {rows[chosen]}.")
    return chosen


def choose_alignment(view: View) -> Alignment:
    """One head's weights, of cross-attention the best-aligned one's at first, or a mean over a layer's heads."""
    return align(view, choose(view, ALIGNMENT))


def draw_alignment_lines(view: View, alignment: Alignment) -> Drawing:
    """The alignment as lines between source and target tokens."""
    attention = view.trace.attention("cross", 0)
    drawing = lines(
        alignment.weights[None],
        labels(attention.query_tokens),
        labels(attention.key_tokens),
        predicts=labels(view.trace.next_tokens),
        measure="attention weight" if alignment.head is not None else "mean attention weight",
        title=alignment.what,
    )
    return draw(drawing, ALIGNMENT_LINES)


def link_to_alignment(alignment: Alignment) -> None:
    """A link that opens the drawn head on "Heads and layers"; nothing for a mean."""
    if alignment.head is not None:
        place = f"cross.{alignment.layer}.{alignment.head}"
        link_with(
            f"Open cross-attention, layer {alignment.layer}, head {alignment.head}", "heads_and_layers", **{SEE: place}
        )


def translate_long_text(view: View) -> None:
    """On request, translate a text of which the page shows only the beginning, sentence by sentence with progress."""
    if view.translator.prepare(view.source) == view.trace.source:
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
    how = "with beam search, beam size 4" if beam_size == 4 else "greedily, because there are so many"
    st.caption(f"Each sentence was translated separately, {how}.")
    st.code(" ".join(translated), language=None, wrap_lines=True, height=240)


def _ask_for_all(text: str) -> None:
    st.session_state["whole"] = text


def show_unfamiliar(view: View) -> None:
    """A notice on a text that the model was not trained for; it is of an unchanged run, on its own translation."""
    if not view.trace.interventions and view.request.target is None and (notice := unfamiliar(view.trace)):
        st.caption(f":material/info: {as_markdown(notice)}", help=define("nats"))


def show_example(view: View) -> None:
    """A note on an example sentence, with links to its head.

    Shown only for an unchanged run on the model's own translation whose largest weight is where the note says.
    """
    if view.trace.interventions or view.request.target is not None:
        return
    for example in examples_of(view.translator.name).of(view.trace.source):
        if found := largest_weight(example, view.trace):
            _show_note(example, *found)


def _show_note(example: Example, query: int, key: int, weight: float) -> None:
    row = f"“{example.query[0]}”" if example.kind == "encoder_self" else f"the step that predicts “{example.query[0]}”"
    with st.container(border=True, key="example-note"):
        st.text(
            f"{example.label} In {KINDS[example.kind].lower()}, layer {example.layer}, head {example.head}, {row} "
            f"gives its largest weight, {weight:.2f}, to “{example.key[0]}”. {example.why}"
        )
        with st.container(horizontal=True):
            head = f"{example.kind}.{example.layer}.{example.head}"
            link_with("See this head", "heads_and_layers", **{SEE: head})
            link_with("This weight, step by step", "attention_step_by_step", **{SEE: f"{head}.{query}.{key}"})
