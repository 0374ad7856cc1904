"""Figures of head importance: how ablating each head changes log p, and the curve as more heads are ablated."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import INVISIBLE, LEGEND_ABOVE, NO_GRID, figure, frame, grid, heatmap, scatter, suffix, text, vline
from viz.latex import signed
from viz.theme import CHOSEN, GUIDE, OKABE_ITO, SIGNED, symmetric_range

Array = np.ndarray
Head = tuple[str, int, int]
"""kind, layer, head"""

SAME, OTHER = OKABE_ITO[2], OKABE_ITO[5]


def effect_maps(changes: Mapping[str, Array], names: Mapping[str, str], chosen: Head) -> go.Figure:
    """The change in log-probability when each head is ablated: a map for each kind, in one range centred on 0.

    An invisible point lies on each cell, so that it can be clicked; its `customdata` is kind, layer and head.

    Args:
        changes: kind -> (layers, heads), nats.
        names: kind -> its title.
        chosen: the head to frame.
    """
    low, high = symmetric_range(*changes.values())
    rows = [len(values) for values in changes.values()]
    height = max(34 * sum(rows) + 60 * (len(rows) - 1) + 170, 360)
    traces, layout, frames = [], {}, []
    for panel, (kind, values) in enumerate(changes.items(), start=1):
        traces += _map_traces(panel, kind, names[kind], values)
        n_layers, n_heads = values.shape
        whole = {"tickmode": "linear", "dtick": 1 if n_heads <= 16 else 4} | NO_GRID
        layout[f"xaxis{suffix(panel)}"] = whole | {"range": [-0.5, n_heads - 0.5]}
        layout[f"yaxis{suffix(panel)}"] = whole | {"range": [n_layers - 0.5, -0.5], "title": "layer"}
        if kind == chosen[0]:
            frames = [frame((chosen[2], chosen[2]), (chosen[1], chosen[1]), CHOSEN, 3, panel)]
    layout[f"xaxis{suffix(panel)}"] |= {
        "title": {"text": f"head<br>colours: {low:.2g} to {high:.2g} nats".replace("-", "−"), "standoff": 4}
    }
    bar = {"thickness": 12, "nticks": 5, "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0}
    return figure(
        traces,
        grid(
            len(rows),
            titles=[names[kind] for kind in changes],
            row_heights=rows,
            vertical_spacing=60 / height if len(rows) > 1 else 0,
        ),
        layout,
        height=height,
        shapes=frames,
        coloraxis={"colorscale": SIGNED, "cmin": low, "cmax": high, "colorbar": bar},
        margin={"l": 50, "r": 10, "b": 130},
        clickmode="event+select",
        hoverdistance=60,
    )


def _map_traces(panel: int, kind: str, name: str, values: Array) -> list[dict]:
    layers, heads = (axis.ravel() for axis in np.indices(values.shape))
    return [
        heatmap(
            panel=panel,
            z=np.ascontiguousarray(values, dtype=np.float64),
            coloraxis="coloraxis",
            text=np.array([[signed(value, "+.2f") for value in line] for line in values]),
            texttemplate="%{text}" if values.shape[1] <= 16 else None,
            xgap=2,
            ygap=2,
        ),
        scatter(
            panel=panel,
            x=heads,
            y=layers,
            customdata=[(kind, layer, head) for layer, head in np.ndindex(values.shape)],
            hovertext=[f"{value:+.7g}" for value in values.ravel()],
            hover=f"{name}<br>layer %{{y}}, head %{{x}}<br>change in log p without it <b>%{{hovertext}}</b> nats<br>"
            "click to choose this head",
            **INVISIBLE,
        ),
    ]


def effect_table(changes: Mapping[str, Array], names: Mapping[str, str]) -> pd.DataFrame:
    """A row for each head, the one whose ablation costs most first.

    Args:
        changes: kind -> (sentences, layers, heads), nats.
        names: kind -> its name.

    Returns:
        the mean change of the log-probability; its share of the sum of all heads' absolute changes; with several
        sentences also the standard deviation, the lowest and highest change, and the number of sentences where it fell.
    """
    tables = []
    for kind, of_kind in changes.items():
        sentences, n_layers, n_heads = of_kind.shape
        flat = of_kind.reshape(sentences, -1)
        layers, heads = (axis.ravel() for axis in np.indices((n_layers, n_heads)))
        columns = {"attention": names[kind], "layer": layers, "head": heads, "change, nats": flat.mean(axis=0)}
        if sentences > 1:
            columns |= {"standard deviation": flat.std(axis=0, ddof=1), "lowest": flat.min(axis=0)}
            columns |= {"highest": flat.max(axis=0), "falls in": (flat < 0).sum(axis=0)}
        tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    sizes = table["change, nats"].abs()
    table.insert(4, "share of all changes", sizes / (sizes.sum() or 1.0))
    return table.sort_values("change, nats", kind="stable", ignore_index=True)


def pruning_chart(log_probabilities: Array, same: Array, k: int, heads: Sequence[str]) -> go.Figure:
    """log p of the translation with the first k heads ablated, for every k, and whether greedy search still finds it.

    Args:
        log_probabilities: (k,) nats, from no head to all.
        same: (k,) 1 where the greedy translation is unchanged, else 0.
        k: the number that the slider shows.
        heads: names of the heads in the order of ablation.
    """
    steps, unchanged = np.arange(len(same)), same.astype(bool)
    last = ["none", *heads]
    curve = scatter(
        x=steps,
        y=log_probabilities,
        mode="lines+markers",
        line={"color": GUIDE, "width": 1.5},
        marker={
            "color": np.where(unchanged, SAME, OTHER),
            "symbol": np.where(unchanged, "circle", "x-thin-open"),
            "size": 8,
            "line": {"width": 1.6},
        },
        customdata=[(last[i], "unchanged" if unchanged[i] else "changed") for i in steps],
        hover="%{x} heads ablated, the last one %{customdata[0]}<br>log p <b>%{y:.6f}</b> nats<br>"
        "greedy translation: %{customdata[1]}",
        showlegend=False,
    )
    legend = [
        scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 8, "line": {"width": 1.6}},
            name=f"greedy translation {state}",
        )
        for state, colour, symbol in (("unchanged", SAME, "circle"), ("changed", OTHER, "x-thin-open"))
    ]
    foot = {"y": 0, "yref": "y domain", "xanchor": "left", "yanchor": "bottom"}
    return figure(
        [curve, *legend],
        height=360,
        legend=LEGEND_ABOVE,
        margin={"t": 50},
        shapes=[vline(k, width=2)],
        annotations=[text(f"k = {k}", x=k, **foot)],
        xaxis={"title": "k, number of ablated heads", "range": [-0.5, len(same) - 0.5]},
        yaxis={"title": "log p of the translation (nats)"},
    )
