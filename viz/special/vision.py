"""An image of a few pixels with its patches, each shaded by the attention weight that reads it."""

import numpy as np
import plotly.graph_objects as go

from viz.figure import figure, heatmap, text
from viz.heatmap import colour_axis
from viz.theme import CHOSEN, OKABE_ITO, Array


def read_patches(image: Array, weights: Array, chosen: int) -> go.Figure:
    """The image in grey; over each patch its weight, as a number and as how much orange it has; one patch framed.

    Args:
        image: (row, column), 0 white to 1 black.
        weights: (patch row, patch column).
        chosen: number of a patch, row by row.
    """
    side, largest = image.shape[0] // weights.shape[0], max(float(weights.max()), 1e-9)
    shapes, words = [], []
    for number, (row, column) in enumerate(np.ndindex(weights.shape)):
        weight, x, y = float(weights[row, column]), column * side - 0.5, row * side - 0.5
        line = {"color": CHOSEN, "width": 3} if number == chosen else {"color": "#888888", "width": 1}
        place = {"x0": x, "x1": x + side, "y0": y, "y1": y + side, "xref": "x", "yref": "y", "line": line}
        shapes.append({"type": "rect", "fillcolor": OKABE_ITO[1], "opacity": 0.65 * weight / largest} | place)
        shapes.append({"type": "rect", "fillcolor": "rgba(0,0,0,0)"} | place)
        look = {"bgcolor": "rgba(255,255,255,0.85)", "font": {"size": 12, "color": "#000000"}, "borderpad": 1}
        words.append(text(f"{weight:.2f}", x=x + side / 2, y=y + side / 2, xref="x", yref="y", **look))
    hidden = {"showticklabels": False, "showgrid": False, "zeroline": False}
    pixels = heatmap(z=image, coloraxis="coloraxis", hover="pixel %{y}, %{x}<br>ink <b>%{z:.3f}</b>")
    return figure(
        [pixels],
        {"coloraxis": colour_axis([[0, "#ffffff"], [1, "#000000"]], 0, 1, "ink<br>0 to 1")},
        {"xaxis": hidden | {"constrain": "domain"}, "yaxis": hidden | {"autorange": "reversed", "scaleanchor": "x"}},
        shapes=shapes,
        annotations=words,
        height=420,
        margin={"t": 20, "l": 20, "b": 20},
    )
