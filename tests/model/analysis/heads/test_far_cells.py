"""Far cells: each is a weight of the run between two words that are far apart, and all of them are there."""

import numpy as np
import pytest

from model.analysis.heads.far_cells import FAR, far_cells, pieces_of, read_sentence, strongest
from tests.model.strategies import shaped

TEXT = "a dog sees a cat and a small dog runs in the snow"


@pytest.fixture(params=["translator", "language model"])
def trace(request, translator):
    opened = translator if request.param == "translator" else shaped("post", request.param)
    return opened.trace(TEXT)


def test_every_far_cell_of_every_head_is_ranked_once(trace) -> None:
    kind = trace.kinds[0]
    cells, special = far_cells(trace, kind.name), trace.streams[kind.queries].tokens.special
    expected = {}
    for layer in kind.layers:
        one = trace.attention(kind.name, layer)
        for head, query, key in np.argwhere(one.mask):
            if abs(query - key) >= FAR and not (special[query] or special[key]):
                expected[layer, head, query, key] = one.pattern[head, query, key]
    assert {tuple(place): weight for place, weight in zip(cells.places, cells.weights, strict=True)} == expected
    assert (np.diff(cells.weights) <= 0).all()
    assert cells.rank(cells.weights[0]) == 1
    assert cells.rank(-1.0) == len(expected) + 1


def test_the_strongest_pair_is_the_largest_weight_between_two_words(trace) -> None:
    kind = trace.kinds[0]
    tokens = trace.streams[kind.queries].tokens
    rows, columns = pieces_of(tokens, "snow"), pieces_of(tokens, "dog")
    pair = strongest(trace, kind.name, "snow", "dog")
    blocks = [trace.attention(kind.name, layer).pattern[:, rows][:, :, columns] for layer in kind.layers]
    assert pair.weight == max(block.max() for block in blocks)
    assert trace.attention(kind.name, pair.layer).pattern[pair.head, pair.query, pair.key] == pair.weight
    backwards = strongest(trace, kind.name, "dog", "snow")
    assert (backwards == pair) == kind.causal, "in a causal model the later word is the query"
    assert strongest(trace, kind.name, "dog", "elephant") is None


def test_the_pieces_of_a_word_spell_it(trace) -> None:
    tokens = trace.streams[trace.kinds[0].queries].tokens
    for word in ("dog", "small", "snow"):
        covered = [tokens.spans[i] for i in pieces_of(tokens, word)]
        assert tokens.text[covered[0][0] : covered[-1][1]].strip() == word
    assert pieces_of(tokens, "zebra") == []


@pytest.mark.parametrize("text", ["", "word " * 5000])
def test_what_a_model_cannot_read_is_a_sentence(text: str, translator) -> None:
    assert read_sentence(translator, text).endswith(".")
