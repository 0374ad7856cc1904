"""Pictures of attention heads: names of rows and columns, one head as a heat map, all heads as a table.

Rows are queries, columns keys. A masked cell has no colour.
"""

import html
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft
from viz.heatmap import hatching, map_traces, some_ticks
from viz.theme import WEIGHTS, flat_bar
from viz.tokens import SPECIAL, WORD_START, labels, visible

Array = np.ndarray
Groups = Sequence[Sequence[int]]

_BYTE = re.compile("<0x([0-9A-F]{2})>")


READS, PREDICTS = " reads ", ", predicts "


def names(tokens: Sequence[str], groups: Groups) -> list[str]:
    """One unique plain-text name a group of positions, numbered as the groups are: "3 kitchen"."""
    return [f"{number} {text}" for number, text in enumerate(texts_of(tokens, groups))]


def decoder_names(tokens: Sequence[str], next_tokens: Sequence[str], groups: Groups) -> list[str]:
    """The same for decoder rows: "3 reads Küche, predicts ."."""
    pairs = zip(texts_of(tokens, groups), texts_of(next_tokens, groups), strict=True)
    return [f"{number}{READS}{read}{PREDICTS}{predicted}" for number, (read, predicted) in enumerate(pairs)]


def texts_of(tokens: Sequence[str], groups: Groups) -> list[str]:
    """The text of each group: a lone piece as everywhere else, several put together."""
    single = labels(tokens)
    return [single[group[0]] if len(group) == 1 else _together([tokens[i] for i in group]) for group in groups]


def _together(pieces: Sequence[str]) -> str:
    """Pieces as they are read: bytes as the characters that they spell, a space where a word starts."""
    text = bytearray()
    for i, piece in enumerate(pieces):
        byte = _BYTE.fullmatch(piece)
        if i and (piece.startswith(WORD_START) or piece in SPECIAL or pieces[i - 1] in SPECIAL):
            text += b" "
        text += bytes([int(byte[1], 16)]) if byte else piece.removeprefix(WORD_START).encode()
    return visible(text.decode(errors="replace").replace(WORD_START, "\u2423"))


def head_map(
    rows: Sequence[str], keys: Sequence[str], values: Array, mask: Array, called: str, high: float = 1.0
) -> go.Figure:
    """One head's table, masked cells hatched.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        values: (query, key), 0 to `high`; NaN where there is nothing left to show.
        mask: bool (query, key), True = may look.
        called: what the numbers are, for hovering and the colour bar.
        high: end of the colour range, which starts at 0.
    """
    said = f"{html.escape(called)} <b>%{{z:.7g}}</b>"
    size = 10 if max(values.shape) > 20 else 12
    across, down = _short(keys), _short(rows)
    margin = {"l": 42 + _width(down, size), "b": 50 + round(0.87 * _width(across, size)), "t": 76, "r": 10, "pad": 8}
    draft = Draft()
    for trace in map_traces((rows, keys), (values, mask), said, {"coloraxis": "coloraxis"}):
        draft.add_trace(trace)
    # Room for labels is kept here, as what Plotly measures makes it draw twice.
    draft.update_layout(height=MAP_HEIGHT, margin=margin | {"autoexpand": False}, coloraxis=_scale(called, high))
    draft.update_xaxes(**_cells("key", len(keys), size), tickangle=-60, **_ticks(across))
    draft.update_yaxes(**_cells(_query_title(rows), len(rows), size, downwards=True), **_ticks(down))
    if not mask.all():
        draft.add_layout_image(hatching())
    return draft.figure()


def _cells(title: str, count: int, size: int, downwards: bool = False) -> dict:
    """An axis of `count` cells; the labels' size in pixels."""
    ends = [-0.5, count - 0.5]
    return {
        "title": {"text": title},
        "tickfont": {"size": size},
        "ticks": "outside",
        "automargin": False,
        "showgrid": False,
        "zeroline": False,
        "range": ends[::-1] if downwards else ends,
    }


def _ticks(texts: Sequence[str]) -> dict:
    return some_ticks([html.escape(text) for text in texts])


def _width(texts: Sequence[str], size: int) -> int:
    """Pixels that the longest of texts takes, about, at a font size in pixels; a wide character counts as two."""
    most = max(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text) for text in texts)
    return round(0.56 * size * most)


MAP_HEIGHT = 560
"""pixels: the same for every sentence, so that nothing below moves"""
_LONGEST = 22


def _short(texts: Sequence[str]) -> list[str]:
    """ "3 Küche → ." for a decoder row, and cut where an axis has no room; hovering says all of it."""
    brief = [text.replace(READS, " ", 1).replace(PREDICTS, " → ", 1) for text in texts]
    return [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in brief]


def _query_title(rows: Sequence[str]) -> str:
    return "query: reads → predicts" if all(READS in row and PREDICTS in row for row in rows) else "query"


def _scale(called: str, high: float) -> dict:
    bar = flat_bar(f"{called}, 0 to {high:.3g}") | {"tickvals": [0, high / 2, high], "tickformat": ".3~g"}
    return {"colorscale": WEIGHTS, "cmin": 0, "cmax": high, "colorbar": bar}


def summary_table(summaries: Sequence, removed: Array | None = None) -> pd.DataFrame:
    """One row a head; shares are 0 to 1, what an attention has no such number for is left out.

    Args:
        summaries: model.analysis.head_summary.HeadSummary, or anything with its fields.
        removed: (head, query), the share of each row that hidden tokens had.
    """
    columns = {
        "layer": "layer",
        "head": "head",
        "type": "type",
        "entropy": "entropy (bits)",
        "confidence": "confidence",
        "distance": "distance",
        "previous": "previous",
        "same": "same",
        "next": "next",
        "special": "special",
        "punctuation": "punctuation",
    }
    table = pd.DataFrame({title: [getattr(s, field) for s in summaries] for field, title in columns.items()})
    table = table.dropna(axis="columns", how="all")
    if removed is not None:
        table["hidden"], table["hidden, most"] = removed.mean(axis=-1), removed.max(axis=-1)
    return table.assign(rule=[s.rule for s in summaries])


def cells(rows: Sequence[str], keys: Sequence[str], values: Array, mask: Array) -> pd.DataFrame:
    """One line a cell, queries first."""
    return pd.DataFrame(
        {
            "query": np.repeat(np.array(rows, dtype=object), len(keys)),
            "key": np.tile(np.array(keys, dtype=object), len(rows)),
            "may_look": mask.ravel(),
            "value": values.ravel(),
        }
    )
