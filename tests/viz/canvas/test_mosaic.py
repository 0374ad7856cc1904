"""The payload of the mosaic holds the run's own weights, and says what they are."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.viz.payload import unpack
from viz.canvas.mosaic import MOST_CELLS, Group, mosaic
from viz.drawing import LEAST
from viz.tokens import labels

if TYPE_CHECKING:
    from model.trace import Trace

Array = np.ndarray


def decode(payload: bytes) -> tuple[dict, list[Array]]:
    """The header, and each group's weights, as the component reads them, with NaN where they are masked."""
    header, arrays = unpack(payload)
    found = []
    for group in header["groups"]:
        weights = np.stack([arrays[f"{path}.pattern"] for path in group["paths"]])
        masks = [
            np.broadcast_to(arrays[f"{path}.mask"], weights.shape[1:]) for path in group["paths"] if group["masked"]
        ]
        found.append(np.where(masks, weights, np.nan) if masks else weights)
    return header, found


def group_of(trace: "Trace", kind: str) -> Group:
    layers = [trace.attention(kind, layer) for layer in (0, 1)]
    stacked = (np.stack([getattr(layer, name) for layer in layers]) for name in ("pattern", "mask"))
    weights, allowed = stacked
    paths = [layer.path for layer in layers]
    texts = labels(layers[0].query_tokens), labels(layers[0].key_tokens)
    return Group(kind, kind, weights, *texts, allowed, paths=paths)


@pytest.fixture
def group() -> Group:
    weights = np.random.default_rng(1).random((2, 3, 4, 5), dtype=np.float32)
    return Group("cross", "Cross-attention", weights, list("abcd"), list("vwxyz"))


def test_the_payload_has_the_weights_of_the_run(trace: "Trace") -> None:
    groups = [group_of(trace, kind) for kind in ("encoder_self", "decoder_self", "cross")]
    header, found = decode(mosaic(groups, ("cross", 1, 2)))
    for group, described, sent in zip(groups, header["groups"], found, strict=True):
        assert described["kind"] == group.kind
        assert (described["queries"], described["keys"]) == (group.queries, group.keys)
        seen = ~np.isnan(sent)
        assert np.array_equal(seen, group.allowed)
        np.testing.assert_allclose(sent[seen], group.weights[seen], rtol=0, atol=1e-5)
    assert header["chosen"] == ["cross", 1, 2]
    assert header["high"] == 1


@example([0.0, float(np.finfo(np.float32).tiny)], 0)
@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=9), st.integers(-6, 6))
def test_codes_are_in_the_order_of_the_weights(values: list[float], power: int) -> None:
    """So the browser finds the largest of several cells by their codes."""
    weights = np.sort(np.float32(values) * np.float32(10.0**power))
    tokens = ["a"] * len(values)
    _, (sent,) = decode(mosaic([Group("cross", "Cross", weights.reshape(1, 1, 1, -1), ["a"], tokens)]))
    assert (np.diff(sent.ravel()) >= 0).all()
    np.testing.assert_allclose(sent.ravel(), weights, rtol=1e-5, atol=max(1e-5 * weights.max(), LEAST))


@pytest.mark.parametrize("own", [True, False], ids=["a mask for each head", "one mask for all heads"])
@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_any_mask_arrives_whole(own: bool, heads: int, tokens: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    weights = draw.random((2, heads, tokens, tokens), dtype=np.float32)
    allowed = np.broadcast_to(draw.random(weights.shape if own else weights.shape[2:]) < 0.5, weights.shape)
    group = Group("cross", "Cross-attention", weights, ["a"] * tokens, ["b"] * tokens, allowed)
    _, (sent,) = decode(mosaic([group]))
    assert np.array_equal(np.isnan(sent), ~allowed)
    np.testing.assert_allclose(sent, np.where(allowed, weights, np.nan), atol=1e-5)


def test_numbers_above_1_have_the_same_relative_precision(group: Group) -> None:
    header, (sent,) = decode(mosaic([replace(group, weights=group.weights * 37)], high=None))
    assert header["high"] is None, "the script takes the largest number"
    np.testing.assert_allclose(sent, group.weights * 37, atol=37e-5)


def test_several_groups_share_a_unit_and_a_missing_cell_is_masked(group: Group) -> None:
    small = group.weights * np.float32(1e-3)
    small[1, 2, 3, 4] = np.nan
    _, (large, sent) = decode(mosaic([group, replace(group, weights=small)]))
    np.testing.assert_allclose(large, group.weights, atol=1e-5)
    np.testing.assert_allclose(sent, small, atol=1e-5)


def test_all_may_be_masked(group: Group) -> None:
    _, (sent,) = decode(mosaic([replace(group, allowed=np.array(False))]))
    assert np.isnan(sent).all()


SIDE = int(MOST_CELLS**0.5) + 1


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda _: mosaic([]), "1 to 3 kinds"),
        (lambda group: mosaic([group] * 4), "1 to 3 kinds"),
        (lambda group: replace(group, paths=["decoder.layers.0.cross_attn"]), "has 2 layers and the paths"),
        (lambda group: replace(group, queries=["a", "b"]), "name 2 queries and 5 keys"),
        (lambda group: replace(group, weights=group.weights[:, :0]), "nothing to draw"),
        (lambda group: mosaic([replace(group, weights=group.weights - 1)]), "numbers from -0"),
        (lambda group: mosaic([replace(group, weights=group.weights + np.inf)]), "numbers from"),
        (lambda group: mosaic([group], high=0), "positive number"),
        (
            lambda _: mosaic([Group("cross", "Cross", np.zeros((1, 1, SIDE, SIDE), np.float32), *[["a"] * SIDE] * 2)]),
            "fewer kinds or layers",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said_in_words(group: Group, draw: Callable, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draw(group)
