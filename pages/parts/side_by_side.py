"""Side by side: both texts with their differences marked, the maps, and one function per tab."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.distributions import entropy
from model.analysis.two_heads import Joined, Side, join, largest_weight, piece_table, word_table
from model.analysis.view_arrays import side_arrays
from model.analysis.words import attention_words
from model.checkpoints.store import shown_name
from model.trace import Array
from pages.compute.view import KINDS, View
from pages.widgets.chart import axis_labels, chart
from pages.widgets.snippet import Call
from viz.charts.heads_and_layers import decoder_names, group_texts, word_names
from viz.charts.side_by_side import ARROW, Panel, Shared, distance_bars, paired_names, side_maps, side_table
from viz.heatmap import cells_table
from viz.html import word_diff
from viz.latex import signed
from viz.tokens import labels

MAPS = "side-maps"
LONG, MOST_NAMED = 160, 12
"""characters from which on a text scrolls; tokens named in one line"""
BY_WORDS = "checkpoints"
"""the mode that compares whole words"""


@dataclass(frozen=True)
class Sides:
    """Left and right, and which of their cells correspond."""

    views: tuple[View, View]
    sides: tuple[Side, Side]
    panels: tuple[Panel, Panel]
    joined: Joined | None
    """None: `why` says so"""
    why: str
    mode: str

    @property
    def shared(self) -> Shared | None:
        joined = self.joined
        return None if joined is None else Shared(joined.rows, joined.keys, joined.difference)

    def rows(self, short: bool = False) -> list[str]:
        """Labels of the queries of both sides in the third map."""
        found = [panel.ticks if short else panel.rows for panel in self.panels]
        return paired_names(self.joined.rows, *found) if self.joined else []


def compare_sides(view: View, right: View, mode: str) -> Sides:
    """Both sides as tables; for two checkpoints, whose vocabularies differ, by whole words."""
    by_words = mode == BY_WORDS
    cut = word_table if by_words else piece_table
    sides = cut(view.attention, view.head), cut(right.attention, right.head)
    panels = _panel(view, sides[0], by_words), _panel(right, sides[1], by_words)
    why = _why_not(view, right, sides, by_words)
    return Sides((view, right), sides, panels, None if why else join(*sides), why, mode)


def _why_not(view: View, right: View, sides: tuple[Side, Side], by_words: bool) -> str:
    if view.kind != right.kind:
        return (
            f"No difference is drawn: {KINDS[view.kind].lower()} and {KINDS[right.kind].lower()} have different "
            "tokens as rows or columns, so no two cells are the same pair of tokens."
        )
    if by_words and sides[0].keys != sides[1].keys and view.trace.kind(view.kind).keys == "encoder":
        return "No difference is drawn: the two tokenizers split the text into different words."
    if by_words and (sides[0].queries, sides[0].keys) != (sides[1].queries, sides[1].keys):
        return (
            "No difference is drawn: the two models generated different words. With “The left output on both "
            "sides” they read the same ones, unless a vocabulary lacks some characters."
        )
    return ""


def _panel(view: View, side: Side, by_words: bool) -> Panel:
    attention = view.attention
    read, following = attention.query_tokens, attention.predicts.labels if attention.predicts else ()
    if not by_words:
        rows, keys = axis_labels(attention)
        cells = [read, following]
        short = [labels(tokens) for tokens in cells] if following else []
    else:
        queries, columns = attention_words(attention)
        keys = word_names(attention.key_tokens, columns)
        rows = decoder_names(read, following, queries) if following else word_names(read, queries)
        short = [group_texts(tokens, queries) for tokens in (read, following)] if following else []
    ticks = [f"{i} {a}{ARROW}{b}" for i, (a, b) in enumerate(zip(*short, strict=True))] if short else rows
    return Panel(rows, ticks, keys, side.weights, side.mask)


def show_texts(sides: Sides) -> None:
    """Input and output of both runs; differences are struck out or underlined on the right."""
    if sides.mode == "heads":
        return
    left, right = (view.trace for view in sides.views)
    long = max(len(text) for trace in (left, right) for text in (trace.source, trace.translation)) > LONG
    for column, name, trace in zip(st.columns(2), ("Left", "Right"), (left, right), strict=True):
        with column.container(border=True, height=240 if long else "stretch"):
            st.caption(f"{name}: input and output")
            # The left text compared with itself has no marks, but the same typography.
            st.html(word_diff(left.source, trace.source))
            st.html(word_diff(left.translation, trace.translation))
    if left.translation == right.translation:
        st.caption("The two outputs are identical.")
    else:
        st.caption(
            "On the right: words only on the left are struck out with −, words only on the right underlined with +."
        )


def show_maps(sides: Sides) -> Any:
    """Draw left, right and difference; returns the figure."""
    titles = _title("Left", sides.views[0], sides), _title("Right", sides.views[1], sides)
    figure = side_maps(*sides.panels, sides.shared, titles)
    with st.container(key="side-frame"):
        chart(figure, key=MAPS, alt="Attention weights of the left, of the right, and right minus left")
    decodes = any(view.attention.predicts for view in sides.views)
    st.caption(
        "Rows are queries, columns keys"
        + (
            ", a decoder row is labelled with what it reads → what it predicts, between the maps only with what it "
            "reads"
            if decodes
            else ""
        )
        + ". Left and right share one range, 0 to 1; the difference is centred on 0. Hover over any cell for both "
        "weights and their difference."
        + (
            " Pieces are merged into words: weights are summed over a word's keys and averaged over its queries; "
            "rows of cross-attention form the words that they predict." * (sides.mode == BY_WORDS)
        )
    )
    if sides.why:
        st.info(sides.why, icon=":material/info:")
    show_unmatched(sides)
    return figure


def _title(name: str, view: View, sides: Sides) -> str:
    checkpoint = f"{shown_name(view.trace.checkpoint)}\n" if sides.mode == BY_WORDS else ""
    kind = f"{KINDS[view.kind].lower()}\n" if sides.views[0].kind != sides.views[1].kind else ""
    return f"{name}: {checkpoint}{kind}layer {view.layer}, head {view.head}"


def show_unmatched(sides: Sides) -> None:
    """List the rows and columns that only one side has; they are hatched in the third map."""
    if sides.joined is None:
        return
    left, right = sides.panels
    lacking = {}
    for name, pairs, called in (
        ("Queries", sides.joined.rows, (left.rows, right.rows)),
        ("Keys", sides.joined.keys, (left.keys, right.keys)),
    ):
        alone = [text for pair, text in zip(pairs, paired_names(pairs, *called), strict=True) if None in pair]
        if len(alone) > MOST_NAMED:
            alone[MOST_NAMED:] = [f"and {len(alone) - MOST_NAMED} more"]
        lacking.setdefault(", ".join(alone), []).append(name)
    for alone, found in lacking.items():
        if alone:
            st.text(f"{' and '.join(found).capitalize()} missing on one side (− only left, + only right): {alone}")


def show_rows(sides: Sides) -> None:
    """Total variation distance of the two sides' weights, query by query."""
    joined = sides.joined
    if joined is None or np.isnan(joined.distances).all():
        st.info(sides.why or "The two sides share no query, so there is nothing to subtract.")
        return
    figure = distance_bars(sides.rows(), sides.rows(short=True), joined.distances)
    chart(figure, key="side-rows", alt="Total variation distance of each query's weights")
    st.caption(
        "Half the sum of |right − left| over a query's keys: the share of weight that must move to turn the left row "
        "into the right one. A key missing on one side counts with all its weight. A query missing on one side has "
        "no bar."
    )
    row = int(np.nanargmax(joined.distances))
    st.text(f"Largest distance, {joined.distances[row]:.4f}: {sides.rows()[row]}")


def show_numbers(sides: Sides) -> None:
    """A table of entropy, largest weight and distances of both sides."""
    st.dataframe(numbers_table(sides), hide_index=True, width="stretch")
    st.caption("Entropy in bits, averaged over rows: 0 if each row attends to a single key.")


def numbers_table(sides: Sides) -> pd.DataFrame:
    """One line per measure: left, right, and right − left where that is meaningful."""
    entropies = [float(entropy(side.weights).mean()) for side in sides.sides]
    places = [largest_weight(side) for side in sides.sides]
    weights = [float(side.weights[place]) for side, place in zip(sides.sides, places, strict=True)]
    lines = [
        ("Mean entropy of a row, bits", *map(_text, entropies), signed(entropies[1] - entropies[0], "+.4f")),
        ("Largest weight", *map(_text, weights), signed(weights[1] - weights[0], "+.4f")),
        ("… of query", *(panel.rows[place[0]] for panel, place in zip(sides.panels, places, strict=True)), ""),
        ("… on key", *(panel.keys[place[1]] for panel, place in zip(sides.panels, places, strict=True)), ""),
        ("Queries, keys", *(" × ".join(map(str, side.weights.shape)) for side in sides.sides), ""),
    ]
    if sides.joined is not None and not np.isnan(sides.joined.distances).all():
        lines.append(("Total variation distance, mean of rows", "", "", _text(np.nanmean(sides.joined.distances))))
    if sides.joined is not None and not np.isnan(sides.joined.difference).all():
        lines.append(("Largest difference of a cell", "", "", signed(_furthest(sides.joined.difference), "+.4f")))
    return pd.DataFrame(lines, columns=["measure", "left", "right", "right − left"])


def _furthest(difference: Array) -> float:
    return float(difference.ravel()[np.nanargmax(np.abs(difference))])


def _text(value: float) -> str:
    return f"{value:.4f}"


def arrays(sides: Sides) -> Call:
    """What computes both sides and their difference."""
    left, right = ((view.trace, (view.kind, view.layer, view.head)) for view in sides.views)
    return Call(side_arrays, *left, *right, sides.mode == BY_WORDS, sides.joined is not None)


def table(sides: Sides) -> pd.DataFrame:
    """What the CSV holds: the paired cells of both sides, or one side after the other."""
    if sides.shared is not None:
        return side_table(sides.shared, *sides.panels, sides.joined.distances)
    found = {
        name: cells_table(panel.rows, panel.keys, {"visible": side.mask, "value": side.weights})
        for name, side, panel in zip(("left", "right"), sides.sides, sides.panels, strict=True)
    }
    return pd.concat(found, names=["side", "cell"]).reset_index("side").reset_index(drop=True)
