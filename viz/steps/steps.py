"""The seven steps of an attention head (paper, section 3.2): their titles, explanations and matrices."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from model.language import Sentence, joined, sentence
from viz.drawing import Drawing, named
from viz.steps.head import COLOURS, Array, Choice, Head
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

    def name(self, head: Head) -> Sentence:
        """The title; a model that divides by another number than √dₖ has that in it."""
        if self.title == DIVISION and head.scale != 1 and not head.divides_by_root:
            return sentence("Divide by {divisor}", divisor=head.divisor_name)
        return sentence(self.title)

    def text(self, head: Head) -> Sentence:
        return sentence(self.what, **_numbers(head))


DIVISION = "Divide by √dₖ"


def _numbers(head: Head) -> dict[str, Any]:
    """What the texts of the steps name."""
    masked, cells = int((~head.mask).sum()), head.mask.size
    return {
        "head": head.index,
        "n_heads": head.n_heads,
        "d_k": head.d_k,
        "tau": head.temperature,
        "inputs": sentence("a query from each decoder row (X), a key and a value from each encoder row (Y)")
        if head.crosses
        else sentence("a query, a key and a value from each row of X"),
        "then": _changes(head),
        "scaling": _scaling(head),
        "before": _before_mask(head),
        "masked": sentence(
            "Keys that a query may not attend to are set to −∞ (hatched): {masked} of {cells} cells.",
            masked=masked,
            cells=cells,
        )
        if masked
        else sentence("Every query may attend to every key here: none of the {cells} cells is masked.", cells=cells),
    }


def _changes(head: Head) -> Sentence | str:
    """What this model does before and after the product with W."""
    how = sentence(" Then this model changes queries and keys: {how}.", how=head.then) if head.then else ""
    if not head.latent:
        return how
    return sentence(
        " In this model, W is three steps: times A to a latent vector, RMSNorm, times B. With the scale that the "
        "norm had at each position, they are one matrix per head, A diag(γ) B, whose output is divided by that "
        "scale.{then}",
        then=how,
    )


def _scaling(head: Head) -> Sentence:
    if head.divided_before:
        return sentence(
            "This model multiplies its queries by 1/√{d_k} before the product: nothing is left to divide.", d_k=head.d_k
        )
    if head.scale == 1:
        return sentence("This model leaves the division out: its scores are passed on undivided.")
    divisor = head.divisor_name
    if head.divides_by_root:
        divisor = sentence("{root} = {divisor:.2f}", root=divisor, divisor=head.divisor)
    if head.scale < 1:
        return sentence(
            "Every score is divided by {divisor}: the same pattern, paler in the same colour range.", divisor=divisor
        )
    return sentence(
        "Every score is divided by {divisor}: the same pattern, darker in the same colour range.", divisor=divisor
    )


def _before_mask(head: Head) -> str:
    """What the model does to scaled scores first, in a sentence; empty in the paper's."""
    capped = sentence("caps a score s at {cap:g} · tanh(s / {cap:g})", cap=head.softcap) if head.softcap else None
    added = sentence("adds a bias to each score") if head.adds_bias else None
    does = [part for part in (capped, added) if part]
    return sentence("First this model {does}. ", does=joined(does)) if does else ""


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


def shapes(head: Head) -> Sentence:
    """The shapes of this head's matrices, in words."""
    n, m, d_k, d_v = head.queries.size, head.keys.size, head.d_k, head.d_v
    rows = {"queries": _positions(n), "keys": _positions(m), "d_k": d_k, "d_v": d_v, "d_model": head.d_model}
    inputs = sentence("X: {queries} × {d_model}", **rows)
    if head.crosses:
        inputs = sentence("X: {queries} × {d_model} · Y: {keys} × {d_model}", **rows)
    projected = sentence("Q: {queries} × {d_k} · K and V: {keys} × {d_v}", **rows)
    if d_k != d_v:
        projected = sentence("Q: {queries} × {d_k} · K: {keys} × {d_k} · V: {keys} × {d_v}", **rows)
    scores = sentence("scores and weights: {n} × {m} · z: {queries} × {d_v}", n=n, m=m, **rows)
    return sentence("{inputs} · {projected} · {scores}", inputs=inputs, projected=projected, scores=scores)


def _positions(count: int) -> Sentence:
    return sentence("1 position") if count == 1 else sentence("{count} positions", count=count)


@cache
def all_steps() -> tuple[Step, ...]:
    """The seven, in their order."""
    return tuple(Step(one["title"], one["section"], one["what"], tuple(one["chosen"])) for one in table()["steps"])
