"""Positional encoding: what the model adds to its embeddings or does in its attention, and runs without it."""

from model.analysis import position_table, run_positions
from model.analysis.rope import rope, rope_scores
from model.analysis.word_order import run_both_orders, without_positions
from model.network.embedding import InputEmbedding, sinusoids
from model.network.masks import alibi_bias, alibi_slopes
from model.network.rotary import rotate, rotation
from pages.frame.open_page import open_page
from pages.parts.positional_encoding import show_table
from pages.parts.run_positions import show_scheme
from pages.widgets.explain import show_code
from pages.widgets.export import export
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
added = view.translator.positional_encoding() is not None
call, numbers, picture = show_table(view) if added else show_scheme(view)
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
    run_positions.rotated_head,
    run_positions.shifted_scores,
    run_positions.biased_head,
    without_positions,
    run_both_orders,
)
export(view, "positional-encoding", call, numbers, (picture,))
proof_strip(view)
