"""Scaled dot-product attention on vectors that a visitor types, and on random ones of growing width (section 3.2.1)."""

import math
import re
from dataclasses import dataclass

import numpy as np

from model.analysis.heads.softmax import softmax, softmax_at, softmax_peaks
from model.language import Refusal, language
from model.trace import Array

MOST_ROWS, MOST_WIDTH, LARGEST = 12, 16, 1e6
WIDTHS = tuple(2**power for power in range(11))
"""dₖ from 1 to 1,024"""
AS_TYPED = str.maketrans("−，；", "-,;")
"""what a keyboard may write for a minus sign, and for what parts numbers and rows"""
QUERIES = 128
"""random ones, of each width"""


@dataclass(frozen=True)
class Rows:
    """Vectors with their names."""

    names: tuple[str, ...]
    """empty where a row has none"""
    values: Array
    """(row, width)"""


def read_rows(text: str, what: str) -> Rows:
    """Vectors of one width, such as "cat 1 0; dog 0.8 0.6": rows separated by semicolons, numbers by spaces or commas,
    before them a name or none. `what` they are, for the error messages.

    Where the language of this run has a decimal comma, a comma right before a digit is one: 0,5 is 0.5.

    Raises:
        ValueError: the sentence says what to type.
    """
    typed = text.translate(AS_TYPED)
    if language().decimal == ",":
        typed = re.sub(r",(?=\d)", ".", typed)
    written = [re.split(r"[\s,]+", row.strip()) for row in typed.split(";") if row.strip(" ,\t")]
    if not written:
        raise Refusal(
            "{what}: type at least one row of numbers, such as 1 0.5; rows are separated by semicolons.", what=what
        )
    if len(written) > MOST_ROWS:
        raise Refusal(
            "{what}: {count} rows are more than this bench holds; type at most {most}.",
            what=what,
            count=len(written),
            most=MOST_ROWS,
        )
    names = [row.pop(0) if not _is_number(row[0]) else "" for row in written]
    for name, row in zip(names, written, strict=True):
        if strange := [part for part in row if not _is_number(part)]:
            raise Refusal(
                "{what}: “{word}” is not a number. A row is an optional name, then numbers.",
                what=what,
                word=strange[0][:20],
            )
        if not row:
            raise Refusal(
                "{what}: the row “{name}” has no numbers. A row is an optional name, then numbers.",
                what=what,
                name=name[:20],
            )
    widths = {len(row) for row in written}
    if len(widths) > 1:
        raise Refusal(
            "{what}: rows differ in length, from {least} to {most}; give each the same number of numbers.",
            what=what,
            least=min(widths),
            most=max(widths),
        )
    if max(widths) > MOST_WIDTH:
        raise Refusal(
            "{what}: {count} numbers in a row are too many; type at most {most}.",
            what=what,
            count=max(widths),
            most=MOST_WIDTH,
        )
    values = np.array(written, float)
    if not (np.abs(values) <= LARGEST).all():
        raise Refusal(
            "{what}: numbers must lie between −{largest:,.0f} and {largest:,.0f}.", what=what, largest=LARGEST
        )
    return Rows(tuple(name[:20] for name in names), values)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", text, re.IGNORECASE | re.ASCII))


@dataclass(frozen=True)
class OwnAttention:
    """Equation 1 on typed vectors, in double precision."""

    scores: Array
    """(query, key): q k"""
    scaled: Array
    """(query, key): divided by `divisor`"""
    divisor: float
    tau: float
    """temperature"""
    weights: Array
    """(query, key)"""
    z: Array
    """(query, d_v)"""

    def jacobian(self, row: int) -> Array:
        """(key, key): how much each weight of a row changes with each number that the softmax reads,
        diag(p) - p p^T."""
        p = self.weights[row]
        return np.diag(p) - np.outer(p, p)

    def softmax_steps(self, row: int) -> dict[str, Array]:
        """The softmax of a row in its steps, (key,) each: minus the largest, exponentiated, divided by the sum."""
        less = (self.scaled[row] - self.scaled[row].max()) / self.tau
        return {"less": less, "exponential": np.exp(less), "weight": self.weights[row]}


def attend(queries: Array, keys: Array, values: Array, divide: bool, tau: float = 1.0) -> OwnAttention:
    """Scores, weights and results for queries and keys, (query, d_k) and (key, d_k), and values, (key, d_v).

    Raises:
        ValueError: the shapes do not fit; the sentence says what to type.
    """
    if queries.shape[1] != keys.shape[1]:
        raise Refusal(
            "Queries have the length {of_query}, keys {of_key}: a dot product needs one length in both.",
            of_query=queries.shape[1],
            of_key=keys.shape[1],
        )
    if len(keys) != len(values):
        raise Refusal("Keys: {keys}, values: {values}. Give each key one value.", keys=len(keys), values=len(values))
    divisor = math.sqrt(keys.shape[1]) if divide else 1.0
    scores = queries @ keys.T
    weights = softmax_at(scores / divisor, np.ones(scores.shape, bool), tau)
    return OwnAttention(scores, scores / divisor, divisor, tau, weights, weights @ values)


@dataclass(frozen=True)
class RandomWidths:
    """Queries and keys with components N(0, 1): what their products do as d_k grows; (width,) each."""

    widths: Array
    variance: Array
    """of q k"""
    peak: Array
    """mean over rows of the largest weight, without the division"""
    divided_peak: Array
    """the same with it"""
    slope: Array
    """mean over rows of the largest derivative of a weight with respect to its own score, p (1 - p), undivided"""
    divided_slope: Array


def random_widths(keys: int, seed: int) -> RandomWidths:
    """New random vectors for each of WIDTHS: QUERIES of them, compared with so many keys."""
    numbers = np.random.default_rng(seed)
    rows = []
    for width in WIDTHS:
        scores = numbers.standard_normal((QUERIES, width)) @ numbers.standard_normal((keys, width)).T
        both = scores, scores / math.sqrt(width)
        seen = np.ones(scores.shape, bool)
        peaks = [float(softmax_peaks(one, seen).mean()) for one in both]
        slopes = [float((weights * (1 - weights)).max(axis=-1).mean()) for weights in map(softmax, both)]
        rows.append((width, float(scores.var()), *peaks, *slopes))
    return RandomWidths(*np.array(rows).T)
