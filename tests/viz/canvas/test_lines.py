"""The payload of the lines holds the run's own weights, every digit, and who is who."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.viz.payload import unpack
from viz.canvas.lines import MOST_HEADS, lines
from viz.drawing import named
from viz.theme import OKABE_ITO
from viz.tokens import labels

if TYPE_CHECKING:
    from model.trace import Trace

Array = np.ndarray
QUERIES, KEYS = list("abc"), list("wxyz")


def decode(payload: bytes) -> tuple[dict, Array]:
    """The header, and float32 (heads, query, key) with NaN where a weight is masked."""
    header, arrays = unpack(payload)

    def stacked(name: str) -> Array:
        return np.stack([arrays[named(header["path"], name, head)] for head in header["heads"]])

    return header, np.where(stacked("mask") if header["masked"] else True, stacked("pattern"), np.float32(np.nan))


@pytest.fixture
def weights() -> Array:
    return np.random.default_rng(2).dirichlet(np.ones(4), (8, 3)).astype(np.float32)


def test_the_bytes_are_the_weights_of_the_run(trace: "Trace") -> None:
    attention = trace.attention("decoder_self", 1)
    read, predicted = labels(attention.query_tokens), labels(trace.next_tokens)
    header, found = decode(lines(attention.pattern, read, read, allowed=attention.mask, predicts=predicted))
    assert np.array_equal(np.isnan(found), ~attention.mask)
    assert np.array_equal(found[attention.mask], attention.pattern[attention.mask])
    assert header["queries"] == header["keys"] == read
    assert header["predicts"] == predicted
    assert header["shown"] == header["heads"] == [0, 1, 2, 3]


def test_what_was_given_is_left_as_it_was(weights: Array) -> None:
    before = weights.copy()
    lines(weights, QUERIES, KEYS, allowed=np.zeros((3, 4), bool))
    assert np.array_equal(weights, before)


def test_a_head_keeps_its_look_whichever_others_stand_beside_it(weights: Array) -> None:
    looks = {
        heads: decode(lines(weights[: len(heads)], QUERIES, KEYS, heads=heads, shown=heads[:1]))[0]
        for heads in ((0, 1, 2), (2, 7), (5,), (8, 9))
    }
    assert [header["looks"] for header in looks.values()] == [[0, 1, 2], [2, 7], [5], [0, 1]]
    assert looks[2, 7]["shown"] == [2]
    assert looks[2, 7]["colours"] == list(OKABE_ITO)


def test_no_two_heads_look_the_same(weights: Array) -> None:
    header, _ = decode(lines(weights[:3], QUERIES, KEYS, heads=(0, 8, 1)))
    assert len(set(header["looks"])) == 3


def test_numbers_that_are_no_shares_have_a_range_of_their_own(weights: Array) -> None:
    header, found = decode(lines(weights * 7, QUERIES, KEYS, high=7, measure="length"))
    assert np.array_equal(found, weights * 7)
    assert (header["high"], header["measure"]) == (7, "length")
    assert header["least"] == pytest.approx(7 * decode(lines(weights, QUERIES, KEYS))[0]["least"])


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda weights: lines(weights, QUERIES, KEYS[1:]), "have shape"),
        (lambda weights: lines(weights, QUERIES, KEYS, heads=[1]), "have shape"),
        (lambda weights: lines(weights[:0], QUERIES, KEYS), "have shape"),
        (lambda weights: lines(np.concatenate([weights] * 2), QUERIES, KEYS), f"1 to {MOST_HEADS} different heads"),
        (lambda weights: lines(weights[:2], QUERIES, KEYS, heads=[3, 3]), "different heads"),
        (lambda weights: lines(weights - 1, QUERIES, KEYS), "Weights run from 0"),
        (lambda weights: lines(weights * 3, QUERIES, KEYS), "Weights run from 0"),
        (lambda weights: lines(weights, QUERIES, KEYS, predicts=["a", "b"]), "2 predicted tokens"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_words(weights: Array, draw: Callable, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draw(weights)
