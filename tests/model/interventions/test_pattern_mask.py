"""Sparse patterns of attention, against masks that are built cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.interventions import MaskEdit, PatternMask
from model.network.masks import pattern_mask

SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."
sizes = st.none() | st.integers(1, 14)


def kept(query: int, key: int, window: int | None, stride: int | None, tokens: tuple, block: int | None) -> bool:
    """Whether a cell is in one of the patterns, as the papers say it in words."""
    near = window is not None and key in range(query - window + 1, query + window)
    striding = stride is not None and any(key in (query - i * stride, query + i * stride) for i in range(20))
    blocks = [] if block is None else [range(start, start + block) for start in range(0, 20, block)]
    together = any(query in each and key in each for each in blocks)
    return query == key or near or striding or together or query in tokens or key in tokens


@given(st.integers(1, 12), st.integers(0, 11), sizes, sizes, st.lists(st.integers(0, 14), max_size=3), sizes)
def test_each_cell_is_kept_as_a_loop_over_cells_says(n_keys, start, window, stride, tokens, block):
    start = min(start, n_keys - 1)
    mask = pattern_mask(n_keys - start, n_keys, window, stride, tokens, block)[0, 0]
    by_hand = [[kept(q, k, window, stride, tuple(tokens), block) for k in range(n_keys)] for q in range(start, n_keys)]
    assert mask.tolist() == by_hand


CHANGES = (
    PatternMask(2),
    PatternMask(2, 2),
    PatternMask(2, global_tokens=(0, 3)),
    PatternMask(block=3),
    PatternMask(1, kind="decoder_self", layer=1),
)


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_the_run_is_that_of_the_model_with_the_other_cells_forbidden(translator, change: PatternMask) -> None:
    trace = translator.trace(SOURCE, TARGET, interventions=(change,))
    plain = translator.trace(SOURCE, TARGET)
    edits = []
    for (kind, layer), attention in plain.attentions.items():
        if kind != "cross" and change.kind in (None, kind) and change.layer in (None, layer):
            rows, keys = attention.mask.shape[1:]
            sizes = (change.window, change.stride, change.global_tokens, change.block)
            cells = tuple((q, k) for q in range(rows) for k in range(keys) if not kept(q, k, *sizes))
            edits.append(MaskEdit(cells, kind=kind, layer=layer))
            mask = trace.attention(kind, layer).mask
            assert not (mask & ~attention.mask).any(), "no masked cell is opened"
            assert mask.any(axis=-1).all(), "each row keeps a key"
            assert not (mask == attention.mask).all()
        else:
            np.testing.assert_array_equal(trace.attention(kind, layer).mask, attention.mask)
    np.testing.assert_array_equal(trace.logits, translator.trace(SOURCE, TARGET, interventions=tuple(edits)).logits)


def test_a_pattern_that_keeps_all_cells_changes_nothing(translator) -> None:
    plain = translator.trace(SOURCE, TARGET)
    for change in (PatternMask(100), PatternMask(stride=1), PatternMask(block=100)):
        np.testing.assert_array_equal(translator.rerun(plain, (change,)).logits, plain.logits)
