"""Is attention explanation? How much weights and output change when weights are replaced or a value is zeroed.

Jain and Wallace (2019), section 4.2.1; Mohebbi et al. (2023), section 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.distributions import jensen_shannon, ratio, total_variation
from model.analysis.sweep import log_probability
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import editing, recording
from model.interventions import Intervention, PermutedAttention, UniformAttention, applied
from model.interventions.base import at_head
from model.network.network import Network
from model.trace import Array, Trace, probabilities

ROWS = 64
"""keys whose values are set to 0 in one pass, each in a row of the batch"""
NAMES = ("pattern_tv", "pattern_jsd", "output_tv", "output_jsd")


@dataclass(frozen=True)
class Distances:
    """Distances between a run and one with an intervention: of the attention weights, and of the next token."""

    intervention: Intervention
    pattern_tv: Array
    """(heads, query): total variation between each row's attention weights, 0 to 1"""
    pattern_jsd: Array
    """(heads, query): their Jensen-Shannon divergence, 0 to ln 2 nats"""
    output_tv: Array
    """(target position,): total variation between the distributions of the next token, 0 to 1"""
    output_jsd: Array
    """(target position,): their Jensen-Shannon divergence, 0 to ln 2 nats"""

    @property
    def means(self) -> dict[str, float]:
        """By name, the mean of each distance over its heads and rows."""
        return {name: float(getattr(self, name).mean()) for name in NAMES}


def swap_weights(
    opened: Checkpoint, trace: Trace, kind: str, layer: int, head: int | None = None, seeds: Sequence[int] = (0,)
) -> Iterator[Distances]:
    """Replace the weights of one head (None: of all) by uniform ones, then by one permutation of each row per seed.

    Yields the distances after each run.

    Raises:
        ValueError: the model has no such attention or head.
    """
    address = {"kind": kind, "layer": layer, "head": head}
    for change in (UniformAttention(**address), *(PermutedAttention(seed, **address) for seed in seeds)):
        yield measure_change(opened, trace, kind, layer, change)


def measure_change(opened: Checkpoint, trace: Trace, kind: str, layer: int, change: Intervention) -> Distances:
    """Distances between the trace and a run with `change` added, for the heads of this attention that it changes."""
    activations = opened.record(trace, (*trace.interventions, change))
    path, _ = opened.model.attentions()[kind, layer]
    head = getattr(change, "head", None)
    heads = slice(None) if head is None else slice(head, head + 1)
    patterns = (trace.attention(kind, layer).pattern[heads], activations[f"{path}.pattern"][heads])
    before, after = trace.probabilities, probabilities(activations["logits"])
    return Distances(
        change,
        total_variation(*patterns),
        jensen_shannon(*patterns),
        total_variation(before, after),
        jensen_shannon(before, after),
    )


@dataclass(frozen=True)
class HeadDistances:
    """Mean distances for each head of a kind, its weights replaced alone; NaN where not yet run."""

    uniform: Mapping[str, Array]
    """name of the distance, one of NAMES -> (layers, heads), with uniform weights"""
    permuted: Mapping[str, Array]
    """the same with each row of weights permuted"""

    @property
    def done(self) -> float:
        """Share of the heads that are done, 0 to 1."""
        return float(np.isfinite(self.permuted["output_tv"]).mean())


def swap_every_head(opened: Checkpoint, trace: Trace, kind: str, seed: int = 0) -> Iterator[HeadDistances]:
    """Replace the weights of each head of `kind` alone, with one permutation; yields after each head, the whole last.

    Raises:
        ValueError: the model has no such attention.
    """
    shape = (sum(k == kind for k, _ in trace.attentions), opened.model.config.n_heads)
    trace.attention(kind, 0)
    result = HeadDistances(*({name: np.full(shape, np.nan) for name in NAMES} for _ in range(2)))
    for layer, head in np.ndindex(shape):
        runs = swap_weights(opened, trace, kind, layer, head, (seed,))
        for distances, run in zip((result.uniform, result.permuted), runs, strict=True):
            for name, value in run.means.items():
                distances[name][layer, head] = value
        yield result


@dataclass(frozen=True)
class ValueEffects:
    """What each key's value contributes: runs in which it is set to 0, against the run in which it is not."""

    distance: Array
    """(query, key): 1 - cosine between the layer's outputs at the query with and without the key's value"""
    change: Array
    """(key,): log p(translation) without the value minus log p with it, in nats"""

    @property
    def share(self) -> Array:
        """(query, key): `distance` with rows normalised to sum 1; a row of zeros stays one."""
        return ratio(self.distance, self.distance.sum(axis=-1, keepdims=True))


def zero_values(
    opened: Checkpoint, trace: Trace, kind: str, layer: int, head: int | None = None
) -> Iterator[ValueEffects]:
    """Zero the value of each key of this attention alone, many keys in one batched pass.

    Yields after each pass, with NaN where not yet run; the whole result last.

    Raises:
        ValueError: the model has no such attention or head.
    """
    attention = trace.attention(kind, layer)
    if not (head is None or 0 <= head < attention.n_heads):
        raise ValueError(f"heads are 0 to {attention.n_heads - 1}, got {head!r}")
    queries, keys = attention.pattern.shape[1:]
    distance, change = np.full((queries, keys), np.nan), np.full(keys, np.nan)
    for first in range(0, keys, ROWS):
        here = slice(first, min(first + ROWS, keys))
        zeroed = torch.arange(here.start, here.stop)
        outputs, logits = _zeroed_runs(opened.model, trace, (kind, layer, head), zeroed)
        plain, *others = (log_probability(row.cpu().numpy(), trace.next_ids) for row in logits)
        distance[:, here] = _cosine_distance(outputs[:1], outputs[1:]).T.cpu().numpy()
        change[here] = np.array(others) - plain
        yield ValueEffects(distance.copy(), change.copy())


@torch.inference_mode()
def _zeroed_runs(
    model: Network, trace: Trace, address: tuple[str, int, int | None], zeroed: Tensor
) -> tuple[Tensor, Tensor]:
    """Layer output (run, query, d_model) and logits (run, position, vocabulary); run 0 zeroes nothing."""
    kind, layer, head = address
    path, _ = model.attentions()[kind, layer]
    output = model.end_point(path.rpartition(".")[0])
    runs = 1 + len(zeroed)

    def zero(v: Tensor) -> Tensor:
        changed = v.clone()
        changed[torch.arange(1, runs), :, zeroed] = 0
        return at_head(head, v, changed)

    with (
        applied(model, trace.interventions),
        editing(model, {f"{path}.v": zero}),
        recording(model, [output]) as recorded,
    ):
        logits = model(*(ids.expand(runs, -1) for ids in model.texts_of(trace)))
    return recorded[output], logits


def _cosine_distance(x: Tensor, y: Tensor) -> Tensor:
    """1 - cosine over the last axis, in double precision, as |x/|x| - y/|y||^2 / 2: exactly 0 where x = y."""
    x, y = (F.normalize(vectors.double(), dim=-1) for vectors in (x, y))
    return (x - y).square().sum(dim=-1) / 2


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's rank correlation, tied values sharing their mean rank; NaN where one side is constant."""
    ranks = (pd.Series(values).rank().to_numpy() for values in (x, y))
    a, b = (rank - rank.mean() for rank in ranks)
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size else float("nan")
