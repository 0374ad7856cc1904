"""What the page on positional encoding shows below its table, a view a tab."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis import position_table
from model.trace import Array, Embedded
from pages.widgets.chart import chart
from pages.widgets.explain import explain
from viz.charts.position_waves import (
    block_equation,
    block_map,
    block_table,
    clocks,
    similarity_curve,
    spread,
    wave_chart,
    wavelength_chart,
)
from viz.charts.positional_encoding import dimension_name, similarity_map, sum_maps
from viz.theme import symmetric_range

KEPT = {"bind": "query-params", "persist_state": "session"}
"""For widgets whose value stays when the page is left, and goes along in its link."""
SIDES = {"source": "Source", "target": "Target"}
MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def kept_slider(
    place: DeltaGenerator, label: str, limits: tuple[int, int], default: int, key: str, step: int = 1
) -> int:
    """A slider that keeps its value; one that a smaller checkpoint lacks becomes the nearest that it has."""
    if key in st.session_state:
        st.session_state[key] = min(max(st.session_state[key], limits[0]), limits[1])
    return place.slider(label, *limits, default, step, key=key, **KEPT)


def controls(max_len: int, d_model: int) -> tuple[int, int, str]:
    """How many positions and dimensions to draw, and whose."""
    left, middle, right = st.columns([2, 2, 1])
    rows = kept_slider(left, "Positions", (2, max_len), min(64, max_len), "positions")
    columns = kept_slider(middle, "Dimensions", (2, d_model), d_model, "dimensions", step=2)
    side = right.segmented_control(
        "Sentence", list(SIDES), default="source", required=True, format_func=SIDES.get, key="side", **KEPT
    )
    return rows, columns, side


def show_formula(learned: bool, d_model: int) -> None:
    """What the table is made of."""
    if learned:
        text = "This model **learned** its table, a free number for each position and dimension, instead of the sines "
        text += "and cosines of the paper; the paper found that the two do equally well."
        explain(text, r"x_{pos} = \sqrt{d_{model}}\;E_{token} + P_{pos},\qquad P \text{ learned}", "3.5")
        return
    explain(
        f"**pos** is the position, **i** the pair of dimensions (2i, 2i+1), d_model = {d_model}. Attention takes "
        "its keys as a set, in no order: this table, added to the embeddings, tells the model where each word stands. "
        "Encoder and decoder add the same one. Colours run from −1 to 1.",
        r"PE_{(pos,\,2i)} = \sin\!\left(\frac{pos}{10000^{2i/d_{model}}}\right) \qquad "
        r"PE_{(pos,\,2i+1)} = \cos\!\left(\frac{pos}{10000^{2i/d_{model}}}\right)",
        "3.5",
    )


def show_sentence(embedded: Embedded, tokens: tuple[str, ...]) -> None:
    limit = symmetric_range(embedded.embedding, embedded.positional, embedded.sum)[1]
    lengths = np.linalg.norm(embedded.embedding, axis=-1), np.linalg.norm(embedded.positional, axis=-1)
    d_model = embedded.sum.shape[-1]
    st.markdown(
        f"Each token's learned embedding, times √{d_model} = {d_model**0.5:.2f}, plus the row of its position, is what "
        f"layer 0 reads. All three maps share one colour range, −{limit:.3g} to {limit:.3g}."
    )
    maps = sum_maps(embedded.embedding, embedded.positional, embedded.sum, tokens)
    chart(maps, key="pe-sum", alt="Heat maps of the sentence: embedding, positional encoding, and their sum")
    redone = np.abs(embedded.embedding + embedded.positional - embedded.sum).max()
    st.caption(
        f"Lengths of the rows: embeddings {_span(lengths[0])}, positions {_span(lengths[1])}. Added up again here, "
        f"the sum differs from the model's by at most {redone:g}."
    )


def show_wavelengths(encoding: Array, rows: int) -> None:
    max_len, d_model = encoding.shape
    formula, measured = position_table.wavelengths(d_model), position_table.wavelengths_in(encoding)
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
        figure = wavelength_chart(measured, formula, max_len, chosen)
        chart(figure, key="pe-wavelengths", alt="Wavelength of each pair of dimensions")
    with right:
        figure = wave_chart(encoding[:rows], formula, chosen)
        chart(figure, key="pe-waves", alt="The waves of the chosen pairs of dimensions over the positions")
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
    similarities = position_table.similarity(encoding, cosine=measure == "cosine")
    lowest, highest = position_table.similarity_by_offset(similarities)
    left, right = st.columns(2)
    with left:
        limit = 1.0 if measure == "cosine" else float(np.abs(similarities).max())
        figure = similarity_map(similarities[:rows, :rows], MEASURES[measure], limit)
        chart(figure, key="pe-similarity", alt=f"{MEASURES[measure]} of every two positions")
    with right:
        curve = similarity_curve(similarities, (lowest, highest), position, MEASURES[measure])
        chart(curve, key="pe-similarity-curve", alt=f"{MEASURES[measure]} of position {position} with all others")
    reason = (
        "A learned table has no rule: what two positions have in common need not depend on their distance alone."
        if learned
        else "sin a · sin b + cos a · cos b = cos(a − b): how similar two positions are depends on their distance "
        "alone, and falls off in ripples, on both sides alike."
    )
    spread = (highest - lowest).max()
    st.caption(f"{reason} Pairs of positions that lie equally far apart differ in it by at most {spread:.2g}.")


def show_rotation(encoding: Array) -> None:
    """PE(pos + k) = M_k PE(pos): clocks, the blocks of M_k, one of them written out, and the largest error."""
    max_len, d_model = encoding.shape
    left, middle, right = st.columns(3)
    pos = kept_slider(left, "Position pos", (0, max_len // 2 - 1), min(5, max_len // 2 - 1), "pos")
    k = kept_slider(middle, "Offset k", (1, max_len // 2), min(10, max_len // 2), "offset")
    pair = kept_slider(right, "Pair i", (0, d_model // 2 - 1), d_model // 16, "pair")
    pairs = _pairs(d_model // 2, pair)
    predicted, blocks = position_table.rotate(encoding, k), position_table.rotation_blocks(encoding, k)
    errors = np.abs(predicted - encoding[k:])
    rows = {f"PE({pos})": encoding[pos], f"PE({pos + k})": encoding[pos + k]}
    turned = {f"M<sub>{k}</sub> PE({pos})": predicted[pos]}
    wavelengths = position_table.wavelengths(d_model)
    chart(clocks(rows, turned, pairs, pair, wavelengths), key="pe-clocks", alt="Pairs of dimensions as clock hands")
    st.markdown(
        f"Each pair is the hand of a clock, and $M_{{{k}}}$ turns each hand by a fixed angle, from **any** position "
        f"to the one {k} further on: “for any fixed offset k, PE(pos+k) can be represented as a linear function of "
        "PE(pos)”, which the authors hoped would make it easy to attend by relative position. For all "
        f"{max_len - k} positions and {d_model} dimensions, $M_{{{k}}}\\,PE(pos)$ and the model's own "
        f"$PE(pos + {k})$ differ by at most **{errors.max():.1e}**, the rounding of single precision."
    )
    both = slice(2 * pair, 2 * pair + 2)
    st.latex(block_equation(blocks[pair], encoding[pos, both], encoding[pos + k, both], pos, k, pair))
    left, right = st.columns([5, 3])
    with left:
        chart(block_map(blocks[pairs], pairs, k), key="pe-blocks", alt="The chosen 2x2 blocks of M_k")
    by_pair = errors.max(axis=0).reshape(-1, 2).max(axis=1)
    right.dataframe(block_table(pairs, wavelengths, k, by_pair), hide_index=True)
    right.caption(
        f"$M_{{{k}}}$ has such a 2×2 block for each of the {d_model // 2} pairs, and is 0 everywhere else (blank); "
        f"colours run from −1, blue, to 1, red. Its numbers are row {k} of the table itself. λ, wavelength: positions "
        "in a full turn. The error is the largest of all positions."
    )


def _pairs(n_pairs: int, pair: int) -> list[int]:
    """The pairs to draw: the chosen one, and those that the person wants beside it."""
    if "pe_pairs" in st.session_state:
        st.session_state["pe_pairs"] = [other for other in st.session_state["pe_pairs"] if other < n_pairs]
    beside = st.multiselect(
        "Pairs of dimensions to draw beside it",
        range(n_pairs),
        spread(n_pairs),
        max_selections=7,
        key="pe_pairs",
        **KEPT,
    )
    return sorted({*beside, pair})


def _span(lengths: Array) -> str:
    low, high = f"{lengths.min():.2f}", f"{lengths.max():.2f}"
    return low if low == high else f"{low} to {high}"
