"""Tokens and embeddings: the choice of side, token and dimension, and one function per tab."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis import vocabulary
from model.analysis.vocabulary import Piece
from model.checkpoints.translator import Translator
from model.needs import Need
from model.trace import Array, Embedded
from pages.compute.view import View
from pages.views.names import input_titles
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import choice, number
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz import theme
from viz.charts.positional_encoding import sum_maps
from viz.charts.tokens_and_embeddings import length_bars, neighbour_bars, sum_equation
from viz.html import describe_piece, piece_table
from viz.latex import signed

SIDES = {"encoder": "source", "decoder": "target"}
TITLES = {
    "source": "Source: the tokens that the encoder reads, their ids and UTF-8 bytes",
    "target": "Target: the tokens that the decoder reads, start token first, their ids and UTF-8 bytes",
}
HUES = {"source": theme.ENCODER, "target": theme.DECODER}
LENGTH_CHART = "tokens-lengths"
"""key of the chart whose bars are the tokens"""


@dataclass(frozen=True)
class Shown:
    """One side of the run, and the chosen token and dimension."""

    side: str
    embedded: Embedded
    tokens: tuple[str, ...]
    pieces: tuple[Piece, ...]
    groups: tuple[str, ...]
    """what each token is part of: a role in a chat, one of two texts; empty where there is only one"""
    position: int
    dimension: int

    @property
    def piece(self) -> Piece:
        return self.pieces[self.position]


def choose(view: View) -> Shown:
    """Choose side, token and dimension; values out of range are clamped."""
    trace = view.trace
    left, middle, right, _ = st.columns([2, 1, 1, 2])
    streams = {SIDES[name]: stream for name, stream in trace.streams.items()}
    side = choice("Sentence", {name: stream.label for name, stream in streams.items()}, "side", place=left)
    stream = streams[side]
    embedded, tokens, ids = stream.embedded, stream.tokens.labels, stream.tokens.ids
    last, top = len(tokens) - 1, embedded.sum.shape[-1] - 1
    position = number(f"Token, 0 to {last}", (0, last), 0, "tokens_position", place=middle)
    dimension = number(f"Dimension, 0 to {top}", (0, top), 0, "tokens_dimension", place=right)
    pieces, groups = vocabulary.spell(view.translator.tokenizer, ids), vocabulary.groups_of(stream.tokens)
    return Shown(side, embedded, tokens, pieces, groups, position, dimension)


def choose_clicked() -> None:
    """A click on a bar of the lengths chooses its token."""
    if point := clicked_point(LENGTH_CHART):
        choose_token(point["point_index"])


def choose_token(position: int) -> None:
    """Choose the token at this position."""
    st.session_state["tokens_position"] = position


def show_arithmetic(view: View, shown: Shown) -> None:
    """The arithmetic of the chosen token and dimension: embedding weight times √d_model, plus positional encoding."""
    at, piece, embedded = (shown.position, shown.dimension), shown.piece, shown.embedded
    row = vocabulary.embedding_rows(view.translator, shown.side, [piece.id])[0]
    scale = view.translator.embedding_scale
    numbers = {"weight": row[shown.dimension], "scale": scale}
    numbers |= {name: getattr(embedded, name)[at] for name in ("embedding", "positional", "sum")}
    added = r"(P + T)" if Need.ADDED_TYPES in view.translator.features else "PE" if embedded.positional.any() else ""
    st.latex(sum_equation(numbers, piece.id, *at, len(row), added))
    redone = row * np.float32(scale) + embedded.positional[shown.position]
    off = np.abs(redone - embedded.sum[shown.position]).max()
    lengths = vocabulary.lengths(embedded)
    e, p, x = (lengths[name][shown.position] for name in ("embedding", "positional", "sum"))
    positional = f"positional encoding {p:.4f}, " if added else ""
    st.caption(
        f"Recomputed from the weights, all {len(row)} dimensions agree with the model's input to within {off:g}. "
        f"Norms of the vectors: embedding {e:.4f}, {positional}input {x:.4f}."
    )


def show_neighbours(view: View, shown: Shown) -> None:
    translator, piece = view.translator, shown.piece
    similarities = vocabulary.cosines(translator, shown.side, piece.id)
    found = vocabulary.neighbours(translator.tokenizer, similarities, piece.id)
    st.text(f"Nearest neighbours of token {shown.position}, {describe_piece(piece)} (id {piece.id}):")
    bars = neighbour_bars(found, HUES[shown.side])
    chart(bars, key="tokens-neighbours", alt="The tokens whose embeddings have the largest cosine with the chosen one")
    others = np.delete(similarities, piece.id)
    st.caption(
        f"Cosine similarity of the two rows of E: the {len(found)} nearest of all {len(others):,} other tokens, whose "
        f"mean is {others.mean():.4f} and minimum {others.min():.4f}. A hyphen marks a token that continues a word. "
        "Hatched: a byte or a special token, which has no text."
    )
    export_tab(view, "neighbours", Call(tab.neighbour_arrays, view.translator, shown.side, piece.id))


def show_lengths(view: View, shown: Shown) -> None:
    lengths = vocabulary.lengths(shown.embedded)
    bars = length_bars(lengths, shown.tokens, shown.position, input_titles(view.translator, shown.embedded))
    chart(
        bars,
        key=LENGTH_CHART,
        on_select=choose_clicked,
        alt="Norms of embedding, positional encoding and input of each token",
    )
    means = {name: values.mean() for name, values in lengths.items()}
    scale = view.translator.embedding_scale
    without = (
        f"Without the factor {scale:.4g} the embeddings' would be {means['embedding'] / scale:.4f}. "
        if scale != 1
        else ""
    )
    st.caption(
        f"Mean norm over these tokens: embeddings {means['embedding']:.4f}, positional encodings "
        f"{means['positional']:.4f}, their sums {means['sum']:.4f}. {without}Click on a bar to choose its token."
    )
    export_tab(view, "embedding-lengths", Call(tab.length_arrays, view.trace, shown.side))


def show_all(view: View, shown: Shown, limits: tuple[float, float]) -> None:
    maps = sum_maps(*shown.embedded.terms.values(), shown.tokens, input_titles(view.translator, shown.embedded))
    chart(maps, key="tokens-all", alt="Heat maps of all tokens: embedding, position, input")
    st.caption(
        f"One row per token, one column per dimension; all three share one colour range, {signed(limits[0])} to "
        f"{signed(limits[1])}."
    )
    export_tab(view, f"embedded-{shown.side}", Call(tab.embedded_arrays, view.trace, shown.side))


def show_table(shown: Shown) -> None:
    st.dataframe(piece_table(shown.pieces, shown.groups), hide_index=True, width="stretch")
    st.caption(
        "token: as the vocabulary writes it, with ▁ for a space; in the other columns ␣ is a space. Everywhere else a "
        "token that begins a word is written without the space, one that continues a word with a hyphen: Kof, -fer. "
        "Bytes are in hexadecimal."
    )


def rows_of(shown: Shown) -> dict[str, Array]:
    """(d_model,) each: the chosen token's embedding, positional encoding and sum."""
    return {name: array[shown.position] for name, array in shown.embedded.terms.items()}


def input_formula(translator: Translator) -> str:
    """LaTeX of what the first layer reads."""
    config, formula = translator.config, r"x_{pos} = E_{token}"
    formula += r"\cdot\sqrt{d_{model}}" if config.scale_embeddings else ""
    adds = Need.ADDED_POSITIONS in translator.features or config.positions == "sinusoidal"
    formula += " + PE_{pos}" if adds else ""
    formula += " + T_{type}" if Need.ADDED_TYPES in translator.features else ""
    return rf"{formula},\qquad d_{{model}} = {config.d_model}"


def describe_input(translator: Translator) -> str:
    """Which of the paper's factor and positional encoding the model has."""
    scaled = "“In the embedding layers, we multiply those weights by √d_model”; "
    scaled = scaled if translator.config.scale_embeddings else "The paper's factor √d_model is left out here; "
    if Need.ADDED_POSITIONS in translator.features:
        return f"{scaled}then the encoding of the token's position is added{describe_types(translator)}."
    if translator.config.positions == "sinusoidal":
        return scaled + "then sines and cosines of the position are added, in another order than the paper's."
    instead = {
        "rope": "attention rotates queries and keys by their positions instead (RoPE)",
        "alibi": "attention lowers the scores of distant keys instead (ALiBi)",
        "relative bias": "attention adds a learned number to each score, by the distance of its tokens (T5)",
        "none": "this model knows no positions",
    }
    if translator.config.positions not in instead:
        return f"{scaled}how this model encodes positions could not be read."
    return f"{scaled}no positional encoding is added: {instead[translator.config.positions]}."


def describe_types(translator: Translator) -> str:
    """What else is added, as the end of a sentence."""
    if Need.ADDED_TYPES not in translator.features:
        return ""
    return (
        ", and the embedding of its token type: 0 in a first sentence, 1 in a second one (Devlin et al. 2019, BERT). "
        "What is called positional here is the sum of the two"
    )


def describe_sharing(translator: Translator) -> str:
    """Which matrices are one, in this model and in the paper."""
    two_texts = Need.CROSS_ATTENTION in translator.features
    if translator.config.tie_embeddings:
        readers = "Source, target" if two_texts else "The embedding"
        return (
            f"{readers} and, transposed, the output layer share one matrix: “we share the same weight matrix between "
            "the two embedding layers and the pre-softmax linear transformation”."
        )
    if two_texts:
        return "In this model source, target and output layer have a matrix each; in the paper they share one."
    return (
        "In this model the output layer has a matrix of its own; in the paper all embeddings and the output share one."
    )
