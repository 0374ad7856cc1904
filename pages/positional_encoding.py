"""Positional encoding: the table that the model adds to its embeddings, and what is in it."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from model import positions
from model.layers import InputEmbedding, sinusoids
from model.trace import Array
from pages.components.chart import chart
from pages.components.explain import explain, show_code
from pages.components.export import export
from pages.components.frame import View, open_page
from pages.components.positions import (
    KEPT,
    kept_slider,
    show_beside,
    show_distance,
    show_rotation,
    show_sentence,
    show_wavelengths,
)
from pages.components.proof import proof_strip
from viz.positions import dimension_name, table_map
from viz.theme import symmetric_range

SIDES = {"source": "Source", "target": "Target"}


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


def sections(view: View, encoding: Array, rows: int, side: str) -> dict[str, Callable[[], None]]:
    """The tabs below the table."""
    trace, learned = view.trace, view.translator.model.config.positions == "learned"
    embedded, tokens = {
        "source": (trace.src_embedded, trace.src_tokens),
        "target": (trace.tgt_embedded, trace.tgt_tokens),
    }[side]
    found = {"Your sentence": lambda: show_sentence(embedded, tokens)}
    if learned:
        found["Beside the sinusoids"] = lambda: show_beside(encoding[:rows])
    else:
        found["Wavelengths"] = lambda: show_wavelengths(encoding, rows)
    found["Distance"] = lambda: show_distance(encoding, rows, learned)
    if not learned:
        found["Rotation"] = lambda: show_rotation(encoding)
    return found


view = open_page(__file__)
config = view.translator.model.config
learned = config.positions == "learned"
shown, columns, side = controls(config.max_len, config.d_model)
encoding = view.translator.positional_encoding(side)
table = encoding[:shown, :columns]
wavelengths = None if learned else positions.wavelengths(config.d_model)
limits = symmetric_range(encoding) if learned else (-1.0, 1.0)
tokens = view.trace.src_tokens if side == "source" else view.trace.tgt_tokens

figure = table_map(table, wavelengths, len(tokens), limits)
chart(figure, key="pe-table", alt="Heat map of the positional encoding: a row a position, a column a dimension.")
show_formula(learned, config.d_model)
views = sections(view, encoding, shown, side)
for tab, show in zip(st.tabs(list(views), key="tab", bind="query-params"), views.values(), strict=True):
    if tab.open:
        with tab:
            show()
show_code(sinusoids, InputEmbedding, positions.measured_wavelengths, positions.similarity, positions.rotated)
embedded = view.trace.src_embedded if side == "source" else view.trace.tgt_embedded
export(
    view,
    "positional-encoding",
    {"positional_encoding": encoding, **{f"{side}_{name}": array for name, array in vars(embedded).items()}},
    pd.DataFrame(table, columns=[dimension_name(j, learned) for j in range(columns)])
    .rename_axis("position")
    .reset_index(),
    figure,
)
proof_strip(view)
