"""How much each head matters: maps and lists of what its loss changes, and the curve as more and more go."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, SIGNED, layout, symmetric_range

Array = np.ndarray
Head = tuple[str, int, int]
"""kind, layer, head"""

_BAR = {"thickness": 12, "nticks": 5, "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0}
SAME, OTHER, CHOSEN = OKABE_ITO[2], OKABE_ITO[5], OKABE_ITO[5]


def effect_maps(changes: Mapping[str, Array], names: Mapping[str, str], chosen: Head) -> go.Figure:
    """The change in log-probability without each head: a map a kind, layers by heads, one range centred on 0.

    An invisible point lies on each cell, for Plotly lets no cell of a heat map be clicked; its `customdata` is
    kind, layer and head.

    Args:
        changes: kind -> (layers, heads), nats.
        names: kind -> its title.
        chosen: the head to frame.
    """
    low, high = symmetric_range(*changes.values())
    rows = [len(values) for values in changes.values()]
    height = max(34 * sum(rows) + 60 * (len(rows) - 1) + 170, 360)
    draft = grid(
        len(changes),
        1,
        titles=[names[kind] for kind in changes],
        row_heights=rows,
        vertical_spacing=60 / height if len(rows) > 1 else 0,
    )
    layout(draft, height, "", "")
    for row, (kind, values) in enumerate(changes.items(), start=1):
        _add_map(draft, row, (kind, names[kind]), values)
        if kind == chosen[0]:
            x, y = chosen[2], chosen[1]
            frame = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
            draft.add_shape(type="rect", **frame, line={"color": CHOSEN, "width": 3}, row=row, col=1)
    title = f"head<br>colours: {low:.2g} to {high:.2g} nats".replace("-", "−")
    draft.update_xaxes(title_text=title, title_standoff=4, row=len(changes), col=1)
    draft.update_layout(
        coloraxis={"colorscale": SIGNED, "cmin": low, "cmax": high, "colorbar": _BAR},
        margin={"l": 50, "r": 10, "b": 130},
        clickmode="event+select",
        hoverdistance=60,
    )
    return draft.figure()


def _add_map(draft: Draft, row: int, kind: tuple[str, str], values: Array) -> None:
    layers, heads = (axis.ravel() for axis in np.indices(values.shape))
    few = values.shape[1] <= 16
    text = np.array([[f"{value:+.2f}".replace("-", "−") for value in line] for line in values])
    heat = {
        "type": "heatmap",
        "z": np.ascontiguousarray(values, dtype=np.float64),
        "coloraxis": "coloraxis",
        "text": text,
        "texttemplate": "%{text}" if few else None,
        "xgap": 2,
        "ygap": 2,
        "hoverinfo": "skip",
    }
    points = {
        "type": "scatter",
        "x": heads,
        "y": layers,
        "mode": "markers",
        "marker": {"symbol": "square", "size": 26, "opacity": 0, "color": "#808080"},
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        "customdata": [(kind[0], int(layer), int(head)) for layer, head in zip(layers, heads, strict=True)],
        "text": [f"{value:+.7g}" for value in values.ravel()],
        "hovertemplate": f"{kind[1]}<br>layer %{{y}}, head %{{x}}<br>change without it <b>%{{text}}</b> nats<br>"
        "a click chooses this head<extra></extra>",
        "showlegend": False,
    }
    for trace in (heat, points):
        draft.add_trace(trace, row=row, col=1)
    whole = {"tickmode": "linear", "dtick": 1 if few else 4, "showgrid": False, "zeroline": False}
    n_layers, n_heads = values.shape
    draft.update_xaxes(**whole, range=[-0.5, n_heads - 0.5], row=row, col=1)
    draft.update_yaxes(**whole, title_text="layer", range=[n_layers - 0.5, -0.5], row=row, col=1)


def effect_table(changes: Mapping[str, Array], names: Mapping[str, str]) -> pd.DataFrame:
    """A head a line, the one whose loss costs most first.

    Args:
        changes: kind -> (sentences, layers, heads), nats.
        names: kind -> its name.

    Returns:
        the mean change of the log-probability; its share of all heads' changes, each counted without its sign; with
        several sentences also the standard deviation, the worst and best one, and in how many it fell.
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
    """log p of the translation as the first k heads go, k = 0 to all; filled points keep the greedy translation.

    Args:
        log_probabilities: (k,) nats.
        same: (k,) whether the greedy translation is as it was; 1 or 0.
        k: the number that the slider shows.
        heads: the names of the heads in the order in which they go.
    """
    steps, kept = np.arange(len(same)), same.astype(bool)
    last = ["none", *heads]
    draft = Draft().add_scatter(
        x=steps,
        y=log_probabilities,
        mode="lines+markers",
        line={"color": "#8c8c8c", "width": 1.5},
        marker={
            "color": np.where(kept, SAME, OTHER),
            "symbol": np.where(kept, "circle", "x-thin-open"),
            "size": 8,
            "line": {"width": 1.6},
        },
        customdata=[(last[i], "as it was" if kept[i] else "another one") for i in steps],
        hovertemplate="%{x} heads off, the last one %{customdata[0]}<br>log p <b>%{y:.6f}</b> nats<br>"
        "greedy translation: %{customdata[1]}<extra></extra>",
        showlegend=False,
    )
    _add_key(draft)
    draft.add_vline(k, line={"color": "#8c8c8c", "dash": "dot"})
    foot = {"y": 0, "yref": "y domain", "xanchor": "left", "yanchor": "bottom"}
    draft.add_annotation(x=k, **foot, text=f"k = {k}", showarrow=False)
    layout(draft, 360, "k, heads switched off", "log p of the translation (nats)")
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, margin={"t": 50})
    draft.update_xaxes(range=[-0.5, len(same) - 0.5], showgrid=False, zeroline=False)
    return draft.figure()


def _add_key(draft: Draft) -> None:
    for name, colour, symbol in (
        ("greedy translation unchanged", SAME, "circle"),
        ("greedy translation changed", OTHER, "x-thin-open"),
    ):
        marker = {"color": colour, "symbol": symbol, "size": 8, "line": {"width": 1.6}}
        draft.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
