"""Attention, step by step: the formula, the matrices with this run's numbers, one cell's arithmetic, and its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.heads.key_plane import convex_hull, key_plane, principal_axes
from model.analysis.heads.own_vectors import OwnAttention, Rows, attend, read_rows
from model.analysis.written import score_parts, side_parts
from model.analysis.written.of_scores import weight_with_score
from model.analysis.written.of_stream import EMBEDDING, POSITION
from model.checkpoints.store import shown_name
from model.interventions import HeadGate
from model.interventions.link import encode
from model.language import language, sentence, sentence_of, tr
from model.network.attention import MultiHeadAttention
from model.run import TAUS, Run
from model.trace import Array
from pages.views import Need, Result, answer, view
from pages.views.chosen_token import first_key, first_query, key_of, query_of
from pages.views.controls import CLICKED_HEAD, TAU, choice, menu, number, slider, text, toggle
from pages.views.part_pictures import Ranked, head_choices, part_label, rank
from pages.views.shared import axes
from viz.canvas.own_vectors import OF_HEAD as OF_ONE_HEAD
from viz.canvas.own_vectors import own_vectors as draw_own_vectors
from viz.drawing import Drawing
from viz.forms import Canvas, Map, Maps, Scale, Table
from viz.labels import TYPED, say_label
from viz.latex import attention_formula, signed
from viz.products import Products
from viz.steps.arithmetic import explain_step, result_chain
from viz.steps.head import PROJECTIONS, Choice, Head, head_of
from viz.steps.steps import all_steps, picture, result, shapes
from viz.steps.strips import arithmetic_picture
from viz.tokens import decoder_rows, numbered

PROJECT, SUM_OF_V = 1, 6
"""steps in which a dimension of the head is chosen"""
STEP = slider("Step", (1, 7), 1, key="step")
PRESENT = toggle("Present", key="present", help="The matrices fill a screen.")
QUERY = menu(
    "Query", lambda run: dict(enumerate(numbered(run.attention.query_tokens))), first_query, key="query", follows=True
)
KEY = menu("Key", lambda run: dict(enumerate(numbered(run.attention.key_tokens))), first_key, key="key", follows=True)


def _last_dimension(run: Run, step: int) -> int:
    """Of v and z in the sum of values; in other steps of queries, keys and values alike."""
    d_v = run.attention.v.shape[-1]
    return (d_v if step == SUM_OF_V else min(run.attention.d_k, d_v)) - 1


DIMENSION = number("Dimension of the head", lambda run, step: (0, _last_dimension(run, step)), 0, key="cell_dimension")
OUTPUT = number(
    "Dimension of the output",
    lambda run, step: (0, run.attention.out.shape[-1] - 1 if step != PROJECT else -1),
    0,
    key="cell_output",
)
PROJECTION = choice(
    "Element of",
    lambda _, step: dict(zip(PROJECTIONS, PROJECTIONS, strict=True)) if step == PROJECT else {},
    key="cell_projection",
)
CELL = {"query": QUERY, "key": KEY, "dimension": DIMENSION, "model": OUTPUT, "projection": PROJECTION}
"""what a click on a matrix chooses"""


@view("Attention, step by step", code=(MultiHeadAttention,), needs=(Need.FULL_ROWS, Need.MATRICES))
def steps(
    run: Run,
    step: int = STEP,
    present: bool = PRESENT,
    query: int = QUERY,
    key: int = KEY,
    dimension: int = DIMENSION,
    output: int | None = OUTPUT,
    projection: str | None = PROJECTION,
) -> Result:
    """One of the seven steps of the head as an equation of matrices, and how one cell of its result is computed."""
    number, one, head = step - 1, all_steps()[step - 1], head_and_rows(run)
    cell = Choice(query, key, dimension, output or 0, projection or PROJECTIONS[0])
    shown, facts = explain_step(number, head, cell), {"checkpoint": shown_name(run.trace.checkpoint)}
    facts |= {"hash": run.trace.checkpoint_hash[:8], "place": run.place.title, "title": one.name(head)}
    title = tr("{checkpoint} {hash}, {place}, step {step}: {title}", step=step, **facts)
    drawings = picture(number, head, cell, title, present), arithmetic_picture(shown, result_chain(head, cell), number)
    return Result(
        {
            "matrices": Canvas(drawings[0], {"pick": CELL, "step": STEP}),
            "arithmetic": Canvas(drawings[1], {"step": STEP}),
        },
        {
            "title": one.name(head),
            "section": one.section,
            "what": one.text(head),
            "formula": attention_formula(number, head),
            "shapes": shapes(head),
            "arithmetic": shown.latex,
            "cells": head.mask.size,
            "d_v": head.d_v,
            "d_model": head.d_model,
            "switch_off": urlencode({"add": encode((HeadGate(0.0, **run.place.address()),))}),
        },
        result(number, head)[0]
        | {"queries": numbered(run.attention.query_tokens), "keys": numbered(run.attention.key_tokens)},
    )


def head_and_rows(run: Run) -> Head:
    """The chosen head; rows of a decoder say what they read and predict."""
    trace, decodes = run.trace, run.attention.predicts is not None
    rows = decoder_rows(trace.tgt_tokens, trace.next_tokens) if decodes else ()
    return head_of(run.attention, run.head, tuple(rows))


MOST_PAIRED = 6
"""parts of either side that have a row or a column of their own"""
MOST_PAIRS = 12
SIDES = "query", "key"


def _score_parts(run: Run, query: int, key: int) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    return run.compute(score_parts, run.trace, run.kind, run.layer, run.head, query, key)


def _sums(run: Run, query: int, key: int) -> dict[str, dict[str, float]]:
    """What each part of the query's side, and of the key's, adds to the score."""
    queries, keys, pairs = _score_parts(run, query, key)
    sums = (queries, pairs.sum(axis=1)), (keys, pairs.sum(axis=0))
    return {
        side: dict(zip(names, terms.tolist(), strict=True)) for side, (names, terms) in zip(SIDES, sums, strict=True)
    }


def _removable(run: Run, query: int, key: int) -> dict[str, str]:
    """The largest parts of both sides."""
    sums = _sums(run, query, key)
    largest = {side: rank(terms, MOST_PAIRED).parts for side, terms in sums.items()}
    return {
        f"{side} {name}": f"{say_label(side)}: {part_label(name)}" for side, names in largest.items() for name in names
    }


REMOVED = menu("Take out", _removable, key="why_without")


@view("Why this score", code=(score_parts, side_parts), needs=(Need.FULL_ROWS, Need.MATRICES, Need.STREAM))
def why(run: Run, query: int = QUERY, key: int = KEY, removed: str = REMOVED) -> Result:
    """A score as the sum over what wrote the query and what wrote the key, and over the pairs of these."""
    attention, head = run.attention, run.head
    queries, keys, pairs = _score_parts(run, query, key)
    sums, score = _sums(run, query, key), float(attention.scores[head, query, key])
    side, _, part = removed.partition(" ")
    term = sums[side].get(part, 0.0)
    sides = {side: rank(terms, MOST_PAIRED) for side, terms in sums.items()}
    shows = {"products": _products(run, sides, queries, keys, pairs), "largest": _pair_table(queries, keys, pairs)}
    # In the first layer these are the parts themselves.
    if run.layer and POSITION in queries and POSITION in keys:
        shows["content"] = _content_map(queries, keys, pairs)
    kind = run.trace.kind(run.kind)
    return Result(
        shows,
        {
            "tokens": (attention.query_tokens[query], attention.key_tokens[key]),
            "score": score,
            "scaled": float(attention.scaled[head, query, key]),
            "weight": float(attention.pattern[head, query, key]),
            "hidden": not attention.mask[head, query, key],
            "counts": pairs.shape,
            "error": abs(float(pairs.sum()) - score),
            "top": {side: (part_label(ranked.parts[0]), float(ranked.values[0])) for side, ranked in sides.items()},
            "shown": tuple(shows),
            "first_layer": run.layer == 0,
            "crosses": kind.crosses,
            "removed": (side, part_label(part), term),
            "without": score - term,
            "weight_without": weight_with_score(attention, head, query, key, score - term),
        },
        {"parts": pairs, "query_names": np.array(queries), "key_names": np.array(keys)},
    )


def _products(
    run: Run, sides: Mapping[str, Ranked], queries: tuple[str, ...], keys: tuple[str, ...], pairs: Array
) -> Products:
    """What each pair of the largest parts adds; the last row and column are all other parts together."""
    blocks = [_sum_others(names, sides[side].parts) for side, names in zip(SIDES, (queries, keys), strict=True)]
    parts = [part for one in sides.values() for part in (*one.parts, *([""] if one.others else []))]
    return Products(
        *(sides[side].labels for side in SIDES),
        blocks[0] @ pairs @ blocks[1].T,
        "adds to q · k",
        ("query part", "key part"),
        chooses=head_choices(run, parts),
        sets=CLICKED_HEAD,
    )


def _sum_others(names: tuple[str, ...], kept: tuple[str, ...]) -> Array:
    """(kept + 1, part): the matrix that leaves the parts that are kept, and sums the others in its last row."""
    rows = [[float(name == one) for name in names] for one in kept]
    others = [float(name not in kept) for name in names]
    return np.array([*rows, *([others] if any(others) else [])])


def _pair_table(queries: tuple[str, ...], keys: tuple[str, ...], pairs: Array) -> pd.DataFrame:
    """The pairs that add most, and the sum of all others."""
    order = np.argsort(-np.abs(pairs), axis=None, kind="stable")[:MOST_PAIRS]
    places = [np.unravel_index(number, pairs.shape) for number in order]
    rows = [(part_label(queries[a]), part_label(keys[b]), float(pairs[a, b])) for a, b in places]
    if pairs.size > len(rows):
        rest = float(pairs.sum()) - sum(term for *_, term in rows)
        rows.append((say_label(f"all other {pairs.size - len(rows):,} pairs"), "", rest))
    table = pd.DataFrame(rows, columns=["of the query", "of the key", "adds to q · k"])
    table.attrs["floats"] = "%+.3f"
    return table


def _content_map(queries: tuple[str, ...], keys: tuple[str, ...], pairs: Array) -> Maps:
    """Content and position of either side: what the four pairs add, and what the rest does."""
    groups = EMBEDDING, POSITION
    blocks = [_sum_others(names, groups) for names in (queries, keys)]
    values = blocks[0] @ pairs @ blocks[1].T
    names = [say_label(name) for name in ("content", "position", "all else")]
    one = Map(values.astype(np.float32), scale=Scale.signed(values, title="adds to<br>q · k"), what="adds")
    return Maps(names[: len(values)], names[: values.shape[1]], {"": one}, axes=("query part", "key part"))


TYPED_HERE, OF_HEAD = "typed", "head"
OWN_FROM = choice("Vectors", {TYPED_HERE: "your own", OF_HEAD: "this head's"}, key="own_from")


def _line(label: str, *examples: str, key: str) -> Any:
    """A line of vectors, where they are typed."""
    return text(label, lambda _, source: examples if source == TYPED_HERE else (), key=key)


QUERY_TEXT = _line("Query", "3 0", "1 0", key="own_query")
KEYS_TEXT = _line("Keys", "cat 1 0; dog .8 .6; car 0 1; sea -1 0", "1 0; 0 1", key="own_keys")
VALUES_TEXT = _line("Values, one for each key", "10 0; 8 2; 1 9; 0 4", "1; 2", key="own_values")
DIVIDES = choice(
    "Divide by √dₖ",
    lambda _, source: {True: tr("yes"), False: tr("no")} if source == TYPED_HERE else {},
    key="own_divides",
)


def _typed(query: str, keys: str, values: str, divides: bool, tau: float) -> tuple[tuple[Rows, ...], OwnAttention]:
    """What was typed, and equation 1 on it; raises ValueError where it does not fit."""
    rows = (
        read_rows(query, sentence("Query")),
        read_rows(keys, sentence("Keys")),
        read_rows(values, sentence("Values")),
    )
    return rows, attend(*(one.values for one in rows), divides, tau)


def _typed_rows(_: Run, source: str, query: str, keys: str, values: str, divides: bool) -> dict[int, str]:
    """The queries to choose from; none where there is one, or where what was typed does not fit."""
    if source == OF_HEAD:
        return {}
    try:
        (queries, *_), _ = _typed(query, keys, values, divides, 1.0)
    except ValueError:
        return {}
    return dict(enumerate(_names(queries, "q"))) if queries.values[1:].size else {}


def _names(rows: Rows, letter: str) -> list[str]:
    """Of typed rows: the name or a letter, and where there are several the number."""
    several = len(rows.names) > 1
    return [f"{number} {name or letter}" if several else name or letter for number, name in enumerate(rows.names)]


MOST_TERMS = 6
"""of the sum that is z, in words"""
OWN_ROW = menu("Arithmetic of the query", _typed_rows, key="own_row")
HEAD_ROW = replace(QUERY, options=lambda run, source: QUERY.options(run) if source == OF_HEAD else {})


@view("Your own vectors", code=(attend, OwnAttention, key_plane, convex_hull))
def own_vectors(
    run: Run,
    source: str = OWN_FROM,
    query: str | None = QUERY_TEXT,
    keys: str | None = KEYS_TEXT,
    values: str | None = VALUES_TEXT,
    divides: bool | None = DIVIDES,
    row: int | None = OWN_ROW,
    token: int | None = HEAD_ROW,
) -> Result:
    """Equation 1 on typed queries, keys and values or on a head's: scores, weights, z among the values; all moves."""
    if source == OF_HEAD:
        return _vectors_of_head(run, token)
    try:
        (queries, typed_keys, typed_values), own = _typed(query, keys, values, divides, run.tau)
    except ValueError as error:
        return Result(facts={"problem": sentence_of(error), "of_head": False})
    row, rows, names = row or 0, _names(queries, "q"), _names(typed_keys, "k")
    steps, jacobian = own.softmax_steps(row), own.jacobian(row)
    numbers = {"q · k": own.scores[row], "scaled" if divides else "not divided": own.scaled[row]}
    numbers |= {"− largest": steps["less"], "exp": steps["exponential"], "weight": steps["weight"]}
    # A key is a column: on a phone, too, four keys are seen whole.
    lines = {say_label(name): values for name, values in numbers.items()}
    arithmetic = pd.DataFrame.from_dict(lines, orient="index", columns=names).rename_axis("key").reset_index()
    arithmetic.attrs[TYPED] = names
    weights, vectors = own.weights[row], _written(typed_values.values)
    order = np.argsort(-weights, kind="stable")[:MOST_TERMS].tolist()
    change = Map(jacobian, scale=Scale.signed(jacobian, title="∂ weight<br>∂ score"), what="derivative")
    facts = {
        "problem": "",
        "of_head": False,
        "query": rows[row],
        "d_k": queries.values.shape[1],
        "divisor": own.divisor,
        "tau": run.tau,
        "sum": float(steps["exponential"].sum()),
        "z": _written(own.z)[row],
        "terms": [(names[key], float(weights[key]), vectors[key]) for key in order],
        "others": len(names) - len(order),
        "slope": float(np.diag(jacobian).max()),
        "largest": float(max(np.linalg.eigvalsh(jacobian).max(), 0)),
    }
    typed = {"q": queries.values, "k": typed_keys.values, "v": typed_values.values}
    drawn = typed | {"mask": np.ones(own.weights.shape, bool), "pattern": own.weights, "z": own.z}
    texts = {"query": query, "keys": keys, "names": (queries.names, typed_keys.names)}
    header = {"title": tr("Your own vectors"), "path": "typed", "head": 0, "row": row, "typed": texts}
    header |= {"scale": 1 / own.divisor, "softcap": None, "sink": None, "temperature": run.tau}
    picture, hull = _planes(drawn, (rows, names), header)
    sets = {"vectors": {"query": QUERY_TEXT, "keys": KEYS_TEXT}, "row": OWN_ROW, "tau": TAU}
    shows = {
        "vectors": Canvas(picture, sets),
        "arithmetic": Table(arithmetic, "%.3g", pinned=("key",)),
        "jacobian": Maps(names, names, {"": change}, axes=("weight of", "score of")),
    }
    return Result(shows, facts, typed | numbers | {"scores": own.scores, "weights": own.weights, "z": own.z} | hull)


def _vectors_of_head(run: Run, row: int) -> Result:
    """The chosen head's vectors in the planes of their principal components."""
    attention, head = run.attention, run.head
    arrays = {name: array[head] for name in OF_ONE_HEAD if (array := getattr(attention, name)) is not None}
    header = {"title": run.place.title, "path": attention.path, "head": head, "row": row, "typed": None}
    header |= {"scale": float(attention.scale), "softcap": attention.softcap}
    header |= {"sink": None if attention.sink is None else float(attention.sink[head])}
    header |= {"temperature": float(attention.temperature[head])}
    names = axes(attention)[0], numbered(attention.key_tokens)
    picture, hull = _planes(arrays, names, header)
    numbers = vars(key_plane(attention, head)) | {name: arrays[name] for name in "qkvz"} | hull
    numbers |= {"scores": attention.scores[head], "weights": arrays["pattern"]}
    facts = {"problem": "", "of_head": True}
    return Result({"vectors": Canvas(picture, {"row": HEAD_ROW, "tau": TAU})}, facts, numbers)


def _planes(
    arrays: Mapping[str, Array], names: tuple[Sequence[str], Sequence[str]], header: Mapping[str, Any]
) -> tuple[Drawing, dict[str, Array]]:
    """The picture, and which of the values that the chosen query sees are corners of their hull in it."""
    axes_of, shares = [], []
    for name in "kv":
        rows = arrays[name]
        own = rows.shape[1] <= 2
        found, share = (np.eye(2, rows.shape[1]), ()) if own else principal_axes(rows)
        axes_of.append(found)
        shares.append([float(one) for one in share])
    picture = draw_own_vectors(arrays, axes_of, names, **header, shares=shares, taus=TAUS)
    seen = np.flatnonzero(arrays["mask"][header["row"]])
    return picture, {"hull": seen[convex_hull(arrays["v"][seen] @ axes_of[1].T)] if seen.size else seen}


def _written(vectors: Array) -> list[str]:
    """Vectors as texts; a language with a decimal comma parts their numbers by semicolons."""
    between = "; " if language().decimal == "," else ", "
    return [between.join(tr(signed(value, ".4g")) for value in vector) for vector in vectors.tolist()]


@answer
def one_line(run: Run) -> Result:
    """The chosen cell's score, scaled score and weight."""
    attention, head, cell = run.attention, run.head, (query_of(run), key_of(run))
    names = axes(attention)
    facts = {name: float(getattr(attention, name)[head][cell]) for name in ("scores", "scaled", "pattern")}
    return Result(
        facts=facts | {"query": names[0][cell[0]], "key": names[1][cell[1]], "seen": attention.mask[head][cell]}
    )
