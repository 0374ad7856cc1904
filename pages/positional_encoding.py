"""Positional encoding: the table that the model adds to its embeddings, its properties, and runs without it."""

import pandas as pd

from model.analysis import position_table
from model.analysis.rope import rope, rope_scores
from model.analysis.view_arrays import position_arrays
from model.analysis.word_order import run_both_orders, without_positions
from model.network.embedding import InputEmbedding, sinusoids
from model.network.masks import alibi_bias, alibi_slopes
from model.network.rotary import rotate, rotation
from pages.frame.open_page import open_page
from pages.parts import positional_encoding as parts
from pages.parts.position_schemes import show_schemes
from pages.parts.word_order import show_order
from pages.widgets.chart import chart
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.positional_encoding import dimension_name, table_map
from viz.theme import symmetric_range

SINUSOIDAL = {"Wavelengths", "Rotation"}
"""tabs that a learned table has no use for"""

view = open_page(__file__)
config = view.translator.config
learned = config.positions == "learned"
shown, columns, side = parts.choose_table(config.max_len, config.d_model)
encoding = view.translator.positional_encoding(side)
table = encoding[:shown, :columns]
wavelengths = None if learned else position_table.wavelengths(config.d_model)
embedded, tokens = (
    (view.trace.src_embedded, view.trace.src_tokens)
    if side == "source" and view.trace.src_embedded
    else (view.trace.tgt_embedded, view.trace.tgt_tokens)
)

figure = table_map(table, wavelengths, len(embedded.sum), symmetric_range(encoding) if learned else (-1.0, 1.0))
chart(
    figure, key="pe-table", alt="Heat map of the positional encoding: one row per position, one column per dimension."
)
parts.show_formula(learned, config.d_model)
views = {
    "Your sentence": lambda: parts.show_sentence(view, side, embedded, tokens),
    "Wavelengths": lambda: parts.show_wavelengths(view, side, encoding, shown),
    "Distance": lambda: parts.show_distance(view, side, encoding, shown, learned),
    "Rotation": lambda: parts.show_rotation(view, side, encoding),
    "Learned, RoPE, ALiBi": lambda: show_schemes(view, encoding, shown),
    "Word order": lambda: show_order(view),
}
left_out = (SINUSOIDAL if learned else set()) | (
    {"Word order"} if "a decoder" not in view.translator.features else set()
)
tabs({name: show for name, show in views.items() if name not in left_out}, "part")
show_code(
    sinusoids,
    InputEmbedding,
    position_table.wavelengths_in,
    position_table.similarity,
    position_table.rotate,
    rotation,
    rotate,
    rope,
    rope_scores,
    alibi_slopes,
    alibi_bias,
    without_positions,
    run_both_orders,
)
names = [dimension_name(j, learned) for j in range(columns)]
numbers = pd.DataFrame(table, columns=names).rename_axis("position").reset_index()
export(
    view,
    "positional-encoding",
    Call(position_arrays, view.translator, view.trace, side),
    numbers,
    (Picture("The table", "pe-table", figure),),
)
proof_strip(view)
