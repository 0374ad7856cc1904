"""The seven steps of an attention head (paper, section 3.2): their titles, explanations and matrices."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from viz.drawing import Drawing, named
from viz.steps.head import COLOURS, Array, Choice, Head, head_of
from viz.steps.table import arrays_of, facts_of, matrices, table, table_of
from viz.theme import colour_scales


@dataclass(frozen=True)
class Step:
    """One of the seven steps; its texts name numbers of a head in braces."""

    title: str
    section: str
    """of the paper"""
    what: str
    """what the step does, in a sentence, on the page and in a notebook"""
    chosen: tuple[str, ...]
    """axes on which the chosen cell is marked"""

    def name(self, head: Head) -> str:
        """The title; a model that divides by another number than √d_k has that in it."""
        other = head.scale != 1 and not head.divides_by_root
        return self.title.replace("√dₖ", head.divisor_name) if other else self.title

    def text(self, head: Head) -> str:
        return self.what.format(**_numbers(head))


def _numbers(head: Head) -> dict:
    """What the texts of the steps name."""
    masked, cells = int((~head.mask).sum()), head.mask.size
    return {
        "head": head.index,
        "n_heads": head.n_heads,
        "d_k": head.d_k,
        "tau": head.temperature,
        "cells": cells,
        "inputs": "a query from each decoder row (X), a key and a value from each encoder row (Y)"
        if head.crosses
        else "a query, a key and a value from each row of X",
        "then": f" Then this model changes queries and keys: {head.then}." if head.then else "",
        "scaling": f"This model multiplies its queries by 1/√{head.d_k} before the product: nothing is left to divide."
        if head.divided_before
        else "This model leaves the division out: its scores go on as they are."
        if head.scale == 1
        else f"Every score is divided by {_divisor(head)}: the same pattern, "
        f"{'paler' if head.scale < 1 else 'darker'} in the same colour range.",
        "before": _before_mask(head),
        "masked": f"Keys that a query may not attend to are set to −∞ (hatched): {masked} of {cells} cells."
        if masked
        else f"Every query may attend to every key here: none of the {cells} cells is masked.",
    }


def _divisor(head: Head) -> str:
    return f"{head.divisor_name} = {head.divisor:.2f}" if head.divides_by_root else head.divisor_name


def _before_mask(head: Head) -> str:
    """What the model does to scaled scores first, in a sentence; empty in the paper's."""
    capped = f"caps a score s at {head.softcap:g} · tanh(s / {head.softcap:g})" if head.softcap is not None else ""
    added = "adds a bias to each score" if head.adds_bias else ""
    said = " and ".join(filter(None, (capped, added)))
    return f"First this model {said}. " if said else ""


def picture(step: int, head: Head, choice: Choice, title: str, presents: bool = False) -> Drawing:
    """The matrices of `step` (0 to 6), with the chosen cell marked; it takes what its rows in steps.json name.

    Args:
        step: which one.
        head: whose matrices.
        choice: the chosen cell.
        title: of the file.
        presents: whether they fill a screen; of several equations, each then has the rows of the chosen tokens alone.
    """
    places = {"query": choice.query, "key": choice.key, "dimension": choice.dimension, "model": choice.output}
    rows = table()["steps"][step]
    header = {
        "step": step,
        "steps": len(all_steps()),
        "chosen": {axis: places[axis] for axis in all_steps()[step].chosen},
        "title": title,
        **({"rows": {axis: places[axis] for axis in ("query", "key")}} if presents else {}),
        **({"temperature": head.temperature} if "redrawn" in rows else {}),
        "path": head.attention.path,
        **{part: rows[part] for part in ("equations", "ranges")},
        "axes": table()["axes"],
        "facts": facts_of(head),
        **labels_of(head),
        "colours": COLOURS,
        "scales": colour_scales(),
    }
    path = head.attention.path
    return Drawing.pack("matrices", header, {named(path, name): array for name, array in arrays_of(step, head).items()})


def labels_of(head: Head) -> dict[str, dict[str, Any]]:
    """What stands at the queries and keys of a picture."""
    axes = {"query": head.queries, "key": head.keys}
    return {"labels": {name: axis.labels for name, axis in axes.items()}, "notes": {"query": head.queries.notes}}


def result(step: int, head: Head) -> tuple[dict[str, Array], pd.DataFrame]:
    """Every matrix of `step` by name, and the first result as a table."""
    found = list(matrices(step, head))
    first = next(table_of(row, values, labels_of(head)["labels"]) for row, values in found if row.get("result"))
    return {row["symbol"]: values for row, values in found}, first


def step_arrays(attention: Any, head: int, step: int) -> dict[str, Array]:
    """Every matrix of `step` by name."""
    return result(step, head_of(attention, head))[0]


def shapes(head: Head) -> str:
    """The shapes of this head's matrices, in words."""
    n, m, d_k, d_v, d_model = head.queries.size, head.keys.size, head.d_k, head.d_v, head.d_model
    inputs = f"X: {_positions(n)} × {d_model}" + (f" · Y: {_positions(m)} × {d_model}" if head.crosses else "")
    projected = f"Q: {_positions(n)} × {d_k} · K and V: {_positions(m)} × {d_v}"
    if d_k != d_v:
        projected = f"Q: {_positions(n)} × {d_k} · K: {_positions(m)} × {d_k} · V: {_positions(m)} × {d_v}"
    return f"{inputs} · {projected} · scores and weights: {n} × {m} · z: {_positions(n)} × {d_v}"


def _positions(count: int) -> str:
    return "1 position" if count == 1 else f"{count} positions"


@cache
def all_steps() -> tuple[Step, ...]:
    """The seven, in their order."""
    return tuple(Step(one["title"], one["section"], one["what"], tuple(one["chosen"])) for one in table()["steps"])
