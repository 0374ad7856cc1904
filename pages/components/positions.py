"""What the page on positional encoding shows below its table, a view a tab."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model import positions
from model.trace import Array, Embedded
from pages.components.chart import chart
from viz.positions import dimension_name, learned_beside, similarity_map, sum_maps
from viz.theme import symmetric_range
from viz.waves import block_equation, clocks, similarity_curve, wave_chart, wavelength_chart

KEPT = {"bind": "query-params", "persist_state": "session"}
"""For widgets whose value stays when the page is left, and goes along in its link."""
MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def kept_slider(
    place: DeltaGenerator, label: str, limits: tuple[int, int], default: int, key: str, step: int = 1
) -> int:
    """A slider that keeps its value; one that a smaller checkpoint lacks becomes the nearest that it has."""
    if key in st.session_state:
        st.session_state[key] = min(max(st.session_state[key], limits[0]), limits[1])
    return place.slider(label, *limits, default, step, key=key, **KEPT)


def show_sentence(embedded: Embedded, tokens: tuple[str, ...]) -> None:
    limit = symmetric_range(embedded.embedding, embedded.positional, embedded.sum)[1]
    lengths = np.linalg.norm(embedded.embedding, axis=-1), np.linalg.norm(embedded.positional, axis=-1)
    d_model = embedded.sum.shape[-1]
    st.markdown(
        f"Each token's learned embedding, times √{d_model} = {d_model**0.5:.2f}, plus the row of its position, is what "
        f"layer 0 reads. All three maps share one colour range, −{limit:.3g} to {limit:.3g}."
    )
    chart(sum_maps(embedded.embedding, embedded.positional, embedded.sum, tokens), key="pe-sum")
    redone = np.abs(embedded.embedding + embedded.positional - embedded.sum).max()
    st.caption(
        f"Lengths of the rows: embeddings {_span(lengths[0])}, positions {_span(lengths[1])}. Added up again here, "
        f"the sum differs from the model's by at most {redone:g}."
    )


def show_wavelengths(encoding: Array, rows: int) -> None:
    max_len, d_model = encoding.shape
    formula, measured = positions.wavelengths(d_model), positions.measured_wavelengths(encoding)
    if "waves" in st.session_state:
        st.session_state["waves"] = [dimension for dimension in st.session_state["waves"] if dimension < d_model]
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


def show_distance(encoding: Array, rows: int, learned: bool) -> None:
    """Similarities of positions: of the first `rows` as a matrix, of one position with all others as a curve."""
    left, right = st.columns([1, 3])
    measure = left.segmented_control(
        "Similarity", list(MEASURES), default="dot", required=True, format_func=MEASURES.get, key="measure", **KEPT
    )
    position = kept_slider(right, "From position", (0, len(encoding) - 1), len(encoding) // 2, "from")
    similarities = positions.similarity(encoding, cosine=measure == "cosine")
    lowest, highest = positions.similarity_by_offset(similarities)
    left, right = st.columns(2)
    with left:
        limit = 1.0 if measure == "cosine" else float(np.abs(similarities).max())
        chart(similarity_map(similarities[:rows, :rows], MEASURES[measure], limit), key="pe-similarity")
    with right:
        curve = similarity_curve(similarities, (lowest, highest), position, MEASURES[measure])
        chart(curve, key="pe-similarity-curve")
    reason = (
        "A learned table has no rule: what two positions have in common need not depend on their distance alone."
        if learned
        else "sin a · sin b + cos a · cos b = cos(a − b): how similar two positions are depends on their distance "
        "alone, and falls off in ripples, on both sides alike."
    )
    spread = (highest - lowest).max()
    st.caption(f"{reason} Pairs of positions that lie equally far apart differ in it by at most {spread:.2g}.")


def show_rotation(encoding: Array) -> None:
    max_len, d_model = encoding.shape
    left, middle, right = st.columns(3)
    pos = kept_slider(left, "Position pos", (0, max_len // 2 - 1), min(5, max_len // 2 - 1), "pos")
    k = kept_slider(middle, "Offset k", (1, max_len // 2), min(10, max_len // 2), "offset")
    pair = kept_slider(right, "Pair i", (0, d_model // 2 - 1), d_model // 16, "pair")
    predicted = positions.rotated(encoding, k)
    rows = {f"PE({pos})": encoding[pos], f"PE({pos + k})": encoding[pos + k]}
    turned = {f"M<sub>{k}</sub> PE({pos})": predicted[pos]}
    chart(clocks(rows, turned, pair, positions.wavelengths(d_model)), key="pe-clocks")
    both = slice(2 * pair, 2 * pair + 2)
    block = positions.rotation(encoding, k)[pair]
    st.latex(block_equation(block, encoding[pos, both], encoding[pos + k, both], pos, k, pair))
    st.markdown(
        f"Each pair is the hand of a clock, and $M_{{{k}}}$ turns each hand by a fixed angle, from **any** position "
        f"to the one {k} further on: “for any fixed offset k, PE(pos+k) can be represented as a linear function of "
        "PE(pos)”, which the authors hoped would make it easy to attend by relative position. For all "
        f"{max_len - k} positions and {d_model} dimensions, $M_{{{k}}}\\,PE(pos)$ and the model's own "
        f"$PE(pos + {k})$ differ by at most **{np.abs(predicted - encoding[k:]).max():.1e}**, "
        "the rounding of single precision."
    )
    st.caption("λ: wavelength, positions in a full turn. The blocks of the matrix are row k of the table itself.")


def show_beside(learned: Array) -> None:
    st.markdown("Sinusoids are fixed; this table was learned from data. Both in one colour range.")
    chart(learned_beside(learned, positions.sinusoidal_encoding(*learned.shape)), key="pe-beside")
    st.caption("A learned table has no wavelengths, and no rotation takes one of its positions to another.")


def _span(lengths: Array) -> str:
    low, high = f"{lengths.min():.2f}", f"{lengths.max():.2f}"
    return low if low == high else f"{low} to {high}"
