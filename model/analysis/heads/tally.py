"""What heads do over a corpus, run by run: sums, and one row of scores for each run, from which everything follows.

Sums are as large after a million sentences as after one. The rows of scores go to a file, of which one head at a time
is read in the end; a tally that was stopped goes on from its last block.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model.analysis.heads import grammar
from model.analysis.heads.alignments import CONVENTIONS, Links, count_links, make_links, word_weights
from model.analysis.heads.head_summary import TYPES, distances, summarise
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import atomic_write
from model.trace import Array, Attention, Kind, Trace

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
"""name -> what it is called on screen; from heads.head_summary, but for `rarest`"""
FARTHEST = 10
"""tokens from a row's own one; what is farther counts with it"""
ROWS, SUMS, STATE = "scores.bin", "sums.npz", "state.json"

Place = tuple[str, int, int]
"""kind of attention, layer, head"""


def measure(opened: Checkpoint, trace: Trace, attention: Attention) -> list[tuple[dict[str, float], str]]:
    """The scores of each head of one attention in one run, by name, and its type there."""
    ids = trace.streams[trace.kind(attention.kind).keys].tokens.ids
    rarest = share_on_rarest(attention, opened.tokenizer.rarity(ids))
    named = [
        ({name: getattr(summary, name) for name in SCORES if name != "rarest"} | {"rarest": float(share)}, summary.type)
        for summary, share in zip(summarise(attention), rarest, strict=True)
    ]
    return [({name: value for name, value in scores.items() if value is not None}, kind) for scores, kind in named]


def share_on_rarest(attention: Attention, rarity: Sequence[float]) -> Array:
    """(heads,): share of all weight that is on the key with the largest `rarity` which is not a special token; 0 if
    there is none."""
    allowed = np.where(attention.key_special, -1.0, rarity)
    if not len(allowed) or allowed.max() < 0:
        return np.zeros(attention.n_heads)
    pattern = attention.pattern.astype(np.float64)
    return pattern[:, :, int(allowed.argmax())].sum(axis=-1) / pattern.sum(axis=(-2, -1))


@dataclass(frozen=True)
class Column:
    """One head in all runs."""

    scores: Mapping[str, Array]
    """name -> (run,), without those that this kind of attention does not have"""
    types: Array
    """(run,): numbers of TYPES"""


class Tally:
    """Sums over the runs that were added, and a row of scores of each."""

    def __init__(self, opened: Checkpoint, relations: Sequence[str] = (), folder: Path | None = None) -> None:
        self.opened, self.relations, self.folder = opened, tuple(relations), folder
        self.kinds = {kind.name: kind for kind in opened.kinds}
        self.places: list[Place] = [
            (kind, layer, head) for kind, layer in opened.model.attentions() for head in range(self.kinds[kind].heads)
        ]
        self.runs = 0
        self.texts: list[str] = []
        self.seconds = {"recording": 0.0, "all": 0.0}
        self.sums: dict[str, Array] = {}
        self._rows: list[Array] = []
        self._unit = {side: _unit_rows(opened.embedding_matrix(side)) for side in ("source", "target")}

    def add(self, trace: Trace, links: Links | None = None, parse: grammar.Parse | None = None) -> None:
        """One more run, with the links between its words and the parse of its text where they are known."""
        row = np.full((len(self.places), len(SCORES) + 1), np.nan, dtype=np.float32)
        for (kind, layer), attention in trace.attentions.items():
            first = self.places.index((kind, layer, 0))
            for number, (scores, name) in enumerate(measure(self.opened, trace, attention), start=first):
                row[number, :-1] = [scores.get(score, np.nan) for score in SCORES]
                row[number, -1] = TYPES.index(name)
            if links is not None and kind == "cross":
                self._count_links(trace, layer, links)
        for kind in self.kinds.values():
            weights = np.concatenate([trace.attention(kind.name, layer).pattern for layer in kind.layers])
            self._add_weights(trace, kind, weights.astype(np.float64))
            if parse is not None and not kind.crosses and (kind.queries == "encoder" or len(trace.streams) == 1):
                self._add_parse(kind, weights, trace, parse)
        self._rows.append(row)
        self.texts.append(trace.source)
        self.runs += 1

    def _sum(self, name: str, values: Array, at: Any = None, size: int = 0) -> None:
        """Add to a sum; with `at`, to these places of its last axis, which has `size` places."""
        if name not in self.sums:
            self.sums[name] = np.zeros((*values.shape[:-1], size) if at is not None else values.shape)
        self.sums[name][... if at is None else (..., at)] += values

    def _count_links(self, trace: Trace, layer: int, links: Links) -> None:
        weights = word_weights(trace, layer)[CONVENTIONS.index("predicts")]
        if weights.shape[-2:] == links.sure.shape:  # else its tokens spell other words
            self._sum(f"links {layer}", count_links(make_links(weights), links))

    def _add_weights(self, trace: Trace, kind: Kind, weights: Array) -> None:
        """Which pieces the heads of a kind attend to and from, how far away, how alike they are, and how alike in
        meaning what they read is. `weights`: (heads of all layers, query, key)."""
        attention, size = trace.attention(kind.name, kind.layers[0]), len(self.opened.tokenizer)
        mask = attention.mask[0]
        equal = mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)
        queries, keys = (np.array(trace.streams[stream].tokens.ids) for stream in (kind.queries, kind.keys))
        pieces, of_piece = _one_hot(keys)
        self._sum(f"key weight {kind.name}", weights.sum(axis=1) @ of_piece, pieces, size)
        self._sum(f"key equal {kind.name}", equal.sum(axis=0) @ of_piece, pieces, size)
        self._sum(f"key count {kind.name}", of_piece.sum(axis=0), pieces, size)
        pieces, of_piece = _one_hot(queries)
        self._sum(f"query top {kind.name}", weights.max(axis=-1) @ of_piece, pieces, size)
        self._sum(f"query count {kind.name}", of_piece.sum(axis=0), pieces, size)
        apart = signed_distances(kind.crosses, len(queries), len(keys))
        places = np.arange(-FARTHEST, FARTHEST + 1)
        near = (np.clip(apart, -FARTHEST, FARTHEST)[..., None] == places).reshape(-1, len(places)).astype(float)
        flat = weights.reshape(len(weights), -1)
        self._sum(f"offsets {kind.name}", flat @ near / len(queries))
        beyond_equal = flat - equal.ravel()
        self._sum(f"alike {kind.name}", beyond_equal @ beyond_equal.T)
        if not kind.crosses:
            text = ~np.array(attention.query_special)
            counted = mask & text[:, None] & text & (queries[:, None] != keys) & (np.abs(apart) <= FARTHEST)
            self._add_cosines(kind, flat, near * counted.reshape(-1, 1), queries)

    def _add_cosines(self, kind: Kind, flat: Array, near: Array, ids: Array) -> None:
        """Sums from which the correlation of weight and cosine at equal distance follows; `near`: (cell, distance)."""
        unit = self._unit["source" if kind.queries == "encoder" else "target"][ids]
        cosine = (unit @ unit.T).ravel()
        alone = np.stack([np.ones_like(cosine), cosine, cosine**2]) @ near
        self._sum(f"cosines {kind.name}", alone)
        self._sum(f"meaning {kind.name}", np.stack([flat @ near, flat**2 @ near, (flat * cosine) @ near]))

    def _add_parse(self, kind: Kind, weights: Array, trace: Trace, parse: grammar.Parse) -> None:
        """Runs count in two halves, in turn: what is chosen on one is judged on the other."""
        found = grammar.count_relations(weights, trace.streams[kind.queries].tokens, parse, self.relations, kind.causal)
        for name, counts in found.items():
            halves = np.zeros((2, *counts.shape))
            halves[self.runs % 2] = counts
            self._sum(f"{name} {kind.name}", halves)

    def columns(self) -> Iterator[tuple[Place, Column]]:
        """The scores of each head; one head at a time is in memory."""
        width = len(SCORES) + 1
        rows = np.array(self._rows, dtype=np.float32).reshape(-1, len(self.places), width)
        if self.folder is not None and (path := self.folder / ROWS).is_file() and path.stat().st_size:
            stored = np.memmap(path, np.float32, "r").reshape(-1, len(self.places), width)
        else:
            stored = rows[:0]
        for number, place in enumerate(self.places):
            whole = np.concatenate([stored[:, number], rows[:, number]]).astype(np.float64)
            scores = {name: whole[:, i] for i, name in enumerate(SCORES) if not np.isnan(whole[0, i])}
            yield place, Column(scores, whole[:, -1].astype(int))

    def save(self, key: str) -> None:
        """Write the rows since the last time, and the sums, to the folder; `key` says what they are of."""
        with open(self.folder / ROWS, "ab") as file:
            file.write(np.array(self._rows, dtype=np.float32).tobytes())
        self._rows = []
        with atomic_write(self.folder / SUMS) as path, open(path, "wb") as file:
            np.savez(file, **self.sums)
        state = {"key": key, "runs": self.runs, "seconds": self.seconds}
        with atomic_write(self.folder / STATE) as path:
            path.write_text(json.dumps(state), encoding="utf-8")

    def resume(self, key: str, texts: Sequence[str]) -> None:
        """Go on from what `save` wrote for the same key; `texts`: of all runs. Without it, begin."""
        state = _read_state(self.folder / STATE)
        if state.get("key") != key:
            for name in (STATE, SUMS, ROWS):
                (self.folder / name).unlink(missing_ok=True)
            return
        with np.load(self.folder / SUMS, allow_pickle=False) as stored:
            self.sums = dict(stored)
        self.runs, self.seconds = state["runs"], state["seconds"]
        self.texts = list(texts[: self.runs])
        with open(self.folder / ROWS, "r+b") as file:  # a block that was written, but not its state, is measured again
            file.truncate(self.runs * len(self.places) * (len(SCORES) + 1) * 4)


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def signed_distances(crosses: bool, queries: int, keys: int) -> Array:
    """int (query, key): key - query in tokens; in cross-attention from the diagonal, corner to corner, rounded."""
    size = distances(crosses, queries, keys)
    rows = np.arange(queries) * ((keys - 1) / max(queries - 1, 1) if crosses else 1)
    return np.rint(size * np.sign(np.arange(keys) - rows[:, None])).astype(int)


def _one_hot(ids: Array) -> tuple[Array, Array]:
    """The different ids, and which of them each id is: (id, different id)."""
    pieces = np.unique(ids)
    return pieces, (ids[:, None] == pieces).astype(float)


def _unit_rows(matrix: Array) -> Array:
    matrix = matrix.astype(np.float32)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=-1, keepdims=True), 1e-12)
