"""What a change to the model does to each token's probability, to the next word, and to every head."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, WEIGHTS, layout, symmetric_range
from viz.tokens import labels, ticks

Array = np.ndarray

BEFORE, AFTER, DIFFERENCE = OKABE_ITO[0], OKABE_ITO[1], OKABE_ITO[3]


def token_bars(next_tokens: Sequence[str], before: Array, after: Array) -> go.Figure:
    """The log-probability of each token of the target, before and after; below it the difference.

    Args:
        next_tokens: the target's pieces.
        before: (position,) nats, at most 0.
        after: (position,) nats.
    """
    positions = np.arange(len(next_tokens))
    names = [html.escape(label) for label in labels(next_tokens)]
    draft = grid(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    series = (
        ("before", before, BEFORE, 1),
        ("after", after, AFTER, 1),
        ("after − before", after - before, DIFFERENCE, 2),
    )
    for name, values, colour, row in series:
        draft.add_bar(
            x=positions,
            y=values,
            name=name,
            customdata=names,
            marker=_marker(name, colour),
            hovertemplate=f"position %{{x}}: %{{customdata}}<br>{name} <b>%{{y:.6f}}</b> nats<extra></extra>",
            row=row,
            col=1,
        )
    shown, texts = ticks(next_tokens)
    _legend(layout(draft, 430, "", ""))
    draft.update_xaxes(showgrid=False, zeroline=False, tickvals=shown, ticktext=texts)
    draft.update_xaxes(title_text="token of the target", row=2, col=1)
    draft.update_yaxes(title_text="log p (nats)", row=1, col=1)
    draft.update_yaxes(title_text="difference", row=2, col=1)
    return draft.figure()


def candidate_bars(tokens: Sequence[str], before: Array, after: Array, written: int) -> go.Figure:
    """Probable next tokens at one position, before and after, beside the difference; all others as one bar.

    Args:
        tokens: pieces, the most probable first, then the name of the rest.
        before: (token + 1,) probability; the last is the rest of the vocabulary.
        after: (token + 1,)
        written: index of the token that the target has there, in bold.
    """
    names = [*map(html.escape, labels(tokens[:-1])), html.escape(tokens[-1])]
    order = np.arange(len(names))
    draft = grid(1, 2, shared_yaxes=True, column_widths=[0.62, 0.38], horizontal_spacing=0.04)
    series = (
        ("before", before, BEFORE, 1),
        ("after", after, AFTER, 1),
        ("after − before", after - before, DIFFERENCE, 2),
    )
    for name, values, colour, column in series:
        draft.add_bar(
            x=values,
            y=order,
            orientation="h",
            name=name,
            customdata=names,
            text=[f"{value:+.2%}" if column == 2 else f"{value:.2%}" for value in values],
            textposition="outside",
            cliponaxis=False,
            marker=_marker(name, colour),
            hovertemplate=f"%{{customdata}}<br>{name} <b>%{{x:.6f}}</b><extra></extra>",
            row=1,
            col=column,
        )
    _legend(layout(draft, 120 + 40 * len(names), "", ""))
    bold = [f"<b>{name}</b>" if i == written else name for i, name in enumerate(names)]
    draft.update_yaxes(tickvals=order, ticktext=bold, range=[len(names) - 0.4, -0.6], showgrid=False)
    percent = {"tickformat": ".0%", "showgrid": False}
    draft.update_xaxes(range=[0, 1.15], tickvals=[0, 0.5, 1], title_text="probability", **percent, row=1, col=1)
    low, high = (1.4 * limit for limit in symmetric_range(after - before))
    draft.update_xaxes(range=[low, high], nticks=4, title_text="difference", **percent, row=1, col=2)
    return draft.figure()


def _legend(draft: Draft) -> None:
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})


def _marker(name: str, colour: str) -> dict:
    """Hatching tells after from before without colour."""
    return {"color": colour, "pattern": {"shape": "/" if name == "after" else ""}}


def head_maps(changes: Mapping[str, Array], names: Mapping[str, str], chosen: tuple[str, int, int]) -> go.Figure:
    """The largest |difference| of any weight of each head: a map a kind, layers by heads, one range from 0.

    Args:
        changes: kind -> (layers, heads).
        names: kind -> its title.
        chosen: kind, layer and head to frame.
    """
    highest = max(float(values.max()) for values in changes.values())
    draft = grid(1, len(changes), titles=[names[kind] for kind in changes], horizontal_spacing=0.05)
    layout(draft, 130 + 34 * max(len(values) for values in changes.values()), "", "")
    for column, (kind, values) in enumerate(changes.items(), start=1):
        draft.add_trace(
            {
                "type": "heatmap",
                "z": np.ascontiguousarray(values, dtype=np.float32),
                "coloraxis": "coloraxis",
                "texttemplate": "%{z:.2f}" if values.size <= 64 else None,
                "xgap": 2,
                "ygap": 2,
                "hovertemplate": f"{names[kind]}<br>layer %{{y}}, head %{{x}}<br>largest change of a weight "
                "<b>%{z:.7g}</b><extra></extra>",
            },
            row=1,
            col=column,
        )
        whole = {"tickmode": "linear", "dtick": 1, "showgrid": False, "zeroline": False}
        draft.update_xaxes(**whole, title_text="head", row=1, col=column)
        draft.update_yaxes(**whole, title_text="layer" if column == 1 else "", autorange="reversed", row=1, col=column)
        if kind == chosen[0]:
            x, y = chosen[2], chosen[1]
            frame = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
            draft.add_shape(type="rect", **frame, line={"color": OKABE_ITO[5], "width": 3}, row=1, col=column)
    bar = {"title": {"text": f"0 to {highest or 1.0:.2g}"}, "thickness": 12, "nticks": 4}
    draft.update_layout(
        coloraxis={"colorscale": WEIGHTS, "cmin": 0, "cmax": highest or 1.0, "colorbar": bar}, margin={"t": 40}
    )
    return draft.figure()
