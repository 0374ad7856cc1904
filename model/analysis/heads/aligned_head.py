"""Which head of a run's cross-attention reads most like a word alignment, and what a head aligns."""

import numpy as np

from model.analysis.distributions import ratio
from model.trace import Array, Trace


def alignment_scores(trace: Trace, layer: int) -> Array:
    """How closely each cross-attention head of a layer resembles a word alignment, 0 to 1.

    In an alignment every target token points at one source token, and every source token is pointed at. So the score
    is the harmonic mean of two averages: over the predicted tokens, the largest weight that each puts on a source
    token; over the source tokens, the largest weight that each receives. Special tokens do not count.

    Returns:
        (heads,); 0 where the source or the target consists of special tokens alone.
    """
    pattern = trace.attention("cross", layer).pattern
    predicted, read = (
        ~np.array(tokens.special) for tokens in (trace.streams["decoder"].predicts, trace.streams["encoder"].tokens)
    )
    if not predicted.any() or not read.any():
        return np.zeros(len(pattern))
    weights = pattern[:, predicted][:, :, read].astype(float)
    given, received = weights.max(axis=2).mean(axis=1), weights.max(axis=1).mean(axis=1)
    return ratio(2 * given * received, given + received)


def best_aligned_head(trace: Trace) -> tuple[int, int]:
    """Layer and head: of the decoder's last layer, the cross-attention head with the highest alignment score."""
    layer = trace.kind("cross").layers[-1]
    return layer, int(np.argmax(alignment_scores(trace, layer)))


def alignment_weights(trace: Trace, layer: int, head: int | None) -> Array:
    """(query, key): weights of a head, or the mean over the layer's heads, in attention of the `aligning_kind`."""
    pattern = trace.attention(aligning_kind(trace), layer).pattern
    return pattern.mean(axis=0) if head is None else pattern[head]


def aligning_kind(trace: Trace) -> str:
    """The kind of attention that relates what is written to what was given: cross-attention, else self-attention."""
    return next((kind.name for kind in trace.kinds if kind.crosses), trace.kinds[-1].name)
