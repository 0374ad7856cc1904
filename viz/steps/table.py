"""Reads the table of the seven steps, steps.json, for one head: its matrices as rows, and their numbers.

A step has `equations`, and `ranges` of colours that matrices share: from -m to m, with m the largest magnitude in the
arrays of a `whole` range, or in all but a few outliers of a `robust` one. An equation is a list of operators and rows:

    symbol   as in the formula; _ starts a subscript, ^ a superscript
    array    by its name at the attention, such as w_q[{head}]; with @ between two, their product
    made     what is drawn of it: transposed; joined, the heads side by side; masked, -∞ where `mask` is False
    rows     an axis of `axes`; so are columns
    range    of its colours; with the scale viridis they go from 0 to 1
    mask     bool, where the cell is not masked
    family   name in the legend for matrices that share a range
    result   whether this step computes it; it is drawn larger
    if       a fact without which the row is left out; unless, one with which it is

{name} stands for a fact of the head. js/matrices/equations.js reads the same table, for the pictures.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from model.language import tr
from viz.steps.head import PROJECTIONS, Head
from viz.theme import Array

Row = Mapping[str, Any]


@cache
def table() -> dict[str, Any]:
    """The axes and the steps, as in the file."""
    return json.loads((Path(__file__).parent / "steps.json").read_text(encoding="utf-8"))


def facts_of(head: Head) -> dict[str, Any]:
    """What the rows of the table name in braces and in conditions."""
    return {
        "head": head.index,
        "n_heads": head.n_heads,
        "d_v": head.d_v,
        "crosses": head.crosses,
        "biases": head.learns_biases,
        "then": tr(head.then),
        "linear_q": head.made_name("Q"),
        "linear_k": head.made_name("K"),
        **{f"latent_{name.lower()}": name in head.latent for name in PROJECTIONS},
        **{f"latent_{name.lower()}_bias": name in head.latent and head.learns_biases for name in PROJECTIONS},
        "divisor": f"{head.divisor:.2f}",
        "before_mask": tr(head.before_mask),
        "read": "pre_softmax" if head.before_mask else "scaled",
    }


def equations_of(equations: Sequence[Sequence[Row | str]], facts: Mapping[str, Any]) -> list[list[Row | str]]:
    """The rows and operators that there are of a head with these facts."""
    return [[_filled(part, facts) for part in equation if _holds(part, facts)] for equation in equations]


def matrices(step: int, head: Head) -> list[tuple[Row, Array]]:
    """Each row of `step` (0 to 6) with its numbers, (rows, columns)."""
    equations = equations_of(table()["steps"][step]["equations"], facts_of(head))
    rows = (part for equation in equations for part in equation if not isinstance(part, str))
    return [(row, values(row, head.array)) for row in rows]


def values(row: Row, at: Callable[[str], Array]) -> Array:
    """(rows, columns): what is drawn of the row's array; `at` gives an array by its name."""
    array = at(row["array"])
    match row.get("made"):
        case "transposed":
            return array.T
        case "joined":
            return array.transpose(1, 0, 2).reshape(array.shape[1], -1)
        case "masked":
            array = np.where(at(row["mask"]), array, -np.inf)
    return array.astype(np.float32).reshape(-1, array.shape[-1])


def arrays_of(step: int, head: Head) -> dict[str, Array]:
    """The arrays that the pictures of `step` are made of, by name at the attention; none that is a part of another."""
    names = [row[field] for row, _ in matrices(step, head) for field in ("array", "mask") if field in row]
    ranges = _filled(table()["steps"][step]["ranges"], facts_of(head))
    names += [name for shared in ranges.values() for several in shared.values() for name in several]
    wholes = {name for name in names if "[" not in name}
    parts = (name for name in names if "@" not in name and (name in wholes or name.partition("[")[0] not in wholes))
    return {name: head.array(name) for name in dict.fromkeys(parts)}


def table_of(row: Row, numbers: Array, labels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """A matrix with row and column labels ("3 kitchen"); the first column has the row labels."""
    rows, columns = (
        [f"{i} {labels[row[axis]][i]}" if row[axis] in labels else str(i) for i in range(size)]
        for axis, size in zip(("rows", "columns"), numbers.shape, strict=True)
    )
    frame = pd.DataFrame(numbers, columns=columns)
    frame.insert(0, row["symbol"], rows)
    return frame


def _holds(part: Row | str, facts: Mapping[str, Any]) -> bool:
    if isinstance(part, str):
        return True
    return bool(facts[part["if"]] if "if" in part else True) and not facts.get(part.get("unless"), False)


def _filled(part: Any, facts: Mapping[str, Any]) -> Any:
    """The part of the table with facts in place of their names; an operator that has a condition is then a text."""
    if isinstance(part, str):
        return re.sub(r"\{(\w+)\}", lambda name: str(facts[name[1]]), part)
    if isinstance(part, list):
        return [_filled(each, facts) for each in part]
    if isinstance(part, dict):
        return (
            _filled(part["operator"], facts) if "operator" in part else {k: _filled(v, facts) for k, v in part.items()}
        )
    return part
