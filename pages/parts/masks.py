"""Masks: one function per tab."""

import numpy as np
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.padded_batch import room_for_pads, run_padded
from model.analysis.softmax import future_mass
from model.interventions import LiftCausalMask
from model.trace import Trace
from pages.compute.cache import shared_result
from pages.compute.runs import rerun
from pages.compute.view import KINDS, View
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import choice, number
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.masks import future_weight_map, leak_table, masking_bars, pad_names, padding_maps, probability_bars
from viz.heatmap import row_names
from viz.latex import error_text
from viz.tokens import labels

MOST_PADS = 8
PLACES = {"all": "Every layer", "layer": "This layer only"}


def offer_causal(view: View) -> None:
    """A button for the attention whose mask can be seen, if another one is chosen."""
    causal = next((kind for kind in view.trace.kinds if kind.causal), None)
    if causal and not view.attention.causal:
        st.button(
            f"Show {causal.title.lower()}, which has a causal mask",
            type="primary",
            key="show_causal",
            on_click=lambda: st.session_state.update(kind=causal.name),
        )


def show_padding(view: View) -> None:
    """The sentence in a batch with a longer one: pads get no weight, and nothing else changes."""
    room = min(room_for_pads(view.translator, view.trace), MOST_PADS)
    if room < 1:
        st.info("This sentence already fills the model's last position, so no longer one can be batched with it.")
        return
    pads = number("Pads", (1, room), min(4, room), "pads", width=240)
    padded = _run_padded(view.translator, view.trace, view.kind, view.layer, pads)
    rows, keys = axis_labels(view.attention)
    st.markdown(
        f"**Rerun** in a batch of two. A batch is rectangular, so this sentence is padded with {pads} pads to the "
        "length of the other one. Pads are drawn on this page only, as hatched columns to the right of the line."
    )
    st.text(f"The longer sentence: {' '.join(labels(padded.companion))}")
    alone, beside = view.attention.pattern[view.head], padded.pattern[view.head]
    chart(
        padding_maps(rows, keys, padded.mask[view.head], alone, beside),
        key="masks-padding",
        alt="Attention weights alone and in a batch",
        roomy=True,
    )
    zero = "exactly 0" if padded.pad_weight == 0 else f"{padded.pad_weight:.3g}"
    own, everywhere = error_text(padded.difference), error_text(padded.largest_difference)
    st.markdown(
        f"- Largest weight on a pad, over all heads of all attentions: **{zero}**.\n- Attention weights in the batch "
        f"and alone, this layer's heads: largest difference **{own}**; all attentions: {everywhere}.\n- Logits in the "
        f"batch and alone: largest difference **{error_text(padded.logits_difference)}**."
    )
    st.caption(
        "Any difference other than 0 is single-precision rounding: larger matrices accumulate their sums in a "
        "different order. The rows of the pads themselves are computed as well, and discarded."
        + (
            " Here the pads come after every row of the sentence, so the causal mask hides them as well."
            if view.attention.causal
            else ""
        )
    )
    run = view.translator, view.trace, view.kind, view.layer, pads
    export_tab(view, f"padding-{view.kind}-layer-{view.layer}", Call(run_padded, *run, result=padded))


def show_orders(view: View) -> None:
    """One row's weights with the mask applied before and after the softmax."""
    attention, tokens = view.attention, view.attention.key_tokens
    mask, pattern, batch = attention.mask[view.head], attention.pattern[view.head], None
    rows, keys = axis_labels(attention)
    if mask.all():
        room = min(room_for_pads(view.translator, view.trace), 4)
        if room < 1:
            st.info("Nothing is masked here and there is no room for padding, so before and after are the same.")
            return
        st.markdown(
            "Nothing is masked in this run of a single sentence, so this demonstration puts it in a batch again, "
            f"with {room} pads, which the padding mask hides."
        )
        padded = _run_padded(view.translator, view.trace, view.kind, view.layer, room)
        mask, pattern = padded.mask[view.head], padded.pattern[view.head]
        keys = pad_names(tokens, room)
        batch = Call(run_padded, view.translator, view.trace, view.kind, view.layer, room, result=padded)
    last = len(rows) - 1
    row = number(f"Row (query), 0 to {last}", (0, last), last // 2, "row", width=240)
    st.text(f"Row {rows[row]}: {int(mask[row].sum())} of {mask.shape[1]} keys are unmasked.")
    tau = float(attention.temperature[view.head])
    call = (
        Call(tab.padded_row, batch, view.head, row, tau) if batch else Call(tab.masked_row, attention, view.head, row)
    )
    orders = call.result
    ways = {
        "masked before": pattern[row],
        "zeroed after": orders.after,
        "renormalised after": orders.renormalised,
    }
    chart(masking_bars(keys, ways), key="masks-orders", alt="The weights of one row, masked in three ways")
    st.markdown(_orders_text(ways))
    export_tab(view, f"mask-orders-{view.place.slug}", call)


def show_lift(view: View) -> None:
    """The same target, teacher-forced without the causal mask."""
    if not view.attention.causal:
        kind = KINDS[view.kind].lower()
        st.info(
            f"There is no causal mask in {kind}: every key is known from the start, so every row may attend to all "
            "of them, and only padding is masked.",
            icon=":material/info:",
        )
        return
    place = choice("Lift it in", PLACES, "lift")
    lifted = (*view.trace.interventions, LiftCausalMask(None if place == "all" else view.layer))
    _show_leak(view, view.trace, rerun(view.translator, view.trace, lifted))


def _show_leak(view: View, before: Trace, after: Trace) -> None:
    right = (before.target_probabilities, after.target_probabilities)
    st.markdown(
        "**Rerun** with the same target, teacher-forced: each row reads the same token as before, and may now attend "
        "to later ones, including the very token it should predict.",
        help=define("teacher-forced"),
    )
    chart(probability_bars(before.next_tokens, *right), key="masks-lift", alt="Probability of each correct next token")
    rose, fell = int((right[1] > right[0]).sum()), int((right[1] < right[0]).sum())
    st.caption(
        f"The right token became more probable at {rose} of {len(before.next_ids)} positions, less at {fell}; the mean "
        f"went from {right[0].mean():.4f} to {right[1].mean():.4f}. The model was trained with the mask and never "
        "learned to copy from the future. Trained without it, the model could do just that, and would then fail to "
        "write a text of its own, where there is no future yet."
    )
    call = Call(tab.lift_arrays, before, after, view.kind, view.layer)
    mass = call.result["future_mass"]
    masked = future_mass(before.attention(view.kind, view.layer).pattern).max()
    rows = row_names(after.tgt_tokens, after.next_tokens)
    chart(
        future_weight_map(mass, rows),
        key="masks-leak",
        alt="Attention weight on later positions, per head and position",
    )
    st.caption(
        f"The leak in layer {view.layer}: each head's weight on later positions, {mass.mean():.1%} on average, at "
        f"most {mass.max():.1%}; with the mask it is {'exactly 0' if masked == 0 else f'{masked:.3g}'}. The last row "
        "has no later position."
    )
    moved = call.result["total_variation"]
    st.dataframe(leak_table(rows, *right, moved, mass.mean(axis=0)), hide_index=True)
    st.caption(
        "“Distribution moved”: total variation distance between the two next-token distributions. “Weight on the "
        f"future”: mean over layer {view.layer}'s heads."
    )
    export_tab(view, "lifted-mask", call)


def _orders_text(ways: dict[str, np.ndarray]) -> str:
    before, after, renormalised = ways.values()
    text = f"Row sums: **{before.sum():.7g}** masked before, **{after.sum():.7g}** zeroed after: "
    text += f"the masked keys had received {1 - after.sum():.3%} of the row. "
    if not after.any():
        return text + (
            "The unmasked keys' scores were so much lower than the masked ones' that their weights underflow in "
            "single precision: nothing is left to renormalise. **That is why the mask comes first.**"
        )
    return text + (
        f"Renormalised, the row sums to **{renormalised.sum():.7g}** and equals the first one up to rounding: largest "
        f"difference **{np.abs(renormalised - before).max():.1e}**. Masking before the softmax is one step instead of "
        "three, and stays accurate when masked scores are so large that the other weights would underflow."
    )


_run_padded = shared_result("Running the batch …")(run_padded)
