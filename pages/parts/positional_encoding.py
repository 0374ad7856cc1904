"""Positional encoding: the controls of the table, its formula, and one function per tab."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import position_table
from model.analysis import tab_arrays as tab
from model.analysis.view_arrays import position_arrays
from model.analysis.vocabulary import lengths
from model.needs import Need
from model.trace import Array, Embedded
from pages.compute.view import View
from pages.parts.position_schemes import show_schemes
from pages.parts.run_positions import Shown, show_reordered
from pages.parts.tokens_and_embeddings import describe_types, titles_of
from pages.parts.word_order import show_order
from pages.widgets.chart import chart
from pages.widgets.controls import choice, several, slider, tabs
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts.position_waves import (
    block_equation,
    block_map,
    block_table,
    clock_chart,
    evenly_spaced_pairs,
    similarity_curve,
    wave_chart,
    wavelength_chart,
)
from viz.charts.positional_encoding import dimension_name, similarity_map, sum_maps, table_map
from viz.theme import symmetric_range

SIDES = {"source": "Source", "target": "Target"}
SINUSOIDAL = {"Wavelengths", "Rotation"}
"""tabs for a table in the paper's own order of sines and cosines"""
MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def show_table(view: View) -> Shown:
    """The table that the model adds to its embeddings: all of it, its formula, and a tab for each property."""
    config, streams = view.translator.config, view.trace.streams
    sides = {
        side: title
        for (side, title), name in zip(SIDES.items(), ("encoder", "decoder"), strict=True)
        if name in streams
    }
    encoding = view.translator.positional_encoding(next(iter(sides)))
    shown, columns, side = choose_table(*encoding.shape, sides)
    encoding = view.translator.positional_encoding(side)
    table = encoding[:shown, :columns]
    learned, ordered = config.positions == "learned", Need.ADDED_POSITIONS in view.translator.features
    sines = ordered and not learned
    wavelengths = position_table.wavelengths(encoding.shape[1]) if sines else None
    stream = streams["encoder" if side == "source" else "decoder"]
    embedded, tokens = stream.embedded, stream.tokens.labels
    limits = (-1.0, 1.0) if sines else symmetric_range(encoding)
    figure = table_map(table, wavelengths, len(embedded.sum), limits)
    chart(
        figure,
        key="pe-table",
        alt="Heat map of the positional encoding: one row per position, one column per dimension.",
    )
    if Need.ADDED_TYPES in view.translator.features:
        st.caption(
            "Each row is the model's position and the embedding of token type 0, which it adds to every token of a "
            "first sentence (Devlin et al. 2019, BERT)."
        )
    show_formula(learned, sines, config.d_model, view.translator.embedding_scale)
    views = {
        "Your sentence": lambda: show_sentence(view, side, embedded, tokens),
        "Wavelengths": lambda: show_wavelengths(view, side, encoding, shown),
        "Distance": lambda: show_distance(view, side, encoding, shown, learned),
        "Rotation": lambda: show_rotation(view, side, encoding),
        "Learned, RoPE, ALiBi": lambda: show_schemes(view, encoding, shown),
        "Word order": lambda: show_order(view) if len(streams) == 2 else show_reordered(view),
    }
    left_out = set() if sines else set(SINUSOIDAL)
    left_out |= set() if ordered else {"Learned, RoPE, ALiBi"}
    left_out |= {"Word order"} if len(streams) == 2 and Need.OWN_LAYERS not in view.translator.features else set()
    tabs({name: show for name, show in views.items() if name not in left_out}, "part")
    names = [dimension_name(j, not sines) for j in range(columns)]
    numbers = pd.DataFrame(table, columns=names).rename_axis("position").reset_index()
    call = Call(position_arrays, view.translator, view.trace, side)
    return Shown(call, numbers, Picture("The table", "pe-table", figure))


def choose_table(max_len: int, d_model: int, sides: Mapping[str, str]) -> tuple[int, int, str]:
    """Choose how many positions and dimensions to draw, and of which side."""
    left, middle, right = st.columns([2, 2, 1])
    rows = slider("Positions", (2, max_len), min(64, max_len), "positions", place=left)
    columns = slider("Dimensions", (2, d_model), d_model, "dimensions", place=middle, step=2)
    side = choice("Sentence", sides, "side", place=right) if len(sides) > 1 else next(iter(sides))
    return rows, columns, side


def show_formula(learned: bool, sines: bool, d_model: int, scale: float) -> None:
    """Explain how the table is computed; `sines`: by the paper's formula, in the paper's order of dimensions."""
    factor = "" if scale == 1 else rf"{scale:.4g}\;"
    if learned:
        text = "This model **learned** its table, one parameter per position and dimension, instead of using the sines "
        text += "and cosines of the paper; the paper found the two to perform nearly identically."
        explain(text, rf"x_{{pos}} = {factor}E_{{token}} + P_{{pos}},\qquad P \text{{ learned}}", "3.5")
        return
    if not sines:
        text = "This model adds a fixed table that it did not train. Its dimensions are not in the paper's order of "
        text += "neighbouring sines and cosines, so the tabs on pairs of dimensions are left out."
        explain(text, rf"x_{{pos}} = {factor}E_{{token}} + P_{{pos}},\qquad P \text{{ fixed}}", "3.5")
        return
    explain(
        f"**pos** is the position, **i** the pair of dimensions (2i, 2i+1), d_model = {d_model}. Attention is "
        "invariant to the order of its keys; this table, added to the embeddings, tells the model where each token "
        "stands. Encoder and decoder add the same table. Colours run from −1 to 1.",
        r"PE_{(pos,\,2i)} = \sin\!\left(\frac{pos}{10000^{2i/d_{model}}}\right) \qquad "
        r"PE_{(pos,\,2i+1)} = \cos\!\left(\frac{pos}{10000^{2i/d_{model}}}\right)",
        "3.5",
    )


def show_sentence(view: View, side: str, embedded: Embedded, tokens: tuple[str, ...]) -> None:
    limit = symmetric_range(embedded.embedding, embedded.positional, embedded.sum)[1]
    norms = lengths(embedded)
    scale = view.translator.embedding_scale
    times = f" times {scale:.4g}" if scale != 1 else ""
    st.markdown(
        f"Layer 0 reads each token's learned embedding{times}, plus the encoding of "
        f"its position{describe_types(view.translator)}. All three maps share one colour range, −{limit:.3g} to "
        f"{limit:.3g}."
    )
    maps = sum_maps(*embedded.terms.values(), tokens, titles_of(view.translator, embedded))
    chart(maps, key="pe-sum", alt="Heat maps of the sentence: embedding, positional encoding, and their sum")
    redone = np.abs(embedded.embedding + embedded.positional - embedded.sum).max()
    st.caption(
        f"Norms of the rows: embeddings {_range_text(norms['embedding'])}, positional encodings "
        f"{_range_text(norms['positional'])}. Recomputed here, the sum differs from the model's by at most {redone:g}."
    )
    export_tab(view, f"embedded-{side}", Call(tab.embedded_arrays, view.trace, side))


def show_wavelengths(view: View, side: str, encoding: Array, rows: int) -> None:
    max_len, d_model = encoding.shape
    call = Call(tab.wave_arrays, view.translator, side)
    formula, measured = call.result["formula"], call.result["measured"]
    chosen = several(
        "Dimensions to draw as waves",
        {dimension: dimension_name(dimension) for dimension in range(d_model)},
        [d_model * part // 32 * 2 for part in (1, 3, 5, 7)],
        "waves",
        max_selections=8,
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
        "Wavelengths grow geometrically from 2π towards 10000 · 2π. The dots on the left are measured in the model's "
        "table, from the angle by which each pair rotates between positions 0 and 1; their relative error is at most "
        f"{np.abs(measured / formula - 1).max():.1e}. {slow} of the {len(formula)} pairs need more than the table's "
        f"{max_len} positions for one full period. On the right the dots are the table's values, and the lines the "
        "formula between them."
    )
    export_tab(view, "wavelengths", call)


def show_distance(view: View, side: str, encoding: Array, rows: int, learned: bool) -> None:
    """Similarity of positions: a matrix of the first `rows`, and a curve of one position with all others."""
    left, right = st.columns([1, 3])
    measure = choice("Similarity", MEASURES, "measure", place=left)
    position = slider("From position", (0, len(encoding) - 1), len(encoding) // 2, "from", place=right)
    call = Call(tab.distance_arrays, view.translator, side, measure == "cosine")
    similarities, lowest, highest = call.result.values()
    left, right = st.columns(2)
    with left:
        limit = 1.0 if measure == "cosine" else float(np.abs(similarities).max())
        figure = similarity_map(similarities[:rows, :rows], MEASURES[measure], limit)
        chart(figure, key="pe-similarity", alt=f"{MEASURES[measure]} of every two positions")
    with right:
        curve = similarity_curve(similarities, (lowest, highest), position, MEASURES[measure])
        chart(curve, key="pe-similarity-curve", alt=f"{MEASURES[measure]} of position {position} with all others")
    reason = (
        "A learned table follows no rule: the similarity of two positions need not depend on their distance alone."
        if learned
        else "sin a · sin b + cos a · cos b = cos(a − b): the similarity of two positions depends only on their "
        "distance, and decays symmetrically with ripples."
    )
    spread = (highest - lowest).max()
    st.caption(f"{reason} Between pairs of positions at the same distance it differs by at most {spread:.2g}.")
    export_tab(view, "position-similarity", call)


def show_rotation(view: View, side: str, encoding: Array) -> None:
    """PE(pos + k) = M_k PE(pos): clock hands, the blocks of M_k, one of them written out, and the largest error."""
    max_len, d_model = encoding.shape
    left, middle, right = st.columns(3)
    pos = slider("Position pos", (0, max_len // 2 - 1), min(5, max_len // 2 - 1), "pos", place=left)
    k = slider("Offset k", (1, max_len // 2), min(10, max_len // 2), "offset", place=middle)
    pair = slider("Pair i", (0, d_model // 2 - 1), d_model // 16, "pair", place=right)
    pairs = _pairs(d_model // 2, pair)
    call = Call(tab.rotation_arrays, view.translator, side, k)
    blocks, predicted = call.result.values()
    errors = np.abs(predicted - encoding[k:])
    rows = {f"PE({pos})": encoding[pos], f"PE({pos + k})": encoding[pos + k]}
    turned = {f"M<sub>{k}</sub> PE({pos})": predicted[pos]}
    wavelengths = position_table.wavelengths(d_model)
    chart(
        clock_chart(rows, turned, pairs, pair, wavelengths), key="pe-clocks", alt="Pairs of dimensions as clock hands"
    )
    st.markdown(
        f"Each pair of dimensions is the hand of a clock, and $M_{{{k}}}$ rotates each hand by a fixed angle, from "
        f"**any** position to the one {k} later: “for any fixed offset k, PE(pos+k) can be represented as a linear "
        "function of PE(pos)”, which the authors expected to make it easy to attend by relative position. For all "
        f"{max_len - k} positions and {d_model} dimensions, $M_{{{k}}}\\,PE(pos)$ and the model's own $PE(pos + {k})$ "
        f"differ by at most **{errors.max():.1e}**, single-precision rounding."
    )
    both = slice(2 * pair, 2 * pair + 2)
    st.latex(block_equation(blocks[pair], encoding[pos, both], encoding[pos + k, both], pos, k, pair))
    left, right = st.columns([5, 3])
    with left:
        chart(block_map(blocks[pairs], pairs, k), key="pe-blocks", alt="The chosen 2x2 blocks of M_k")
    by_pair = errors.max(axis=0).reshape(-1, 2).max(axis=1)
    right.dataframe(block_table(pairs, wavelengths, k, by_pair), hide_index=True)
    right.caption(
        f"$M_{{{k}}}$ has such a 2×2 block for each of the {d_model // 2} pairs and is 0 elsewhere (blank); colours "
        f"run from −1, blue, to 1, red. Its entries are row {k} of the table itself. λ is the wavelength, in "
        "positions per period. The error is the maximum over all positions."
    )
    export_tab(view, f"position-rotation-{k}", call)


def _pairs(n_pairs: int, pair: int) -> list[int]:
    """The pairs to draw: the chosen one and any others selected here."""
    label = "Pairs of dimensions to draw as well"
    return sorted({*several(label, range(n_pairs), evenly_spaced_pairs(n_pairs), "pe_pairs", max_selections=7), pair})


def _range_text(lengths: Array) -> str:
    low, high = f"{lengths.min():.2f}", f"{lengths.max():.2f}"
    return low if low == high else f"{low} to {high}"
