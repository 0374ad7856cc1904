"""What figures 3 to 5 of the paper draw of a model: the lines of a layer, and the rank of two words among far cells."""

from typing import Any

import numpy as np

from model.analysis.heads.far_cells import FAR, FarCells, Pair
from model.trace import Kind, Trace
from viz.canvas.lines import MOST_HEADS, lines
from viz.forms import Line, Lines
from viz.theme import OKABE_ITO
from viz.tokens import labels


def fact_of_cell(cells: FarCells, tokens: tuple[str, ...], number: int) -> dict[str, Any]:
    """One of the far cells, for a text."""
    layer, head, query, key = cells.places[number].tolist()
    names = labels(tokens)
    cell = {"weight": float(cells.weights[number]), "query": names[query], "key": names[key]}
    return cell | {"apart": abs(query - key), "layer": layer, "head": head}


def fact_of_pair(pair: Pair, cells: FarCells, tokens: tuple[str, ...]) -> dict[str, Any]:
    """The pair of the paper's figure, for a text."""
    names = labels(tokens)
    is_far = abs(pair.query - pair.key) >= FAR
    return vars(pair) | {
        "query": names[pair.query],
        "key": names[pair.key],
        "rank": cells.rank(pair.weight) if is_far else None,
    }


def draw_lines(trace: Trace, kind: Kind, layer: int, pair: Pair | None, alone: bool) -> Any:
    """The lines of a layer's heads: of one word's row, or of the two heads that differ most in all rows."""
    tokens = trace.streams[kind.queries].tokens.labels
    weights, mask = trace.weights_and_mask(kind.name, layer)
    first = pair.head // MOST_HEADS * MOST_HEADS if pair and pair.layer == layer else 0
    heads = list(range(first, min(first + MOST_HEADS, len(weights))))
    shown = heads
    if alone and pair:
        mask = mask & (np.arange(len(tokens)) == pair.query)[:, None]
    elif heads[1:]:
        apart = np.abs(weights[heads][:, None] - weights[heads]).sum(axis=(-2, -1))
        shown = [heads[i] for i in np.unravel_index(int(apart.argmax()), apart.shape)]
    names, title = labels(tokens), f"{kind.title}, layer {layer}"
    return lines(weights[heads], names, names, heads=heads, shown=shown, allowed=mask[heads], title=title, path="paper")


def draw_ranking(cells: FarCells, pair: Pair | None) -> Lines:
    """The weight of every far cell over its rank, and the paper's pair among them."""
    count = len(cells.weights)
    ranks = np.unique(np.geomspace(1, count, 400).round().astype(int))
    drawn = {"far cells of all heads": Line(ranks, cells.weights[ranks - 1], OKABE_ITO[5])}
    if pair and abs(pair.query - pair.key) >= FAR:
        drawn["the paper's two words"] = Line(
            [cells.rank(pair.weight)], [pair.weight], OKABE_ITO[0], "diamond", "", size=14
        )
    return Lines(drawn, ("rank (log)", "attention weight"), ".4f", "x", height=340)
