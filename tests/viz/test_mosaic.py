"""The payload of the mosaic holds the run's own weights, and says what they are."""

import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from viz.mosaic import MASKED, MOST_CELLS, Group, mosaic
from viz.tokens import labels

if TYPE_CHECKING:
    from model.trace import Trace

Array = np.ndarray


def decode(payload: bytes) -> tuple[dict, list[Array]]:
    """The header, and each group's float16 weights with NaN where they are masked."""
    (length,) = struct.unpack("<I", payload[:4])
    header = json.loads(payload[4 : 4 + length])
    body = payload[4 + length :]
    found = []
    for group in header["groups"]:
        shape = group["layers"], group["heads"], len(group["queries"]), len(group["keys"])
        assert (4 + length + group["offset"]) % 2 == 0
        found.append(np.frombuffer(body, "<f2", int(np.prod(shape)), group["offset"]).reshape(shape))
    assert sum(array.nbytes for array in found) == len(body)
    return header, found


def group_of(trace: "Trace", kind: str) -> Group:
    layers = [trace.attention(kind, layer) for layer in (0, 1)]
    stacked = (np.stack([getattr(layer, name) for layer in layers]) for name in ("pattern", "mask"))
    weights, allowed = stacked
    return Group(kind, kind, weights, labels(layers[0].query_tokens), labels(layers[0].key_tokens), allowed)


@pytest.fixture
def group() -> Group:
    weights = np.random.default_rng(1).random((2, 3, 4, 5), dtype=np.float32)
    return Group("cross", "Cross-attention", weights, list("abcd"), list("vwxyz"))


def test_the_bytes_are_the_weights_of_the_run_to_a_two_thousandth(trace: "Trace") -> None:
    groups = [group_of(trace, kind) for kind in ("encoder_self", "decoder_self", "cross")]
    header, found = decode(mosaic(groups, ("cross", 1, 2)))
    for group, described, halves in zip(groups, header["groups"], found, strict=True):
        assert described["kind"] == group.kind
        assert (described["queries"], described["keys"]) == (group.queries, group.keys)
        seen = ~np.isnan(halves)
        assert np.array_equal(seen, group.allowed)
        np.testing.assert_allclose(halves[seen], group.weights[seen], rtol=2**-11, atol=2**-25)
    assert header["chosen"] == ["cross", 1, 2]
    assert header["high"] == 1


def test_bits_are_in_the_order_of_the_weights_and_masked_cells_come_first(group: Group) -> None:
    group.weights[0, 0, 0] = [np.nan, -0.0, 0, 1e-7, 1]
    payload = mosaic([group])
    row = np.frombuffer(payload[-2 * group.weights.size :], "<i2", 5)
    assert row[0] == np.array(MASKED, "<u2").view("<i2") == -1
    assert row[1] == row[2] == 0
    assert list(row) == sorted(row)


def test_the_colours_may_go_up_to_the_largest_number(group: Group) -> None:
    double = replace(group, weights=group.weights * 2)
    header, _ = decode(mosaic([group, double], high=None, measure="length"))
    assert header["high"] == np.float16(double.weights.max())
    assert header["measure"] == "length"
    nothing = replace(group, weights=np.zeros_like(group.weights))
    assert decode(mosaic([nothing], high=None))[0]["high"] == 1


def test_all_may_be_masked(group: Group) -> None:
    _, (halves,) = decode(mosaic([replace(group, allowed=np.array(False))]))
    assert np.isnan(halves).all()


def test_tokens_are_text_in_the_header(group: Group) -> None:
    nasty = ["<img src=x onerror=alert(1)>", "$x$", '"', "ü"]
    header, _ = decode(mosaic([replace(group, queries=nasty)]))
    assert header["groups"][0]["queries"] == nasty


def test_what_cannot_be_drawn_is_said_in_words(group: Group) -> None:
    with pytest.raises(ValueError, match="1 to 3 kinds"):
        mosaic([])
    with pytest.raises(ValueError, match="1 to 3 kinds"):
        mosaic([group] * 4)
    with pytest.raises(ValueError, match="name 2 queries and 5 keys"):
        replace(group, queries=["a", "b"])
    with pytest.raises(ValueError, match="nothing to draw"):
        replace(group, weights=group.weights[:, :0])
    with pytest.raises(ValueError, match="numbers from -0"):
        mosaic([replace(group, weights=group.weights - 1)])
    with pytest.raises(ValueError, match="numbers from"):
        mosaic([replace(group, weights=group.weights + np.inf)])
    with pytest.raises(ValueError, match="positive number"):
        mosaic([group], high=0)
    side = int(MOST_CELLS**0.5) + 1
    large = Group("cross", "Cross", np.broadcast_to(np.float32(0), (1, 1, side, side)), ["a"] * side, ["b"] * side)
    with pytest.raises(ValueError, match="fewer kinds or layers"):
        mosaic([large])
