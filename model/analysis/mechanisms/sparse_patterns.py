"""Sparse attention on a trained model: what a pattern keeps of a run, what the model then predicts, and sinks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.background.layer_size import attention_products
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import Intervention, MaskEdit, PatternMask
from model.trace import Array, Attention, Trace

SCORE_BYTES = 4
"""of one score in single precision"""
SIZES = (*range(1, 9), 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192)


@dataclass(frozen=True)
class KeptWeights:
    """What a pattern keeps of all layers and heads of one kind of attention."""

    share: Array
    """(layer, head): sum of the weights on kept cells / sum of all weights, 0 to 1; all rows together"""
    cells: Mapping[str, int]
    """cells of all heads and layers: "all" n x n, those that the model's own mask leaves "visible", and "kept" ones"""
    multiply_adds: Mapping[str, int]
    """of q k^T and pattern v over these cells"""
    bytes: Mapping[str, int]
    """of their scores in single precision"""


def kept_cells(attention: Attention, pattern: PatternMask) -> Array:
    """bool (head, query, key): cells of the pattern that the model's own mask leaves visible."""
    return attention.mask & pattern.cells(*attention.mask.shape[1:])[0].numpy()


def measure_kept(trace: Trace, kind: str, pattern: PatternMask) -> KeptWeights:
    """Cells that the pattern keeps in every layer of `kind`, and the share of the run's weights on them."""
    share, cells, work = [], dict.fromkeys(("all", "visible", "kept"), 0), dict.fromkeys(("all", "visible", "kept"), 0)
    for layer in trace.kind(kind).layers:
        attention = trace.attention(kind, layer)
        kept, weights = kept_cells(attention, pattern), attention.pattern.astype(float)
        total = weights.sum(axis=(1, 2))
        share.append((weights * kept).sum(axis=(1, 2)) / np.where(total > 0, total, 1))
        for name, mask in {"all": np.ones_like(kept), "visible": attention.mask, "kept": kept}.items():
            cells[name] += int(mask.sum())
            work[name] += attention_products(int(mask.sum()), attention.d_k, attention.v.shape[-1])
    return KeptWeights(np.array(share), cells, work, {name: SCORE_BYTES * count for name, count in cells.items()})


@dataclass(frozen=True)
class HeadWeights:
    """One head without and with a pattern, (query, key) each."""

    before: Array
    visible: Array
    """bool"""
    kept: Array
    """bool: cells of the pattern among the visible ones"""
    after: Array
    """weights with the pattern in every self-attention"""
    visible_after: Array
    """bool"""


def head_weights(trace: Trace, changed: Trace, place: tuple[str, int, int], pattern: PatternMask) -> HeadWeights:
    """A head of a run and of the same run with a pattern; `place` is its kind, layer and number."""
    kind, layer, head = place
    before, after = trace.attention(kind, layer), changed.attention(kind, layer)
    kept = kept_cells(before, pattern)[head]
    return HeadWeights(before.pattern[head], before.mask[head], kept, after.pattern[head], after.mask[head])


def pattern_sizes(trace: Trace) -> list[int]:
    """Sizes to try on a run: some below its longest text, and its length, at which a window keeps every cell."""
    longest = max(len(stream.tokens) for stream in trace.streams.values())
    return [*(size for size in SIZES if size < longest), longest]


@dataclass(frozen=True)
class SizeSweep:
    """The whole model under one pattern in several sizes; NaN and -1 where not yet run."""

    sizes: Array
    """(size,)"""
    log_probability: Array
    """(size,): log p of the run's own target, in nats"""
    same: Array
    """(size,): 1 where the model writes what it writes without the pattern, 0 where not"""
    cells: Array
    """(size,): kept cells of every self-attention, all heads and layers"""
    plain: float
    """log p of the same target without the pattern"""
    visible: int
    """cells of every self-attention without the pattern"""

    def passing(self, tolerance: float) -> Array:
        """bool (size,): the output is the same and log p within `tolerance` nats of `plain`."""
        return (self.same == 1) & (np.abs(self.log_probability - self.plain) <= tolerance)


def sweep_sizes(
    opened: Checkpoint, trace: Trace, patterns: Sequence[tuple[int, PatternMask]], writing: Sequence[tuple[str, Any]]
) -> Iterator[SizeSweep]:
    """Score the run's target and write again under each (size, pattern), one after another, besides the interventions
    of the run; yields after each. `writing`: keyword arguments of `opened.trace` with which the model writes, such as
    its beam size.

    Raises:
        ValueError: a pattern does not fit the model.
    """
    own = opened.trace(trace.prompt, None, interventions=trace.interventions, **dict(writing)).next_ids
    scores, same = np.full(len(patterns), np.nan), np.full(len(patterns), -1)
    kinds = [kind.name for kind in trace.kinds if not kind.crosses]
    kept = [sum(measure_kept(trace, kind, each).cells["kept"] for kind in kinds) for _, each in patterns]
    visible = sum(measure_kept(trace, kind, patterns[0][1]).cells["visible"] for kind in kinds)
    sizes = np.array([size for size, _ in patterns])
    for i, (_, pattern) in enumerate(patterns):
        changes = (*trace.interventions, pattern)
        written = opened.trace(trace.prompt, None, interventions=changes, **dict(writing))
        scored = written if written.next_ids == trace.next_ids else opened.rerun(trace, changes)
        scores[i], same[i] = scored.log_probability, written.next_ids == own
        yield SizeSweep(sizes, scores.copy(), same.copy(), np.array(kept), trace.log_probability, visible)


@dataclass(frozen=True)
class Sinks:
    """Attention to the first token of a text (Xiao et al. 2024, section 3.1)."""

    weight: Array
    """(layer, head): weight on position 0, mean over the queries after it"""
    even: float
    """the same mean if each query gave all its visible keys equal weights"""


def measure_sinks(trace: Trace, kind: str) -> Sinks:
    """Weight that every head of `kind` puts on the first token, over the queries that see other keys too."""
    layers = [trace.attention(kind, layer) for layer in trace.kind(kind).layers]
    weight = np.array([a.pattern[:, 1:, 0].astype(float).mean(axis=1) for a in layers])
    counts = np.stack([a.mask[:, 1:].sum(axis=-1) for a in layers]).clip(min=1)
    visible = np.stack([a.mask[:, 1:, 0] for a in layers])
    return Sinks(weight, float((visible / counts).mean()))


def sink_changes(tokens: int, window: int) -> dict[str, Intervention]:
    """What tells the first token's part in a text of so many tokens, by name (Xiao et al. 2024, Figures 1 and 3);
    `window` is that of the sliding windows.

    The paper renumbers the positions of the keys that are left; here every token keeps its own.
    """
    return {
        "first token hidden": _hide(0, tokens),
        "second token hidden": _hide(1, tokens),
        f"window of {window}": PatternMask(window, kind="decoder_self"),
        f"window of {window} + first token": PatternMask(window, global_tokens=(0,), kind="decoder_self"),
        f"window of {window} + first 4 tokens": PatternMask(window, global_tokens=(0, 1, 2, 3), kind="decoder_self"),
    }


def _hide(position: int, tokens: int) -> MaskEdit:
    """No query after this position sees it; it still sees itself."""
    return MaskEdit(tuple((query, position) for query in range(position + 1, tokens)), kind="decoder_self")
