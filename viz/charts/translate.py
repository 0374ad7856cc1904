"""Figures of the home page: how sure the model was of each word, and where it looked meanwhile."""

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import DECODER, WEIGHTS, flat_bar, layout
from viz.tokens import labels, ticks

Array = np.ndarray

_OUTLINE = "#7f7f7f"
"""Seen on white and on black."""


def certainty(next_tokens: Sequence[str], probabilities: Array, chosen: int) -> go.Figure:
    """Bars: the probability that the model gave each token of the translation, when its turn came.

    Args:
        next_tokens: the translation's pieces, the end token last.
        probabilities: (position,) of the whole vocabulary, 0 to 1.
        chosen: the position to emphasise.
    """
    positions = np.arange(len(next_tokens))
    shown, names = ticks(next_tokens)
    draft = Draft().add_bar(
        x=positions,
        y=probabilities,
        customdata=_escaped(next_tokens),
        marker={
            "color": DECODER,
            "opacity": np.where(positions == chosen, 1.0, 0.45),
            "line": {"color": _OUTLINE, "width": np.where(positions == chosen, 2, 0)},
        },
        hovertemplate="position %{x}: %{customdata}<br>probability %{y:.6f}<extra></extra>",
        selected={"marker": {"opacity": 1.0}},
        unselected={"marker": {"opacity": 0.45}},
    )
    draft.update_xaxes(tickvals=shown, ticktext=names, showgrid=False)
    draft.update_yaxes(range=[0, 1], tickformat=".0%")
    return layout(draft, 260, "token of the translation", "probability").figure()


def runners_up(tokens: Sequence[str], probabilities: Array, written: int, vocabulary: int) -> go.Figure:
    """Bars: the most probable tokens at one position, and all others of the vocabulary together.

    Args:
        tokens: pieces, best first; the one that the translation has is among them.
        probabilities: (token,) of the whole vocabulary.
        written: index of the token that the translation has.
        vocabulary: number of tokens in the vocabulary.
    """
    rest = max(1.0 - float(np.sum(probabilities)), 0.0)
    names = [*_escaped(tokens), f"all {vocabulary - len(tokens):,} others"]
    order = np.arange(len(names))
    values = np.append(probabilities, rest)
    draft = Draft().add_bar(
        x=values,
        y=order,
        orientation="h",
        customdata=names,
        text=[f"{value:.2%}" for value in values],
        textposition="outside",
        cliponaxis=False,
        marker={
            "color": DECODER,
            "opacity": np.where(order == written, 1.0, 0.45),
            "pattern": {"shape": [*[""] * len(tokens), "/"]},
        },
        hovertemplate="%{customdata}<br>probability %{x:.6f}<extra></extra>",
        # Plotly fails on a click on bars with text where it is not told how the text is to look then.
        selected={"textfont": {"color": _OUTLINE}},
        unselected={"textfont": {"color": _OUTLINE}},
    )
    labelled = [f"<b>{name}</b>" if i == written else name for i, name in enumerate(names)]
    draft.update_yaxes(tickvals=order, ticktext=labelled, autorange="reversed", showgrid=False)
    draft.update_xaxes(range=[0, 1.15], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    # A bar may be a hair's breadth long: its whole line answers the mouse.
    draft.update_layout(hovermode="y")
    return layout(draft, 90 + 26 * len(names), "probability, of the whole vocabulary", "").figure()


def alignment(weights: Array, src_tokens: Sequence[str], rows: Sequence[str], lit: int | None = None) -> go.Figure:
    """Heat map of cross-attention weights: rows are decoder positions (queries), columns source tokens (keys).

    Args:
        weights: (target position, source position), 0 to 1.
        src_tokens: source pieces.
        rows: what each decoder row reads and predicts, as plain text.
        lit: the row to frame.
    """
    columns, column_names = ticks(src_tokens)
    step = -(-len(rows) // 30)
    shown_rows = list(range(0, len(rows), step))
    row_names = [html.escape(rows[i]) for i in shown_rows]
    draft = Draft().add_heatmap(
        z=weights,
        x=np.arange(len(src_tokens)),
        y=np.arange(len(rows)),
        customdata=np.array(
            [[f"{html.escape(row)}<br>looks at {name}" for name in _escaped(src_tokens)] for row in rows]
        ),
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        # The keys stand above the map.
        colorbar=flat_bar("attention weight, 0 to 1") | {"y": 0.0, "yanchor": "top", "tickvals": [0, 0.5, 1]},
        hovertemplate="%{customdata}<br>weight %{z:.6f}<extra></extra>",
    )
    draft.update_xaxes(tickvals=columns, ticktext=column_names, side="top", showgrid=False, zeroline=False)
    draft.update_yaxes(tickvals=shown_rows, ticktext=row_names, autorange="reversed", showgrid=False, zeroline=False)
    if lit is not None:
        frame = {"x0": -0.5, "x1": len(src_tokens) - 0.5, "y0": lit - 0.5, "y1": lit + 0.5}
        draft.add_shape(type="rect", **frame, line={"color": DECODER, "width": 2})
    height = 170 + min(26 * len(rows), 660)
    return (
        layout(draft, height, "source token (key)", "decoder row (query)")
        .update_layout(margin={"t": 60, "b": 70})
        .figure()
    )


def probability_table(tokens: Sequence[str], ids: Sequence[int], probabilities: Array) -> pd.DataFrame:
    """The translation's tokens with their probabilities, one row a position."""
    return pd.DataFrame({"position": range(len(ids)), "token": tokens, "id": ids, "probability": probabilities})


def ranking(candidates: Sequence, written: tuple[str, int, float]) -> tuple[list[str], Array, int]:
    """Tokens and probabilities of one position, best first, and the index of the one that was written.

    Args:
        candidates: the most probable ones, best first (`token`, `id`, `probability` each).
        written: token, id and probability of what the translation has there; added where it is not among them.
    """
    found = [(c.token, c.id, c.probability) for c in candidates]
    ids = [token_id for _, token_id, _ in found]
    if written[1] not in ids:
        found, ids = [*found, written], [*ids, written[1]]
    names, _, probabilities = zip(*found, strict=True)
    return list(names), np.array(probabilities), ids.index(written[1])


def _escaped(pieces: Sequence[str]) -> list[str]:
    return [html.escape(label) for label in labels(pieces)]
