"""Figures of attention heads: names of rows and columns, one head as a heat map, all heads as a table."""

import re
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import NO_GRID, figure
from viz.heatmap import hatching, map_traces
from viz.latex import signed
from viz.theme import WEIGHTS, Array, flat_bar
from viz.tokens import ARROW, SPECIAL, WORD_START, as_plotly, axis_ticks, decoder_names, labels, text_width, visible

Groups = Sequence[Sequence[int]]

MAP_HEIGHT = 400
"""Pixels, the same for every sentence, so that nothing below the map moves."""
_LONGEST = 22
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def word_names(tokens: Sequence[str], groups: Groups) -> list[str]:
    """One unique plain-text name for each group of positions: "3 kitchen"."""
    return [f"{number} {text}" for number, text in enumerate(group_texts(tokens, groups))]


def word_rows(tokens: Sequence[str], next_tokens: Sequence[str] | None, groups: Groups) -> list[str]:
    """The same for queries, in the decoder with what each predicts: "3 Küche → “.”"."""
    if next_tokens is None:
        return word_names(tokens, groups)
    names = decoder_names(group_texts(tokens, groups), group_texts(next_tokens, groups))
    return [f"{number} {name}" for number, name in enumerate(names)]


def group_texts(tokens: Sequence[str], groups: Groups) -> list[str]:
    """The text of each group: the label of a single piece, or the pieces joined."""
    single = labels(tokens)
    return [single[group[0]] if len(group) == 1 else _join([tokens[i] for i in group]) for group in groups]


def numbered_spans(texts: Sequence[str], size: int) -> list[str]:
    """Names of rows that were taken together, such as "28 and the 3 after: the dog runs through"."""
    return [f"{number * size} and the {size - 1} after: {text}" for number, text in enumerate(texts)]


def _join(pieces: Sequence[str]) -> str:
    """The text that the pieces spell: bytes decoded, a space where a word starts."""
    text = bytearray()
    for i, piece in enumerate(pieces):
        byte = _BYTE.fullmatch(piece)
        if i and (piece.startswith(WORD_START) or piece in SPECIAL or pieces[i - 1] in SPECIAL):
            text += b" "
        text += bytes([int(byte[1], 16)]) if byte else piece.removeprefix(WORD_START).encode()
    return visible(text.decode(errors="replace").replace(WORD_START, "\u2423"))


def head_map(
    rows: Sequence[str],
    keys: Sequence[str],
    values: Array,
    mask: Array | None = None,
    quantity: str = "attention weight",
    high: float = 1.0,
    place: str = "",
) -> go.Figure:
    """One head's values as a heat map, masked cells hatched.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        values: (query, key), 0 to `high`; NaN where a hidden token leaves nothing to show.
        mask: bool (query, key), True = visible; None: all are.
        quantity: what the values are, for hover text and colour bar.
        high: end of the colour range, which starts at 0.
        place: of the head, beside the title of the keys.
    """
    mask = np.ones(values.shape, bool) if mask is None else mask
    size = 10 if max(values.shape) > 20 else 12
    across, down, most = _shorten(keys), _shorten(rows), _LONGEST * size
    # Fixed room for the labels: margins that Plotly measures would make it draw twice.
    margin = {"l": 42 + text_width(down, size, most), "t": 34 + text_width(across, size, most), "b": 70, "r": 10}
    bar = flat_bar(f"{quantity}, 0 to {signed(high)}") | {"tickvals": [0, high / 2, high], "tickformat": ".3~g"}
    bar |= {"y": -0.02, "yanchor": "top"}
    axis = NO_GRID | {"tickfont": {"size": size}, "ticks": "outside", "automargin": False}
    decoder = all(ARROW in row for row in rows)
    return figure(
        map_traces(
            (rows, keys), (values, mask), f"{as_plotly(quantity)} <b>%{{z:.7g}}</b>", {"coloraxis": "coloraxis"}
        ),
        height=MAP_HEIGHT,
        margin=margin | {"autoexpand": False},
        coloraxis={"colorscale": WEIGHTS, "cmin": 0, "cmax": high, "colorbar": bar},
        # Above the map, so that they are seen where its last rows are not.
        xaxis=axis
        | axis_ticks(across)
        | {
            "title": f"{place} · key" if place else "key",
            "side": "top",
            "range": [-0.5, len(keys) - 0.5],
            "tickangle": -90,
        },
        yaxis=axis
        | axis_ticks(down)
        | {"title": "query: reads → predicts" if decoder else "query", "range": [len(rows) - 0.5, -0.5]},
        images=[] if mask.all() else [hatching()],
    )


def _shorten(texts: Sequence[str]) -> list[str]:
    """Cut to fit beside the map; the hover text has all of it."""
    return [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts]
