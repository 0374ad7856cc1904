"""The arrays that views export, by name: a page calls these functions, and the Python that it exports does too."""

from collections.abc import Sequence

from model.analysis.residual_stream import measure_stream, residual_stream
from model.trace import Array, Attention, Trace


def head_arrays(attention: Attention, head: int, names: Sequence[str]) -> dict[str, Array]:
    """Fields of one head of an attention, such as mask, scores, scaled and pattern."""
    return {name: getattr(attention, name)[head] for name in names}


def alignment_weights(trace: Trace, layer: int, head: int | None) -> Array:
    """(target position, source position): cross-attention weights of a head, or the mean over the layer's heads."""
    pattern = trace.attention("cross", layer).pattern
    return pattern.mean(axis=0) if head is None else pattern[head]


def translation_arrays(trace: Trace, layer: int, head: int | None) -> dict[str, Array]:
    """Alignment, the probability of each token of the target, and the logits."""
    weights = alignment_weights(trace, layer, head)
    return {"alignment": weights, "probability": trace.target_probabilities, "logits": trace.logits}


def step_arrays(trace: Trace, step: int, layer: int, head: int | None) -> dict[str, Array]:
    """Probabilities of the whole vocabulary at one step of the target, the alignment, and all logits."""
    weights = alignment_weights(trace, layer, head)
    return {"probabilities": trace.probabilities[step], "cross_weights": weights, "logits": trace.logits}


def stream_arrays(trace: Trace, stack: str, measures: Sequence[str]) -> dict[str, Array]:
    """The residual stream of the encoder or decoder, and measures of it by name."""
    found = measure_stream(trace, stack)
    return {"stream": residual_stream(trace, stack), **{name: getattr(found, name) for name in measures}}
