"""What the page on positional encoding shows below its table, a view a tab."""

import numpy as np
import streamlit as st

from model import positions
from model.trace import Array, Embedded
from pages.components.chart import chart
from viz.positions import dimension_name, learned_beside, similarity_map, sum_maps
from viz.theme import symmetric_range
from viz.waves import block_equation, clocks, similarity_curve, wave_chart, wavelength_chart

KEPT = {"bind": "query-params", "persist_state": "session"}
"""For widgets whose value stays when the page is left, and goes along in its link."""
MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def show_sentence(embedded: Embedded, tokens: tuple[str, ...]) -> None:
    low, high = symmetric_range(embedded.embedding, embedded.positional, embedded.sum)
    lengths = np.linalg.norm(embedded.embedding, axis=-1), np.linalg.norm(embedded.positional, axis=-1)
    d_model = embedded.sum.shape[-1]
    st.markdown(
        f"Each token's learned embedding, times √{d_model} = {d_model**0.5:.2f}, plus the row of its position, is what "
        f"layer 0 reads. All three maps share one colour range, {low:.3g} to {high:.3g}."
    )
    chart(sum_maps(embedded.embedding, embedded.positional, embedded.sum, tokens), key="pe-sum")
    redone = np.abs(embedded.embedding + embedded.positional - embedded.sum).max()
    st.caption(
        f"Lengths of the rows: embeddings {lengths[0].min():.2f} to {lengths[0].max():.2f}, positions "
        f"{lengths[1].min():.2f} to {lengths[1].max():.2f}. Added up again here, the sum differs from the model's "
        f"by at most {redone:g}."
    )


def show_wavelengths(encoding: Array, rows: int) -> None:
    max_len, d_model = encoding.shape
    formula, measured = positions.wavelengths(d_model), positions.measured_wavelengths(encoding)
    chosen = st.multiselect(
        "Dimensions to draw as waves",
        range(d_model),
        [d_model * part // 32 * 2 for part in (1, 3, 5, 7)],
        format_func=dimension_name,
        max_selections=8,
        key="waves",
        **KEPT,
    )
    left, right = st.columns(2)
    with left:
        chart(wavelength_chart(measured, formula, max_len, chosen), key="pe-wavelengths")
    with right:
        chart(wave_chart(encoding[:rows], formula, chosen), key="pe-waves")
    slow = int((formula > max_len).sum())
    st.caption(
        "Wavelengths grow from 2π towards 10000 · 2π, by the same factor from pair to pair. The dots on the left were "
        "measured in the model's table, by how far each pair turns from position 0 to 1: off the formula by at most "
        f"{np.abs(measured / formula - 1).max():.1e} of it. {slow} of the {len(formula)} pairs need more than the "
        f"table's {max_len} positions for one turn. On the right the dots are the table's numbers, and the lines the "
        "formula between them."
    )


def show_distance(encoding: Array, learned: bool) -> None:
    left, right = st.columns([1, 3])
    measure = left.segmented_control(
        "Similarity", list(MEASURES), default="dot", required=True, format_func=MEASURES.get, key="measure", **KEPT
    )
    position = right.slider("From position", 0, len(encoding) - 1, len(encoding) // 2, key="from")
    similarities = positions.similarity(encoding, cosine=measure == "cosine")
    extremes = positions.similarity_by_offset(similarities)
    left, right = st.columns(2)
    with left:
        limit = 1.0 if measure == "cosine" else float(np.abs(similarities).max())
        chart(similarity_map(similarities, MEASURES[measure], limit), key="pe-similarity")
    with right:
        chart(similarity_curve(similarities, extremes, position, MEASURES[measure]), key="pe-similarity-curve")
    reason = (
        "" if learned else "sin a · sin b + cos a · cos b = cos(a − b), so how similar two positions are depends on "
    )
    reason += "" if learned else "their distance alone, and falls off on both sides alike. "
    st.caption(
        f"{reason}Among all pairs of positions that lie equally far apart, the values differ by at most "
        f"{(extremes[1] - extremes[0]).max():.2g}."
    )


def show_rotation(encoding: Array) -> None:
    max_len, d_model = encoding.shape
    left, middle, right = st.columns(3)
    pos = left.slider("Position pos", 0, max_len // 2 - 1, min(5, max_len // 2 - 1), key="pos", **KEPT)
    k = middle.slider("Offset k", 1, max_len // 2, min(10, max_len // 2), key="offset", **KEPT)
    pair = right.slider("Pair i", 0, d_model // 2 - 1, d_model // 16, key="pair", **KEPT)
    predicted = positions.rotated(encoding, k)
    rows = {f"PE({pos})": encoding[pos], f"PE({pos + k})": encoding[pos + k]}
    drawn = sorted({*range(0, d_model // 2, max(d_model // 14, 1)), pair})
    chart(clocks(rows, predicted[pos], drawn, positions.wavelengths(d_model)), key="pe-clocks")
    both = slice(2 * pair, 2 * pair + 2)
    block = positions.rotation(encoding, k)[pair]
    st.latex(block_equation(block, encoding[pos, both], encoding[pos + k, both], pos, k, pair))
    error = np.abs(predicted - encoding[k:]).max()
    st.metric(
        f"Largest error of this for k = {k}, over all {max_len - k} positions and {d_model} dimensions", f"{error:.1e}"
    )
    st.markdown(
        "The same matrix M_k, built from blocks that each turn one pair by a fixed angle, takes **every** position k "
        "steps on: “for any fixed offset k, PE(pos+k) can be represented as a linear function of PE(pos)” (section "
        "3.5). So a head can learn to look k words back wherever it stands. What is left is the rounding of the "
        "table to single precision."
    )


def show_beside(learned: Array) -> None:
    st.markdown("Sinusoids are fixed; this table was learned from data. Both in one colour range.")
    chart(learned_beside(learned, positions.sinusoidal_encoding(*learned.shape)), key="pe-beside")
    st.caption("A learned table has no wavelengths, and no rotation takes one of its positions to another.")
