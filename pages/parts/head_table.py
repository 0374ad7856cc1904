"""Heads and layers: the table of all heads of one kind, and the definitions of its numbers and names."""

import streamlit as st

from model.analysis import head_summary
from model.analysis import tab_arrays as tab
from model.analysis.head_summary import HeadSummary, summarise
from model.trace import Trace
from pages.compute.cache import shared_result
from pages.compute.view import KINDS, View
from pages.parts.heads_and_layers import Shown
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.heads_and_layers import summary_table

TABLE = "heads-table"
MOST_ROWS = 50
"""shown without scrolling, so that the ticked row is not hidden"""
SHARES = ("previous", "same", "next", "special", "punctuation", "hidden", "hidden, most")


def summarise_heads(view: View) -> tuple[HeadSummary, ...]:
    """All heads of the chosen kind, layer by layer."""
    return _summaries(view.trace, view.kind)


@shared_result("Measuring all heads …")
def _summaries(trace: Trace, kind: str) -> tuple[HeadSummary, ...]:
    layers = trace.kind(kind).layers
    return tuple(head for layer in layers for head in summarise(trace.attention(kind, layer)))


def describe_head(shown: Shown, found: tuple[HeadSummary, ...]) -> None:
    """Name the opened head, with the rule behind the name and its statistics."""
    view = shown.view
    if shown.look.values == "rollout":
        st.markdown(
            f"**Rollout, {shown.place}.** It averages all heads, so the head chosen in the sidebar makes no difference."
        )
        return
    head = next(s for s in found if (s.layer, s.head) == (view.layer, view.head))
    distance = "from the diagonal" if view.attention.crosses else "from its own token"
    st.markdown(
        f"**{view.place.title}: {head.type}.** {_sentence(head.rule)} "
        f"Entropy {head.entropy:.3f} bits, confidence {head.confidence:.3f}, on average {head.distance:.2f} tokens "
        f"{distance}.",
        help=define("entropy", "confidence"),
    )


def show_table(shown: Shown, found: tuple[HeadSummary, ...]) -> None:
    """The table of all heads; a click on a column title sorts, a click on a row opens its head."""
    view = shown.view
    removed = None
    if shown.look.hide and shown.look.values != "rollout":
        removed = shown.removed.reshape(len(found), -1)
    table = summary_table(found, removed)
    places = [(head.layer, head.head) for head in found]
    # However the head was chosen, its row is ticked. All three keys: without one, Streamlit sees a click in each run.
    st.session_state[TABLE] = {
        "selection": {"rows": [places.index((view.layer, view.head))], "columns": [], "cells": []}
    }
    st.dataframe(
        table,
        hide_index=True,
        height="content" if len(found) <= MOST_ROWS else 35 * MOST_ROWS,
        key=TABLE,
        on_select=lambda: _open(places),
        selection_mode="single-row-required",
        column_config={name: _column(name) for name in table.columns},
        alt=f"Numbers and names of all heads, {KINDS[view.kind]}",
    )
    st.caption(
        f"{KINDS[view.kind]}, all heads, on this sentence. The table always describes the attention weights between "
        "tokens, special tokens included, whatever is drawn above. Click a column title to sort, or the box at the "
        "left of a row to open its head."
        + (
            " “Hidden”: the share of a row that the hidden tokens had in the numbers drawn above."
            if removed is not None
            else ""
        )
    )
    export_tab(view, f"heads-table-{view.kind}", Call(tab.summary_arrays, view.trace, view.kind), table=table)


def _column(name: str) -> object:
    if name in ("type", "rule"):
        return st.column_config.TextColumn(
            name, help=_HELP[name], pinned=name == "type", width=105 if name == "type" else None
        )
    if name in ("layer", "head"):
        return st.column_config.NumberColumn(name, width=55)
    form = "percent" if name in SHARES else "%.3f"
    return st.column_config.NumberColumn(name, format=form, width=92, help=_HELP[name])


_HELP = {
    "type": "The first rule that applies; the last column gives its numbers.",
    "rule": "The rule behind the name, with this head's numbers.",
    "entropy (bits)": "Mean over rows: 0 if each row attends to a single key, log₂ n for n equal weights.",
    "confidence": "Mean over rows of the largest weight.",
    "distance": "Mean distance in tokens, weighted by attention: from the row's own token, or from the diagonal in "
    "cross-attention.",
    "previous": "Share of the weight on the previous token.",
    "same": "Share of the weight on the row's own token.",
    "next": "Share of the weight on the next token.",
    "special": "Share of the weight on the start and end tokens.",
    "punctuation": "Share of the weight on punctuation tokens.",
    "hidden": "Mean share of a row that the hidden tokens had in the numbers drawn above.",
    "hidden, most": "Share that the hidden tokens had in the row that lost most.",
}


def _open(places: list[tuple[int, int]]) -> None:
    """Set the sidebar to the row's head before the page reruns."""
    state = st.session_state
    row = state[TABLE]["selection"]["rows"][0]
    if row < len(places):
        state["layer"], state["head"] = places[row]


def _sentence(rule: str) -> str:
    return f"{rule[0].upper()}{rule[1:]}."


def show_rules(crosses: bool) -> None:
    """The formula of every number in the table, and the rules that name a head, in order."""
    apart = r"\left|\,i\,\frac{K-1}{Q-1} - j\,\right|" if crosses else r"|i - j|"
    st.latex(
        r"\begin{aligned}"
        r"\text{entropy} &= \tfrac1Q \textstyle\sum_i \big(-\sum_j \alpha_{ij} \log_2 \alpha_{ij}\big) \\"
        r"\text{confidence} &= \tfrac1Q \textstyle\sum_i \max_j \alpha_{ij} \\"
        rf"\text{{distance}} &= \tfrac1Q \textstyle\sum_i \sum_j \alpha_{{ij}} {apart} \\"
        r"\text{share on } S &= \tfrac1Q \textstyle\sum_i \sum_{j \in S(i)} \alpha_{ij}"
        r"\end{aligned}"
    )
    relative = (
        "Queries and keys are tokens of two sentences, so distance is measured from the corner-to-corner diagonal, "
        "and there is no previous, same or next token."
        if crosses
        else "Distance is the number of tokens between the row's own token and the key."
    )
    st.markdown(f"Q queries, K keys, α the attention weights. {relative} The first rule that applies names the head:")
    st.markdown("\n".join(f"{number}. {rule}" for number, rule in enumerate(_rules(crosses), start=1)))
    st.caption(
        "After Voita et al. 2019 (positional heads, confidence), Clark et al. 2019 (separators, broad heads) and Vig "
        "& Belinkov 2019 (distance); the thresholds are ours. They describe what a head does on this one sentence: "
        "the name may differ on another, and it does not say how much the output depends on the head."
    )


def _rules(crosses: bool) -> tuple[str, ...]:
    positional = f"**previous, same or next token**: at least {head_summary.POSITIONAL:.0%} of its weight there"
    sink = f"**sink**: at least {head_summary.SINK:.0%} on special tokens and punctuation together"
    local = f"**local**: at least {head_summary.LOCAL:.0%} on the previous, same and next token together"
    broad = f"**broad**: at least {head_summary.BROAD:.0%} of the entropy that equal weights would have"
    monotone = f"**monotone**: row number and mean key position correlate with at least {head_summary.MONOTONE}"
    first, last = "**no choice**: every row has a single unmasked key", "**mixed**: no rule applies"
    if crosses:
        return first, sink, broad, monotone, last
    return first, positional, sink, local, broad, last
