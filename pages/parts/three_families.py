"""Three families: the masks of each, what reading both ways is worth, and the checkpoints."""

from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from model.analysis.three_families import causal_encoder, family_masks, one_way_arrays
from model.checkpoints.store import CheckpointError, available_checkpoints, stored_config
from pages.compute.runs import rerun, run
from pages.compute.view import View
from pages.widgets.chart import chart
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.three_families import family_maps
from viz.charts.what_if import log_probability_bars
from viz.html import word_diff
from viz.tokens import as_markdown, numbered

TITLES = {"encoder_only": "Encoder-only", "decoder_only": "Decoder-only", "prefix_lm": "Prefix LM"}
FAMILIES = {
    "encoder_decoder": ("Encoder-decoder", "heads_and_layers"),
    "decoder": ("Decoder-only", "continue_text"),
    "encoder": ("Encoder-only", "fill_in"),
}
"""family -> its name, and the page on which one of its checkpoints opens"""


def token_names(view: View) -> list[str]:
    """Of all tokens that the run reads, the source's first, numbered through."""
    return numbered([*view.trace.src_tokens, *view.trace.tgt_tokens])


def show_masks(view: View) -> None:
    """What each family would let these tokens attend to."""
    n, m = len(view.trace.src_ids), len(view.trace.tgt_tokens)
    masks = family_masks(n, m)
    figure = family_maps(token_names(view), {TITLES[name]: mask for name, mask in masks.items()}, n)
    chart(figure, key="families-masks", alt="What a token may attend to in each family", roomy=True)
    share = ", ".join(f"{TITLES[name]} {mask.mean():.0%}" for name, mask in masks.items())
    st.caption(f"Blue: the query of this row may attend to the key of this column. Visible cells: {share}.")
    st.markdown(
        "- **Encoder-only** (BERT): every token attends to every token. It is trained to fill in masked tokens and "
        "does not write text from left to right.\n"
        "- **Decoder-only** (GPT, LLaMA): one text, and no token attends to a later one, not even within the prompt. "
        "It is trained to predict the next token everywhere.\n"
        "- **Prefix LM** (Raffel et al. 2020, section 3.2.1): attends both ways in the prefix and causally after it. "
        "Its cells are those of the encoder-decoder above. But there is one softmax over each whole row and one set "
        "of weights, where the encoder-decoder has two softmaxes for a target token, and three sets."
    )
    export_tab(view, "family-masks", Call(family_masks, n, m, result=masks))


def show_one_way(view: View) -> None:
    """The same translator with an encoder that reads from left to right."""
    n = len(view.trace.src_ids)
    if n < 2:
        st.info("A source of one token has no later one to hide.", icon=":material/info:")
        return
    changes = (*view.trace.interventions, causal_encoder(n))
    before, after = view.trace, rerun(view.translator, view.trace, changes)
    st.markdown(
        f"**Rerun** with a causal mask in all layers of the encoder: {n * (n - 1) // 2} of {n * n} cells are hidden in "
        "each head, and a source token no longer knows what follows it. The target is the same, teacher-forced.",
        help=define("teacher-forced", "nats"),
    )
    chart(
        log_probability_bars(before.next_tokens, before.target_log_probabilities, after.target_log_probabilities),
        key="families-one-way",
        alt="Log-probability of each target token with the encoder as it is and with a causal one",
    )
    sums = [f"{trace.log_probability:.3f}".replace("-", "−") for trace in (before, after)]
    st.caption(
        f"log p of the same target: {sums[0]} nats {view.model_in_words}, {sums[1]} with the causal encoder as well. "
        "The model was trained to read both ways, so this measures what this translator has come to rely on. A model "
        "that is trained with a causal mask learns to do with less."
    )
    if view.request.target is None:
        st.markdown("**Decoded again** by the changed model:")
        st.html(word_diff(before.translation, _decode_again(view, changes)))
    export_tab(view, "causal-encoder", Call(one_way_arrays, before, after))


def _decode_again(view: View, changes: tuple) -> str:
    return run(view.translator, replace(view.request, interventions=changes)).translation


def offer_checkpoints(view: View) -> None:
    """For each family a link that opens one of its checkpoints on the same text, or a sentence that there is none."""
    found: dict[str, str] = {}
    for name in available_checkpoints():
        try:
            found.setdefault(stored_config(name).family, name)
        except CheckpointError:
            continue
    for column, (family, (title, page)) in zip(st.columns(3), FAMILIES.items(), strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            if family not in found:
                st.caption("No checkpoint of this family is in the folder of checkpoints.")
            else:
                query = urlencode({"checkpoint": found[family], "source": view.trace.source})
                st.link_button(f"Open {as_markdown(found[family])}", f"{page}?{query}", icon=":material/open_in_new:")
