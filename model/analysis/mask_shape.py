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
    """hidden cells whose key comes after the query; 0 where queries and keys belong to two texts"""
    all_later: bool
    """whether every key after the query is hidden, and there is one"""
    reach: int | None
    """the farthest visible key, in positions, if nearness alone decides which of the others are visible; None where all
    of these are visible, or where other cells are hidden"""

    @property
    def others(self) -> int:
        """Hidden cells whose key does not come after the query."""
        return self.hidden - self.later


def mask_shape(mask: Array, crosses: bool = False) -> MaskShape:
    """What a mask hides.

    Args:
        mask: bool (query, key), True = visible.
        crosses: whether queries and keys belong to two texts.
    """
    hidden = int((~mask).sum())
    if crosses:
        return MaskShape(mask.size, hidden, 0, False, None)
    distance = np.arange(mask.shape[0])[:, None] - np.arange(mask.shape[1])
    after = distance < 0
    later = int((~mask & after).sum())
    all_later = bool(after.any() and not (mask & after).any())
    reach = int(np.abs(distance)[mask].max(initial=0))
    near = (np.abs(distance) <= reach) & ~(after & all_later)
    is_window = hidden > (after.sum() if all_later else 0) and np.array_equal(mask, near)
    return MaskShape(mask.size, hidden, later, all_later, reach if is_window else None)
