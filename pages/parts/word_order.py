"""Positional encoding, tab "Word order": the same words shuffled, with positions and without."""

import streamlit as st

from model.analysis.word_order import (
    SIDES,
    OrderRun,
    reorder,
    reordered_text,
    run_both_orders,
    shuffle_words,
    source_words,
    translate_both_orders,
)
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import choice, number, text
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.position_schemes import comparison_maps, memory_change_bars
from viz.latex import error_text
from viz.tokens import visible, word

EXAMPLE, EXAMPLE_ORDER = "The dog bites the man.", "0 4 2 3 1"
OFF = {"encoder": "Encoder", "both": "Encoder and decoder"}
WITH, WITHOUT = "with positions", "without positions"


def show_order(view: View) -> None:
    """Shuffle the words; run and translate both orders, with positions and without, as far as the model has both."""
    tokens, found = view.trace.src_tokens, source_words(view.trace.src_tokens)
    st.markdown(
        "Attention treats its keys as a **set**. Without positions the encoder cannot distinguish “The dog bites the "
        "man” from “The man bites the dog”: reorder the words and see."
    )
    spoken = ["".join(visible(word(tokens[i])) for i in part) for part in found]
    added = view.translator.positional_encoding() is not None
    order, off = _controls(len(found), added)
    st.text("Words: " + "   ".join(f"{number} {text}" for number, text in enumerate(spoken)))
    if len(found) < 2:
        st.info("A single word has only one order. Type a longer sentence or take the example.")
        return
    permutation = reorder(tokens, order)
    run = view.translator, view.trace, permutation
    trained = WITHOUT if view.translator.config.positions == "none" else WITH
    ways = {WITH: (), WITHOUT: SIDES[off]} if added else {trained: ()}
    with st.spinner(f"Running and translating both orders, {' and '.join(ways)} …", show_time=True):
        runs = {way: _run_both_orders(*run, sides, (view.kind, view.layer)) for way, sides in ways.items()}
        translations = {way: _translate_both_orders(*run, sides) for way, sides in ways.items()}
    texts = view.trace.source, reordered_text(view.translator, view.trace, permutation)
    _show_translations(texts, translations, OFF[off].lower())
    _show_checks(runs)
    if WITH in runs:
        _show_moved(tokens, runs)
    _show_weights(view, runs, permutation)
    names = {WITH: "positions", WITHOUT: "no_positions"}
    calls = {
        names[way]: Call(run_both_orders, *run, sides, (view.kind, view.layer), result=runs[way])
        for way, sides in ways.items()
    }
    export_tab(view, "word-order", calls)


def _show_moved(tokens: tuple[str, ...], runs: dict[str, OrderRun]) -> None:
    chart(
        memory_change_bars(tokens, {way: run.moved for way, run in runs.items()}),
        key="pe-moved",
        alt=f"Relative change of each token's encoder output, {' and '.join(runs)}",
    )
    st.caption(
        "Relative change of the encoder's output for each token when the words are reordered: norm of the difference "
        "over norm of the row."
        + " Without positions only rounding error is left, so there are no bars."
        * (WITHOUT in runs)
    )


def _controls(count: int, added: bool) -> tuple[tuple[int, ...], str]:
    """Choose the order of the words, and, where positions are added, whose are left out."""
    seed_place, button, typed_place = st.columns([2, 2, 5], vertical_alignment="bottom")
    seed = number("Seed", (0, 9999), 1, "pe_seed", place=seed_place)
    button.button("Shuffle", icon=":material/shuffle:", key="pe_shuffle", on_click=_shuffle, width="stretch")
    typed = text("… or type an order", "pe_order", place=typed_place, placeholder="such as 2 1 0", max_chars=900)
    example, off_place = st.columns([4, 5], vertical_alignment="bottom")
    example.button(f"Take “{EXAMPLE}”", icon=":material/pets:", key="pe_example", on_click=_take_example)
    off = choice("Positions left out of", OFF, "pe_off", place=off_place) if added else next(iter(OFF))
    if typed.strip() and count > 1:
        order = _parsed(typed, count)
        if order is not None:
            return order, off
        st.text(
            f"The order must contain each of the numbers 0 to {count - 1} exactly once; showing a random order instead."
        )
    return shuffle_words(count, seed), off


def _parsed(typed: str, count: int) -> tuple[int, ...] | None:
    """Numbers separated by spaces or commas; None unless they name each word exactly once."""
    parts = typed.replace(",", " ").split()
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        return None
    order = tuple(map(int, parts))
    return order if sorted(order) == list(range(count)) else None


def _shuffle() -> None:
    state = st.session_state
    state["pe_seed"] = ((state.get("pe_seed") or 0) + 1) % 10_000
    state["pe_order"] = ""


def _take_example() -> None:
    st.session_state["source"] = EXAMPLE
    st.session_state["pe_order"] = EXAMPLE_ORDER


def _show_translations(texts: tuple[str, str], translations: dict[str, tuple[str, str]], off: str) -> None:
    titles = ("Original order", "Other order")
    for title, source, targets in zip(titles, texts, zip(*translations.values(), strict=True), strict=True):
        with st.container(border=True):
            captions = (f"{title}: the encoder reads", *(f"Translation {way}" for way in translations))
            for place, name, shown in zip(st.columns(len(captions)), captions, (source, *targets), strict=True):
                place.caption(name)
                place.text(shown)
    way, (first, second) = list(translations.items())[-1]
    same = "the same" if first == second else "a different"
    if len(translations) > 1:
        st.caption(
            f"Beam search, beam size 4. Without positions ({off}), the two orders get {same} translation. The model "
            "was trained with positions: how well it would translate without them, had it been trained so, this does "
            "not show."
        )
    else:
        st.caption(f"Beam search, beam size 4. The model was trained {way}; the two orders get {same} translation.")


def _show_checks(runs: dict[str, OrderRun]) -> None:
    rows = {
        "encoder output of the same token": "memory_error",
        "cross-attention outputs": "cross_error",
        "logits": "logits_error",
    }
    written = {WITH: "{:.3g}".format, WITHOUT: lambda error: f"**{error_text(error)}**"}
    body = "\n".join(
        " | ".join([f"| {what}", *(written[way](getattr(run, name)) for way, run in runs.items())]) + " |"
        for what, name in rows.items()
    )
    st.markdown(
        "**Rerun** in both orders, teacher-forced with the sidebar's target. Largest difference between the two "
        f"orders:\n\n| | {' | '.join(runs)} |\n|---|{'---|' * len(runs)}\n{body}"
    )
    if WITHOUT not in runs:
        return
    st.caption(
        "Without positions, reordering the words only permutes the rows of the encoder's output (the encoder is "
        "permutation-equivariant), and cross-attention, a sum over those rows, is unaffected. What is left is "
        "single-precision rounding, because sums are accumulated in a different order."
    )


def _show_weights(view: View, runs: dict[str, OrderRun], permutation: tuple[int, ...]) -> None:
    back = [permutation.index(position) for position in range(len(permutation))]
    kind, maps = view.trace.kind(view.kind), {}
    for way, run in runs.items():
        own, other = (weights[view.head] for weights in run.weights)
        other = other[back] if kind.queries == "encoder" else other
        other = other[:, back] if kind.keys == "encoder" else other
        maps |= {f"Original, {way}": own, f"Other, {way}": other}
    attention = view.attention
    chart(
        comparison_maps(axis_labels(attention), attention.mask[view.head], {}, maps),
        key="pe-order-weights",
        alt=f"Attention weights of the head in both orders, {' and '.join(runs)}",
        roomy=True,
    )
    source_free = kind.keys == "decoder" and view.layer == 0
    st.caption(
        f"Layer {view.layer}, head {view.head}: attention weights. On the right the tokens are sorted back into their "
        "original order, so that the same cell is the same pair of tokens."
        + " Without positions the two maps are identical." * (WITHOUT in runs)
        + " This attention reads only the target, before any cross-attention, so the source order cannot change it."
        * source_free
    )


_run_both_orders = shared_result()(run_both_orders)
_translate_both_orders = shared_result()(translate_both_orders)
