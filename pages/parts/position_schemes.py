"""Sinusoids beside a learned table, RoPE and ALiBi: the page on positional encoding, one tab."""

import numpy as np
import streamlit as st

from model.analysis import position_table
from model.analysis.rope_and_alibi import alibi_bias, alibi_slopes, rope_by_offset, rope_scores
from model.analysis.softmax import mask_orders
from model.trace import Array
from pages.frame.open_page import View
from pages.parts.masks import names
from pages.parts.positional_encoding import KEPT, kept_slider
from pages.widgets.chart import chart
from viz.charts.position_schemes import beside, bias_lines, bias_map, offset_curve
from viz.charts.positional_encoding import learned_beside
from viz.theme import symmetric_range

SCHEMES = {"learned": "Learned table", "rope": "RoPE", "alibi": "ALiBi"}
NOT_TRAINED = (
    "**Drawn again** from the scores of this run. The model was not trained with it: a trained one would have learned "
    "other queries and keys."
)


def show_schemes(view: View, encoding: Array, rows: int) -> None:
    """The four ways side by side in words, and one of the others in numbers."""
    config = view.translator.config
    own = " (this model)"
    sines, learned = ("", own) if config.positions == "learned" else (own, "")
    st.markdown(
        "| | What it does | Numbers to learn, at this size | A score depends on | Past the table's end |\n"
        "|---|---|---|---|---|\n"
        f"| Sinusoids{sines} | adds a fixed row to embeddings | 0 | contents, both positions | the formula goes on |\n"
        f"| Learned{learned} | adds a learned row | {2 * config.max_len:,} × {config.d_model} = "
        f"{2 * config.max_len * config.d_model:,} | contents, both positions | there is no row |\n"
        "| RoPE | turns q and k in every self-attention | 0 | contents, m\u00a0−\u00a0n | the formula goes on |\n"
        "| ALiBi | lowers scaled scores with distance | 0 | contents, \\|i\u00a0−\u00a0j\\| | the formula goes on |"
    )
    scheme = st.segmented_control(
        "Beside the sinusoids",
        list(SCHEMES),
        default="rope",
        required=True,
        format_func=SCHEMES.get,
        key="pe_scheme",
        **KEPT,
    )
    if scheme == "learned":
        show_learned(encoding[:rows], config.positions == "learned")
    elif view.kind == "cross":
        st.info(
            f"{SCHEMES[scheme]} speaks of the distance between a query and a key of the **same** sentence. In "
            "cross-attention they stand in two sentences, and their distance means nothing: choose an encoder or "
            "decoder self-attention in the sidebar.",
            icon=":material/info:",
        )
    elif scheme == "rope":
        show_rope(view)
    else:
        show_alibi(view)


def show_learned(table: Array, learned: bool) -> None:
    """The learned table of this checkpoint, or what the paper says of one."""
    if learned:
        st.markdown("Sinusoids are fixed; this table was learned from data. Both in one colour range.")
        figure = learned_beside(table, position_table.sinusoidal_encoding(*table.shape))
        chart(figure, key="pe-beside", alt="Heat maps of the learned table and of the paper's sinusoids")
        st.caption("A learned table has no wavelengths, and no rotation takes one of its positions to another.")
        return
    st.latex(r"x_{pos} = \sqrt{d_{model}}\;E_{token} + P_{pos}, \qquad P \in \mathbb{R}^{max\_len \times d_{model}}")
    st.markdown(
        "$P$ is a matrix of parameters like the embeddings: it starts at random, and gradients move row $pos$ whenever "
        "a training sentence is that long. **This checkpoint adds sinusoids, so there is no learned table to draw.** "
        "The paper trained both (table 3, row E): with a learned table **25.7 BLEU**, with sinusoids **25.8**, both at "
        "perplexity 4.92 on the development set, “nearly identical results”. The authors kept the sinusoids, because "
        "they may let the model go on to sentences longer than those it met in training."
    )
    st.caption("Vaswani et al. 2017, section 3.5 and table 3. A checkpoint trained with a learned table shows it here.")


def show_rope(view: View) -> None:
    """The head's own q and k, turned by their positions."""
    attention, head = view.attention, view.head
    if attention.d_k % 2:
        st.info(f"RoPE turns dimensions in pairs, and this head has {attention.d_k}, an odd number.")
        return
    q, k, scores = attention.q[head], attention.k[head], attention.scores[head]
    rotated = rope_scores(q, k)
    st.latex(
        r"(R_m q_m)^{\top}(R_n k_n) = q_m^{\top} R_{n-m}\, k_n, \qquad R_m \text{ turns pair } i \text{ by } "
        r"m\,10000^{-2i/d_k}"
    )
    st.markdown(
        "**Rotary position embedding** adds nothing to the embeddings. It turns each pair of dimensions of q and k by "
        f"an angle that grows with the position, like the clocks of the tab “Rotation”. {NOT_TRAINED}"
    )
    weights = _weights(view, rotated / attention.d_k**0.5)
    mask = attention.mask[head]
    limit = symmetric_range(scores[mask], rotated[mask])[1]
    maps = {"Scores q · k": scores, "Scores after RoPE": rotated}
    patterns = {"Attention weights": attention.pattern[head], "Weights after RoPE": weights}
    chart(
        beside(names(view, attention), mask, maps, patterns, limit),
        key="pe-rope",
        alt="Scores and attention weights of the head, before and after RoPE",
        roomy=True,
    )
    st.caption(f"Layer {view.layer}, head {head}, its real q and k. The two score maps share one range, ±{limit:.3g}.")
    _show_offsets(view, q, k, scores)
    shift = kept_slider(st, "Shift every position by s", (0, 512), 100, "pe_shift")
    error = np.abs(rope_scores(q, k, shift) - rotated).max()
    st.markdown(
        f"**Checked:** all positions moved {shift} further on, queries and keys alike, all {scores.size} scores come "
        f"out the same: largest difference **{error:.1e}**, of scores up to {np.abs(rotated).max():.3g}, in double "
        "precision."
    )
    st.caption("Su et al. 2021, “RoFormer: Enhanced Transformer with Rotary Position Embedding”, section 3.4.2.")


def _show_offsets(view: View, q: Array, k: Array, scores: Array) -> None:
    """One query and one key, put at every distance."""
    attention = view.attention
    rows, keys = names(view, attention)
    left, right = st.columns(2)
    m = _token(left, "Query", "pe_query", rows, 0)
    n = _token(right, "Key", "pe_key", keys, min(1, len(keys) - 1))
    reach = max(len(rows) - 1, 24)
    offsets = np.arange(-reach, reach + 1)
    curve = rope_by_offset(q[m], k[n], offsets)
    chart(
        offset_curve(offsets, curve, float(scores[m, n]), n - m),
        key="pe-rope-offsets",
        alt="The score of one query and one key over their offset",
    )
    st.caption(
        "The same two vectors, put at other places: their score follows the offset n − m alone, wherever m is. At "
        "offset 0 both are turned alike, and the score is the plain one."
    )


def show_alibi(view: View) -> None:
    """A penalty that grows with distance, on the head's own scaled scores."""
    attention, head = view.attention, view.head
    scaled = attention.scaled[head]
    slopes = alibi_slopes(attention.n_heads)
    bias, mask = alibi_bias(*scaled.shape, slopes[head]), attention.mask[head]
    st.latex(
        r"\mathrm{softmax}\!\left(\frac{q_i k_j^{\top}}{\sqrt{d_k}} - m_h\,|i-j|\right), \qquad "
        rf"m_h = 2^{{-8(h+1)/n}},\quad n = {attention.n_heads}"
    )
    side = (
        "The paper has it in causal attention, as here: a row looks back only."
        if view.kind == "decoder_self"
        else "The paper has it in causal attention, where a row looks back only; here, in the encoder, it is the same "
        "on both sides."
    )
    st.markdown(
        "**Attention with linear biases** adds nothing to the embeddings either: each step of distance costs a head "
        f"its slope $m_h$, steep in the first heads and slight in the last ($h$ counts from 0). {side} {NOT_TRAINED}"
    )
    limit = symmetric_range(scaled[mask], (scaled + bias)[mask], bias[mask])[1]
    maps = {"Scaled scores": scaled, "Scores − m |i − j|": scaled + bias}
    patterns = {"Attention weights": attention.pattern[head], "Weights with ALiBi": _weights(view, scaled + bias)}
    chart(
        beside(names(view, attention), mask, maps, patterns, limit),
        key="pe-alibi",
        alt="Scores and attention weights of the head, without and with ALiBi",
        roomy=True,
    )
    st.caption(f"Layer {view.layer}, head {head}. All score maps, the bias below too, share one range, ±{limit:.3g}.")
    left, right = st.columns(2)
    with left:
        st.markdown(f"The bias of head {head}, $m_{{{head}}}$ = {slopes[head]:.4g}")
        chart(bias_map(np.where(mask, bias, np.nan), limit), key="pe-alibi-bias", alt="ALiBi's bias of this head")
    with right:
        st.markdown("Every head's bias over the distance")
        chart(bias_lines(slopes, head, max(bias.shape)), key="pe-alibi-heads", alt="ALiBi's bias of all heads")
    st.caption("Press et al. 2022, “Train Short, Test Long: Attention with Linear Biases”, section 3.")


def _weights(view: View, scaled: Array) -> Array:
    """The head's softmax, with its own mask and temperature, of other scores (query, key)."""
    attention = view.attention
    return mask_orders(scaled, attention.mask[view.head], float(attention.temperature[view.head])).before


def _token(place: object, label: str, key: str, options: list[str], default: int) -> int:
    """A position of the sentence; one that a shorter sentence lacks becomes its last."""
    if st.session_state.get(key) is not None:
        st.session_state[key] = min(max(int(st.session_state[key]), 0), len(options) - 1)
    return place.selectbox(
        label, range(len(options)), default, format_func=options.__getitem__, key=key, persist_state="session"
    )
