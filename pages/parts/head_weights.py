"""Heads and layers: the chosen head's weights: singular values, and its OV circuit as a dictionary."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.head_weights import weight_arrays
from model.trace import Array, Attention
from pages.compute.view import View
from pages.widgets.chart import chart
from pages.widgets.controls import table
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts.heads_and_layers import singular_values_chart
from viz.tokens import labels, numbered

CHART = "head-singular-values"
PRODUCTS = {"qk": "W_Q W_Kᵀ", "ov": "W_V W_O"}


def show_weights(view: View) -> None:
    """Singular values of the chosen head's two products, and what each token promotes through the second one."""
    if view.attention.projections is None:
        st.info("The matrices of this attention were not found in the model, so there is nothing to show here.")
        return
    call = Call(weight_arrays, view.translator, view.trace, view.kind, view.layer, view.head)
    found = call.result
    explain(
        "$W_Q W_K^{\\top}$ scores pairs of vectors: it decides where a head attends. $W_V W_O$ maps each vector it "
        "attends to: it decides what the head writes. Elhage et al. 2021 (“A Mathematical Framework for Transformer "
        "Circuits”) call them the QK and the OV circuit. Both are products of two narrow matrices, so neither can do "
        "more than its rank allows.",
        r"\begin{aligned} \mathrm{score}_{ij} &= x_i\, W_Q W_K^{\top}\, x_j^{\top} \\"
        r"\mathrm{written}_{ij} &= \alpha_{ij}\; x_j\, W_V W_O \end{aligned}",
    )
    figure = singular_values_chart({name: found[key] for key, name in PRODUCTS.items()})
    chart(figure, key=CHART, alt="Singular values of W_Q W_K transposed and of W_V W_O of the chosen head")
    st.caption(f"{_describe_values(view, found)} {_describe_left_out(view.attention, view.head)}")
    if "run_ids" in found:
        _show_dictionary(view, found)
    else:
        st.info(_explain_no_dictionary(view), icon=":material/info:")
    export_tab(view, f"weights-{view.place.slug}", call, Picture("Singular values", CHART, figure))


def _describe_values(view: View, found: dict[str, Array]) -> str:
    """The limit of the rank, and how many values hold most of the product."""
    most = []
    for key, name in PRODUCTS.items():
        squares = found[key] ** 2
        count = int(np.searchsorted(np.cumsum(squares), 0.9 * squares.sum())) + 1
        most.append(f"the first {count} of {name} make up 90 % of the sum of its squares ({squares.sum():.4g})")
    return (
        f"Of d_model = {view.attention.key_input.shape[-1]} singular values at most d_k = {view.attention.d_k} of "
        f"{PRODUCTS['qk']} and d_v = {view.attention.v.shape[-1]} of {PRODUCTS['ov']} are above 0: that is how wide "
        f"the narrow matrices are. Here {' and '.join(most)}."
    )


def _describe_left_out(attention: Attention, head: int) -> str:
    """What stands between these products and the scores of a run, and who else has the same matrices."""
    parts = []
    if attention.projections.biases:
        parts.append("Biases are left out; b_Q and b_K add to the scores what depends on one of the two tokens only.")
    if attention.qk_norm is not None:
        parts.append("This model also normalises queries and keys before it multiplies them.")
    if attention.rotary is not None:
        parts.append("RoPE rotates queries and keys by their distance; the product is that of distance 0.")
    shared = attention.kv_head or ()
    mates = [str(other) for other, group in enumerate(shared) if group == shared[head]]
    if len(mates) > 1:
        parts.append(f"Heads {', '.join(mates[:-1])} and {mates[-1]} share W_K and W_V.")
    return " ".join(parts)


def _show_dictionary(view: View, found: dict[str, Array]) -> None:
    """A row for each token that the head may attend to, with the pieces that it promotes."""
    attention = view.attention
    st.markdown(
        "**The OV circuit as a dictionary**: "
        f"what each {'source token' if attention.crosses else 'token'} promotes if the head attends to it. These are "
        "the pieces of the vocabulary with the largest logits $x\\, W_V W_O\\, U^{\\top}$; $U$ is the output matrix, "
        "$x$ the token's embedding or, in the last column, the vector that the head reads in this run."
    )
    columns = {"token": numbered(attention.key_tokens)}
    for key, title in {"embedding": "its embedding promotes", "run": "its vector in this run promotes"}.items():
        pieces = [labels(view.translator.tokenizer.tokens(ids)) for ids in found[f"{key}_ids"].tolist()]
        logits = found[f"{key}_logits"].tolist()
        columns[title] = [
            ", ".join(f"{piece} ({logit:.2g})" for piece, logit in zip(*row, strict=True))
            for row in zip(pieces, logits, strict=True)
        ]
    table(pd.DataFrame(columns))
    biases = " So are b_V and b_O, which add the same for every token." if attention.projections.biases else ""
    st.caption(
        "A rough reading of the weights, not an output of the model. Everything after the head is left out of both "
        f"columns: the residual connection, norms, feed-forward networks and higher layers.{biases} The first column "
        f"also leaves out everything before it: {_describe_before(view)}. The last layer therefore reads best. To look "
        "up other words, type another sentence."
    )
    if "copy_score" in found:
        st.caption(
            f"Copy score {found['copy_score']:.3f}: the sum of the eigenvalues of E W_V W_O Uᵀ over the sum of their "
            "magnitudes. Near 1 the head promotes what it reads, near −1 it suppresses it (Elhage et al. 2021)."
        )


def _describe_before(view: View) -> str:
    if view.attention.crosses:
        return "positions and all layers of the encoder"
    return "positions, norms" + (f" and {view.layer} lower layers" if view.layer else "")


def _explain_no_dictionary(view: View) -> str:
    if view.trace.streams[view.trace.kind(view.kind).queries].predicts is None:
        return "This head has no dictionary: the encoder writes no tokens, so no output matrix reads what it computes."
    return "This head has no dictionary: no output matrix as wide as the embeddings was found in this model."
