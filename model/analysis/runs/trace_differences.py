"""Two saved runs, array by array: what differs, by how much and where."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Trace

TOLERANCE = 1e-5
"""float32 rounding on another processor stays below"""
ONLY_BEFORE, ONLY_AFTER, OTHER_SHAPE = "only in the first run", "only in the second run", "other shape"


@dataclass(frozen=True)
class Difference:
    """What differs between the arrays of one name, or between the array and none."""

    name: str
    largest: float
    """absolute difference; infinite where there is nothing to subtract, or a number stands beside none"""
    relative: float
    """`largest` over the largest finite number of the first array"""
    where: tuple[int, ...]
    """index of the largest difference; () where there is nothing to subtract"""
    reason: str
    """why there is nothing to subtract: ONLY_BEFORE, ONLY_AFTER or OTHER_SHAPE; empty if there is"""


def compare(before: Trace, after: Trace) -> list[Difference]:
    """What differs, in the order of the trace; an array that only one run has counts as infinitely different."""
    ours, theirs = before.named_arrays(), after.named_arrays()
    pairs = ((name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs})
    return [found for found in (_difference(*pair) for pair in pairs) if found]


def _difference(name: str, before: Array | None, after: Array | None) -> Difference | None:
    if before is None or after is None or before.shape != after.shape:
        reason = ONLY_BEFORE if after is None else ONLY_AFTER if before is None else OTHER_SHAPE
        return Difference(name, np.inf, np.inf, (), reason)
    one, other = before.astype(np.float64), after.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: equal, by the first condition
        apart = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    apart = np.nan_to_num(apart, nan=np.inf)
    if not apart.any():
        return None
    largest = float(apart.max())
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) or 1.0
    return Difference(
        name, largest, largest / scale, tuple(map(int, np.unravel_index(apart.argmax(), apart.shape))), ""
    )


def in_words(found: Difference, before: Mapping[str, Array], after: Mapping[str, Array]) -> str:
    if found.reason == OTHER_SHAPE:
        return f"shape {before[found.name].shape} | {after[found.name].shape}"
    if found.reason:
        return found.reason
    return f"{found.largest:.3g}, {found.relative:.3g} of its largest number, at {list(found.where)}"


def summarise(found: Sequence[Difference], shared: Set[str], tolerance: float) -> str:
    """One sentence: how many arrays differ in what way, of those that can."""
    counts = Counter(each.reason for each in found)
    same_shape = len(shared) - counts[OTHER_SHAPE]
    said = [f"{counts['']} of {same_shape} arrays of the same name and shape differ by more than {tolerance:g}"]
    if counts[OTHER_SHAPE]:
        said.append(f"{counts[OTHER_SHAPE]} have another shape")
    said += [f"{counts[where]} are {where}" for where in (ONLY_BEFORE, ONLY_AFTER) if counts[where]]
    return "; ".join(said)
