"""Two sentences: each pair of tokens has its share of the cosine, and words have what their pieces have."""

from itertools import pairwise

import numpy as np
import pytest

from model.analysis.runs.sentence_pairs import pair_shares, read_text, text_vectors
from model.analysis.words import add_up, merge
from tests.model.analysis.written.test_written import traced
from tests.model.strategies import FAMILIES, shaped

MEAN = ("mean",)


@pytest.mark.parametrize("name", ["post", "pre, RMSNorm, RoPE, wide shared keys"])
@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_sum_to_the_cosine_of_the_means_after_every_layer(name: str, family: str) -> None:
    opened = shaped(name, family)
    both = [traced(opened), opened.trace("a cat and a dog")]
    one, other = map(text_vectors, both)
    stack, tokens = read_text(both[0])
    stream = both[0].streams[stack]
    assert len(tokens) == (stream.tokens.prompt_length or len(stream.tokens))
    assert list(one) == ["embedding", *(f"layer {i}" for i in range(2)), *(["output"] if stream.last_norm else [])]
    np.testing.assert_array_equal(list(one.values())[-1], stream.final[: len(tokens)])
    for layer, following in pairwise(each for each in stream.sublayers if each.name == "self_attn"):
        np.testing.assert_array_equal(one[f"layer {layer.layer}"], following.before[: len(tokens)])
    for after, vectors in one.items():
        a, b = vectors.astype(np.float64), other[after].astype(np.float64)
        x, y = a.mean(axis=0), b.mean(axis=0)
        length = np.sqrt(x @ x) * np.sqrt(y @ y)
        shares = pair_shares(vectors, other[after], MEAN)
        assert shares.sum() == pytest.approx(x @ y / length, abs=1e-13)
        assert shares[1, 2] == pytest.approx(a[1] @ b[2] / (len(a) * len(b) * length), abs=1e-13)


def test_a_word_has_the_sum_of_its_pieces() -> None:
    table, rows, columns = np.arange(20.0).reshape(4, 5), ((0, 1, 2), (3,)), ((0,), (1, 2), (3, 4))
    summed = add_up(table, rows, columns)
    assert summed.tolist() == [[sum(table[i, j] for i in row for j in column) for column in columns] for row in rows]
    np.testing.assert_array_equal(merge(table, rows, columns), summed / [[3], [1]])


def test_the_order_of_words_is_seen_after_the_first_layer_only(translator) -> None:
    one, other = (text_vectors(translator.trace(text, "Ein")) for text in ("a dog and a cat", "a cat and a dog"))
    cosines = [pair_shares(one[after], other[after], MEAN).sum() for after in one]
    assert cosines[0] == pytest.approx(1, abs=1e-6)
    assert max(cosines[1:]) < 1 - 1e-6


def test_a_text_whose_vector_is_0_has_no_cosine() -> None:
    with pytest.raises(ValueError, match="cosine"):
        pair_shares(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones((2, 2)), MEAN)
