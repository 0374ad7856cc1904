"""One token's way into the model (paper, sections 3.4, 3.5): three strips, lengths, neighbours, and the arithmetic."""

import html
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import OKABE_ITO, SIGNED, flat_bar, layout
from viz.tokens import labels, ticks, visible

Array = np.ndarray

PARTS = {
    "embedding": "embedding × √d_model",
    "positional": "+ positional encoding",
    "sum": "= input of layer 0",
}
"""What is added up, by the Trace's names."""
COLOURS = {"embedding": OKABE_ITO[3], "positional": OKABE_ITO[7], "sum": OKABE_ITO[2]}
MARK = "#7f7f7f"
"""Seen on white and on black."""
VALUE = "%{z:.7g}"
"""How hovering writes a number: all the digits that single precision has."""
UNUSUAL = {"byte": "byte", "special": "special", "unknown": "special"}
"""What stands after the name of a neighbour that is no text."""


def strips(rows: Mapping[str, Array], name: str, dimension: int, limits: tuple[float, float]) -> go.Figure:
    """The three vectors of one token, one above the other, in one colour range.

    Args:
        rows: (d_model,) each, by the names of PARTS.
        name: of the token, plain text.
        dimension: the one to frame.
        limits: of the colours, stated on the colour bar.
    """
    z = np.stack([rows[part] for part in PARTS]).astype(np.float32)
    draft = Draft().add_heatmap(
        z=z,
        y=list(PARTS.values()),
        ygap=6,
        coloraxis="coloraxis",
        hovertemplate=f"<b>{VALUE}</b><br>%{{y}}<br>dimension %{{x}}<extra></extra>",
    )
    steps = np.linspace(*limits, 3)
    bar = flat_bar("value") | {"tickvals": steps, "ticktext": [signed(step) for step in steps]}
    draft.update_layout(coloraxis={"colorscale": SIGNED, "cmin": limits[0], "cmax": limits[1], "colorbar": bar})
    frame = {"x0": dimension - 0.5, "x1": dimension + 0.5, "y0": -0.5, "y1": len(PARTS) - 0.5}
    draft.add_shape(type="rect", **frame, line={"color": MARK, "width": 2})
    layout(draft, 300, f"dimension of the token “{html.escape(name)}”", "")
    draft.update_layout(margin={"t": 70, "l": 105})
    draft.update_xaxes(showgrid=False, zeroline=False)
    wrapped = ["<br>".join(textwrap.wrap(title, 13)) for title in PARTS.values()]
    draft.update_yaxes(tickvals=[*PARTS.values()], ticktext=wrapped)
    return draft.update_yaxes(autorange="reversed", showgrid=False, zeroline=False).figure()


def length_bars(lengths: Mapping[str, Array], tokens: Sequence[str], chosen: int) -> go.Figure:
    """Bars, three a token: Euclidean lengths of embedding, positional encoding and their sum.

    Args:
        lengths: (position,) each, by the names of PARTS.
        tokens: pieces.
        chosen: the position to emphasise.
    """
    positions = np.arange(len(tokens))
    names = [html.escape(name) for name in labels(tokens)]
    draft = Draft()
    for name, title in PARTS.items():
        draft.add_bar(
            x=positions,
            y=lengths[name],
            name=title,
            customdata=names,
            marker={"color": COLOURS[name], "opacity": np.where(positions == chosen, 1.0, 0.5)},
            hovertemplate=f"<b>%{{y:.6f}}</b><br>{title}<br>position %{{x}}: %{{customdata}}<extra></extra>",
            selected={"marker": {"opacity": 1.0}},
            unselected={"marker": {"opacity": 0.5}},
        )
    shown, text = ticks(tokens)
    layout(draft, 340, "token", "length (Euclidean norm)")
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.update_xaxes(tickvals=shown, ticktext=text, showgrid=False).figure()


def neighbour_bars(neighbours: Sequence, hue: str) -> go.Figure:
    """Bars: cosine of the chosen token's embedding with the nearest others; hatched where they are no text.

    Args:
        neighbours: nearest first (`token`, `id`, `kind`, `cosine` each).
        hue: the bars' colour.
    """
    values = np.array([n.cosine for n in neighbours])
    names = [
        visible(n.token) + f" ({UNUSUAL[n.kind]})" if n.kind in UNUSUAL else label
        for n, label in zip(neighbours, labels([n.token for n in neighbours]), strict=True)
    ]
    marked = [html.escape(name) for name in names]
    order = np.arange(len(neighbours))
    draft = Draft().add_bar(
        x=values,
        y=order,
        orientation="h",
        customdata=[f"{name}, id {n.id}" for name, n in zip(marked, neighbours, strict=True)],
        text=[f"{value:.4f}" for value in values],
        textposition="outside",
        cliponaxis=False,
        marker={"color": hue, "pattern": {"shape": ["/" if n.kind in UNUSUAL else "" for n in neighbours]}},
        hovertemplate="<b>%{x:.9f}</b><br>%{customdata}<extra></extra>",
    )
    draft.update_yaxes(tickvals=order, ticktext=marked, autorange="reversed", showgrid=False)
    draft.update_xaxes(range=[min(0.0, float(values.min(initial=0.0)) * 1.15), 1.15], tickvals=[-1, -0.5, 0, 0.5, 1])
    return layout(draft, 90 + 26 * len(names), "cosine, −1 to 1", "").figure()


def sum_equation(numbers: Mapping[str, float], token_id: int, position: int, dimension: int, d_model: int) -> str:
    """LaTeX: one cell of the strips worked out.

    Args:
        numbers: `weight` (of the matrix E), `scale` (the root of d_model), and those of PARTS.
        token_id: the row of E.
        position: the row of the positional encoding.
        dimension: the column of both.
        d_model: what the root is taken of.
    """
    n = {name: number(value, bracketed=name != "sum") for name, value in numbers.items()}
    return (
        rf"\begin{{aligned}} x_{{{dimension}}} &= E_{{{token_id},\,{dimension}}}\cdot\sqrt{{{d_model}}} "
        rf"+ PE_{{{position},\,{dimension}}} \\ &= {n['weight']} \cdot {n['scale']} + {n['positional']} \\ "
        rf"&= {n['embedding']} + {n['positional']} = \mathbf{{{n['sum']}}} \end{{aligned}}"
    )


def signed(value: float) -> str:
    """A limit of the colours in three digits, with a true minus sign: "−4.5"."""
    return f"{value:.3g}".replace("-", "−")


def number(value: float, bracketed: bool = True) -> str:
    """LaTeX of a number with the seven digits of single precision, in brackets where it is not the first."""
    mantissa, _, exponent = f"{float(value):.7g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if bracketed and (text.startswith("-") or exponent) else text
