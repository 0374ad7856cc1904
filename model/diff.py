"""Compare the files of two runs: python -m model.diff before.npz after.npz.

`trace.save("before.npz")` writes such a file. With --fail-on-diff it is a regression test for a changed model.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Trace

TOLERANCE = 1e-5
"""float32 rounding on another processor stays below"""


@dataclass(frozen=True)
class Difference:
    """Two arrays of one name that are not equal."""

    name: str
    largest: float
    """absolute difference; infinite where shapes differ, or a number stands beside none"""
    relative: float
    """`largest` over the largest finite number of the first array"""
    where: tuple[int, ...]
    """index of the largest difference; () where shapes differ"""


def compare(before: Trace, after: Trace) -> list[Difference]:
    """What differs, in the order of the trace; an array that only one run has counts as infinitely different."""
    ours, theirs = before.named_arrays(), after.named_arrays()
    pairs = ((name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs})
    return [found for found in (_difference(*pair) for pair in pairs) if found]


def _difference(name: str, before: Array | None, after: Array | None) -> Difference | None:
    if before is None or after is None or before.shape != after.shape:
        return Difference(name, np.inf, np.inf, ())
    one, other = before.astype(np.float64), after.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: equal, by the first condition
        apart = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    apart = np.nan_to_num(apart, nan=np.inf)
    if not apart.any():
        return None
    largest = float(apart.max())
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) or 1.0
    return Difference(name, largest, largest / scale, tuple(map(int, np.unravel_index(apart.argmax(), apart.shape))))


def main(arguments: list[str] | None = None) -> int:
    """Print what differs by more than the tolerance; 1 if anything does and --fail-on-diff was given."""
    parser = argparse.ArgumentParser(prog="python -m model.diff", description="Compare the files of two runs.")
    parser.add_argument("before", help="file that trace.save() wrote")
    parser.add_argument("after")
    about = "share of the largest number of each array by which it may differ (default: %(default)g)"
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=about)
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
        place = f"at {list(each.where)}" if each.where else "shapes differ"
        print(f"{each.name}: {each.largest:.3g}, {each.relative:.3g} of its largest number, {place}")
    print(f"{len(found)} of {len(before.named_arrays())} arrays differ by more than {args.tolerance:g}")
    return int(args.fail_on_diff and bool(found or texts))


if __name__ == "__main__":
    sys.exit(main())
