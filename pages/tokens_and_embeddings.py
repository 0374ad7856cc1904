"""Tokens and embeddings: how a sentence is split into tokens, and the vectors that the first layers read for them."""

import streamlit as st

from model.analysis import vocabulary
from model.checkpoints.tokenizer import Tokenizer
from model.network.embedding import InputEmbedding
from pages.frame.open_page import open_page
from pages.parts import tokens_and_embeddings as parts
from pages.views.names import input_titles
from pages.widgets.canvas import token_chips
from pages.widgets.chart import chart
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.tokens_and_embeddings import sum_strips
from viz.html import describe_piece, piece_boxes, piece_table
from viz.latex import signed
from viz.theme import symmetric_range

view = open_page(__file__)
config = view.translator.config
shown = parts.choose(view)
token_chips(
    piece_boxes(parts.TITLES[shown.side], shown.pieces, parts.HUES[shown.side], shown.position, shown.groups),
    "token-chips",
    parts.choose_token,
)

limits = symmetric_range(*shown.embedded.terms.values())
titles = input_titles(view.translator, shown.embedded)
figure = sum_strips(parts.rows_of(shown), describe_piece(shown.piece), shown.dimension, limits, titles)
st.caption(
    f"The token's {config.d_model} numbers in its embedding, its positional encoding and their sum. Colours run from "
    f"{signed(limits[0])} to {signed(limits[1])}, the largest magnitude in this sentence. The frame marks the chosen "
    "dimension."
)
chart(figure, key="tokens-strips", alt="Embedding, positional encoding and their sum for the chosen token")
parts.show_arithmetic(view, shown)

tabs(
    {
        "Neighbours": lambda: parts.show_neighbours(view, shown),
        "Lengths": lambda: parts.show_lengths(view, shown),
        "All tokens": lambda: parts.show_all(view, shown, limits),
        "Pieces and bytes": lambda: parts.show_table(shown),
    },
    "tokens_tab",
)

explain(
    "**E** has one row of d_model learned numbers for each token of the vocabulary. "
    f"{parts.describe_sharing(view.translator)} {parts.describe_input(view.translator)}",
    latex=parts.input_formula(view.translator),
    section="3.4",
)
show_code(Tokenizer.encode, vocabulary.spell, InputEmbedding, vocabulary.cosines, vocabulary.neighbours)
export(
    view,
    "tokens-and-embeddings",
    Call(vocabulary.embedding_arrays, view.translator, view.trace, shown.side, shown.position),
    piece_table(shown.pieces, shown.groups),
    (Picture("The chosen token", "tokens-strips", figure),),
)
proof_strip(view)
