"""Two runs on the same tokens, before and after a change: where attention weights and predictions differ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Trace


@dataclass(frozen=True)
class TopTokens:
    """The tokens that either run finds most probable at one position, ordered by the larger probability."""

    ids: tuple[int, ...]
    before: Array
    """(token,): probability in the first run, over the whole vocabulary"""
    after: Array
    """(token,): probability in the second run"""

    @property
    def rest(self) -> tuple[float, float]:
        """Total probability of all other tokens of the vocabulary, before and after."""
        before, after = (max(1.0 - float(shares.sum()), 0.0) for shares in (self.before, self.after))
        return before, after


def top_tokens(before: Array, after: Array, k: int = 6, with_ids: Sequence[int] = ()) -> TopTokens:
    """The `k` most probable tokens of each run at one position, by probabilities (vocabulary,), and in any case
    `with_ids`."""
    best = {int(token) for shares in (before, after) for token in np.argsort(-shares, kind="stable")[:k]}
    highest = np.maximum(before, after)
    ids = sorted(best | set(with_ids), key=lambda token: (-highest[token], token))
    return TopTokens(tuple(ids), before[ids], after[ids])


def largest_changes(before: Trace, after: Trace) -> dict[str, Array]:
    """By kind, (layers, heads): the largest absolute change of any attention weight of each head.

    Raises:
        ValueError: the runs do not have the same tokens.
    """
    if (before.src_ids, before.tgt_ids) != (after.src_ids, after.tgt_ids):
        raise ValueError("only runs on the same source and the same target have the same cells to compare")
    changes: dict[str, list[Array]] = {}
    for (kind, layer), attention in before.attentions.items():
        difference = np.abs(after.attentions[kind, layer].pattern - attention.pattern)
        changes.setdefault(kind, []).append(difference.max(axis=(1, 2)))
    return {kind: np.stack(layers) for kind, layers in changes.items()}


def are_identical(before: Trace, after: Trace) -> bool:
    """True if all attention weights and all logits are equal, bit for bit."""
    return np.array_equal(before.logits, after.logits) and all(
        np.array_equal(attention.pattern, after.attentions[address].pattern)
        for address, attention in before.attentions.items()
    )


def vector_arrays(before: Trace, after: Trace) -> dict[str, Array]:
    """What two runs on the same text hand on for each token after the last layer, and the angle between the two
    vectors, in degrees."""
    first, second = (list(trace.streams.values())[-1].final.astype(np.float64) for trace in (before, after))
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosine = ((first * second).sum(axis=-1) / lengths).clip(-1, 1)
    return {"vectors_before": first, "vectors_after": second, "degrees": np.degrees(np.arccos(cosine))}
