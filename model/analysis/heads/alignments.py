"""Word alignments: links made by reading, and how far the links of each head of cross-attention are from them.

A link joins a word and its translation. Of the reference's links some are sure, and all are possible (Och and Ney
2003). A head links each target word to the source word with the largest weight. Row t of the decoder reads one target
word and predicts the next one, so its weights can be taken for either: these are the two conventions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from model.cancel import check_cancelled
from model.checkpoints.translator import Translator
from model.language import Refusal
from model.trace import Array, Tokens, Trace
from model.training.data import read_lines

GOLD_FILE = "alignments.tsv"
"""in the folder of a checkpoint: pairs with gold links"""
WORD = re.compile(r"\w+|[^\w\s]")
SPLITS: Mapping[str, re.Pattern[str]] = {"marks": WORD, "spaces": re.compile(r"\S+")}
"""how a text is cut into words: marks apart from letters, or at white space alone as in tokenised text"""
CONVENTIONS = ("predicts", "reads")
"""a row's weights stand for the target word that it predicts, or for the one that it reads: Naive-Att and Shift-Att of
Chen et al. (2020)"""
WITHIN = 0.05
"""how far an alignment head may be from the best one, in alignment error rate"""
_LINK = re.compile(r"([0-9]+)([-?p])([0-9]+)")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair."""

    sure: Array
    """bool (target word, source word)"""
    possible: Array
    """bool (target word, source word); sure links are possible, too"""


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair with its links."""

    source: str
    target: str
    links: Links


class Scores(NamedTuple):
    """How well links agree with a reference (Och and Ney 2003, section 5)."""

    aer: float
    """alignment error rate: 1 - (|A S| + |A P|) / (|A| + |S|), 0 if every link is right"""
    precision: float
    """share of the links that are possible"""
    recall: float
    """share of the sure links that were made"""
    f1: float
    """harmonic mean of precision and recall"""


def read_gold(path: Path, data: Path | None = None, first: int = 0, split: str = "") -> list[AlignedPair]:
    """Pairs and links in Pharaoh format: `i-j` is sure, `i?j` and `ipj` are possible, source word first.

    Lines that begin with # and have no tab are comments.

    Args:
        path: lines of source<TAB>target<TAB>links; or of links alone, one for each line of `data`.
        data: lines of source<TAB>target; of a file with sentences, only those pairs are kept that are in `data`.
        first: the number of a sentence's first word, 0 or 1.
        split: of SPLITS; "": marks where the file has sentences, else spaces.

    Raises:
        ValueError: a line is malformed, or links words that there are not; the message names file and line.
    """
    lines = [
        (number, line)
        for number, line in enumerate(read_lines(path), start=1)
        if not line.startswith("#") or "\t" in line
    ]
    with_sentences = any("\t" in line for _, line in lines)
    word = SPLITS[split or default_split(with_sentences)]
    rows = _rows_with_sentences(path, lines) if with_sentences else _rows_beside(path, lines, data)
    found = [
        AlignedPair(source, target, _read_links(text, source, target, word, first, f"{path}, line {number}"))
        for number, source, target, text in rows
    ]
    if with_sentences and data is not None:
        known = {(source, target) for _, source, target in _read_numbered(data)}
        found = [pair for pair in found if (pair.source, pair.target) in known]
        if not found:
            raise ValueError(f"{path} aligns none of the pairs of {data}: leave --data out to take those of the file.")
    if not any(pair.links.sure.any() for pair in found):
        raise ValueError(f"{path} has no sure link (i-j), and without one there is nothing to find.")
    return found


def default_split(with_sentences: bool) -> str:
    """How words are counted if nothing is said: Pharaoh files of links alone belong to tokenised text."""
    return "marks" if with_sentences else "spaces"


def has_sentences(path: Path) -> bool:
    """Whether a file of links has the sentences, too."""
    return any("\t" in line for line in read_lines(path))


def _rows_with_sentences(path: Path, lines: Sequence[tuple[int, str]]) -> list[tuple[int, str, str, str]]:
    rows = []
    for number, line in lines:
        fields = line.split("\t")
        if not line.strip():
            continue
        if len(fields) != 3 or not fields[0].strip() or not fields[1].strip():
            raise ValueError(
                f"{path}, line {number}: expected source<TAB>target<TAB>links, found {len(fields)} field(s)"
                + (", one of them empty" if len(fields) == 3 else "")
            )
        rows.append((number, *fields))
    return rows


def _rows_beside(path: Path, lines: Sequence[tuple[int, str]], data: Path | None) -> list[tuple[int, str, str, str]]:
    if data is None:
        raise ValueError(f"{path} has links alone: --data must name the sentence pairs that they belong to.")
    pairs = _read_numbered(data, blank=True)
    if len(pairs) != len(lines):
        raise ValueError(
            f"{path} has {len(lines):,} lines of links for {len(pairs):,} lines of {data}: each pair needs its line, "
            "an empty one if it has no links."
        )
    both = zip(lines, pairs, strict=True)
    return [(number, source, target, text) for (number, text), (_, source, target) in both if source and target]


def _read_numbered(path: Path, blank: bool = False) -> list[tuple[int, str, str]]:
    """Line number, source and target of each line; with `blank` of lines with an empty side, too."""
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != 2 and line.strip():
            raise ValueError(f"{path}, line {number}: expected source<TAB>target, found {len(fields)} field(s)")
        source, target = fields if len(fields) == 2 else ("", "")
        if blank or (source.strip() and target.strip()):
            rows.append((number, source.strip() and source, target.strip() and target))
    return rows


def _read_links(text: str, source: str, target: str, word: re.Pattern[str], first: int, where: str) -> Links:
    sizes = [len(word.findall(side)) for side in (source, target)]
    sure, possible = (np.zeros(sizes[::-1], dtype=bool) for _ in range(2))
    for item in text.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise ValueError(f"{where}: {item!r} is no link; expected i-j (sure), i?j or ipj (possible)")
        place = tuple(int(match[group]) - first for group in (1, 3))
        for side, number, size in zip(("source", "target"), place, sizes, strict=True):
            if not 0 <= number < size:
                raise ValueError(
                    f"{where}: {item!r} names word {number + first} of the {side}, whose {size} words count from "
                    f"{first}; --count-from and --words say how words are counted"
                )
        possible[place[::-1]] = True
        sure[place[::-1]] |= match[2] == "-"
    return Links(sure, possible)


def word_weights(trace: Trace, layer: int, word: re.Pattern[str] = WORD) -> Array:
    """(convention, head, target word, source word): a cross-attention's weights between the words of the two texts.

    Weights are summed over the pieces of the source word and averaged over the rows of the target word's pieces, which
    are those that predict them or those that read them. Special tokens belong to no word. A target word without a row
    has no weight.
    """
    place = "cross", layer
    pattern = trace.attentions[place].pattern if place in trace.attentions else trace.weights[place]
    predicts = _pieces_of_words(trace.streams["decoder"].predicts, word)
    reads = np.zeros_like(predicts)
    reads[:, 1:] = predicts[:, :-1]
    source = _pieces_of_words(trace.streams["encoder"].tokens, word)
    rows = np.stack([predicts, reads]).astype(float)
    rows /= np.maximum(rows.sum(axis=-1, keepdims=True), 1)
    return rows[:, None] @ pattern.astype(float) @ source.T


def make_links(weights: Array) -> Array:
    """bool, in the shape (..., target word, source word) of `weights`: each target word's source word, if any."""
    best = weights.argmax(axis=-1)[..., None] == np.arange(weights.shape[-1])
    return best & (weights.max(axis=-1, keepdims=True) > 0)


def count_links(made: Array, links: Links) -> Array:
    """(..., 4) of (..., target word, source word): the links made, those that are sure, those possible; all sure."""
    counts = [each.sum(axis=(-2, -1)) for each in (made, made & links.sure, made & links.possible)]
    return np.stack([*counts, np.full_like(counts[0], links.sure.sum())], axis=-1)


def alignment_error_rate(counts: Array) -> Array:
    """(..., 4) from `count_links`, summed over sentences -> (...): 1 - (|A S| + |A P|) / (|A| + |S|)."""
    made, sure, possible, all_sure = np.moveaxis(np.asarray(counts), -1, 0)
    return 1 - (sure + possible) / (made + all_sure)


def score_links(counts: Array) -> Scores:
    """The scores of (4,) from `count_links`, summed over sentences."""
    made, sure, possible, all_sure = (int(count) for count in counts)
    precision, recall = possible / made if made else 0.0, sure / all_sure if all_sure else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Scores(float(alignment_error_rate(counts)), precision, recall, f1)


def diagonal_links(links: Links) -> Array:
    """bool (target word, source word): each target word's link to the source word at the same share of the sentence."""
    targets, sources = links.sure.shape
    near = ((np.arange(targets) + 0.5) * sources / max(targets, 1)).astype(int)
    return near[:, None] == np.arange(sources)


def _pieces_of_words(tokens: Tokens, word: re.Pattern[str]) -> Array:
    """bool (word, piece): the pieces that each word of the text consists of, by their characters."""
    words = [match.span() for match in word.finditer(tokens.text)]
    spans = [span or (-1, -1) for span in tokens.spans]
    pieces = [[start < last and first < end for first, last in spans] for start, end in words]
    return np.array(pieces, dtype=bool).reshape(len(words), len(spans))


class AlignmentHead(NamedTuple):
    """A head whose links are among the best."""

    layer: int
    head: int
    convention: str
    """the better one of CONVENTIONS"""
    aer: float


@dataclass(frozen=True)
class AlignmentReport:
    """How well each head of cross-attention, and the mean of heads, aligns; counts are those of `count_links`."""

    reference: str
    """gold: links made by reading; silver: those of a statistical model"""
    layers: tuple[int, ...]
    """numbers of the layers with cross-attention"""
    heads: Array
    """(layer, head, convention, 4)"""
    means: Array
    """(layer, n, convention, 4): of the mean of the first n + 1 heads; the last is the mean of the layer"""
    baselines: Mapping[str, Array] = field(default_factory=dict)
    """name -> (4,): of links that no head makes, against the same reference"""
    pairs: int = 0
    """that were scored"""
    left_out: int = 0
    """whose words the model's tokens do not spell, or which do not fit into it"""

    @property
    def error_rates(self) -> Array:
        """(layer, head, convention)."""
        return alignment_error_rate(self.heads)

    @property
    def mean_error_rates(self) -> Array:
        """(layer, convention): of the mean of all heads of each layer."""
        return alignment_error_rate(self.means[:, -1])

    @property
    def alignment_heads(self) -> list[AlignmentHead]:
        """Every head whose better convention lies within WITHIN of the best error rate, best first."""
        return self._best_of(CONVENTIONS)

    @property
    def predicting_heads(self) -> list[AlignmentHead]:
        """The same if rows stand for what they predict, as programs take them that do not know the convention."""
        return self._best_of(CONVENTIONS[:1])

    def _best_of(self, conventions: Sequence[str]) -> list[AlignmentHead]:
        rates = self.error_rates[..., [CONVENTIONS.index(name) for name in conventions]]
        better = rates.min(axis=-1)
        heads = [
            AlignmentHead(self.layers[row], int(head), conventions[rates[row, head].argmin()], float(better[row, head]))
            for row, head in zip(*np.nonzero(better <= better.min() + WITHIN + 1e-9), strict=True)
        ]
        return sorted(heads, key=lambda one: (one.aer, one.layer, one.head))

    @property
    def ctranslate2(self) -> tuple[int, int, float]:
        """alignment_layer and alignment_heads of CTranslate2's converters, and their error rate: the best there is.

        CTranslate2 returns the mean of the first so many heads of one layer, in the row that predicts a token.
        """
        rates = alignment_error_rate(self.means)[..., CONVENTIONS.index("predicts")]
        row, last = np.unravel_index(rates.argmin(), rates.shape)
        return self.layers[row], int(last) + 1, float(rates[row, last])

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and lists; precision, recall and F1 are those of the better convention."""
        best, (layer, count, aer) = self.alignment_heads, self.ctranslate2
        heads = [
            {"layer": layer, "head": head, **_as_json(self.heads[row, head])}
            for row, layer in enumerate(self.layers)
            for head in range(self.heads.shape[1])
        ]
        return {
            "alignment_heads": [[one.layer, one.head] for one in best],
            "conventions": [one.convention for one in best],
            "predicting_heads": [[one.layer, one.head] for one in self.predicting_heads],
            "ctranslate2": {"alignment_layer": layer, "alignment_heads": count, "aer": round(aer, 4)},
            "heads": heads,
            "layers": [{"layer": layer, **_as_json(self.means[row, -1])} for row, layer in enumerate(self.layers)],
            "reference": self.reference,
            "baselines": {name: _rounded(score_links(counts)._asdict()) for name, counts in self.baselines.items()},
            "pairs": self.pairs,
            "left_out": self.left_out,
            "within": WITHIN,
        }


def _as_json(counts: Array) -> dict[str, float]:
    """Of (convention, 4): both error rates, and the scores of the better one."""
    rates = alignment_error_rate(counts)
    scores = score_links(counts[rates.argmin()])._asdict()
    del scores["aer"]
    return _rounded({f"aer_{name}": float(rate) for name, rate in zip(CONVENTIONS, rates, strict=True)} | scores)


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in scores.items()}


def measure_alignment(
    opened: Translator,
    pairs: Sequence[AlignedPair],
    reference: str,
    split: str = "marks",
    others: Mapping[str, Sequence[Array]] | None = None,
) -> Iterator[tuple[float, AlignmentReport | None]]:
    """Score every head of cross-attention, teacher-forced on the target of each pair; yields the share that is done,
    and what is known so far, the whole last.

    The pairs have the links that count as right, of words as SPLITS[split] cuts them; `reference` says whether they are
    gold or silver. `others` has by name the links that something else makes, bool (target word, source word) for each
    pair.

    Raises:
        ValueError: none of the pairs can be scored; the sentence says why the first of them cannot.
    """
    layers = next(kind for kind in opened.kinds if kind.name == "cross").layers
    known: dict[str, Any] = {"diagonal": [diagonal_links(pair.links) for pair in pairs], **(others or {})}
    heads, means, scored, why = 0, 0, 0, ""
    baselines = dict.fromkeys(known, 0)
    report = None
    for number, pair in enumerate(pairs):
        check_cancelled()
        yield number / len(pairs), report
        try:
            weights = _weights_of_layers(opened.trace(pair.source, pair.target), layers, SPLITS[split], pair)
        except ValueError as error:
            why = why or str(error)
            continue
        firsts = weights.cumsum(axis=2)  # their means link as they do
        heads = heads + np.moveaxis(count_links(make_links(weights), pair.links), 1, 2)
        means = means + np.moveaxis(count_links(make_links(firsts), pair.links), 1, 2)
        scored += 1
        for name, links in known.items():
            baselines[name] = baselines[name] + count_links(links[number], pair.links)
        report = AlignmentReport(reference, layers, heads, means, dict(baselines), scored, number + 1 - scored)
    if report is None:
        raise Refusal(
            "None of the {count:,} sentence pairs could be scored. Of the first: {why}", count=len(pairs), why=why
        )
    if not report.heads[..., 3].any():
        raise Refusal("The reference has no sure link in the pairs that could be scored: give it more of them.")
    yield 1.0, AlignmentReport(reference, layers, heads, means, baselines, scored, len(pairs) - scored)


def _weights_of_layers(trace: Trace, layers: Sequence[int], word: re.Pattern[str], pair: AlignedPair) -> Array:
    """(layer, convention, head, target word, source word).

    Raises:
        ValueError: the text that the tokens spell has other words than the pair.
    """
    weights = np.stack([word_weights(trace, layer, word) for layer in layers])
    if not weights.shape[-1] or weights.shape[-2:] != pair.links.sure.shape:
        raise Refusal(
            "the model's tokens spell {spelled} and {written} words, the sentences have {source} and {target}.",
            spelled=weights.shape[-1],
            written=weights.shape[-2],
            source=pair.links.sure.shape[1],
            target=pair.links.sure.shape[0],
        )
    return weights
