"""What each head does over many sentences: its numbers' mean and spread, its name, the sentences that show it best."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from model.analysis.heads.alignments import Links, alignment_error_rate, count_head_links
from model.analysis.heads.head_summary import HeadSummary, name_type, summarise
from model.analysis.heads.head_weights import copy_score_of
from model.analysis.heads.induction import induction_scores
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import atomic_write
from model.checkpoints.store import checkpoint_path, shown_name
from model.trace import Array, Attention, Trace

FILE = "heads.json"

SCORES: Mapping[str, str] = {
    "previous": "share on the previous token",
    "same": "share on its own token",
    "next": "share on the next token",
    "special": "share on special tokens",
    "punctuation": "share on punctuation",
    "rarest": "share on the rarest piece",
    "confidence": "confidence",
    "entropy": "entropy, bits",
    "spread": "entropy beside that of equal weights",
    "distance": "distance, tokens",
    "order": "order: correlation of row and mean key",
    "copy": "copy score",
    "induction": "induction score",
    "errors": "alignment error rate",
}
"""name -> what it is called on screen; from heads.head_summary, but for `rarest` and the last three"""
NOT_OF_A_SENTENCE = ("copy", "induction", "errors")
"""scores of the weights (head_weights), of random tokens (induction) and of aligned pairs (alignments)"""
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
BEST = 10


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

    @property
    def shows(self) -> str:
        """Name of the score that orders `best`."""
        return SHOWS.get(self.type, "confidence")


def measure_heads(opened: Checkpoint, traces: Iterable[Trace], links: Sequence[Links] = ()) -> tuple[MeasuredHead, ...]:
    """Every head of the model over the sentences of these runs, one run a sentence; `links`: of each, if known."""
    found: dict[tuple[str, int, int], list[tuple[str, Mapping[str, float], str]]] = {}
    counts: dict[int, Array] = {}
    trace = None
    for trace, linked in zip_longest(traces, links):
        for (kind, layer), attention in trace.attentions.items():
            for head, (scores, name) in enumerate(measure(opened, trace, attention)):
                found.setdefault((kind, layer, head), []).append((trace.source, scores, name))
            if linked and kind == "cross":
                counts[layer] = counts.get(layer, 0) + count_head_links(trace, layer, linked)
    induction = induction_scores(opened)
    errors = {layer: alignment_error_rate(each) for layer, each in counts.items()}
    heads = []
    for (kind, layer, number), rows in found.items():
        head, repeated = _head(kind, layer, number, rows), induction.get((kind, layer))
        more = {
            "copy": copy_score_of(opened, trace, trace.kind(kind), layer, number),
            "induction": None if repeated is None else float(repeated[number].mean()),
            "errors": float(errors[layer][number]) if kind == "cross" and errors else None,
        }
        spread = {} if repeated is None else {"induction": float(repeated[number].std())}
        known = {name: score for name, score in more.items() if score is not None}
        heads.append(replace(head, mean={**head.mean, **known}, spread={**head.spread, **spread}))
    return tuple(heads)


def measure(opened: Checkpoint, trace: Trace, attention: Attention) -> list[tuple[dict[str, float], str]]:
    """The scores of each head of one attention in one run, by name, and its type there."""
    ids = trace.streams[trace.kind(attention.kind).keys].tokens.ids
    rarest = share_on_rarest(attention, opened.tokenizer.rarity(ids))
    return [
        ({**_numbers(summary), "rarest": float(share)}, summary.type)
        for summary, share in zip(summarise(attention), rarest, strict=True)
    ]


def share_on_rarest(attention: Attention, rarity: Sequence[float]) -> Array:
    """(heads,): share of all weight that is on the rarest key which is not a special token; 0 if there is none.

    Args:
        attention: of one run.
        rarity: of each key, the larger the rarer.
    """
    allowed = np.where(attention.key_special, -1.0, rarity)
    if not len(allowed) or allowed.max() < 0:
        return np.zeros(attention.n_heads)
    pattern = attention.pattern.astype(np.float64)
    return pattern[:, :, int(allowed.argmax())].sum(axis=-1) / pattern.sum(axis=(-2, -1))


def _numbers(summary: HeadSummary) -> dict[str, float]:
    """The scores of a summary, without those that its kind of attention does not have."""
    named = {name: getattr(summary, name) for name in SCORES if name not in ("rarest", *NOT_OF_A_SENTENCE)}
    return {name: value for name, value in named.items() if value is not None}


def _head(kind: str, layer: int, head: int, rows: Sequence[tuple[str, Mapping[str, float], str]]) -> MeasuredHead:
    scores = {name: np.array([each[name] for _, each, _ in rows]) for name in rows[0][1]}
    mean = {name: float(each.mean()) for name, each in scores.items()}
    missing = dict.fromkeys(("previous", "same", "next"))
    numbers = missing | {name: value for name, value in mean.items() if name != "rarest"}
    named = name_type(HeadSummary(kind, layer, head, **numbers, choice=True))
    shows = scores[SHOWS.get(named.type, "confidence")]
    best = np.argsort(-shows, kind="stable")[:BEST]
    types = Counter(name for _, _, name in rows)
    return MeasuredHead(
        kind,
        layer,
        head,
        named.type,
        named.rule,
        {name: count / len(rows) for name, count in types.most_common()},
        mean,
        {name: float(each.std()) for name, each in scores.items()},
        tuple((rows[i][0], float(shows[i])) for i in best),
    )


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

    def head(self, kind: str, layer: int, head: int) -> MeasuredHead:
        return next(each for each in self.heads if (each.kind, each.layer, each.head) == (kind, layer, head))


def write_heads(folder: Path, weights: str, found: ManySentences) -> None:
    """Write heads.json, numbers with four significant digits.

    Args:
        folder: of the checkpoint.
        weights: SHA-256 of the measured weights.
        found: what to write.
    """
    text = json.dumps({"weights": weights, **_rounded(asdict(found))}, ensure_ascii=False, separators=(",", ":"))
    with atomic_write(folder / FILE) as path:
        path.write_text(text, encoding="utf-8")


def read_heads(opened: Checkpoint) -> ManySentences:
    """The heads.json of an opened checkpoint.

    Raises:
        ValueError: there is none, it is damaged, or it is of other weights; the sentence says what to do.
    """
    path = checkpoint_path(opened.name) / FILE
    name = shown_name(opened.name)
    again = f"python -m model.head_scores --checkpoint {name} … writes it."
    if not path.is_file():
        raise ValueError(f"The checkpoint {name} has no {FILE}. {again}")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        weights, heads = content.pop("weights"), content.pop("heads")
        best = [tuple((str(text), float(score)) for text, score in entry["best"]) for entry in heads]
        found = ManySentences(
            **content,
            heads=tuple(MeasuredHead(**{**entry, "best": own}) for entry, own in zip(heads, best, strict=True)),
        )
    except (OSError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{FILE} of the checkpoint {name} is damaged ({error}). {again}") from error
    if weights != opened.hash:
        raise ValueError(f"{FILE} of the checkpoint {name} was measured with other weights. {again}")
    return found


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
