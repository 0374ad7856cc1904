"""Positional encoding, tab "Learned, RoPE, ALiBi": the sinusoids compared with three other schemes."""

import numpy as np
import streamlit as st

from model.analysis import position_table
from model.analysis import tab_arrays as tab
from model.analysis.rope import rope_by_offset, rope_scores
from model.checkpoints.store import study_checkpoints
from model.trace import Array
from pages.compute.view import View
from pages.frame.open_page import choose_checkpoint
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import choice, select, slider
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.position_schemes import bias_chart, bias_map, comparison_maps, offset_chart
from viz.charts.positional_encoding import learned_and_sinusoidal_maps
from viz.latex import scaled_scores
from viz.theme import symmetric_range

LEARNED = "studies/learned-positions"
"""the small translator of our own Table 3 with a learned table"""

SCHEMES = {"learned": "Learned table", "rope": "RoPE", "alibi": "ALiBi"}
NOT_TRAINED = (
    "**Recomputed** from the scores of this run, not rerun. The model was not trained with it; a model that was "
    "would have learned other queries and keys."
)


def show_schemes(view: View, encoding: Array, rows: int) -> None:
    """A table of the four schemes, and one of the others on this head's own numbers."""
    config = view.translator.config
    own = " (this model)"
    sines, learned = ("", own) if config.positions == "learned" else (own, "")
    st.markdown(
        "| | What it does | Parameters, at this size | A score depends on | Beyond the maximum length |\n"
        "|---|---|---|---|---|\n"
        f"| Sinusoids{sines} | adds a fixed vector to embeddings | 0 | contents, both positions | still defined |\n"
        f"| Learned{learned} | adds a learned vector | {2 * config.max_len:,} × {config.d_model} = "
        f"{2 * config.max_len * config.d_model:,} | contents, both positions | undefined |\n"
        "| RoPE | rotates q and k in every self-attention | 0 | contents, m\u00a0−\u00a0n | still defined |\n"
        "| ALiBi | lowers scaled scores with distance | 0 | contents, \\|i\u00a0−\u00a0j\\| | still defined |"
    )
    fields = {"rope": view.attention.rotary, "alibi": view.attention.bias}
    others = {name: title for name, title in SCHEMES.items() if fields.get(name) is None}
    default = "rope" if "rope" in others else "learned"
    scheme = choice("Compare the sinusoids with", others, "pe_scheme", default=default)
    if scheme == "learned":
        show_learned(encoding[:rows], config.positions == "learned")
    elif view.attention.crosses:
        st.info(
            f"{SCHEMES[scheme]} uses the distance between a query and a key of the **same** sentence. In "
            "cross-attention they belong to two sentences, and their distance is meaningless: choose encoder or "
            "decoder self-attention in the sidebar.",
            icon=":material/info:",
        )
    elif scheme == "rope":
        show_rope(view)
    else:
        show_alibi(view)


def show_learned(table: Array, learned: bool) -> None:
    """The learned table of this checkpoint, or what the paper reports about one."""
    if learned:
        st.markdown("Sinusoids are fixed; this table was learned. Both share one colour range.")
        figure = learned_and_sinusoidal_maps(table, position_table.sinusoidal_encoding(*table.shape))
        chart(figure, key="pe-beside", alt="Heat maps of the learned table and of the paper's sinusoids")
        st.caption("A learned table has no wavelengths, and no rotation maps one of its positions to another.")
        return
    st.latex(r"x_{pos} = \sqrt{d_{model}}\;E_{token} + P_{pos}, \qquad P \in \mathbb{R}^{max\_len \times d_{model}}")
    st.markdown(
        "$P$ is a matrix of parameters like the embeddings: it starts at random, and gradients move row $pos$ "
        "whenever a training sentence is that long. **This checkpoint adds sinusoids, so there is no learned table "
        "to draw.** The paper trained both (table 3, row E): with a learned table **25.7 BLEU**, with sinusoids "
        "**25.8**, both at perplexity 4.92 on the development set, “nearly identical results”. The authors chose the "
        "sinusoids because they may allow the model to extrapolate to sequences longer than those seen in training."
    )
    if LEARNED in study_checkpoints():
        label = f"Open {LEARNED}, which has a learned table"
        icon = ":material/swap_horiz:"
        st.button(label, key="pe-learned", icon=icon, on_click=choose_checkpoint, args=(LEARNED,))
    st.caption("Vaswani et al. 2017, section 3.5 and table 3. A checkpoint trained with a learned table shows it here.")


def show_rope(view: View) -> None:
    """The head's own q and k, rotated by their positions."""
    attention, head = view.attention, view.head
    if attention.d_k % 2:
        st.info(f"RoPE rotates pairs of dimensions, and this head has an odd number of them: {attention.d_k}.")
        return
    q, k, scores = attention.q[head], attention.k[head], attention.scores[head]
    call = Call(tab.rope_arrays, attention, head)
    rotated, weights = call.result["scores_after"], call.result["pattern_after"]
    st.latex(
        r"(R_m q_m)^{\top}(R_n k_n) = q_m^{\top} R_{n-m}\, k_n, \qquad R_m \text{ rotates pair } i \text{ by } "
        r"m\,10000^{-2i/d_k}"
    )
    st.markdown(
        "**Rotary position embedding** adds nothing to the embeddings. It rotates each pair of dimensions of q and k "
        f"by an angle proportional to the position, like the clock hands on the tab “Rotation”. {NOT_TRAINED}"
    )
    mask = attention.mask[head]
    limit = symmetric_range(scores[mask], rotated[mask])[1]
    maps = {"Scores q · k": scores, "Scores after RoPE": rotated}
    patterns = {"Attention weights": attention.pattern[head], "Weights after RoPE": weights}
    chart(
        comparison_maps(axis_labels(attention), mask, maps, patterns, limit),
        key="pe-rope",
        alt="Scores and attention weights of the head, before and after RoPE",
        roomy=True,
    )
    st.caption(f"Layer {view.layer}, head {head}, its real q and k. The two score maps share one range, ±{limit:.3g}.")
    _show_offsets(view, q, k, scores)
    shift = slider("Shift every position by s", (0, 512), 100, "pe_shift")
    error = np.abs(rope_scores(q, k, shift) - rotated).max()
    st.markdown(
        f"**Check:** with all positions of queries and keys shifted by {shift}, all {scores.size} scores stay the "
        f"same: largest difference **{error:.1e}**, with scores up to {np.abs(rotated).max():.3g}, in double "
        "precision."
    )
    st.caption("Su et al. 2021, “RoFormer: Enhanced Transformer with Rotary Position Embedding”, section 3.4.2.")
    export_tab(view, "rope", call)


def _show_offsets(view: View, q: Array, k: Array, scores: Array) -> None:
    """The score of one query and one key at every distance."""
    attention = view.attention
    rows, keys = axis_labels(attention)
    left, right = st.columns(2)
    m = select("Query", dict(enumerate(rows)), "pe_query", place=left, in_link=False)
    n = select("Key", dict(enumerate(keys)), "pe_key", default=min(1, len(keys) - 1), place=right, in_link=False)
    reach = max(len(rows) - 1, 24)
    offsets = np.arange(-reach, reach + 1)
    curve = rope_by_offset(q[m], k[n], offsets)
    chart(
        offset_chart(offsets, curve, float(scores[m, n]), n - m),
        key="pe-rope-offsets",
        alt="The score of one query and one key over their offset",
    )
    st.caption(
        "The same two vectors at other positions: their score depends only on the offset n − m, whatever m is. At "
        "offset 0 both are rotated by the same angle, so the score equals the plain one."
    )


def show_alibi(view: View) -> None:
    """A penalty that grows with distance, on the head's own scaled scores."""
    attention, head = view.attention, view.head
    scaled = attention.pre_softmax[head]
    call, mask = Call(tab.alibi_arrays, attention, head), attention.mask[head]
    slopes, bias = call.result["slopes"], call.result["bias"]
    scores = scaled_scores(attention, r"q_i k_j^{\top}", "b_{ij}")
    st.latex(
        rf"\mathrm{{softmax}}\!\left({scores} - m_h\,|i-j|\right), \qquad "
        rf"m_h = 2^{{-8(h+1)/n}},\quad n = {attention.n_heads}"
    )
    side = (
        "The paper uses it in causal attention, as here: a row attends only to earlier positions."
        if attention.causal
        else "The paper uses it in causal attention, where a row attends only to earlier positions; here, in the "
        "encoder, it is applied symmetrically."
    )
    st.markdown(
        "**Attention with linear biases** adds nothing to the embeddings either: each score is lowered by the head's "
        "slope $m_h$ times the distance. The slope is steep in the first heads and small in the last ($h$ counts "
        f"from 0). {side} {NOT_TRAINED}"
    )
    limit = symmetric_range(scaled[mask], (scaled + bias)[mask], bias[mask])[1]
    maps = {"Scaled scores": scaled, "Scores − m |i − j|": scaled + bias}
    patterns = {"Attention weights": attention.pattern[head], "Weights with ALiBi": call.result["pattern_after"]}
    chart(
        comparison_maps(axis_labels(attention), mask, maps, patterns, limit),
        key="pe-alibi",
        alt="Scores and attention weights of the head, without and with ALiBi",
        roomy=True,
    )
    st.caption(f"Layer {view.layer}, head {head}. All score maps and the bias below share one range, ±{limit:.3g}.")
    left, right = st.columns(2)
    with left:
        st.markdown(f"The bias of head {head}, $m_{{{head}}}$ = {slopes[head]:.4g}")
        chart(bias_map(np.where(mask, bias, np.nan), limit), key="pe-alibi-bias", alt="ALiBi's bias of this head")
    with right:
        st.markdown("Every head's bias over the distance")
        chart(bias_chart(slopes, head, max(bias.shape)), key="pe-alibi-heads", alt="ALiBi's bias of all heads")
    st.caption("Press et al. 2022, “Train Short, Test Long: Attention with Linear Biases”, section 3.")
    export_tab(view, "alibi", call)
