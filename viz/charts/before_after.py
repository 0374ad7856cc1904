"""Before, after and difference: of a sentence, word by word, and of a head's attention weights, cell by cell."""

import html
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.heatmap import MOST_TICKS, add_map, axes, scale
from viz.theme import FONT, SIGNED, WEIGHTS, layout, symmetric_range
from viz.tokens import visible

Array = np.ndarray

ADDED, REMOVED = "#0072B2", "#D55E00"
_STYLE = f"""<style>
.compared {{ font-family: {FONT}; font-size: 1.15rem; line-height: 1.7; margin: 0; overflow-wrap: anywhere; }}
.compared del {{ text-decoration: line-through; text-decoration-thickness: 2px; padding: 0 0.25rem;
  border-radius: 0.25rem; background: color-mix(in srgb, {REMOVED} 22%, transparent); }}
.compared ins {{ text-decoration: none; font-weight: 650; padding: 0 0.25rem; border-radius: 0.25rem;
  background: color-mix(in srgb, {ADDED} 26%, transparent); border-bottom: 2px solid {ADDED}; }}
.compared del::before {{ content: "− "; }}
.compared ins::before {{ content: "+ "; }}
</style>"""


def word_diff(before: str, after: str) -> str:
    """HTML: `after` with what it lost struck out and what is new underlined, each with its sign; plain text inside."""
    old, new = before.split(), after.split()
    parts: list[str] = []
    for what, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            parts.append(html.escape(visible(" ".join(old[i:j]))))
            continue
        parts += [
            f"<{tag}>{html.escape(visible(' '.join(words)))}</{tag}>"
            for tag, words in (("del", old[i:j]), ("ins", new[k:m]))
            if words
        ]
    return f'{_STYLE}<p class="compared">{" ".join(parts) or "(nothing)"}</p>'


def pattern_maps(
    rows: Sequence[str],
    keys: Sequence[str],
    weights: tuple[Array, Array],
    masks: tuple[Array, Array],
    edited: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """A head's attention weights before and after, in one range from 0 to 1, and their difference, centred on 0.

    The first map's cells can be clicked: an invisible point lies on each, in the order of the matrix.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        weights: (query, key) before and after.
        masks: bool (query, key) before and after, True = may look; other cells are hatched.
        edited: (query, key) of the cells that the person forbade or allowed, marked in the first map.
    """
    before, after = weights
    difference = (after - before).astype(np.float32)
    # Small cells are hard to hit; and between the maps there is room for the handles of their axes.
    wide = None if len(keys) <= MOST_TICKS else [0.5, 0.25, 0.25]
    titles = ("Before", "After", "After − before")
    draft = grid(1, 3, titles=titles, horizontal_spacing=0.05, column_widths=wide)
    drawn = (
        (before, masks[0], "weight before <b>%{z:.7g}</b>", "coloraxis"),
        (after, masks[1], "weight after <b>%{z:.7g}</b>", "coloraxis"),
        (difference, masks[0] | masks[1], "after − before <b>%{z:+.7g}</b>", "coloraxis2"),
    )
    for number, (values, mask, said, axis) in enumerate(drawn):
        add_map(draft, (0, number), (rows, keys), (values, mask), said, {"coloraxis": axis})
    _add_points(draft, rows, keys, (before, masks[0]), set(edited))
    layout(draft, min(max(22 * len(rows), 220), 560) + 165, "", "")
    _add_axes(draft, rows, keys, symmetric_range(difference))
    return draft.figure()


def _add_axes(draft: Draft, rows: Sequence[str], keys: Sequence[str], limits: tuple[float, float]) -> None:
    axes(draft, rows, keys, keys, keys)
    # Points would have a margin around them, which no heat map has.
    draft.update_xaxes(matches="x", range=[-0.5, len(keys) - 0.5])
    draft.update_yaxes(autorange=False, range=[len(rows) - 0.5, -0.5])
    for column in (2, 3):
        draft.update_yaxes(showticklabels=False, ticks="", col=column)
        draft.update_xaxes(showticklabels=len(keys) <= MOST_TICKS, col=column)
    low, high = limits
    first = scale(WEIGHTS, 0, 1, "weight<br>0 to 1", 0.8)
    second = scale(SIGNED, low, high, f"difference<br>{low:.2g} to {high:.2g}", 0.25)
    draft.update_layout(coloraxis=first, coloraxis2=second, hoverdistance=60, clickmode="event+select", dragmode="zoom")


def _add_points(
    draft: Draft, rows: Sequence[str], keys: Sequence[str], cells: tuple[Array, Array], edited: set
) -> None:
    """What a click hits: Plotly selects points, never cells of a heat map. Edited cells show a cross."""
    weights, mask = (array.ravel() for array in cells)
    queries, columns = (axis.ravel().tolist() for axis in np.indices(cells[0].shape))
    names = [[html.escape(name) for name in side] for side in (rows, keys)]
    said = [
        "edited: a click takes it back" if cell in edited else f"a click {'forbids' if open_ else 'allows'} this cell"
        for cell, open_ in zip(zip(queries, columns, strict=True), mask, strict=True)
    ]
    text = [f"{weight:.7g}" if open_ else "0 (masked)" for weight, open_ in zip(weights, mask, strict=True)]
    draft.add_scatter(
        x=[names[1][column] for column in columns],
        y=[names[0][query] for query in queries],
        mode="markers",
        marker={"size": 9, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        text=text,
        customdata=said,
        hovertemplate="weight before <b>%{text}</b><br>query %{y}<br>key %{x}<br>%{customdata}<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
    crossed = [(query, key) for query, key in sorted(edited) if query < len(rows) and key < len(keys)]
    cross = {"symbol": "x", "size": 10, "color": "#FFFFFF", "line": {"color": "#000000", "width": 1.5}}
    draft.add_scatter(
        x=[names[1][key] for _, key in crossed],
        y=[names[0][query] for query, _ in crossed],
        mode="markers",
        marker=cross,
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=1,
    )


def weights_table(rows: Sequence[str], keys: Sequence[str], before: Array, after: Array) -> pd.DataFrame:
    """One line a cell, queries first."""
    return pd.DataFrame(
        {
            "query": np.repeat(np.array(rows, dtype=object), len(keys)),
            "key": np.tile(np.array(keys, dtype=object), len(rows)),
            "before": before.ravel(),
            "after": after.ravel(),
            "difference": (after - before).ravel(),
        }
    )
