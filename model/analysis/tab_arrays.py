"""The arrays that tabs export, by name; where a tab shows what one function returns, it exports that instead."""

import numpy as np

from model.background.studies import read_study
from model.trace import Array, SubLayer, Trace


def vector_arrays(before: Trace, after: Trace) -> dict[str, Array]:
    """What two runs on the same text hand on for each token after the last layer, and the angle between the two
    vectors, in degrees."""
    first, second = (list(trace.streams.values())[-1].final.astype(np.float64) for trace in (before, after))
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosine = ((first * second).sum(axis=-1) / lengths).clip(-1, 1)
    return {"vectors_before": first, "vectors_after": second, "degrees": np.degrees(np.arccos(cosine))}


def feed_forward(trace: Trace, stack: str, layer: int) -> SubLayer:
    """The feed-forward sub-layer of a layer."""
    found = (s for s in trace.streams[stack].sublayers if s.hidden is not None and s.layer == layer)
    if (sublayer := next(found, None)) is None:
        raise LookupError(f"The inside of the feed-forward of layer {layer} was not found.")
    return sublayer


def study_arrays(name: str) -> dict[str, Array]:
    """The columns of checkpoints/studies/<name>.csv."""
    return {str(column): np.array(values.tolist()) for column, values in read_study(name).items()}
