"""Tokens and embeddings: how a text is split into tokens, and the vectors that the first layer reads for them."""

import math
from collections.abc import Sequence

import numpy as np

from model.analysis.stream import vocabulary
from model.analysis.stream.vocabulary import Piece
from model.checkpoints.tokenizer import Tokenizer
from model.language import later, sentence, tr
from model.needs import Need
from model.network.embedding import InputEmbedding
from model.run import Run
from model.trace import Stream
from pages.text import names_in
from pages.views import Result, answer, view
from pages.views.chosen_token import row_in
from pages.views.controls import choice, number
from pages.views.shared import follows_formula, input_titles
from viz import theme
from viz.candidates import Candidates
from viz.drawing import Drawing
from viz.forms import Bars, Canvas, Mark
from viz.heatmap import vector_strips
from viz.html import describe_piece, piece_boxes, piece_table
from viz.special.positional_encoding import VectorMaps
from viz.special.tokens_and_embeddings import sum_equation
from viz.tokens import as_plotly, labels, visible

SIDES = {"encoder": "source", "decoder": "target"}
HUES = {"source": theme.ENCODER, "target": theme.DECODER}
READERS = names_in("readers")
"""label of a stream -> what its chips are"""


def _stream(run: Run, side: str) -> Stream:
    return next(stream for name, stream in run.trace.streams.items() if SIDES[name] == side)


def _pieces(run: Run, side: str) -> tuple[Piece, ...]:
    return vocabulary.spell(run.opened.tokenizer, _stream(run, side).tokens.ids)


SIDE = choice(
    "Sentence", lambda run: {SIDES[name]: tr(stream.label) for name, stream in run.trace.streams.items()}, key="side"
)


def _chosen(run: Run, side: str) -> int:
    """The chosen token; a row of the decoder is about the one that it predicts, which the next row reads."""
    stream = _stream(run, side)
    return min(row_in(run, stream.name) + (stream.following is not None), len(stream.tokens) - 1)


POSITION = number(
    "Token, {0} to {1}",
    lambda run, side: (0, len(_stream(run, side).tokens) - 1),
    _chosen,
    key="tokens_position",
    follows=True,
)
DIMENSION = number(
    "Dimension, {0} to {1}",
    lambda run, side: (0, _stream(run, side).embedded.sum.shape[-1] - 1),
    key="tokens_dimension",
)


@view("Tokens and vectors", code=(Tokenizer.encode, vocabulary.spell, InputEmbedding))
def tokens(run: Run, side: str = SIDE, position: int = POSITION, dimension: int = DIMENSION) -> Result:
    """The tokens, and the vector that the model reads for one of them: embedding plus positional encoding."""
    opened, stream = run.opened, _stream(run, side)
    embedded, pieces, groups = stream.embedded, _pieces(run, side), vocabulary.groups_of(stream.tokens)
    facts = {"text": sentence(stream.label), "tokens": sentence(READERS[stream.label])}
    title = sentence("{text}: {tokens}, their ids and UTF-8 bytes", **facts)
    typed = vocabulary.typed_as(stream.tokens, pieces)
    chips = piece_boxes(title, pieces, HUES[side], position, groups, typed)
    limits, name = theme.symmetric_range(*embedded.terms.values()), as_plotly(tr(describe_piece(pieces[position])))
    vectors = {title: embedded.terms[part][position] for part, title in input_titles(opened, embedded).items()}
    rows = vocabulary.embedding_rows(opened, side, stream.tokens.ids)
    axis = sentence("dimension of the token “{name}”", name=name)
    return Result(
        {
            "chips": Canvas(Drawing("chips", {"html": chips}), {"pick": POSITION}),
            "strips": vector_strips(vectors, dimension, limits, axis, 300),
        },
        {
            "high": limits[1],
            "lengths": {part: values[position] for part, values in vocabulary.lengths(embedded).items()},
            **_arithmetic(run, stream, rows, position, dimension),
            **_matrices(run),
        },
        {"ids": np.array(stream.tokens.ids), "embedding_rows": rows, **embedded.terms},
    )


def _arithmetic(run: Run, stream: Stream, rows: np.ndarray, position: int, dimension: int) -> dict[str, object]:
    """Facts about one dimension, and how well all of them agree: a row of E times its factor, plus the position."""
    scale, embedded, at = run.opened.embedding_scale, stream.embedded, (position, dimension)
    adds = bool(embedded.positional.any())
    symbol = "(P + T)" if Need.ADDED_TYPES in run.opened.features else "PE" if adds else ""
    numbers = {"weight": rows[at], "scale": scale} | {part: values[at] for part, values in embedded.terms.items()}
    redone = rows[position] * np.float32(scale) + embedded.positional[position]
    return {
        "equation": sum_equation(numbers, stream.tokens.ids[position], *at, rows.shape[-1], symbol),
        "adds": bool(symbol),
        "dimensions": rows.shape[-1],
        "apart": np.abs(redone - embedded.sum[position]).max(),
    }


def _matrices(run: Run) -> dict[str, object]:
    """Facts about what the model has of the paper's sections 3.4 and 3.5."""
    config, features, scale = run.opened.config, run.opened.features, run.opened.embedding_scale
    return {
        "two_texts": Need.CROSS_ATTENTION in features,
        "scale": scale,
        "root": math.isclose(scale, math.sqrt(config.d_model), rel_tol=1e-5),
        "table": Need.ADDED_POSITIONS in features,
        "types": Need.ADDED_TYPES in features,
    }


UNUSUAL = {"byte": later("byte"), "special": later("special"), "unknown": later("special")}
"""What follows the name of a neighbour that is not text."""


def _cosines(neighbours: Sequence[vocabulary.Neighbour], hue: str) -> Candidates:
    """Of the nearest neighbours; hatched where they are not text."""
    values = np.array([one.cosine for one in neighbours])
    names = [
        f"{visible(one.token)} ({tr(UNUSUAL[one.kind])})" if one.kind in UNUSUAL else label
        for one, label in zip(neighbours, labels([one.token for one in neighbours]), strict=True)
    ]
    ends = [min(0.0, float(values.min(initial=0.0)) * 1.15), 1.15]
    return Candidates(
        names=names,
        series={"cosine": values},
        markers=[{"color": hue, "pattern": {"shape": ["/" if one.kind in UNUSUAL else "" for one in neighbours]}}],
        title="cosine, −1 to 1",
        number=".4f",
        explained=[f"{name}, id {one.id}" for name, one in zip(names, neighbours, strict=True)],
        layout={"xaxis": {"range": ends, "tickvals": [-1, -0.5, 0, 0.5, 1], "tickformat": ""}},
    )


@view("Neighbours", code=(vocabulary.cosines, vocabulary.neighbours))
def neighbours(run: Run, side: str = SIDE, position: int = POSITION) -> Result:
    """The tokens of the vocabulary whose embeddings point most nearly the same way."""
    piece = _pieces(run, side)[position]
    similarities = run.compute(vocabulary.cosines, run.opened, side, piece.id)
    nearest = vocabulary.neighbours(run.opened.tokenizer, similarities, piece.id)
    others = np.delete(similarities, piece.id)
    return Result(
        {"neighbours": _cosines(nearest, HUES[side])},
        {
            "piece": describe_piece(piece),
            "id": piece.id,
            "count": len(nearest),
            "others": len(others),
            "mean": others.mean(),
            "least": others.min(),
        },
        {name: np.array([getattr(one, name) for one in nearest]) for name in ("token", "id", "cosine")}
        | {"cosines": similarities},
    )


@view("Lengths", code=(vocabulary.lengths,))
def lengths(run: Run, side: str = SIDE, position: int = POSITION) -> Result:
    """How long the vectors of each token are; a click on a bar chooses its token."""
    stream = _stream(run, side)
    norms, titles = vocabulary.lengths(stream.embedded), input_titles(run.opened, stream.embedded)
    bars = Bars(
        labels(stream.tokens.labels),
        {title: norms[part] for part, title in titles.items()},
        ("token", "length (Euclidean norm)"),
        colours=[theme.OKABE_ITO[3], theme.OKABE_ITO[7], theme.OKABE_ITO[2]],
        height=340,
        marks=[Mark(x=position - 0.5, to=position + 0.5)],
        sets={"place": POSITION},
    )
    facts = {"means": {part: values.mean() for part, values in norms.items()}, "scale": run.opened.embedding_scale}
    return Result({"lengths": bars}, facts)


@view("All tokens", code=(InputEmbedding.forward,))
def all_tokens(run: Run, side: str = SIDE) -> Result:
    """Embedding, positional encoding and their sum, for all tokens."""
    stream = _stream(run, side)
    terms, titles = stream.embedded.terms, input_titles(run.opened, stream.embedded)
    maps = dict(zip(titles.values(), terms.values(), strict=True))
    picture = VectorMaps(maps=maps, tokens=stream.tokens.labels, waves=follows_formula(run))
    facts = {"high": picture.limits[1], "beyond": picture.beyond, "waves": picture.waves}
    return Result({"all": picture.draw()}, facts, terms)


@view("Pieces and bytes", code=(vocabulary.spell,))
def pieces(run: Run, side: str = SIDE) -> Result:
    """What each token spells, and its bytes."""
    groups = vocabulary.groups_of(_stream(run, side).tokens)
    return Result({"pieces": piece_table(_pieces(run, side), groups)})


@answer
def one_line(run: Run) -> Result:
    """Words, tokens, and the size of the vector behind each."""
    stream = next(iter(run.trace.streams.values()))
    width = stream.embedded.embedding.shape[-1]
    return Result(facts={"words": len(run.trace.source.split()), "tokens": len(stream.tokens), "width": width})
