"""What a mask hides: tokens after the query, tokens out of its reach, or single cells."""

from dataclasses import dataclass

import numpy as np

from model.trace import Array


@dataclass(frozen=True)
class MaskShape:
    """The hidden cells of one head's mask, counted."""

    cells: int
    """of the matrix"""
    hidden: int
    later: int
    """hidden cells whose key comes after the query, which a causal mask is there to hide; 0 without a causal mask"""
    all_later: bool
    """whether it hides every key after the query, and there is one"""
    reach: int | None
    """the farthest visible key, in positions, if nearness alone decides which of the others are visible; None where all
    of these are visible, or where other cells are hidden"""

    @property
    def others(self) -> int:
        """Hidden cells that a causal mask is not there to hide."""
        return self.hidden - self.later


def mask_shape(mask: Array, causal: bool = False, crosses: bool = False) -> MaskShape:
    """What a mask, bool (query, key), hides; True = visible.

    `causal`: whether the attention has a causal mask, which a change may have lifted or opened; `crosses`: whether
    queries and keys belong to two texts, and so have no distance.
    """
    hidden = int((~mask).sum())
    if crosses:
        return MaskShape(mask.size, hidden, 0, False, None)
    distance = np.subtract.outer(np.arange(mask.shape[0]), np.arange(mask.shape[1]))
    after = (distance < 0) & causal
    later = int((~mask & after).sum())
    all_later = bool(after.any() and not (mask & after).any())
    reach = int(np.abs(distance)[mask].max(initial=0))
    is_window = hidden > later and np.array_equal(mask, (np.abs(distance) <= reach) & ~(after & all_later))
    return MaskShape(mask.size, hidden, later, all_later, reach if is_window else None)
