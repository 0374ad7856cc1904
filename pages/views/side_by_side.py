"""Side by side: two heads, two sentences or two checkpoints on one colour scale, with the difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.distributions import entropy
from model.analysis.heads.two_heads import Joined, Side, align_tokens, join, largest_weight, piece_table, word_table
from model.analysis.runs.revisions import (
    block_differences,
    head_differences,
    output_differences,
    ranked_heads,
)
from model.analysis.words import attention_words, merge
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import shown_name
from model.run import Place, Run
from model.trace import KIND_TITLES, Array, Trace
from pages.views import Result, answer, view
from pages.views.controls import CLICKED_HEAD, another_run
from pages.views.names import axes
from viz.forms import Bars, Scale, Texts
from viz.heatmap import slanted_room
from viz.special.heads_and_layers import word_names, word_rows
from viz.special.side_by_side import LONGEST_TICK, Panel, Shared, SideMaps, paired_names, short_ticks
from viz.special.what_if import HeadMaps
from viz.theme import WEIGHTS

MOST_NAMED = 12
"""tokens in one line"""


def _examples(run: Run) -> list[Run]:
    """Two heads of the same run: the next one of the layer, and the first one of the model's last kind."""
    kind, heads = run.trace.kinds[-1], run.attention.n_heads
    places = Place(run.kind, run.layer, (run.head + 1) % heads), Place(kind.name, kind.layers[0], 0)
    return [replace(run, place=place) for place in places]


RIGHT = another_run("Right side", _examples)


@dataclass(frozen=True)
class _Sides:
    """Left and right, and which of their cells correspond."""

    tables: tuple[Side, Side]
    panels: tuple[Panel, Panel]
    joined: Joined | None
    """None: `obstacle` says why"""
    obstacle: str
    """kinds, source or output: what differs, so that no cells can be subtracted"""

    @property
    def queries(self) -> list[str]:
        """Names of the queries of both sides."""
        left, right = self.panels
        return paired_names(self.joined.rows, left.rows, right.rows)

    @property
    def keys(self) -> list[str]:
        """Names of the keys of both sides."""
        left, right = self.panels
        return paired_names(self.joined.keys, left.keys, right.keys)

    @property
    def comparable(self) -> bool:
        """True if the two sides share a query."""
        return self.joined is not None and not np.isnan(self.joined.distances).all()


def _by_words(run: Run, right: Run) -> bool:
    """Two checkpoints are compared by whole words, because their tokenizers split them differently."""
    one, other = run.trace, right.trace
    return (one.checkpoint, one.checkpoint_hash) != (other.checkpoint, other.checkpoint_hash)


def _pair(run: Run, right: Run) -> _Sides:
    by_words = _by_words(run, right)
    cut = word_table if by_words else piece_table
    tables = cut(run.attention, run.head), cut(right.attention, right.head)
    panels = _panel(run, tables[0], by_words), _panel(right, tables[1], by_words)
    obstacle = _obstacle(run, right, tables)
    return _Sides(tables, panels, None if obstacle else join(*tables), obstacle)


def _obstacle(run: Run, right: Run, tables: tuple[Side, Side]) -> str:
    left, other = tables
    if run.kind != right.kind:
        return "kinds"
    if not _by_words(run, right) or (left.queries, left.keys) == (other.queries, other.keys):
        return ""
    return "source" if left.keys != other.keys and run.trace.kind(run.kind).keys == "encoder" else "output"


def _panel(run: Run, side: Side, by_words: bool) -> Panel:
    attention = run.attention
    if not by_words:
        rows, keys = axes(attention)
    else:
        queries, columns = attention_words(attention)
        keys = word_names(attention.key_tokens, columns)
        rows = word_rows(attention.query_tokens, attention.predicts.labels if attention.predicts else None, queries)
    return Panel(rows, keys, side.weights, side.mask)


@view("Compare", code=(align_tokens, join, word_table, merge))
def maps(run: Run, right: Run = RIGHT) -> Result:
    """The weights of both heads, and the difference in the cells that they have in common."""
    sides, one_run = _pair(run, right), right.trace is run.trace
    titles = (f"Left: {_title(run, right)}", f"Right: {_title(right, run)}")
    shared = Shared(**vars(sides.joined)) if sides.joined else None
    (left, other), shows = sides.panels, {}
    if not one_run:
        inputs = {"Left: input": run.trace.source, "Right: input": right.trace.source}
        outputs = {"Left: output": run.trace.translation, "Right: output": right.trace.translation}
        shows = {"inputs": Texts(inputs, compared=True), "outputs": Texts(outputs, compared=True)}
    shows["maps"] = SideMaps(left=left, right=other, shared=shared, titles=titles)
    facts = {
        "one_run": one_run,
        "one_head": one_run and right.place == run.place,
        "same_output": run.trace.translation == right.trace.translation,
        "decodes": any(side.attention.predicts for side in (run, right)),
        "by_words": _by_words(run, right),
        **_why_not(run, right, sides),
        "queries": _named(sides.joined.rows, sides.queries) if sides.joined else "",
        "keys": _named(sides.joined.keys, sides.keys) if sides.joined else "",
    }
    return Result(shows, facts)


def _why_not(run: Run, right: Run, sides: _Sides) -> dict[str, Any]:
    """Facts about what makes the two sides incomparable."""
    return {"obstacle": sides.obstacle, "kinds": [KIND_TITLES[side.kind].lower() for side in (run, right)]}


def _title(run: Run, other: Run) -> str:
    checkpoint = f"{shown_name(run.trace.checkpoint)}\n" if _by_words(run, other) else ""
    kind = f"{KIND_TITLES[run.kind].lower()}\n" if run.kind != other.kind else ""
    return f"{checkpoint}{kind}layer {run.layer}, head {run.head}"


def _named(pairs: Sequence[tuple[int | None, int | None]], names: list[str]) -> str:
    """Those that only one side has, in one line."""
    alone = [name for pair, name in zip(pairs, names, strict=True) if None in pair]
    more = [f"and {len(alone) - MOST_NAMED} more"] if len(alone) > MOST_NAMED else []
    return ", ".join(alone[:MOST_NAMED] + more)


@view("Query by query", code=(join,))
def queries(run: Run, right: Run = RIGHT) -> Result:
    """How far the weights of the two sides are apart, for each query."""
    sides = _pair(run, right)
    if not sides.comparable:
        return Result(facts={"comparable": False} | _why_not(run, right, sides))
    distances, names = sides.joined.distances, sides.queries
    ticks = paired_names(sides.joined.rows, *(panel.rows for panel in sides.panels))
    axis = short_ticks(ticks) | {"title": "query", "tickangle": -60}
    room = {"b": 54 + slanted_room([tick[:LONGEST_TICK] for tick in ticks], 72)}
    titles = "query", "total variation distance"
    bars = Bars(names, {titles[1]: distances}, titles, (0, 1.02), what="query", layout={"xaxis": axis, "margin": room})
    row = int(np.nanargmax(distances))
    return Result({"rows": bars}, {"obstacle": "", "comparable": True, "largest": distances[row], "row": names[row]})


@view("In numbers", code=(entropy, largest_weight))
def numbers(run: Run, right: Run = RIGHT) -> Result:
    """How spread out the weights of each side are, and how far the sides are apart."""
    sides = _pair(run, right)
    spread = [float(entropy(side.weights).mean()) for side in sides.tables]
    places = [largest_weight(side) for side in sides.tables]
    weights = [float(side.weights[place]) for side, place in zip(sides.tables, places, strict=True)]
    named = list(zip(sides.panels, places, strict=True))
    table = pd.DataFrame(
        {
            "": ["left", "right", "right − left"],
            "mean entropy of a row, bits": [*spread, spread[1] - spread[0]],
            "largest weight": [*weights, weights[1] - weights[0]],
            "of query": [*(panel.rows[row] for panel, (row, _) in named), ""],
            "on key": [*(panel.keys[key] for panel, (_, key) in named), ""],
            "queries × keys": [*(" × ".join(map(str, side.weights.shape)) for side in sides.tables), ""],
        }
    )
    facts = {"comparable": sides.comparable}
    if sides.comparable:
        facts |= {"distance": np.nanmean(sides.joined.distances), "furthest": _furthest(sides.joined.difference)}
    return Result({"measures": table}, facts)


def _furthest(difference: Array) -> float | None:
    """The largest difference of a cell, with its sign; None where the sides share no cell."""
    if np.isnan(difference).all():
        return None
    return float(difference.ravel()[np.nanargmax(np.abs(difference))])


@view("Revisions", code=(block_differences, head_differences, output_differences))
def revisions(run: Run, right: Run = RIGHT) -> Result:
    """How far weights and outputs of two revisions of one model are apart, layer by layer and head by head."""
    names = shown_name(run.trace.checkpoint), shown_name(right.trace.checkpoint)
    if run.opened.hash == right.opened.hash:
        return Result(facts={"state": "same", "names": names})
    try:
        blocks = run.compute(block_differences, run.opened, right.opened)
        pair = run.trace, run.compute(_on_same_tokens, right.opened, run.trace)
        outputs = run.compute(output_differences, (pair,))
    except ValueError:
        return Result(facts={"state": "other", "names": names})
    moved = head_differences(*pair)
    ranking = ranked_heads(moved)
    by_layer = pd.DataFrame(
        [(block.name, block.relative, block.largest) for block in blocks],
        columns=["layer or matrix", "relative difference", "largest difference"],
    )
    after = {f"{stack} {layer} {name}": apart for (stack, layer, name), apart in outputs.streams.items()}
    titles = "sub-layer", "relative difference of the stream after it"
    facts = {
        "state": "compared",
        "names": names,
        "most": [(KIND_TITLES[kind], *rest) for kind, *rest in ranking[:1]],
        "first": next((block.name for block in blocks if block.relative), ""),
        "guesses": outputs.guesses,
        "log_probability": outputs.log_probability,
    }
    shows = {
        "weights": _by_head(run, moved, "relative difference of its weights"),
        "attention": _by_head(run, outputs.patterns, "total variation of its attention"),
        "streams": Bars(list(after), {titles[1]: np.array(list(after.values()))}, titles),
        "blocks": by_layer,
    }
    return Result(shows, facts)


def _on_same_tokens(opened: Checkpoint, trace: Trace) -> Trace:
    """The run of another revision on the tokens of `trace`.

    Raises:
        ValueError: it cuts the text into other tokens.
    """
    other = opened.trace_ids(trace.prompt, trace.next_ids)
    if (other.src_ids, other.src_tokens) != (trace.src_ids, trace.src_tokens):
        raise ValueError("the two models cut the text into different tokens")
    return other


def _by_head(run: Run, differences: Mapping[tuple[str, int], Array], what: str) -> HeadMaps:
    values = {kind.name: np.stack([differences[kind.name, layer] for layer in kind.layers]) for kind in run.trace.kinds}
    highest = max((float(np.nanmax(table, initial=0.0)) for table in values.values()), default=0.0) or 1.0
    return HeadMaps(
        values=values,
        layers={kind.name: kind.layers for kind in run.trace.kinds},
        names=KIND_TITLES,
        chosen=(run.kind, run.layer, run.head),
        what=what,
        scale=Scale(0, highest, WEIGHTS),
        number=".3g",
        sets=CLICKED_HEAD,
    )


@answer
def one_line(run: Run, right: Run = RIGHT) -> Result:
    """How far the weights of the two sides are apart on average."""
    sides = _pair(run, right)
    distances = sides.joined.distances if sides.comparable else None
    return Result(
        facts={
            "distance": None if distances is None else float(np.nanmean(distances)),
            "cells": run.attention.pattern[0].size,
            "other": right.attention.pattern[0].size,
        }
    )
