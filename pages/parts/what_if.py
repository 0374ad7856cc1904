"""What if: the runs before and after the changes, and what the page shows of them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis import tab_arrays as tab
from model.analysis.distributions import total_variation
from model.analysis.two_runs import are_identical, largest_changes, top_tokens
from model.interventions import Intervention, MaskEdit
from model.trace import Trace
from pages.compute.runs import rerun, run
from pages.compute.view import KINDS, View
from pages.frame.changes import list_version
from pages.parts.change_list import toggle
from pages.widgets.chart import axis_labels, chart, clicked_point
from pages.widgets.controls import choice, number
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.what_if import candidate_change_bars, head_change_maps, log_probability_bars, weight_change_maps
from viz.html import word_diff
from viz.latex import signed
from viz.tokens import decoder_rows

CLICKS = {"head": "this head", "layer": "this layer", "kind": "every layer"}
MAPS = "what-if-maps"


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same tokens, without and with the changes."""

    before: Trace
    """the page's run: the model without the changes"""
    after: Trace
    """with the changes, on the same source and the same target tokens"""


def compare(view: View, changes: tuple[Intervention, ...]) -> Comparison:
    """Run the model with the changes on the same target; if that fails, say why."""
    try:
        return Comparison(view.trace, rerun(view.translator, view.trace, (*view.trace.interventions, *changes)))
    except ValueError as error:
        st.text(f"The model cannot run with these changes: {error} Showing it without them.")
        return Comparison(view.trace, view.trace)


def show_same(runs: Comparison) -> DeltaGenerator:
    """Score the same target again; returns the container next to it, for what the model writes now."""
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**Same target**: the old text, teacher-forced", help=define("teacher-forced", "nats"))
        st.html(word_diff(runs.before.translation, runs.before.translation))
        before, after = runs.before.log_probability, runs.after.log_probability
        _numbers({"log p before": before, "log p after": after}, after - before)
        if are_identical(runs.before, runs.after):
            st.caption("The runs are bit-identical: every weight and every logit.")
        else:
            st.caption(
                f"The changed model finds it {_times(after - before)}. {len(runs.before.next_ids)} tokens; log p in "
                "nats."
            )
    place = right.container(border=True, height="stretch")
    place.markdown("**Decode again**: what the changed model writes")
    return place


def show_new(view: View, runs: Comparison) -> Trace:
    """What the changed model writes; drawn last because searching takes longest. Returns the run on the new text."""
    translator, plain = view.translator, runs.before.interventions
    # A typed target is not what a model wrote: compare with what the unchanged model decodes.
    asked = replace(view.request, target=None, interventions=plain)
    own = run(translator, asked)
    new = run(translator, replace(asked, interventions=runs.after.interventions))
    changed, unchanged = new.log_probability, rerun(translator, new, plain).log_probability
    st.html(word_diff(own.translation, new.translation))
    _numbers({"log p without the changes": unchanged, "log p with them": changed}, changed - unchanged)
    if new.next_ids == own.next_ids:
        st.caption("The same text as without the changes.")
    else:
        st.caption("Struck out with −: removed. Underlined with +: added. Both models score the new text.")
    return new


def _numbers(values: dict[str, float], difference: float) -> None:
    shown = {name: signed(value, ".3f") for name, value in values.items()} | {"difference": signed(difference, "+.3f")}
    with st.container(horizontal=True):
        for name, value in shown.items():
            st.metric(name, value, width="content")


def _times(difference: float) -> str:
    if abs(difference) < 0.0005:
        return "as probable as before"
    factor = float(np.exp(min(abs(difference), 700)))
    return f"{factor:,.3g} times {'more' if difference > 0 else 'less'} probable"


def show_maps(view: View, runs: Comparison, changes: tuple[Intervention, ...]) -> object:
    """The chosen head's weights before, after and their difference; a click on a cell masks or unmasks it."""
    before, after = (trace.attention(view.kind, view.layer) for trace in (runs.before, runs.after))
    scope = choice("A click on a cell acts on", CLICKS, "what_if_click")
    address = view.place.address(scope)
    edited = _edited(changes, address)
    rows, keys = axis_labels(before)
    weights = before.pattern[view.head], after.pattern[view.head]
    figure = weight_change_maps(rows, keys, weights, (before.mask[view.head], after.mask[view.head]), edited)
    # A new key after each change: a chart that keeps its selection does not report a second click on a cell.
    key = map_key()
    with st.container(key=MAPS):
        clicked = partial(_clicked, key, before.mask[view.head], address)
        chart(figure, key=key, alt="Attention weights before and after, and their difference", on_select=clicked)
    st.caption(
        f"{view.place.title}, **same target**: rows are queries, columns keys. "
        "Click on a cell of the first map to mask it, on a hatched one to unmask it, and again to undo. Drag over "
        "part of a map to zoom in; double-click to zoom out." + _note_unchanged(weights, changes)
    )
    return figure


def map_key() -> str:
    """Key of the chart with the maps."""
    return f"{MAPS}-{list_version()}"


def _note_unchanged(weights: tuple[np.ndarray, np.ndarray], changes: tuple[Intervention, ...]) -> str:
    if not changes or not np.array_equal(*weights):
        return ""
    return " **This head's own weights did not change**: the tab “Where it moved” shows whose did."


def _clicked(key: str, mask: np.ndarray, address: dict) -> None:
    if point := clicked_point(key):
        cell = divmod(point["point_index"], mask.shape[1])
        toggle(cell, "forbid" if mask[cell] else "allow", address)


def _edited(changes: tuple[Intervention, ...], address: dict) -> list[tuple[int, int]]:
    place = MaskEdit(**address)
    edits = [c for c in changes if isinstance(c, MaskEdit) and replace(c, forbid=(), allow=()) == place]
    return [cell for edit in edits for cell in (*edit.forbid, *edit.allow)]


def show_tokens(view: View, runs: Comparison) -> None:
    """Log-probability of each token of the same target."""
    before, after = runs.before.target_log_probabilities, runs.after.target_log_probabilities
    chart(
        log_probability_bars(runs.before.next_tokens, before, after),
        key="what-if-tokens",
        alt="Log-probability of each token",
    )
    lost = int((after - before).argmin())
    loss = float((after - before)[lost])
    st.caption(
        f"Same target, teacher-forced: every row reads the old text. The bars sum to {signed(before.sum(), '.3f')} "
        f"nats before and {signed(after.sum(), '.3f')} after. "
        + (
            f"The largest loss is {signed(loss, '.3f')} nats, at position {lost}."
            if loss < 0
            else "No token became less probable."
        ),
        help=define("teacher-forced", "nats"),
    )
    export_tab(view, "each-token", Call(tab.target_arrays, runs.before, runs.after))


@st.fragment
def show_candidates(view: View, runs: Comparison) -> None:
    """The most probable next tokens at one position of the same target."""
    last = len(runs.before.next_ids) - 1
    position = number(f"Position, 0 to {last}", (0, last), 0, "what_if_position", width=200)
    st.text(f"This row {decoder_rows(runs.before.row_tokens, runs.before.next_tokens)[position]}.")
    before, after = runs.before.probabilities[position], runs.after.probabilities[position]
    written = runs.before.next_ids[position]
    top = top_tokens(before, after, with_ids=(written,))
    tokens = [*view.translator.tokenizer.tokens(top.ids), f"all {len(before) - len(top.ids):,} others"]
    shares = (np.append(values, rest) for values, rest in zip((top.before, top.after), top.rest, strict=True))
    figure = candidate_change_bars(tokens, *shares, written=top.ids.index(written))
    chart(figure, key="what-if-candidates", alt="Probabilities of the next token before and after")
    st.caption(
        "The most probable tokens of both runs; bold: the token in the old text. "
        f"{float(total_variation(before, after)):.2%} of the probability mass moved between tokens."
    )
    call = Call(tab.candidate_changes, runs.before, runs.after, position, result=top)
    export_tab(view, f"next-word-{position}", call)


def show_heads(view: View, runs: Comparison) -> None:
    """The largest change of an attention weight in every head of every layer."""
    changed = largest_changes(runs.before, runs.after)
    figure = head_change_maps(changed, KINDS, (view.kind, view.layer, view.head))
    chart(figure, key="what-if-heads", alt="Largest change of an attention weight in every head")
    count, total = sum(int((values > 0).sum()) for values in changed.values()), sum(v.size for v in changed.values())
    st.caption(
        f"The largest change of any single attention weight in each head, same target. The weights of {count} of "
        f"{total} heads changed: those of the changed heads and of heads downstream of them. Framed: the sidebar's "
        "head."
    )
    export_tab(view, "changes-by-head", Call(largest_changes, runs.before, runs.after, result=changed))
