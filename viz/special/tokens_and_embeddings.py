"""Tokens and embeddings (paper, section 3.4): neighbours as bars, and the computation of one number as LaTeX."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from model.language import language, later, tr
from viz.bars import candidate_axis, candidate_bars
from viz.figure import figure
from viz.tokens import as_plotly, labels, visible

Array = np.ndarray

UNUSUAL = {"byte": later("byte"), "special": later("special"), "unknown": later("special")}
"""What follows the name of a neighbour that is not text."""


def neighbour_bars(neighbours: Sequence, hue: str) -> go.Figure:
    """The cosines of the chosen token's embedding with its nearest neighbours; hatched where they are not text.

    Args:
        neighbours: nearest first (`token`, `id`, `kind`, `cosine` each).
        hue: the bars' colour.
    """
    values = np.array([n.cosine for n in neighbours])
    names = [
        as_plotly(f"{visible(n.token)} ({tr(UNUSUAL[n.kind])})" if n.kind in UNUSUAL else label)
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
        numbers: `weight` (of the matrix E), `scale` (the root of d_model in the paper), `embedding`, `positional` and
            `sum`.
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
    mantissa = language().number(mantissa).replace(",", "{,}")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if bracketed and (text.startswith("-") or exponent) else text
