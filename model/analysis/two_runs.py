"""Two runs, before and after a change: how probable each found the target, and where their weights lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Trace


@dataclass(frozen=True)
class TopTokens:
    """What either run found most probable at one position, the most probable of both first."""

    ids: tuple[int, ...]
    before: Array
    """(token,) probability, of the whole vocabulary"""
    after: Array
    """(token,)"""

    @property
    def rest(self) -> tuple[float, float]:
        """Probability of all other tokens of the vocabulary together, before and after."""
        before, after = (max(1.0 - float(shares.sum()), 0.0) for shares in (self.before, self.after))
        return before, after


def largest_changes(before: Trace, after: Trace) -> dict[str, Array]:
    """Kind -> (layers, heads): the largest |difference| of any attention weight of each head.

    Raises:
        ValueError: the runs are not of the same tokens.
    """
    if (before.src_ids, before.tgt_ids) != (after.src_ids, after.tgt_ids):
        raise ValueError("only runs on the same source and the same target have the same cells to compare")
    kinds = dict.fromkeys(kind for kind, _ in before.attentions)
    return {
        kind: np.stack(
            [
                np.abs(after.attentions[address].pattern - attention.pattern).max(axis=(1, 2))
                for address, attention in before.attentions.items()
                if address[0] == kind
            ]
        )
        for kind in kinds
    }


def top_tokens(before: Array, after: Array, k: int = 6, with_ids: Sequence[int] = ()) -> TopTokens:
    """The `k` most probable tokens of each run at one position, and those of `with_ids`.

    Args:
        before: (vocabulary,) probabilities.
        after: (vocabulary,) probabilities.
        k: of each run.
        with_ids: tokens to list in any case.
    """
    best = {int(token) for shares in (before, after) for token in np.argsort(-shares, kind="stable")[:k]}
    highest = np.maximum(before, after)
    ids = sorted(best | set(with_ids), key=lambda token: (-highest[token], token))
    return TopTokens(tuple(ids), before[ids], after[ids])


def are_identical(before: Trace, after: Trace) -> bool:
    """Whether all attention weights and all logits hold the same bits."""
    return np.array_equal(before.logits, after.logits) and all(
        np.array_equal(attention.pattern, after.attentions[address].pattern)
        for address, attention in before.attentions.items()
    )
