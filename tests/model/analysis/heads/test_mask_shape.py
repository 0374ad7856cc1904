"""What a mask hides is counted from the mask, whatever the family of the model."""

import numpy as np
import pytest

from model.analysis.heads.mask_shape import mask_shape

DISTANCE = np.subtract.outer(np.arange(7), np.arange(7))


def test_a_mask_that_hides_nothing_has_no_shape() -> None:
    shape = mask_shape(np.ones((4, 4), bool))
    assert (shape.hidden, shape.later, shape.all_later, shape.reach, shape.others) == (0, 0, False, None, 0)


def test_a_causal_mask_hides_all_later_keys_and_nothing_else() -> None:
    shape = mask_shape(DISTANCE >= 0, causal=True)
    assert (shape.hidden, shape.later, shape.all_later, shape.reach) == (21, 21, True, None)


@pytest.mark.parametrize("reach", [0, 1, 3, 5])
def test_a_window_is_read_from_the_mask_on_both_sides_and_below_a_causal_mask(reach: int) -> None:
    both = mask_shape(np.abs(DISTANCE) <= reach)
    below = mask_shape((DISTANCE >= 0) & (reach >= DISTANCE), causal=True)
    assert (both.reach, below.reach) == (reach, reach)
    assert (both.all_later, below.all_later) == (False, True)
    assert both.others == 2 * below.others == (np.abs(DISTANCE) > reach).sum()


def test_single_cells_are_no_window() -> None:
    mask = DISTANCE >= 0
    mask[6, 2] = False
    shape = mask_shape(mask, causal=True)
    assert (shape.reach, shape.others, shape.all_later) == (None, 1, True)
    both = np.ones((4, 4), bool)
    both[0, 3] = both[2, 1] = False
    assert (mask_shape(both).reach, mask_shape(both).others) == (None, 2)
    opened = DISTANCE >= 0
    opened[0, 3] = True
    assert (mask_shape(opened, True).all_later, mask_shape(opened, True).others) == (False, 0)


def test_two_texts_have_no_order_between_them() -> None:
    mask = np.ones((3, 5), bool)
    mask[0, 4] = False
    shape = mask_shape(mask, crosses=True)
    assert (shape.cells, shape.hidden, shape.later, shape.others, shape.reach) == (15, 1, 0, 1, None)


def test_one_token_has_nothing_to_hide() -> None:
    assert mask_shape(np.ones((1, 1), bool)).hidden == 0
