"""One word in two sentences: how far its residual streams are apart after each sub-layer, and what moves them apart."""

from dataclasses import dataclass

import numpy as np

from model.analysis.stream import residual_stream
from model.analysis.written import last_parts
from model.trace import Array, StackName, Trace


@dataclass(frozen=True)
class Step:
    """A point of the residual stream."""

    layer: int | None
    """None: before the first layer, or after the last norm"""
    name: str
    """of the sub-layer before it; embedding, or last norm"""
    vectors: Array
    """(position, d_model)"""


def stream_steps(trace: Trace, stack: StackName) -> list[Step]:
    """The residual stream before the first layer, after each sub-layer, and after the last norm where there is one."""
    stream = trace.streams[stack]
    steps = [Step(None, "embedding", stream.embedded.stream)]
    steps += [Step(sublayer.layer, sublayer.name, sublayer.after) for sublayer in stream.sublayers]
    return [*steps, Step(None, "last norm", stream.final)] if stream.last_norm is not None else steps


def cosine(one: Array, other: Array) -> float:
    """Of two vectors (d_model,), in double precision."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def mean_cosine(vectors: Array) -> float:
    """Of each two different positions of (position, d_model); 1 where there is one alone."""
    return residual_stream.mean_cosine(vectors) if len(vectors) > 1 else 1.0


def apart_by_part(trace: Trace, other: Trace, stack: StackName, here: int, there: int) -> dict[str, float]:
    """What each part of the model adds to 1 - cosine of the stack's output at a position of one run and of another.

    With â and b̂ the two vectors at length 1, 1 - cosine is half of |â - b̂|². Each part wrote a summand of either; what
    it adds is half of the product of its difference with â - b̂. A part that wrote the same into both adds nothing.

    Returns:
        {part: value}, which sum to 1 - cosine.

    Raises:
        ValueError: the residual stream could not be read in every layer.
    """
    sides = [last_parts(run, stack, [row]) for run, row in ((trace, here), (other, there))]
    units = [
        {
            name: part[0] / np.linalg.norm(run.streams[stack].final[row].astype(np.float64))
            for name, part in parts.items()
        }
        for parts, run, row in zip(sides, (trace, other), (here, there), strict=True)
    ]
    zero = np.zeros_like(next(iter(units[0].values())))
    moved = {name: units[0].get(name, zero) - units[1].get(name, zero) for name in units[0] | units[1]}
    whole = np.sum(list(moved.values()), axis=0)
    return {name: float(part @ whole) / 2 for name, part in moved.items()}
