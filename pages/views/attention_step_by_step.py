"""Attention, step by step: the formula, the matrices with this run's numbers, and one cell's arithmetic."""

from urllib.parse import urlencode

from model.checkpoints.store import shown_name
from model.interventions import HeadGate
from model.interventions.link import encode
from model.network.attention import MultiHeadAttention
from model.run import Run
from pages.views import Need, Result, answer, view
from pages.views.chosen_token import first_key, first_query, key_of, query_of
from pages.views.controls import choice, menu, number, slider, toggle
from pages.views.names import axes
from viz.forms import Canvas
from viz.latex import attention_formula
from viz.steps.arithmetic import explain_step, result_chain
from viz.steps.head import PROJECTIONS, Choice, Head, head_of
from viz.steps.steps import STEPS, picture, result, shapes
from viz.steps.strips import arithmetic_picture
from viz.tokens import decoder_rows, numbered

PROJECT, SUM_OF_V = 1, 6
"""steps in which a dimension of the head is chosen"""
STEP = slider("Step", (1, len(STEPS)), 1, key="step")
PRESENT = toggle("Present", key="present", help="Formula, matrices and nothing else; ← → change the step.")
QUERY = menu(
    "Query",
    lambda run: dict(enumerate(numbered(run.attention.query_tokens))),
    first_query,
    key="query",
    follows=True,
)
KEY = menu(
    "Key",
    lambda run: dict(enumerate(numbered(run.attention.key_tokens))),
    first_key,
    key="key",
    follows=True,
)


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
    in_link=False,
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
    number, one, head = step - 1, STEPS[step - 1], _head(run)
    cell = Choice(query, key, dimension, output or 0, projection or PROJECTIONS[0])
    shown, place = explain_step(number, head, cell), f"{run.kind} layer {run.layer} head {run.head}"
    title = f"{shown_name(run.trace.checkpoint)} {run.trace.checkpoint_hash[:8]}, {place}, step {step}: {one.title}"
    drawings = picture(number, head, cell, title), arithmetic_picture(shown, result_chain(head, cell), number)
    return Result(
        {
            "matrices": Canvas(drawings[0], {"pick": CELL, "step": STEP}),
            "arithmetic": Canvas(drawings[1], {"step": STEP}),
        },
        {
            "step": step,
            "present": present,
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


def _head(run: Run) -> Head:
    """The chosen head; rows of a decoder say what they read and predict."""
    trace, decodes = run.trace, run.attention.predicts is not None
    rows = decoder_rows(trace.tgt_tokens, trace.next_tokens) if decodes else ()
    return head_of(run.attention, run.head, tuple(rows))


@answer
def one_line(run: Run) -> Result:
    """The chosen cell's score, scaled score and weight."""
    attention, head, cell = run.attention, run.head, (query_of(run), key_of(run))
    names = axes(attention)
    facts = {name: float(getattr(attention, name)[head][cell]) for name in ("scores", "scaled", "pattern")}
    return Result(
        facts=facts | {"query": names[0][cell[0]], "key": names[1][cell[1]], "seen": attention.mask[head][cell]}
    )
