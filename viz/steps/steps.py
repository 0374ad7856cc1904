"""The seven steps of an attention head (paper, section 3.2): their names, words and matrices."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from viz.canvas.matrices import Array, Equation, Matrix, encode
from viz.steps import equations
from viz.steps.head import Choice, Head


@dataclass(frozen=True)
class Step:
    """One of the seven steps."""

    title: str
    section: str
    """of the paper"""
    equations: Callable[[Head], tuple[Equation, ...]]
    """what is drawn"""
    text: Callable[[Head], str]
    """what happens, in a sentence"""
    why: Callable[[Head], str]
    """and why"""
    chosen: tuple[str, ...] = ("query", "key")
    """the axes on which the chosen cell is marked"""


def picture(step: int, head: Head, choice: Choice, title: str) -> bytes:
    """The payload of the matrices component for `step` (0 to 6), with the chosen cell marked."""
    places = {"query": choice.query, "key": choice.key, "dimension": choice.dimension, "model": choice.output}
    softmax = {"temperature": head.temperature} if STEPS[step].equations is equations.softmax else {}
    return encode(
        STEPS[step].equations(head),
        step=step,
        steps=len(STEPS),
        chosen={axis: places[axis] for axis in STEPS[step].chosen},
        height=stage_height(head),
        title=title,
        **softmax,
    )


def result(step: int, head: Head) -> tuple[dict[str, Array], pd.DataFrame]:
    """Every matrix of `step` by name, and the first result as a table."""
    drawn = [part for equation in STEPS[step].equations(head) for part in equation if isinstance(part, Matrix)]
    arrays = {part.symbol: part.values for part in drawn}
    return arrays, next(part for part in drawn if part.result).table()


def shapes(head: Head) -> str:
    """The shapes of this head in words."""
    n, m, d_k, d_model = head.queries.size, head.keys.size, head.d_k, head.d_model
    inputs = f"X: {_positions(n)} × {d_model}" + (f" · Y: {_positions(m)} × {d_model}" if head.crosses else "")
    projected = f"Q: {_positions(n)} × {d_k} · K and V: {_positions(m)} × {d_k}"
    return f"{inputs} · {projected} · scores and weights: {n} × {m} · z: {_positions(n)} × {d_k}"


def _positions(count: int) -> str:
    return "1 position" if count == 1 else f"{count} positions"


def stage_height(head: Head) -> int:
    """Pixels that the pictures of all seven steps share, so that nothing jumps between them."""
    rows = head.queries.size + 2 * head.keys.size
    return min(max(3 * 90 + 12 * rows, 480), 900)


def _hidden(head: Head) -> str:
    count = int((~head.mask).sum())
    if not count:
        return f"Every query may look at every key here: none of the {head.mask.size} cells is masked."
    return f"Keys that a query may not look at are set to −∞ (hatched): {count} of {head.mask.size} cells."


STEPS = (
    Step(
        "Project to Q, K, V",
        "3.2.2",
        equations.projection,
        lambda head: (
            "Learned matrices make "
            + (
                "a query of each decoder row (X), a key and a value of each encoder row (Y)."
                if head.crosses
                else "a query, a key and a value of each row of X."
            )
        ),
        lambda head: (
            "The query says what a position looks for, the key what it can be found by, the value what it hands over. "
            f"Each head has matrices of its own, {head.d_model} × {head.d_k} here, so that each can look for "
            "something else."
        ),
        ("query", "key", "dimension"),
    ),
    Step(
        "Scores Q Kᵀ",
        "3.2.1",
        equations.scores,
        lambda head: f"Each score is the dot product of a query and a key: {head.d_k} products, added up.",
        lambda head: (
            "A dot product is large where two vectors are long and point the same way. One matrix product computes "
            f"all {head.scores.size} at once: that is what makes attention fast."
        ),
    ),
    Step(
        "Divide by √dₖ",
        "3.2.1",
        equations.scaling,
        lambda head: (
            f"Every score is divided by √{head.d_k} = {math.sqrt(head.d_k):.2f}: the same pattern, paler in the same "
            "colour range."
        ),
        lambda head: (
            f"A sum of {head.d_k} independent products spreads √{head.d_k} times as widely as one of them. Without the "
            "division the softmax would put far more weight on one key, and far less gradient would come back."
        ),
    ),
    Step(
        "Mask",
        "3.2.3",
        equations.masking,
        _hidden,
        lambda _: (
            "In the decoder's self-attention a row may not look at the words after it, which it is trained to "
            "predict. The mask comes before the softmax, so that the remaining weights still sum to 1."
        ),
    ),
    Step(
        "Softmax",
        "3.2.1",
        equations.softmax,
        lambda head: (
            f"Each row becomes positive weights that sum to 1. The temperature of this run is τ = {head.temperature:g}."
        ),
        lambda _: (
            "Each score is divided by τ and becomes a power of e; each power is divided by the sum of its row. "
            "τ below 1 sharpens the weights, above 1 it flattens them; the paper's attention has τ = 1. The sidebar's "
            "temperature runs the model again, the slider above the matrices only draws this head's weights again."
        ),
    ),
    Step(
        "Weighted sum of V",
        "3.2.1",
        equations.weighted_sum,
        lambda head: (
            f"Each query gathers all values, each multiplied by its weight: row by row, z of head {head.index}."
        ),
        lambda _: (
            "A row of z is an average of the value vectors, in which the keys with the largest weights count most. "
            "This is the only place where information moves from one position to another."
        ),
        ("query", "key", "dimension"),
    ),
    Step(
        "Concat, then project",
        "3.2.2",
        equations.output,
        lambda head: (
            f"The z of all {head.n_heads} heads stand side by side and $W_O$ mixes them; below, the part that head "
            f"{head.index} alone adds."
        ),
        lambda head: (
            f"Head {head.index}'s block (framed) meets only its own {head.d_k} rows of $W_O$ (framed), so the output "
            "is a sum: one part for each head, and the bias once."
        ),
        ("query", "model"),
    ),
)
