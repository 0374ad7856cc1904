"""Silver alignments find what was put into the text; the error rate is Och and Ney's; a head that aligns has none."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.silver_alignments import (
    WORD,
    Links,
    alignment_error_rate,
    count_links,
    silver_alignments,
)
from tests.model.tiny import SENTENCES


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


def test_the_error_rate_is_0_for_the_sure_links_and_1_for_none_of_them():
    made, all_sure = 4, 4
    assert alignment_error_rate(np.array([[made, 4, 4, all_sure]])) == pytest.approx([0])
    assert alignment_error_rate(np.array([[made, 0, 0, all_sure]])) == pytest.approx([1])
    # Three links, two of them sure and one possible only, of four sure ones: 1 - (2 + 3) / (3 + 4).
    assert alignment_error_rate(np.array([[3, 2, 3, 4]])) == pytest.approx([2 / 7])


def test_a_head_whose_weights_are_the_alignment_makes_no_error(translator):
    """Constructed weights: head 0 follows the links, head 1 never does; the other heads look at </s> alone."""
    source, target = SENTENCES[2]
    trace = translator.trace(source, target)
    n, m = (len(WORD.findall(text)) for text in (source, target))
    sure = np.eye(m, n, dtype=bool)
    attention = trace.attention("cross", 1)
    pattern = np.zeros_like(attention.pattern)
    words = [[_word_at(tokens, position) for position in range(len(tokens))] for tokens in _texts(trace)]
    for row, target_word in enumerate(words[1]):
        for key, source_word in enumerate(words[0]):
            if target_word is not None and source_word is not None:
                pattern[0, row, key] = target_word == source_word
                pattern[1, row, key] = target_word != source_word
    pattern[2:, :, -1] = 1
    attentions = {**trace.attentions, ("cross", 1): replace(attention, pattern=pattern)}
    counts = count_links(replace(trace, attentions=attentions), 1, Links(sure, sure))
    assert counts[:, [0, 3]].tolist() == [[m, sure.sum()]] * 4
    rates = alignment_error_rate(counts)
    assert rates[0] == pytest.approx(1 - 2 * min(m, n) / (m + min(m, n)))
    assert rates[1] == 1


def _texts(trace):
    return trace.streams["encoder"].tokens, trace.attention("cross", 1).predicts


def _word_at(tokens, position):
    """Number of the word that a piece is part of; None for a space."""
    span = tokens.spans[position]
    if span is None:
        return None
    words = enumerate(WORD.finditer(tokens.text))
    return next((i for i, word in words if word.start() < span[1] and span[0] < word.end()), None)
