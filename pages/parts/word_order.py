"""The order experiment of the page on positional encoding: the same words shuffled, with positions and without."""

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
from model.checkpoints.translator import Translator
from model.trace import Trace
from pages.compute.cache import kept
from pages.frame.open_page import View
from pages.parts.masks import names
from pages.parts.positional_encoding import KEPT
from pages.widgets.chart import chart
from viz.charts.position_schemes import beside, moved_bars
from viz.tokens import visible, word

EXAMPLE, EXAMPLE_ORDER = "The dog bites the man.", "0 4 2 3 1"
OFF = {"encoder": "Encoder", "both": "Encoder and decoder"}
WAYS = ("with positions", "without positions")


def show_order(view: View) -> None:
    """Shuffle the words; run and translate both orders, as trained and without positions."""
    tokens, found = view.trace.src_tokens, source_words(view.trace.src_tokens)
    st.markdown(
        "Attention takes its keys as a **set**. Without positions the encoder cannot tell “The dog bites the man” from "
        "“The man bites the dog”: put the words in another order, and see."
    )
    spoken = ["".join(visible(word(tokens[i])) for i in part) for part in found]
    order, off = _controls(len(found))
    st.text("Words: " + "   ".join(f"{number} {text}" for number, text in enumerate(spoken)))
    if len(found) < 2:
        st.info("One word has no other order. Type a longer sentence, or take the example.")
        return
    permutation = reorder(tokens, order)
    with st.spinner("The model runs and translates both orders, with positions and without …", show_time=True):
        runs = [_run(view, permutation, sides) for sides in ((), SIDES[off])]
        translations = [_translations(view.translator, view.trace, permutation, sides) for sides in ((), SIDES[off])]
    text = reordered_text(view.translator, view.trace, permutation)
    _show_translations((view.trace.source, text), translations, OFF[off].lower())
    _show_checks(runs)
    chart(moved_bars(tokens, dict(zip(WAYS, (run.moved for run in runs), strict=True))), key="pe-moved", alt=_ALT)
    st.caption(
        "How far the encoder's output for each token moved when the words changed places: the length of the "
        "difference, over the length of the row. Without positions nothing moves but rounding: no bar is left."
    )
    _show_weights(view, runs, permutation)


_ALT = "The change of each token's memory row, with positions and without"


def _controls(count: int) -> tuple[tuple[int, ...], str]:
    """The order of the words, and whose positions are left out."""
    seed_place, button, typed_place = st.columns([2, 2, 5], vertical_alignment="bottom")
    seed = seed_place.number_input("Seed", 0, 9999, 1, key="pe_seed", **KEPT)
    button.button("Shuffle", icon=":material/shuffle:", key="pe_shuffle", on_click=_shuffle, width="stretch")
    typed = typed_place.text_input(
        "… or type an order", key="pe_order", placeholder="such as 2 1 0", max_chars=900, **KEPT
    )
    example, off_place = st.columns([4, 5], vertical_alignment="bottom")
    example.button(f"Take “{EXAMPLE}”", icon=":material/pets:", key="pe_example", on_click=_take_example)
    off = off_place.segmented_control(
        "Positions left out of", list(OFF), default="encoder", required=True, format_func=OFF.get, key="pe_off", **KEPT
    )
    if (typed or "").strip() and count > 1:
        order = _parsed(typed, count)
        if order is not None:
            return order, off
        st.text(f"The order must hold each of the numbers 0 to {count - 1} once; you see a shuffle instead.")
    return shuffle_words(count, 1 if seed is None else seed), off


def _parsed(typed: str, count: int) -> tuple[int, ...] | None:
    """Numbers with spaces or commas between them; None where they do not name each word once."""
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


def _show_translations(texts: tuple[str, str], translations: list[tuple[str, str]], off: str) -> None:
    for title, text, found in zip(("Own order", "Other order"), texts, zip(*translations, strict=True), strict=True):
        with st.container(border=True):
            said = (f"{title}: the encoder reads", f"Translation {WAYS[0]}", f"Translation {WAYS[1]}")
            for place, name, shown in zip(st.columns(3), said, (text, *found), strict=True):
                place.caption(name)
                place.text(shown)
    first, second = translations[1]
    same = "the same" if first == second else "not the same"
    st.caption(
        f"Beam search with 4 beams. Without positions ({off}), the two orders get {same} translation. The model was "
        "trained with positions, so what it says without them is no longer good German either."
    )


def _show_checks(runs: list[OrderRun]) -> None:
    with_positions, without = runs
    rows = {
        "memory rows of the same token": "memory_error",
        "outputs of all cross-attentions": "cross_error",
        "logits": "logits_error",
    }
    body = "\n".join(
        f"| {what} | {getattr(with_positions, name):.3g} | **{_error(getattr(without, name))}** |"
        for what, name in rows.items()
    )
    st.markdown(
        "**Run again** in both orders, teacher-forced with the target of the sidebar. Largest difference between the "
        f"two orders:\n\n| | {WAYS[0]} | {WAYS[1]} |\n|---|---|---|\n{body}"
    )
    st.caption(
        "Without positions, other places of the words only exchange the rows of the memory (the encoder is permutation "
        "equivariant), and cross-attention, a sum over those rows, does not notice. What is left is the rounding of "
        "single precision: the sums are added up in another order."
    )


def _show_weights(view: View, runs: list[OrderRun], permutation: tuple[int, ...]) -> None:
    back = [permutation.index(position) for position in range(len(permutation))]
    maps = {}
    for way, run in zip(("on", "off"), runs, strict=True):
        own, other = (weights[view.head] for weights in run.weights)
        other = other[:, back] if view.kind == "cross" else other
        other = other[back][:, back] if view.kind == "encoder_self" else other
        maps |= {f"Own, positions {way}": own, f"Other, positions {way}": other}
    attention = view.attention
    chart(
        beside(names(view, attention), attention.mask[view.head], {}, maps),
        key="pe-order-weights",
        alt="Attention weights of the head in both orders, with positions and without",
        roomy=True,
    )
    source_free = view.kind == "decoder_self" and view.layer == 0
    st.caption(
        f"Layer {view.layer}, head {view.head}: attention weights. On the right the tokens are put back into the "
        "sentence's own order, so that the same cell is the same two tokens. Without positions both are one picture."
        + " This attention reads the target alone, before any cross-attention: no order changes it."
        * source_free
    )


def _error(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _run(view: View, permutation: tuple[int, ...], off: tuple[str, ...]) -> OrderRun:
    return _order_run(view.translator, view.trace, permutation, off, (view.kind, view.layer))


def _weights(translator: Translator) -> tuple[str, str]:
    return translator.hash, translator.device


def _trace(trace: Trace) -> tuple[object, ...]:
    return trace.checkpoint_hash, trace.device, trace.src_ids, trace.tgt_ids, trace.interventions


@kept(max_entries=24, hash_funcs={Translator: _weights, Trace: _trace})
def _order_run(
    translator: Translator, trace: Trace, permutation: tuple[int, ...], off: tuple[str, ...], address: tuple[str, int]
) -> OrderRun:
    return run_both_orders(translator, trace, permutation, off, address)


@kept(max_entries=48, hash_funcs={Translator: _weights, Trace: _trace})
def _translations(
    translator: Translator, trace: Trace, permutation: tuple[int, ...], off: tuple[str, ...]
) -> tuple[str, str]:
    return translate_both_orders(translator, trace, permutation, off)
