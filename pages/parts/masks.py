"""What the page on masks shows below its matrices, a view a tab."""

from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis.distributions import total_variation
from model.analysis.padded_batch import PaddedRun, room_for_pads, run_padded
from model.analysis.softmax import future_mass, mask_orders
from model.checkpoints.translator import Translator
from model.interventions import LiftCausalMask
from model.trace import Attention, Trace
from pages.compute.cache import shared_result
from pages.compute.runs import Request, run
from pages.frame.open_page import View
from pages.widgets.chart import chart
from pages.widgets.controls import choice, number
from viz.charts.masks import leak_map, leak_table, orders_chart, pad_names, padding_maps, probability_bars
from viz.heatmap import row_names
from viz.tokens import labels, numbered

MOST_PADS = 8
PLACES = {"all": "Every layer", "layer": "This layer only"}


def names(view: View, attention: Attention) -> tuple[list[str], list[str]]:
    """Queries and keys, as the axes call them."""
    following = None if view.kind == "encoder_self" else view.trace.next_tokens
    return row_names(attention.query_tokens, following), numbered(attention.key_tokens)


def show_padding(view: View) -> None:
    """The sentence in a batch beside a longer one: pads get nothing, and nothing else changes."""
    room = min(room_for_pads(view.translator, view.trace), MOST_PADS)
    if room < 1:
        st.info("This sentence fills the model's last position: a longer one to stand beside it does not fit.")
        return
    pads = _number("Pads", 1, room, min(4, room), "pads")
    padded = _padded(view, pads)
    rows, keys = names(view, view.attention)
    st.markdown(
        f"**Run again**, in a batch of two. A batch is a rectangle, so behind this sentence stand {pads} pads, up to "
        "the length of the other one. Pads are drawn on this page only, as hatched columns right of the line."
    )
    st.text(f"The longer sentence: {' '.join(labels(padded.companion))}")
    alone, beside = view.attention.pattern[view.head], padded.pattern[view.head]
    chart(
        padding_maps(rows, keys, padded.mask[view.head], alone, beside),
        key="masks-padding",
        alt="Weights alone and in a batch",
        roomy=True,
    )
    zero = "exactly 0" if padded.pad_weight == 0 else f"{padded.pad_weight:.3g}"
    own, everywhere = _difference(padded.difference), _difference(padded.largest_difference)
    st.markdown(
        f"- Weight on pads, the largest of all heads of all attentions: **{zero}**.\n"
        f"- Weights of this layer's heads, in the batch and alone: largest difference **{own}**; "
        f"in all attentions {everywhere}.\n"
        f"- Logits, in the batch and alone: largest difference **{_difference(padded.logits_difference)}**."
    )
    st.caption(
        "Where a difference is not 0 it is the rounding of single precision: larger matrices are added up in another "
        "order. The rows of the pads themselves are computed too, and thrown away."
        + (
            " Here pads stand after every row of the sentence, so the causal mask hides them as well."
            if view.kind == "decoder_self"
            else ""
        )
    )


def show_orders(view: View) -> None:
    """One row's weights with the mask before the softmax and after it."""
    attention, tokens = view.attention, view.attention.key_tokens
    scaled, mask, pattern = (getattr(attention, name)[view.head] for name in ("scaled", "mask", "pattern"))
    rows, keys = names(view, attention)
    if mask.all():
        room = min(room_for_pads(view.translator, view.trace), 4)
        if room < 1:
            st.info("Nothing is masked here, and no pad fits: before and after are the same.")
            return
        st.markdown(
            f"Nothing is masked in this run of one sentence. So here it stands in a batch again, with {room} pads "
            "(drawn in this demonstration only), and the padding mask hides those."
        )
        padded = _padded(view, room)
        scaled, mask, pattern = (getattr(padded, name)[view.head] for name in ("scaled", "mask", "pattern"))
        keys = pad_names(tokens, room)
    row = _number(f"Row (query), 0 to {len(rows) - 1}", 0, len(rows) - 1, (len(rows) - 1) // 2, "row")
    st.text(f"Row {rows[row]}: {int(mask[row].sum())} of {mask.shape[1]} keys may be seen.")
    orders = mask_orders(scaled[row], mask[row], float(attention.temperature[view.head]))
    ways = {
        "masked before": pattern[row],
        "zeroed after": orders.after,
        "renormalised after": orders.renormalised,
    }
    chart(orders_chart(keys, ways), key="masks-orders", alt="The weights of one row, masked in three ways")
    st.markdown(_orders_text(ways))


def show_lift(view: View) -> None:
    """The same target, teacher-forced again without the causal mask."""
    if view.kind != "decoder_self":
        kind = "the encoder's self-attention" if view.kind == "encoder_self" else "cross-attention"
        st.info(
            f"Nothing is causal in {kind}: the whole source is known before the first word is translated, so every "
            "row may look at all of it, and the padding mask is all there is. Choose decoder self-attention in the "
            "sidebar to lift its causal mask.",
            icon=":material/info:",
        )
        return
    place = choice("Lift it in", PLACES, "lift", default="all")
    try:
        before, after = _lifted(view, None if place == "all" else view.layer)
    except ValueError as error:
        st.text(f"The target cannot be read again as text: {error}")
        return
    if before.next_ids != view.trace.next_ids:
        st.caption("Read again as text, the translation falls into other tokens; both runs below have those.")
    _show_leak(view, before, after)


def _show_leak(view: View, before: Trace, after: Trace) -> None:
    right = (before.target_probabilities, after.target_probabilities)
    st.markdown(
        "**Run again** with the same target, teacher-forced: each row reads the same tokens as before, and may now "
        "look at the ones after it, among them the very token that it should predict."
    )
    chart(probability_bars(before.next_tokens, *right), key="masks-lift", alt="Probability of each right next token")
    rose, fell = int((right[1] > right[0]).sum()), int((right[1] < right[0]).sum())
    st.caption(
        f"The right token became more probable at {rose} of {len(before.next_ids)} positions, less at {fell}; the mean "
        f"went from {right[0].mean():.4f} to {right[1].mean():.4f}. The model was trained with the mask and never "
        "learned to copy from the future. Trained without it, the model could do just that, and would then fail in "
        "translation, where there is no future yet."
    )
    mass = future_mass(after.attention("decoder_self", view.layer).pattern)
    kept = future_mass(before.attention("decoder_self", view.layer).pattern).max()
    rows = row_names(after.tgt_tokens, after.next_tokens)
    chart(leak_map(mass, rows), key="masks-leak", alt="Attention weight on the future, per head and position")
    st.caption(
        f"What leaked in layer {view.layer}: the weight that each head puts on later positions, {mass.mean():.1%} on "
        f"average, up to {mass.max():.1%}; with the mask it is {'exactly 0' if kept == 0 else f'{kept:.3g}'}. The last "
        "row has no later position."
    )
    moved = total_variation(before.probabilities, after.probabilities)
    st.dataframe(leak_table(rows, *right, moved, mass.mean(axis=0)), hide_index=True)
    st.caption(
        "“Distribution moved”: how much of the whole vocabulary's probability went from some tokens to others. "
        f"“Weight on the future”: the mean of layer {view.layer}'s heads."
    )


def _lifted(view: View, layer: int | None) -> tuple[Trace, Trace]:
    trace = view.trace
    asked = Request(trace.source, trace.translation, 1, (*trace.interventions, LiftCausalMask(layer)))
    after = run(view.translator, asked)
    if after.next_ids == trace.next_ids:
        return trace, after
    return run(view.translator, replace(asked, interventions=trace.interventions)), after


def _orders_text(ways: dict[str, np.ndarray]) -> str:
    before, after, renormalised = ways.values()
    text = f"Sums: **{before.sum():.7g}** masked before, **{after.sum():.7g}** zeroed after: "
    text += f"the hidden keys had taken {1 - after.sum():.3%} of the row with them. "
    if not after.any():
        return text + (
            "The keys that remain were so much weaker than the hidden ones that single precision holds none of their "
            "weights: nothing is left to renormalise. **That is why the mask comes first.**"
        )
    return text + (
        f"Divided by what is left, the row sums to **{renormalised.sum():.7g}** and is the first one again, up to "
        f"rounding: largest difference **{np.abs(renormalised - before).max():.1e}**. So the mask before the softmax "
        "is one step instead of three, and safe where hidden scores are so large that nothing but rounding remains "
        "of the others."
    )


def _difference(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _number(label: str, low: int, high: int, default: int, key: str) -> int:
    """A number that keeps its value; one that a shorter sentence lacks becomes the nearest that it has."""
    if st.session_state.get(key) is not None:
        st.session_state[key] = min(max(st.session_state[key], low), high)
    found = number(label, (low, high), default, key, width=240)
    return default if found is None else found


def _padded(view: View, pads: int) -> PaddedRun:
    with st.spinner("The model is running the batch …"):
        return _padded_run(view.translator, view.trace, view.kind, view.layer, pads)


@shared_result()
def _padded_run(translator: Translator, trace: Trace, kind: str, layer: int, pads: int) -> PaddedRun:
    return run_padded(translator, trace, kind, layer, pads)
