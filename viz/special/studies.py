"""Figures of our own small runs: ablations beside the paper's, and loss over size and compute."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, band, curve, figure, grid, panels, scatter, suffix, vline
from viz.forms import TALLEST
from viz.labels import say_label
from viz.theme import FAINT, GUIDE, OKABE_ITO, Array

HEAD, FOOT = 44, 56
"""pixels above and below the rows"""
TABS = 40
"""pixels that the second row of the page's tabs takes"""
OURS, PAPER, FIT = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[5]


def ablation_chart(names: Sequence[str], measures: Mapping[str, tuple[Sequence[Array], Array]]) -> go.Figure:
    """Each row's seeds beside the paper's difference, a panel for each measure.

    Args:
        names: of the rows, base first.
        measures: title -> differences from the mean of base: (seed,) of each row, and the paper's, (row,), NaN where it
            has no such row. Points beyond `_end_of_axis` stand at the edge, as triangles; hovering shows their number.
    """
    traces, bands, axes, names = [], [], {}, [say_label(name) for name in names]
    for panel, (title, (seeds, paper)) in enumerate(measures.items(), start=1):
        points = [(value, name) for name, own in zip(names, seeds, strict=True) for value in own]
        means = [own.mean() for own in seeds]
        end = _end_of_axis(means)
        there = [(value, name) for name, value in zip(names, paper, strict=True) if not np.isnan(value)]
        for values, label, look in (
            (points, "ours, a seed each", {"color": OURS, "symbol": "circle", "size": 8, "opacity": 0.6}),
            (
                list(zip(means, names, strict=True)),
                "ours, mean",
                {"symbol": "line-ns", "size": 16, "line": {"color": OURS, "width": 3}},
            ),
            (there, "the paper", {"color": PAPER, "symbol": "diamond-open", "size": 10, "line": {"width": 2}}),
        ):
            far = [abs(value) > end for value, _ in values]
            symbols = [
                ("triangle-right" if v > 0 else "triangle-left") if f else look["symbol"]
                for (v, _), f in zip(values, far, strict=True)
            ]
            traces.append(
                scatter(
                    x=[min(max(value, -end), end) for value, _ in values],
                    customdata=[value for value, _ in values],
                    y=[name for _, name in values],
                    name=label,
                    mode="markers",
                    marker=look | {"symbol": symbols},
                    panel=panel,
                    legendgroup=label,
                    showlegend=panel == 1,
                    hover=f"%{{y}}<br>{label}: <b>%{{customdata:+.2f}}</b> {title}",
                )
            )
        axes |= {f"xaxis{suffix(panel)}": {"title": title, "range": [-1.04 * end, 1.04 * end]}}
        bands += [band(float(min(seeds[0])), float(max(seeds[0])), FAINT, panel), vline(0, panel, dash="solid")]
    return figure(
        traces,
        grid(1, len(measures), shared_yaxes=True, horizontal_spacing=0.04),
        axes,
        panels("yaxis", range(1, len(measures) + 1), {"autorange": "reversed", "showgrid": True}),
        shapes=bands,
        height=HEAD + min(34 * len(names), TALLEST - TABS - HEAD - FOOT) + FOOT,
        margin={"t": HEAD, "b": FOOT},
        legend=LEGEND_ABOVE,
    )


def _end_of_axis(means: Sequence[float]) -> float:
    """A little more than the largest of the means that are at most forty times their median.

    A run that learned nothing must not squeeze all others together.
    """
    sizes = np.abs(means)
    return float(1.15 * sizes[sizes <= 40 * max(np.median(sizes), 1e-9)].max(initial=1e-9))


def scaling_chart(
    runs: Sequence[str],
    sizes: Array,
    losses: Array,
    curves: Sequence[tuple[Array, Array]],
    lines: Mapping[str, tuple[Array, Array]],
) -> go.Figure:
    """Loss over parameters, with the fitted lines, and over training compute, both axes logarithmic.

    Args:
        runs: names.
        sizes: (run,) non-embedding parameters.
        losses: (run,) at the end, nats per piece.
        curves: compute and loss at each evaluation, of each run.
        lines: name -> parameters and loss; the first is the fit, drawn solid.
    """
    colours = [OKABE_ITO[i % len(OKABE_ITO)] for i in range(len(runs))]
    hover = "<b>%{y:.4g}</b> nats per piece<br>%{x:.3s} "
    drawn = [
        curve(x, y, name, FIT if n == 0 else GUIDE, dash=("solid", "dot", "dot", "dash")[n], hover=f"{name}")
        for n, (name, (x, y)) in enumerate(lines.items())
    ]
    drawn.append(
        scatter(
            x=sizes,
            y=losses,
            name="end of a run",
            mode="markers+text",
            text=list(runs),
            textposition=["top right"] * (len(runs) - 1) + ["bottom left"],
            marker={"color": colours, "size": 10},
            showlegend=False,
            hover=hover + "parameters<br>%{text}",
        )
    )
    drawn += [
        curve(x, y, name, colour, panel=2, symbol="circle", showlegend=False, hover=f"{hover}operations<br>{name}")
        for name, colour, (x, y) in zip(runs, colours, curves, strict=True)
    ]
    log = {"type": "log", "showgrid": True, "exponentformat": "power", "dtick": 1}
    return figure(
        drawn,
        grid(1, 2, shared_yaxes=True, horizontal_spacing=0.05),
        {"xaxis": log | {"title": "parameters without embeddings"}},
        {"xaxis2": log | {"title": "training compute so far, floating-point operations"}},
        panels("yaxis", (1, 2), {"type": "log", "dtick": "D1"}),
        {"yaxis": {"title": "development loss, nats per piece"}},
        height=440,
        margin={"t": 80},
        legend=LEGEND_ABOVE,
    )
