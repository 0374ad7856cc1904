"""Grammar of heads on planted weights: a head that knows the governor, one that knows the word before, and parses."""

import json

import numpy as np
import pytest

from model.analysis.heads.grammar import (
    DIRECTIONS,
    NEAREST,
    OFFSETS,
    Word,
    count_relations,
    kinds_of_work,
    meaning_correlation,
    read_parses,
    relations_of,
)
from model.trace import Tokens

TEXT = "Old Tom reads books."
PARSE = (Word(0, 3, 1, "amod"), Word(4, 7, 2, "nsubj"), Word(8, 13, 2, "ROOT"), Word(14, 19, 2, "dobj"))
PARSE += (Word(19, 20, 2, "punct"),)
RELATIONS = relations_of({TEXT: PARSE})
SPANS = (None, (0, 3), (3, 7), (7, 11), (11, 13), (13, 19), (19, 20), None)
"""<s>, Old, Tom, rea, ds, books, ., </s>; a piece has the space before its word"""
TOKENS = Tokens(
    TEXT,
    tuple(range(8)),
    ("<s>", "▁Old", "▁Tom", "▁rea", "ds", "▁books", ".", "</s>"),
    tuple(span is None for span in SPANS),
    SPANS,
    (None, 0, 1, 2, 2, 3, 3, None),
)


def planted(targets: dict[int, int]) -> np.ndarray:
    """(query, key): most weight of each row on <s>, half as much on the token planted."""
    weights = np.full((8, 8), 0.01)
    weights[:, 0] = 0.6
    for row, key in targets.items():
        weights[row, key] = 0.3
    return weights


GOVERNOR = planted({1: 2, 2: 3, 5: 4, 6: 3, 3: 3, 4: 4})
"""of each piece of a word, a piece of its governor"""
BEFORE = planted({row: row - 1 for row in range(2, 7)})


def shares(weights, causal=False):
    found = count_relations(np.stack(weights), TOKENS, PARSE, RELATIONS, causal)
    return found["relation hits"], found["relation words"], found["relation offsets"]


def test_a_head_on_the_governor_finds_every_relation_and_special_tokens_do_not_count():
    hits, words, _ = shares([GOVERNOR])
    assert (hits[0, :, 0] == words[0]).all()
    assert words[0].sum() == sum(word.relation != "ROOT" for word in PARSE)


def test_a_head_on_the_word_before_finds_what_stands_there_and_no_more():
    hits, _, offsets = shares([BEFORE])
    before = offsets[0, :, OFFSETS.tolist().index(-1)]
    assert (hits[0, :, 0] == before).all()
    assert before[RELATIONS.index("dobj")] == 1


def test_both_directions_of_a_relation_are_mirrored():
    _, words, offsets = shares([GOVERNOR])
    assert (words[0] == words[1]).all()
    assert (offsets[0] == offsets[1][:, ::-1]).all()


def test_where_a_row_sees_nothing_that_follows_only_partners_before_it_count():
    _, words, offsets = shares([np.tril(GOVERNOR)], causal=True)
    assert not offsets[..., OFFSETS > 0].any()
    assert words[0, RELATIONS.index("nsubj")] == 0
    assert words[1, RELATIONS.index("nsubj")] == 1


@pytest.mark.parametrize("missing", [0, 3])
def test_a_word_that_no_piece_spells_is_not_counted(missing):
    other = [*PARSE]
    other[missing] = other[missing]._replace(start=40, end=44)
    found = count_relations(GOVERNOR[None], TOKENS, tuple(other), RELATIONS, False)
    assert found["relation words"].sum() == 2 * (len(PARSE) - 2)


def test_meaning_is_the_correlation_at_equal_distance():
    rng = np.random.default_rng(0)
    cosine, distance = rng.normal(size=400), rng.integers(0, 3, 400)
    weight = 0.4 * cosine + rng.normal(size=400)
    near = (distance[:, None] == np.arange(3)).astype(float)
    shifted = weight + 5 * distance  # a head that looks far: no gain by that

    def correlation(w):
        alone = np.stack([np.ones(400), cosine, cosine**2]) @ near
        return meaning_correlation(alone, np.stack([w @ near, w**2 @ near, (w * cosine) @ near])[:, None])[0]

    centred = [each - (each @ near / near.sum(0))[distance] for each in (weight, cosine)]
    assert correlation(weight) == pytest.approx(np.corrcoef(*centred)[0, 1])
    assert correlation(shifted) == pytest.approx(correlation(weight))
    assert correlation(np.ones(400)) == 0


def test_each_kind_of_work_has_its_rule():
    nothing = kinds_of_work({"previous": 0.1, "same": 0.1, "next": 0.1}, {})
    assert not any(one.does for one in nothing)
    mean = {"previous": 0.9, "same": 0.0, "next": 0.0, "meaning": 0.5, "copy": 0.9, "induction": 0.8}
    everything = kinds_of_work(mean, {"nsubj, to the governor": 0.3, "dobj, to the governor": 0.05})
    assert all(one.does for one in everything)
    assert [one.name for one in everything] == ["positional", "syntactic", "semantic", "copy", "induction"]
    assert everything[0].best == "previous token"
    assert everything[1].best == "nsubj, to the governor"


def test_parses_are_read_and_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "parses.jsonl"
    line = json.dumps({"text": TEXT, "words": [list(word) for word in PARSE]})
    path.write_text(line + "\n", encoding="utf-8")
    assert read_parses(path) == {TEXT: PARSE}
    for damaged in ("{}", "no json", '{"text": "a", "words": [[0, 1, 5, "det"]]}', "[]", '{"text": "a", "words": 3}'):
        path.write_text(f"{line}\n{damaged}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="line 2 is no parse"):
            read_parses(path)
    assert len(DIRECTIONS) == 2


def test_the_nearest_word_of_a_part_of_speech_is_the_partner_or_not():
    tags = dict(zip(range(5), ("ADJ", "NOUN", "VERB", "NOUN", "PUNCT"), strict=True))
    parse = tuple(word._replace(tag=tags[number]) for number, word in enumerate(PARSE))
    found = count_relations(GOVERNOR[None], TOKENS, parse, RELATIONS, False)["relation nearest"]

    def counted(direction: int, relation: str, tag: str, side: str) -> float:
        return found[direction, RELATIONS.index(relation), NEAREST.index((tag, side))]

    # From the verb both nouns are one word away: the one before it counts where either side may be.
    assert counted(1, "nsubj", "NOUN", "before") == counted(1, "nsubj", "NOUN", "on either side") == 1
    assert counted(1, "dobj", "NOUN", "after") == 1
    assert counted(1, "dobj", "NOUN", "on either side") == 0
    assert counted(0, "amod", "NOUN", "after") == 1
    assert counted(0, "amod", "NOUN", "before") == 0
    without = count_relations(GOVERNOR[None], TOKENS, PARSE, RELATIONS, False)["relation nearest"]
    assert not without.any()
