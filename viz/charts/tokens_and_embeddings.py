"""Figures of Tokens and embeddings (paper, sections 3.4, 3.5): vectors of one token, lengths, neighbours, the sum."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import candidate_axis, candidate_bars, position_bars
from viz.charts.positional_encoding import PARTS
from viz.figure import LEGEND_ABOVE, figure
from viz.heatmap import vector_strips
from viz.theme import OKABE_ITO
from viz.tokens import as_plotly, labels, token_ticks, visible

Array = np.ndarray

COLOURS = {"embedding": OKABE_ITO[3], "positional": OKABE_ITO[7], "sum": OKABE_ITO[2]}
UNUSUAL = {"byte": "byte", "special": "special", "unknown": "special"}
"""What follows the name of a neighbour that is not text."""


def sum_strips(
    rows: Mapping[str, Array],
    name: str,
    dimension: int,
    limits: tuple[float, float],
    titles: Mapping[str, str] = PARTS,
) -> go.Figure:
    """Embedding, positional encoding and input of one token, one above the other in one colour range.

    Args:
        rows: (d_model,) each, by the names of PARTS.
        name: of the token, plain text.
        dimension: the one to frame.
        limits: colour range, stated on the colour bar.
        titles: of the rows, by the same names, from `sum_titles`.
    """
    vectors = {title: rows[part] for part, title in titles.items()}
    return vector_strips(vectors, dimension, limits, f"dimension of the token “{as_plotly(name)}”", 300)


def length_bars(
    lengths: Mapping[str, Array], tokens: Sequence[str], chosen: int, titles: Mapping[str, str] = PARTS
) -> go.Figure:
    """The Euclidean lengths of embedding, positional encoding and their sum, three bars for each token.

    Args:
        lengths: (position,) each, by the names of PARTS.
        tokens: pieces.
        chosen: the position to emphasise.
        titles: of the bars, by the same names, from `sum_titles`.
    """
    opacity = np.where(np.arange(len(tokens)) == chosen, 1.0, 0.5)
    return figure(
        [
            position_bars(
                labels(tokens),
                lengths[part],
                title,
                {"color": COLOURS[part], "opacity": opacity},
                selected={"marker": {"opacity": 1.0}},
                unselected={"marker": {"opacity": 0.5}},
            )
            for part, title in titles.items()
        ],
        height=340,
        legend=LEGEND_ABOVE,
        xaxis=token_ticks(tokens) | {"title": "token"},
        yaxis={"title": "length (Euclidean norm)"},
    )


def neighbour_bars(neighbours: Sequence, hue: str) -> go.Figure:
    """The cosines of the chosen token's embedding with its nearest neighbours; hatched where they are not text.

    Args:
        neighbours: nearest first (`token`, `id`, `kind`, `cosine` each).
        hue: the bars' colour.
    """
    values = np.array([n.cosine for n in neighbours])
    names = [
        as_plotly(visible(n.token) + f" ({UNUSUAL[n.kind]})" if n.kind in UNUSUAL else label)
        for n, label in zip(neighbours, labels([n.token for n in neighbours]), strict=True)
    ]
    marker = {"color": hue, "pattern": {"shape": ["/" if n.kind in UNUSUAL else "" for n in neighbours]}}
    return figure(
        [
            candidate_bars(
                names,
                values,
                "cosine",
                marker,
                ".4f",
                customdata=[f"{name}, id {n.id}" for name, n in zip(names, neighbours, strict=True)],
            )
        ],
        height=90 + 26 * len(names),
        xaxis={
            "title": "cosine, −1 to 1",
            "range": [min(0.0, float(values.min(initial=0.0)) * 1.15), 1.15],
            "tickvals": [-1, -0.5, 0, 0.5, 1],
        },
        yaxis=candidate_axis(names),
    )


def sum_equation(
    numbers: Mapping[str, float], token_id: int, position: int, dimension: int, d_model: int, added: str = "PE"
) -> str:
    """LaTeX: the computation of one dimension of the input.

    Args:
        numbers: `weight` (of the matrix E), `scale` (the root of d_model in the paper), and those of PARTS.
        token_id: row of E.
        position: row of the positional encoding.
        dimension: column of both.
        d_model: the number under the root.
        added: symbol of what is added for the position; empty where nothing is.
    """
    n = {name: equation_number(value, bracketed=name != "sum") for name, value in numbers.items()}
    factor, product = "", ""
    symbol, value = (rf" + {added}_{{{position},\,{dimension}}}", f" + {n['positional']}") if added else ("", "")
    if numbers["scale"] != 1:
        paper = np.isclose(numbers["scale"], d_model**0.5)
        factor = rf"\cdot\sqrt{{{d_model}}}" if paper else rf"\cdot {n['scale']}"
        product = rf"\\ &= {n['weight']} \cdot {n['scale']}{value} "
    total = rf"\\ &= {n['embedding']}{value} " if value else ""
    return (
        rf"\begin{{aligned}} x_{{{dimension}}} &= E_{{{token_id},\,{dimension}}}{factor}{symbol} {product}{total}"
        rf"= \mathbf{{{n['sum']}}} \end{{aligned}}"
    )


def equation_number(value: float, bracketed: bool = True) -> str:
    """The seven digits of single precision, in brackets where a sign or a power would be misread."""
    mantissa, _, exponent = f"{float(value):.7g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if bracketed and (text.startswith("-") or exponent) else text
