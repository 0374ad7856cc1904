"""Silver alignments find what was put into the text."""

import numpy as np
import pytest

from model.analysis.heads.alignments import WORD
from model.analysis.heads.silver_alignments import silver_alignments


def test_words_that_translate_each_other_are_linked_whatever_their_order():
    numbers = np.random.default_rng(0)
    pairs = []
    for _ in range(300):
        words = numbers.choice(20, 5, replace=False)
        order = [1, 0, 2, 4, 3]
        pairs.append((" ".join(f"s{i}" for i in words), " ".join(f"t{i}" for i in words[order])))
    for links in silver_alignments(pairs[:10], pairs[10:]):
        assert (links.sure == np.eye(5, dtype=bool)[[1, 0, 2, 4, 3]]).all()
        assert (links.possible >= links.sure).all()


def test_a_word_without_counterpart_is_linked_to_none():
    pairs = [(f"s{i} s{j}", f"t{i} t{j} um") for i in range(9) for j in range(9) if i != j]
    for links in silver_alignments(pairs[:5], pairs[5:]):
        assert links.sure.tolist() == [[True, False], [False, True], [False, False]]


@pytest.mark.parametrize("pair", [("a", "b"), ("...", "?!"), ("a", ""), ("", "b")])
def test_pairs_of_any_length_have_links_of_their_shape(pair):
    (links,) = silver_alignments([pair], [("a b", "c d")])
    shape = tuple(len(WORD.findall(text)) for text in reversed(pair))
    assert links.sure.shape == links.possible.shape == shape
