"""What each head does over many sentences: its numbers' mean and spread, its name, the sentences that show it best."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model.analysis.head_summary import HeadSummary, name_type, summarise
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import atomic_write
from model.checkpoints.store import checkpoint_path
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
}
"""name -> what it is called on screen; defined in model.analysis.head_summary, but for `rarest`"""
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
class Head:
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
    """standard deviation over the sentences"""
    best: tuple[tuple[str, float], ...]
    """sentences on which the head is most itself, with the score that says so"""

    @property
    def shows(self) -> str:
        """Name of the score that orders `best`."""
        return SHOWS.get(self.type, "confidence")


def measure_heads(opened: Checkpoint, traces: Iterable[Trace]) -> tuple[Head, ...]:
    """Every head of the model over the sentences of these runs, one run a sentence."""
    found: dict[tuple[str, int, int], list[tuple[str, Mapping[str, float], str]]] = {}
    for trace in traces:
        for (kind, layer), attention in trace.attentions.items():
            for head, (scores, name) in enumerate(measure(opened, trace, attention)):
                found.setdefault((kind, layer, head), []).append((trace.source, scores, name))
    return tuple(_head(*place, rows) for place, rows in found.items())


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
    named = {name: getattr(summary, name) for name in SCORES if name != "rarest"}
    return {name: value for name, value in named.items() if value is not None}


def _head(kind: str, layer: int, head: int, rows: Sequence[tuple[str, Mapping[str, float], str]]) -> Head:
    scores = {name: np.array([each[name] for _, each, _ in rows]) for name in rows[0][1]}
    mean = {name: float(each.mean()) for name, each in scores.items()}
    missing = dict.fromkeys(("previous", "same", "next"))
    numbers = missing | {name: value for name, value in mean.items() if name != "rarest"}
    named = name_type(HeadSummary(kind, layer, head, **numbers, choice=True))
    shows = scores[SHOWS.get(named.type, "confidence")]
    best = np.argsort(-shows, kind="stable")[:BEST]
    types = Counter(name for _, _, name in rows)
    return Head(
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
    heads: tuple[Head, ...]

    def head(self, kind: str, layer: int, head: int) -> Head:
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
    again = f"python -m model.head_scores --checkpoint {opened.name} … writes it."
    if not path.is_file():
        raise ValueError(f"The checkpoint {opened.name} has no {FILE}. {again}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        weights, heads = content.pop("weights"), content.pop("heads")
        best = [tuple((str(text), float(score)) for text, score in entry["best"]) for entry in heads]
        found = ManySentences(
            **content, heads=tuple(Head(**{**entry, "best": own}) for entry, own in zip(heads, best, strict=True))
        )
    except (OSError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{FILE} of the checkpoint {opened.name} is damaged ({error}). {again}") from error
    if weights != opened.hash:
        raise ValueError(f"{FILE} of the checkpoint {opened.name} was measured with other weights. {again}")
    return found


def score_arrays(opened: Checkpoint, trace: Trace, kind: str, score: str) -> dict[str, Array]:
    """One score of every head of a kind: layer, head, mean and spread over many sentences, and in this run."""
    found = [head for head in read_heads(opened).heads if head.kind == kind]
    here = {
        (layer, head): scores[score]
        for (name, layer), attention in trace.attentions.items()
        if name == kind
        for head, (scores, _) in enumerate(measure(opened, trace, attention))
    }
    columns = {
        "layer": [head.layer for head in found],
        "head": [head.head for head in found],
        "mean": [head.mean[score] for head in found],
        "spread": [head.spread[score] for head in found],
        "here": [here[head.layer, head.head] for head in found],
    }
    return {name: np.array(column) for name, column in columns.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value
