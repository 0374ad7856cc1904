"""Compare the files of two runs: python -m model.diff before.npz after.npz.

`trace.save("before.npz")` writes such a file. With --fail-on-diff it is a regression test for a changed model.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from model.command_line import real_number, run_command
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
        return Difference(name, np.inf, np.inf, (), _why_incomparable(before, after))
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


def _why_incomparable(before: Array | None, after: Array | None) -> str:
    return ONLY_BEFORE if after is None else ONLY_AFTER if before is None else OTHER_SHAPE


def main(arguments: list[str] | None = None) -> int:
    """Print what differs by more than the tolerance; 1 if anything does and --fail-on-diff was given."""
    parser = argparse.ArgumentParser(prog="python -m model.diff", description="Compare the files of two runs.")
    parser.add_argument("before", help="file that trace.save() wrote")
    parser.add_argument("after")
    about = "share of the largest number of each array by which it may differ (default: %(default)g)"
    parser.add_argument("--tolerance", type=real_number(0, finite=False), default=TOLERANCE, help=about)
    parser.add_argument("--fail-on-diff", action="store_true", help="exit with 1 if anything differs by more")
    args = parser.parse_args(arguments)
    try:
        before, after = Trace.load(args.before), Trace.load(args.after)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    texts = {"source": (before.source, after.source), "predicted text": (before.translation, after.translation)}
    texts = {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
    for name, (one, other) in texts.items():
        print(f"{name}: {one!r} | {other!r}")
    found = [each for each in compare(before, after) if each.relative > args.tolerance]
    for each in found:
        print(f"{each.name}: {_in_words(each, before.named_arrays(), after.named_arrays())}")
    print(_summary(found, before.named_arrays().keys() & after.named_arrays().keys(), args.tolerance))
    return int(args.fail_on_diff and bool(found or texts))


def _in_words(found: Difference, before: Mapping[str, Array], after: Mapping[str, Array]) -> str:
    if found.reason == OTHER_SHAPE:
        return f"shape {before[found.name].shape} | {after[found.name].shape}"
    if found.reason:
        return found.reason
    return f"{found.largest:.3g}, {found.relative:.3g} of its largest number, at {list(found.where)}"


def _summary(found: Sequence[Difference], shared: Set[str], tolerance: float) -> str:
    """One sentence: how many arrays differ in what way, of those that can."""
    counts = Counter(each.reason for each in found)
    same_shape = len(shared) - counts[OTHER_SHAPE]
    said = [f"{counts['']} of {same_shape} arrays of the same name and shape differ by more than {tolerance:g}"]
    if counts[OTHER_SHAPE]:
        said.append(f"{counts[OTHER_SHAPE]} have another shape")
    said += [f"{counts[where]} are {where}" for where in (ONLY_BEFORE, ONLY_AFTER) if counts[where]]
    return "; ".join(said)


if __name__ == "__main__":
    run_command(main)
