"""Figures of Family tree: models over the years, and two of them drawn to one scale."""

from collections.abc import Mapping, Sequence

from viz.figure import LEGEND_ABOVE, StableFigure, bar, escape, figure, text
from viz.labels import say_label
from viz.theme import OKABE_ITO

COLOURS = {
    "embedding": "#E58C94",
    "positions": "#B0545E",
    "attention": "#F0A93B",
    "feed-forward": "#58B5E1",
    "state space": OKABE_ITO[2],
    "norms": "#C9C13C",
    "output": "#9A97D6",
    "other": "#888888",
}
"""the hues of figure 1, by part"""
GAP = 0.04
"""between two models, as a share of both"""

WIDTH, LOW, HIGH = 900, 60, 420
"""pixels of a picture beside the sidebar, and between which its height follows from the scale"""

Columns = Sequence[tuple[str, Mapping[str, int]]]
"""a column each from the embedding to the output: what it is, and parameters by part"""


def to_scale(models: Mapping[str, tuple[int, Columns]]) -> StableFigure:
    """Models from their embedding to their output, drawn so that equal areas are equally many parameters.

    Every layer is a column, d_model wide; a part of it is as high as it has parameters for each of these dimensions.

    Args:
        models: title -> d_model and columns.
    """
    bars: dict[str, list[tuple[float, float, float, float, str]]] = {}
    ends: dict[str, tuple[float, float]] = {}
    widths = {title: width * len(columns) for title, (width, columns) in models.items()}
    start, gap = 0.0, GAP * sum(widths.values())
    for title, (width, columns) in models.items():
        for number, (name, parts) in enumerate(columns):
            base = 0.0
            for part, count in parts.items():
                said = say_label(f"{name}: {part}<br><b>{count:,}</b> parameters")
                about = f"{escape([title])[0]}, {said}"
                bars.setdefault(part, []).append((start + (number + 0.5) * width, base, count / width, width, about))
                base += count / width
        ends[title] = start, start + widths[title]
        start += widths[title] + gap
    traces = []
    for part in (part for part in COLOURS if part in bars):
        x, base, height, width, about = zip(*bars[part], strict=True)
        traces.append(
            bar(
                x=list(x),
                y=list(height),
                base=list(base),
                width=list(width),
                name=part,
                marker={"color": COLOURS[part], "line": {"width": 0}},
                customdata=list(about),
                hover="%{customdata}",
            )
        )
    names = [
        text(escape([title])[0], x=(left + right) / 2, y=0, yref="paper", yanchor="top", yshift=-6, xanchor="center")
        for title, (left, right) in ends.items()
    ]
    *_, (left, right) = ends.values()
    if right - left < gap:  # a name wider than its model may not leave the picture
        names[-1] |= {"x": right, "xanchor": "right"}
    top = max(base + height for some in bars.values() for _, base, height, _, _ in some)
    axis = {"visible": False, "showgrid": False, "zeroline": False, "constrain": "domain"}
    return figure(
        traces,
        {
            "xaxis": axis | {"range": [0, start - gap]},
            "yaxis": axis | {"range": [0, top], "scaleanchor": "x", "scaleratio": 1},
        },
        annotations=names,
        barmode="overlay",
        bargap=0,
        legend=LEGEND_ABOVE,
        showlegend=True,
        height=110 + round(min(max(WIDTH * top / (start - gap), LOW), HIGH)),
        margin={"l": 10, "r": 10, "t": 60, "b": 40},
    )
