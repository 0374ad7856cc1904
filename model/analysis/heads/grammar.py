"""Grammar and meaning of heads: how often a word's largest weight is on the word that governs it, or that it governs.

Parses are silver: a program made them, no person. A relation such as nsubj joins a word, its dependent, and its
governor. Clark et al. (2019, section 4.2) score heads in this way, and Voita et al. (2019, section 5.2) ask whether a
head beats the best fixed offset, such as "the word before": a head that always looks there does not know grammar. Nor
does one that looks at the nearest noun, so the nearest word of the best part of speech is a second yardstick.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.language import Sentence, later, sentence, series
from model.trace import Array, Tokens
from model.training.data import read_lines

TYPE_RULES = {"positional": 0.5, "syntactic": 0.1, "semantic": 0.2, "copy": 0.5, "induction": 0.3}
"""smallest measure of each kind of work; see `kinds_of_work`"""
DIRECTIONS = (later("to the governor"), later("to the dependent"))
OFFSETS = np.array([offset for offset in range(-8, 9) if offset])
"""fixed offsets in words, of which the best is the yardstick"""

TAGS = ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
        "SYM", "VERB", "X")  # fmt: skip
"""parts of speech, of Universal Dependencies"""
SIDES = later("before"), later("after"), later("on either side")
NEAREST = tuple((tag, side) for tag in TAGS for side in SIDES)
"""the nearest word of a part of speech on a side: of these the best is the second yardstick"""


class Word(NamedTuple):
    """A word of a parsed text."""

    start: int
    """its first character"""
    end: int
    """the one after its last"""
    governor: int
    """the number of the word that governs it; its own: none does"""
    relation: str
    tag: str = ""
    """its part of speech; empty: the parse has none"""


Parse = tuple[Word, ...]


def read_parses(path: Path | str) -> dict[str, Parse]:
    """Text -> its words, from lines of {"text": ..., "words": [[start, end, governor, relation, part of speech], ...]}.

    Raises:
        ValueError: a line is no such thing; the message names file and line.
    """
    parses = {}
    for number, line in enumerate(read_lines(path), start=1):
        try:
            content = json.loads(line)
            words = tuple(
                Word(int(a), int(b), int(governor), *map(str, names)) for a, b, governor, *names in content["words"]
            )
            if not all(0 <= word.governor < len(words) for word in words):
                raise ValueError("a governor is no word of the text")
            parses[str(content["text"])] = words
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path}, line {number} is no parse ({error}); python -m model.commands.silver_parses writes them"
            ) from error
    return parses


def relations_of(parses: Mapping[str, Parse]) -> tuple[str, ...]:
    """The relations between two words, in the order of the alphabet."""
    words = (word for parse in parses.values() for number, word in enumerate(parse) if word.governor != number)
    return tuple(sorted({word.relation for word in words}))


def count_relations(
    weights: Array, tokens: Tokens, parse: Parse, relations: Sequence[str], causal: bool
) -> dict[str, Array]:
    """How often each of the relations can be seen, and is seen, in one run's self-attention, (heads, query, key).

    A word's weights are summed over the pieces of the word that is read and averaged over its own; special tokens and
    the word itself do not count. Where no row sees what follows (`causal`), words count whose partner stands before
    them.

    Returns:
        `relation hits`, (direction, relation, heads); `relation words`, (direction, relation); `relation offsets`,
        (direction, relation, offset): how often the partner stands so far away; `relation nearest`, (direction,
        relation, NEAREST): how often it is the nearest word of its part of speech.
    """
    pieces = _pieces_of(tokens, parse)
    spelt = pieces.any(axis=-1)
    rows = pieces / np.maximum(pieces.sum(axis=-1, keepdims=True), 1)
    words = rows @ weights @ pieces.T.astype(float)
    words[:, np.arange(len(parse)), np.arange(len(parse))] = -1
    words[:, :, ~spelt] = -1
    if causal:
        words[:, np.triu(np.ones(words.shape[1:], dtype=bool))] = -1
    best = words.argmax(axis=-1)
    shape = len(DIRECTIONS), len(relations)
    hits, seen = np.zeros((*shape, len(weights))), np.zeros(shape)
    offsets, nearest = np.zeros((*shape, len(OFFSETS))), np.zeros((*shape, len(NEAREST)))
    numbers = {name: number for number, name in enumerate(relations)}
    for dependent, word in enumerate(parse):
        if word.governor == dependent or word.relation not in numbers or not (spelt[dependent] & spelt[word.governor]):
            continue
        relation = numbers[word.relation]
        for direction, (row, partner) in enumerate(((dependent, word.governor), (word.governor, dependent))):
            if causal and partner > row:
                continue
            seen[direction, relation] += 1
            hits[direction, relation] += best[:, row] == partner
            offsets[direction, relation] += partner - row == OFFSETS
            for way in _nearest_ways(parse, row, partner, causal):
                nearest[direction, relation, NEAREST.index(way)] += 1
    return {"relation hits": hits, "relation words": seen, "relation offsets": offsets, "relation nearest": nearest}


def _nearest_ways(parse: Parse, row: int, partner: int, causal: bool) -> Iterator[tuple[str, str]]:
    """The members of NEAREST that lead from a word to its partner; of two equally near words, the one before counts."""
    tag, far = parse[partner].tag, abs(partner - row)
    if tag not in TAGS:
        return
    alike = [number for number, word in enumerate(parse) if word.tag == tag and number != row]
    alike = [number for number in alike if number < row] if causal else alike
    side = SIDES[partner > row]
    if not any((number > row) == (partner > row) and abs(number - row) < far for number in alike):
        yield tag, side
        if not any(abs(number - row) < far or (number < row < partner and row - number == far) for number in alike):
            yield tag, SIDES[2]


def _pieces_of(tokens: Tokens, parse: Parse) -> Array:
    """bool (word, piece): a piece belongs to the word that has its first character, a mark of a word's start aside."""
    pieces = np.zeros((len(parse), len(tokens)), dtype=bool)
    for number, span in enumerate(tokens.spans):
        if span is None:
            continue
        start = next((i for i in range(*span) if not tokens.text[i : i + 1].isspace()), None)
        for place, word in enumerate(parse) if start is not None else ():
            if word.start <= start < word.end:
                pieces[place, number] = True
    return pieces


def meaning_correlation(cosines: Array, meaning: Array) -> Array:
    """(heads,): correlation of weight and cosine of the two embeddings, over pairs at equal distance.

    At each distance the means are subtracted, so that a head that looks near, where related words stand, gains nothing
    by that. 0 where it is undefined.

    Args:
        cosines: (3, distance): number of pairs, sums of their cosines and of the squares of these.
        meaning: (3, heads, distance): sums of the weights, of their squares, and of weight times cosine.
    """
    count, cosine, squares = cosines
    there = np.maximum(count, 1)
    weight, weight_squares, products = meaning
    both = (products - weight * cosine / there).sum(axis=-1)
    of_weight = np.maximum((weight_squares - weight**2 / there).sum(axis=-1), 0)
    of_cosine = max(float((squares - cosine**2 / there).sum()), 0.0)
    size = np.sqrt(of_weight * of_cosine)
    return np.divide(both, size, out=np.zeros_like(both), where=size > 1e-12)


@dataclass(frozen=True)
class Work:
    """How much a head does one kind of work."""

    name: str
    """positional, syntactic, semantic, copy or induction"""
    measure: float
    """NaN: it was not measured"""
    best: Sentence | str = ""
    """at what: the token, or the relation with its direction"""

    @property
    def does(self) -> bool:
        """Whether the rule holds: the measure reaches its limit."""
        return self.measure >= TYPE_RULES[self.name]


def kinds_of_work(mean: Mapping[str, float], gains: Mapping[str, float]) -> tuple[Work, ...]:
    """Five kinds of work, each with a measure and a rule, of which a head can do several or none.

    Positional: the largest share of its weight on the previous, the same or the next token. Syntactic: by how much its
    share of right partners exceeds that of the best fixed offset, at its best relation; Voita et al. (2019) ask for a
    tenth more, and here it is ten percentage points. Semantic: correlation of weight and likeness of embeddings at
    equal distance. Copy: the copy score of its OV circuit. Induction: the prefix-matching score. The limits of the last
    three are ours.

    Args:
        mean: the head's scores by name (many_sentences.SCORES).
        gains: relation with its direction -> share of right partners minus that of the best fixed offset.
    """
    near = {f"{name} token": mean[name] for name in ("previous", "same", "next") if name in mean}
    work = []
    for name, found in {"positional": near, "syntactic": gains}.items():
        best = max(found, key=found.__getitem__) if found else ""
        work.append(Work(name, found.get(best, np.nan), series(map(sentence, best.split(", "))) if best else ""))
    named = {"semantic": "meaning", "copy": "copy", "induction": "induction"}
    return (*work, *(Work(name, mean.get(score, np.nan)) for name, score in named.items()))
