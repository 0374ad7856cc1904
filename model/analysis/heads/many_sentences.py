"""What each head does over many sentences: its numbers' mean and spread, its name, the sentences that show it best."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from model.analysis.distributions import ratio
from model.analysis.heads.alignments import alignment_error_rate
from model.analysis.heads.grammar import DIRECTIONS, NEAREST, OFFSETS, TYPE_RULES, meaning_correlation
from model.analysis.heads.head_summary import TYPES, HeadSummary, name_type
from model.analysis.heads.head_weights import copy_score_of
from model.analysis.heads.induction import induction_scores
from model.analysis.heads.tally import SCORES as RUN_SCORES
from model.analysis.heads.tally import Column, Place, Tally, measure
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import MOST_BYTES, atomic_write, read_arrays, read_text
from model.checkpoints.store import checkpoint_path, shown_name
from model.language import Refusal, later, sentence, sentence_of
from model.trace import Array, Trace

FILE, DISTRIBUTIONS = "heads.json", "heads.npz"
MISSING = later("The checkpoint {name} has no {file}. {again}")
DAMAGED = later("{file} of the checkpoint {name} is damaged ({error}). {again}")
OTHER_WEIGHTS = later("{file} of the checkpoint {name} was measured with other weights. {again}")

SCORES: Mapping[str, str] = {
    **RUN_SCORES,
    "copy": "copy score",
    "induction": "induction score",
    "meaning": "meaning: correlation of weight and likeness of embeddings",
    "errors": "alignment error rate",
}
"""name -> what it is called on screen"""
NOT_OF_A_SENTENCE = ("copy", "induction", "meaning", "errors")
"""scores of the weights (head_weights), of random tokens (induction), of pairs of tokens of all sentences (grammar) and
of aligned pairs (alignments)"""
SHOWS = {
    "previous token": "previous",
    "same token": "same",
    "next token": "next",
    "local": "same",
    "sink": "special",
    "broad": "spread",
    "monotone": "order",
}
"""type -> the score that says how much a head is of this type on a sentence"""
BEST, ALIKE, PIECES = 10, 5, 8
"""sentences on which a head is most and least itself; heads like it; pieces that it attends to most"""
DRAWN, POOL, BINS = 2, 500, 30
"""sentences shown of each tenth; sentences that these are drawn from, whatever is measured; bars of a histogram"""
OFTEN = 20
"""smallest number of rows of a piece that is listed"""
RELATION_WORDS, GAIN_WORDS = 50, 300
"""smallest number of words of a relation that is stored, and of one that counts"""


@dataclass(frozen=True)
class MeasuredHead:
    """One head over many sentences."""

    kind: str
    layer: int
    head: int
    type: str
    """the first rule that the means meet"""
    rule: str
    """that rule with the means"""
    types: Mapping[str, float]
    """share of the sentences on which the head has each type, the most frequent first"""
    mean: Mapping[str, float]
    """by name of score, without those that this kind of attention does not have"""
    spread: Mapping[str, float]
    """standard deviation over the sentences, of `induction` over the random ones; the others of NOT_OF_A_SENTENCE have
    none"""
    best: tuple[tuple[str, float], ...]
    """sentences on which the head is most itself, with the score that says so"""
    least: tuple[tuple[str, float], ...] = ()
    """sentences on which it is least itself"""
    keys: tuple[tuple[str, float, int], ...] = ()
    """pieces that get the most weight beside what equal weights would give, how many times that, and how often they
    were there"""
    queries: tuple[tuple[str, float, int], ...] = ()
    """pieces in whose rows the largest weight is largest, its mean, and how often they were there"""
    alike: tuple[tuple[int, int, float], ...] = ()
    """layer, head and correlation of the heads of its kind with the most similar weights, equal weights subtracted"""
    alike_ov: tuple[tuple[int, int, float], ...] = ()
    """the same by the cosine of W_V W_O, without any sentence"""

    @property
    def shows(self) -> str:
        """Name of the score that orders `best`."""
        return SHOWS.get(self.type, "confidence")

    @property
    def place(self) -> Place:
        return self.kind, self.layer, self.head


def describe_heads(tally: Tally) -> tuple[MeasuredHead, ...]:
    """What the sums and the scores of all runs say about each head."""
    opened, induction = tally.opened, induction_scores(tally.opened)
    trace = opened.trace(tally.texts[0], beam_size=1)  # for the matrices, which are the same in every run
    first = {name: kind.layers[0] for name, kind in tally.kinds.items()}
    # By the weights over all runs, equal weights subtracted; and by values.
    alike = _most_alike(tally, {kind: tally.sums[f"alike {kind}"] for kind in tally.kinds})
    of_values = _alike_by_values(tally, trace)
    pieces, heads = _Pieces(tally), []
    for place, column in tally.columns():
        kind, layer, number = place
        row = tally.places.index(place) - tally.places.index((kind, first[kind], 0))
        repeated, errors = induction.get((kind, layer)), tally.sums.get(f"links {layer}")
        more = {
            "copy": copy_score_of(opened, trace, trace.kind(kind), layer, number),
            "induction": None if repeated is None else float(repeated[number].mean()),
            "meaning": _meaning(tally, kind, row),
            "errors": float(alignment_error_rate(errors)[number]) if kind == "cross" and errors is not None else None,
        }
        head = replace(
            _head(place, column, tally.texts),
            keys=pieces.keys(kind, row),
            queries=pieces.queries(kind, row),
            alike=alike[place],
            alike_ov=of_values[place],
        )
        spread = {} if repeated is None else {"induction": float(repeated[number].std())}
        known = {name: score for name, score in more.items() if score is not None}
        heads.append(replace(head, mean={**head.mean, **known}, spread={**head.spread, **spread}))
    return tuple(heads)


def _meaning(tally: Tally, kind: str, row: int) -> float | None:
    if f"meaning {kind}" not in tally.sums:
        return None
    return float(meaning_correlation(tally.sums[f"cosines {kind}"], tally.sums[f"meaning {kind}"])[row])


def _head(place: Place, column: Column, texts: Sequence[str]) -> MeasuredHead:
    mean = {name: float(each.mean()) for name, each in column.scores.items()}
    named = _named(place, mean)
    shows = column.scores[SHOWS.get(named.type, "confidence")]
    order = np.argsort(-shows, kind="stable")
    types = Counter(TYPES[number] for number in column.types.tolist())
    return MeasuredHead(
        *place,
        named.type,
        named.rule,
        {name: count / len(texts) for name, count in types.most_common()},
        mean,
        {name: float(each.std()) for name, each in column.scores.items()},
        tuple((texts[i], float(shows[i])) for i in order[:BEST]),
        tuple((texts[i], float(shows[i])) for i in order[::-1][:BEST]),
    )


def _named(place: Place, mean: Mapping[str, float]) -> HeadSummary:
    """The type that the means of a head give it, with its rule."""
    names = {one.name for one in fields(HeadSummary)}
    missing = dict.fromkeys(("previous", "same", "next"))
    return name_type(HeadSummary(*place, **missing | {name: mean[name] for name in names & {*mean}}, choice=True))


def _with_rule(head: MeasuredHead) -> MeasuredHead:
    """A head of a file, whose rule is a text, with the rule as a sentence that any language can say."""
    named = _named(head.place, head.mean)
    return replace(head, rule=named.rule) if named.type == head.type else head


@dataclass(frozen=True)
class _Pieces:
    """Which pieces heads attend to, and in whose rows they are surest."""

    tally: Tally

    def keys(self, kind: str, row: int) -> tuple[tuple[str, float, int], ...]:
        sums = self.tally.sums
        ratio = sums[f"key weight {kind}"][row] / np.maximum(sums[f"key equal {kind}"], 1e-12)
        return self._largest(ratio, sums[f"key count {kind}"])

    def queries(self, kind: str, row: int) -> tuple[tuple[str, float, int], ...]:
        sums = self.tally.sums
        count = sums[f"query count {kind}"]
        return self._largest(sums[f"query top {kind}"][row] / np.maximum(count, 1), count)

    def _largest(self, values: Array, count: Array) -> tuple[tuple[str, float, int], ...]:
        values = np.where(count >= min(OFTEN, count.max()), values, -np.inf)
        values[sorted(self.tally.opened.tokenizer.special_ids)] = -np.inf
        best = [i for i in np.argsort(-values, kind="stable")[:PIECES].tolist() if np.isfinite(values[i])]
        pieces = self.tally.opened.tokenizer.tokens(best)
        return tuple((piece, float(values[i]), int(count[i])) for piece, i in zip(pieces, best, strict=True))


Likeness = dict[Place, tuple[tuple[int, int, float], ...]]


def _alike_by_values(tally: Tally, trace: Trace) -> Likeness:
    """By W_V W_O: the sum of products of all entries of two such matrices, without computing them."""
    products = {}
    for name, kind in tally.kinds.items():
        learned = [trace.attention(name, layer).projections for layer in kind.layers]
        if all(learned):
            w_v, w_o = (np.concatenate([getattr(each, w) for each in learned]).astype(float) for w in ("w_v", "w_o"))
            left = np.einsum("adk,bdl->abkl", w_v, w_v)
            products[name] = np.einsum("abkl,akd,bld->ab", left, w_o, w_o, optimize=True)
    return _most_alike(tally, products)


def _most_alike(tally: Tally, products: Mapping[str, Array]) -> Likeness:
    """The heads of the same kind with the largest cosines, of sums of products, (heads, heads)."""
    found: Likeness = dict.fromkeys(tally.places, ())
    for kind, product in products.items():
        places = [place for place in tally.places if place[0] == kind]
        size = np.sqrt(np.diagonal(product))
        cosines = ratio(product, size[:, None] * size)
        for row, place in enumerate(places):
            others = [i for i in np.argsort(-cosines[row], kind="stable").tolist() if i != row][:ALIKE]
            found[place] = tuple((*places[i][1:], float(cosines[row, i])) for i in others)
    return found


@dataclass(frozen=True)
class Distributions:
    """What heads.npz says: how each score lies over the sentences."""

    places: tuple[Place, ...]
    scores: tuple[str, ...]
    percentiles: Array
    """(head, score, 101): the score below which so many percent of the sentences lie; NaN: this kind has none"""
    counts: Array
    """(head, score, bar): sentences in BINS equal parts from the smallest to the largest score"""
    texts: tuple[str, ...]
    """sentences drawn from all that were measured"""
    drawn: Array
    """(head, score, tenth, DRAWN): numbers of `texts`; -1: none of those drawn lies there"""
    values: Array
    """in the same shape: their scores"""
    offsets: Array
    """(head, 2 FARTHEST + 1): mean share of a row's weight that is so many tokens away"""
    relations: tuple[str, ...]
    hits: Array
    """(head, direction, relation): share of the words whose largest weight is on the partner; NaN: not measured"""
    words: Array
    """(head, direction, relation): how many words those are"""
    yardstick: Array
    """(head, direction, relation): the same share for the best fixed offset, and in `offset` which one that is"""
    offset: Array
    nearest: Array | None = None
    """(head, direction, relation): the same for the nearest word of the best part of speech, and in `nearest_by` its
    number in grammar.NEAREST; NaN: the parses have no parts of speech"""
    nearest_by: Array | None = None
    chosen: Array | None = None
    """(head, direction, relation): hits minus yardstick on one half of the sentences, on which offset, part of speech
    and relation are chosen; all others are of the other half. None: they were chosen and judged on the same sentences,
    as `model.commands.head_scores` once did"""

    def row(self, place: Place) -> int:
        return self.places.index(place)

    def gains(self, place: Place) -> dict[str, float]:
        """Relation with its direction -> share of right partners of a head minus that of the best fixed offset; where
        the halves are apart, of the relation alone that is best on the half where it is chosen."""
        row = self.row(place)
        places = [
            (direction, relation)
            for (direction, relation), words in np.ndenumerate(self.words[row])
            if words >= GAIN_WORDS and self.relations[relation] != "punct"
        ]
        if self.chosen is not None:
            places = [max(places, key=lambda each: self.chosen[row][each])] if places else []
        gain = self.hits[row] - self.yardstick[row]
        return {f"{self.relations[relation]}, {DIRECTIONS[to]}": float(gain[to, relation]) for to, relation in places}

    def beyond(self, place: Place) -> "Beyond | None":
        """How far a head exceeds both yardsticks; None: the halves are not apart, or no relation is frequent enough."""
        if self.chosen is None or not (gains := self.gains(place)):
            return None
        (name,) = gains
        relation, _, direction = name.partition(", ")
        at = self.row(place), DIRECTIONS.index(direction), self.relations.index(relation)
        share, words = float(self.hits[at]), int(self.words[at])
        tag, side = NEAREST[int(self.nearest_by[at])]
        by_offset, by_nearest = (Gain.of(share, float(part[at]), words) for part in (self.yardstick, self.nearest))
        return Beyond(relation, direction, share, words, int(self.offset[at]), by_offset, tag, side, by_nearest)

    def of(self, place: Place, score: str) -> tuple[Array, Array]:
        """(101,) percentiles and (bar,) counts of one score of a head."""
        row, column = self.row(place), self.scores.index(score)
        return self.percentiles[row, column], self.counts[row, column]


class Gain(NamedTuple):
    """A difference of two shares of the same words, and its 95% interval, as if the two were independent."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, share: float, other: float, words: int) -> "Gain":
        spread = 1.96 * np.sqrt((share * (1 - share) + other * (1 - other)) / max(words, 1))
        return cls(share - other, share - other - spread, share - other + spread)


class Beyond(NamedTuple):
    """The relation that a head finds best, chosen on one half of the sentences, and how it does on the other."""

    relation: str
    direction: str
    share: float
    words: int
    offset: int
    by_offset: Gain
    tag: str
    side: str
    by_nearest: Gain
    """NaN: the parses have no parts of speech"""

    @property
    def survives(self) -> bool:
        """Whether it exceeds the best offset by ten percentage points, and both yardsticks beyond chance."""
        enough = self.by_offset.value >= TYPE_RULES["syntactic"]
        return bool(enough and self.by_offset.low > 0 and self.by_nearest.low > 0)


def percentile_of(value: float, percentiles: Array) -> float:
    """0 to 100: how many percent of the sentences have a smaller score; the middle of those that have the same."""
    left, right = (int(np.searchsorted(percentiles, value, side)) for side in ("left", "right"))
    if left < right:
        return (left + right - 1) / 2
    if left in (0, len(percentiles)):
        return float(min(left, len(percentiles) - 1))
    low, high = percentiles[left - 1 : left + 1]
    return left - 1 + float((value - low) / (high - low))


def describe_distributions(tally: Tally) -> Distributions:
    """The distributions of all scores of all heads, and sentences drawn from them."""
    names = tuple(RUN_SCORES)
    pool = sorted(range(tally.runs), key=lambda i: hashlib.sha256(tally.texts[i].encode()).digest())[:POOL]
    shape = len(tally.places), len(names)
    percentiles, values = (np.full((*shape, *size), np.nan, np.float32) for size in ((101,), (10, DRAWN)))
    counts, drawn = np.zeros((*shape, BINS), np.int32), np.full((*shape, 10, DRAWN), -1, np.int16)
    for head, (_, column) in enumerate(tally.columns()):
        for number, name in enumerate(names):
            if name not in column.scores:
                continue
            scores = column.scores[name]
            cuts = np.percentile(scores, np.arange(101))
            percentiles[head, number] = cuts
            counts[head, number] = np.histogram(scores, BINS, (cuts[0], cuts[-1]))[0]
            tenth = np.searchsorted(cuts[10:100:10], scores[pool], "right")
            for part in range(10):
                chosen = np.flatnonzero(tenth == part)[:DRAWN]
                drawn[head, number, part, : len(chosen)] = chosen
                values[head, number, part, : len(chosen)] = scores[pool][chosen]
    offsets = np.concatenate([tally.sums[f"offsets {kind}"] for kind in tally.kinds]) / tally.runs
    texts = tuple(tally.texts[i] for i in pool)
    grammar = _describe_grammar(tally)
    return Distributions(
        tuple(tally.places), names, percentiles, counts, texts, drawn, values, offsets.astype(np.float32), **grammar
    )


def _describe_grammar(tally: Tally) -> dict[str, Any]:
    """The fields of Distributions about relations that are frequent enough in any kind of attention."""
    shape = len(tally.places), len(DIRECTIONS), len(tally.relations)
    hits, yardstick, nearest, chosen = (np.full(shape, np.nan, np.float32) for _ in range(4))
    words, offset, nearest_by = np.zeros(shape, np.int32), np.zeros(shape, np.int8), np.zeros(shape, np.int8)
    for kind in tally.kinds:
        if f"relation words {kind}" not in tally.sums:
            continue
        rows = [i for i, place in enumerate(tally.places) if place[0] == kind]
        found = {name: tally.sums[f"relation {name} {kind}"] for name in ("words", "hits", "offsets", "nearest")}
        there = np.maximum(found["words"], 1)
        shares = {name: counts / there[..., None] for name, counts in found.items() if name != "words"}
        by_offset, by_nearest = (shares[name][0].argmax(axis=-1) for name in ("offsets", "nearest"))
        first, judged = (
            {
                name: np.take_along_axis(shares[name][half], best[..., None], axis=-1)[..., 0]
                for name, best in (("offsets", by_offset), ("nearest", by_nearest))
            }
            for half in (0, 1)
        )
        known = found["nearest"].any()
        chosen[rows] = np.moveaxis(shares["hits"][0] - first["offsets"][..., None], -1, 0)
        hits[rows] = np.moveaxis(shares["hits"][1], -1, 0)
        words[rows], yardstick[rows], offset[rows] = found["words"][1], judged["offsets"], OFFSETS[by_offset]
        nearest[rows], nearest_by[rows] = judged["nearest"] if known else np.nan, by_nearest
    often = np.flatnonzero(words.max(axis=(0, 1), initial=0) >= RELATION_WORDS)
    parts = {"hits": hits, "words": words, "yardstick": yardstick, "offset": offset}
    parts |= {"nearest": nearest, "nearest_by": nearest_by, "chosen": chosen}
    names = tuple(tally.relations[i] for i in often)
    return {"relations": names} | {name: part[..., often] for name, part in parts.items()}


@dataclass(frozen=True)
class ManySentences:
    """What heads.json says."""

    sentences: int
    of: str
    """what they are"""
    command: str
    """that wrote the file"""
    heads: tuple[MeasuredHead, ...]
    aligned: str = ""
    """what the alignment error rate is measured against; "": it is not measured"""
    parsed: str = ""
    """what parsed the sentences; "": they are not parsed"""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """`recording` the runs, and `all`: with what they were measured for"""
    own_translations: bool = False
    """whether the model translated the sentences itself"""
    beam_size: int = 0
    """with which it did, and its own token ids were measured, as in the app; 0: translations were given, or written
    greedily and read again as text"""
    targets: Mapping[str, str] = field(default_factory=dict)
    """given translations of the sentences that stand in heads.json and heads.npz; empty: the model translated them"""

    def head(self, kind: str, layer: int, head: int) -> MeasuredHead:
        return next(each for each in self.heads if (each.kind, each.layer, each.head) == (kind, layer, head))


def write_heads(folder: Path, weights: str, found: ManySentences, how: Distributions | None = None) -> None:
    """Write heads.json, numbers with four significant digits, and heads.npz into a checkpoint's folder; without
    distributions there is no heads.npz. `weights`: SHA-256 of those that were measured."""
    text = json.dumps({"weights": weights, **_rounded(asdict(found))}, ensure_ascii=False, separators=(",", ":"))
    with atomic_write(folder / FILE) as path:
        path.write_text(text, encoding="utf-8")
    if how is None:
        (folder / DISTRIBUTIONS).unlink(missing_ok=True)
        return
    with atomic_write(folder / DISTRIBUTIONS) as path, open(path, "wb") as file:
        kinds, layers, heads = zip(*how.places, strict=True)
        stored = {name: part for name, part in vars(how).items() if part is not None}
        parts = stored | {"kinds": kinds, "layers": layers, "heads": heads, "weights": weights}
        del parts["places"]
        np.savez_compressed(file, **{name: np.asarray(part) for name, part in parts.items()})


Content = TypeVar("Content")


def _read(opened: Checkpoint, file: str, read: Callable[[Path], tuple[str, Content]]) -> Content:
    """What `read` finds in a file of an opened checkpoint, beside the SHA-256 of the weights that were measured."""
    path, name = checkpoint_path(opened.name) / file, shown_name(opened.name)
    again = sentence("python -m model.commands.head_scores --checkpoint {name} … writes it.", name=name)
    about = {"file": file, "name": name, "again": again}
    if not path.is_file():
        raise Refusal(MISSING, **about)
    try:
        weights, content = read(path)
    except (OSError, TypeError, KeyError, AttributeError, ValueError, EOFError, BadZipFile, ZlibError) as error:
        raise Refusal(DAMAGED, error=sentence_of(error), **about) from error
    if weights != opened.hash:
        raise Refusal(OTHER_WEIGHTS, **about)
    return content


def read_distributions(opened: Checkpoint) -> Distributions:
    """The heads.npz of an opened checkpoint.

    Raises:
        ValueError: there is none, it is damaged, or it is of other weights; the sentence says what to do.
    """
    return _read(opened, DISTRIBUTIONS, _distributions_of)


def _distributions_of(path: Path) -> tuple[str, Distributions]:
    parts: dict[str, Any] = read_arrays(path)
    places = tuple(zip(*(parts.pop(part).tolist() for part in ("kinds", "layers", "heads")), strict=True))
    weights = str(parts.pop("weights"))
    for part in ("scores", "texts", "relations"):
        parts[part] = tuple(parts[part].tolist())
    found = Distributions(places, **parts)
    if any(len(getattr(found, part)) != len(places) for part in ("percentiles", "counts", "drawn", "hits")):
        raise Refusal("its arrays are of different heads")
    return weights, found


def most_telling_head(opened: Checkpoint) -> Place | None:
    """The head that exceeds both yardsticks of grammar furthest; None: nothing was measured, or none exceeds both."""
    try:
        how = read_distributions(opened)
    except ValueError:
        return None
    found = {place: beyond for place in how.places if (beyond := how.beyond(place)) is not None and beyond.survives}
    return max(found, key=lambda place: min(found[place].by_offset.value, found[place].by_nearest.value), default=None)


def read_heads(opened: Checkpoint) -> ManySentences:
    """The heads.json of an opened checkpoint.

    Raises:
        ValueError: there is none, it is damaged, or it is of other weights; the sentence says what to do.
    """
    return _read(opened, FILE, _heads_of)


def _heads_of(path: Path) -> tuple[str, ManySentences]:
    content = json.loads(read_text(path, most=MOST_BYTES))
    weights, heads, targets = content.pop("weights"), content.pop("heads"), content.pop("targets", {})
    listed = ("best", "least", "keys", "queries", "alike", "alike_ov")
    return weights, ManySentences(
        **content,
        heads=tuple(
            _with_rule(
                MeasuredHead(**entry | {part: tuple(map(tuple, entry[part])) for part in listed if part in entry})
            )
            for entry in heads
        ),
        targets={str(text): str(target) for text, target in targets.items()},
    )


def score_arrays(opened: Checkpoint, trace: Trace, kind: str, score: str) -> dict[str, Array]:
    """One score of every head of a kind: layer, head, mean and spread over many sentences, and in this run.

    `layer_mean` is the mean over the heads of the layer. NaN: there is no spread, or no score of a single sentence.
    """
    found = [head for head in read_heads(opened).heads if head.kind == kind]
    here = {
        (layer, head): scores
        for (name, layer), attention in trace.attentions.items()
        if name == kind
        for head, (scores, _) in enumerate(measure(opened, trace, attention))
    }
    columns = {
        "layer": [head.layer for head in found],
        "head": [head.head for head in found],
        "mean": [head.mean[score] for head in found],
        "spread": [head.spread.get(score, np.nan) for head in found],
        "here": [here[head.layer, head.head].get(score, np.nan) for head in found],
    }
    arrays = {name: np.array(column) for name, column in columns.items()}
    layers, means = arrays["layer"], arrays["mean"]
    return arrays | {"layer_mean": np.array([means[layers == layer].mean() for layer in layers])}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value
