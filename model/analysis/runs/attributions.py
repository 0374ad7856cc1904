"""Does attention explain? Four measures of how much each token mattered for a predicted one, and a referee.

The referee removes tokens in the order of each measure and watches log p of the predicted token: Samek et al. (2017,
section III) delete the most relevant first; insertion begins without all of them (Petsiuk et al. 2018).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from model.analysis.runs.gradients import gradient_times_input
from model.analysis.runs.swapped_weights import rank_correlation, zero_values
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit, editing
from model.interventions import applied
from model.network.network import EMBEDDINGS
from model.trace import Array, Kind, Trace

MEASURES = ("gradient", "weights", "norms", "zeroing")
RANDOM_ORDERS = 5
SHARES = tuple(i / 10 for i in range(11))
"""shares of the tokens that are removed, or put back"""
TOKENS_IN_A_PASS = 1024
"""runs times tokens in one batch: bounds the memory of their logits"""

Removal = Literal["embedding", "attention"]


def explained_kind(opened: Checkpoint) -> Kind:
    """The attention from the rows that predict to the text: cross-attention, or a single stack's self-attention."""
    return opened.kinds[-1]


def count_tokens(kind: Kind, trace: Trace, row: int) -> int:
    """How many tokens of the text a row may read, the first ones."""
    return row + 1 if kind.causal else len(trace.streams[kind.keys].tokens)


def measure_tokens(opened: Checkpoint, trace: Trace, layer: int, rows: Sequence[int]) -> Iterator[dict[str, Array]]:
    """By name, one of MEASURES: how much each token of the text mattered for the token that each row predicts.

    Yields after each batch of runs with zeroed values, NaN where not yet run; the whole result last.

    (row, token), none negative: |gradient x input|; attention weight, the mean over the heads of the layer;
    ||alpha v W_O|| with the heads' vectors added (after Kobayashi et al. 2020, section 3); value zeroing in all heads.
    """
    kind, rows = explained_kind(opened), list(rows)
    attention = trace.attention(kind.name, layer)
    values = attention.v.astype(np.float64) @ attention.projections.w_o.astype(np.float64)
    mixed = np.einsum("hrk,hkd->rkd", attention.pattern[:, rows].astype(np.float64), values)
    measures = {
        "gradient": np.abs(gradient_times_input(opened, trace, rows)[kind.keys]),
        "weights": attention.pattern[:, rows].mean(axis=0, dtype=np.float64),
        "norms": np.linalg.norm(mixed, axis=-1),
    }
    for zeroed in zero_values(opened, trace, kind.name, layer):
        yield measures | {"zeroing": zeroed.distance[rows]}


@dataclass(frozen=True)
class Verdict:
    """What happens to the predicted tokens when tokens of the text are removed in the order of each measure."""

    log_p: Array
    """(row, measure, 2, share): log p of each row's token in nats, by MEASURES and last the mean of random orders;
    [..., 0, :] after deleting this share of the tokens, largest first; [..., 1, :] with this share of them alone"""
    agreement: Array
    """(row, measure, measure): Spearman's rank correlation; NaN where a measure is the same for all tokens"""
    done: float
    """share of the rows, 0 to 1"""
    measures: Mapping[str, Array]
    """by MEASURES, (row, token): how much each token mattered, as of `measure_tokens`"""

    @property
    def deletion(self) -> Array:
        """(row, measure): AOPC of Samek et al. 2017: mean loss of log p over the shares; high is good."""
        return (self.log_p[:, :, 0, :1] - self.log_p[:, :, 0]).mean(axis=-1)

    @property
    def insertion(self) -> Array:
        """(row, measure): mean gain of log p over the shares, against the text without its tokens; high is good."""
        return (self.log_p[:, :, 1] - self.log_p[:, :, 1, :1]).mean(axis=-1)


def judge(
    opened: Checkpoint, trace: Trace, layer: int, rows: Sequence[int], removal: Removal = "embedding"
) -> Iterator[Verdict]:
    """Remove tokens in the order of each measure, for each of the rows; yields while it measures and after each order,
    NaN where not yet run.

    It measures the attention of `explained_kind` in `layer`. What removes a token: its embedding becomes 0, its
    position stays; or no attention may read it.
    """
    kind, rows, count = explained_kind(opened), list(rows), len(MEASURES)
    log_p = np.full((len(rows), count + RANDOM_ORDERS, 2, len(SHARES)), np.nan)
    agreement = np.full((len(rows), count, count), np.nan)
    for measures in measure_tokens(opened, trace, layer, rows):
        yield Verdict(log_p[:, : count + 1], agreement, 0.0, measures)
    for i, row in enumerate(rows):
        n, numbers = count_tokens(kind, trace, row), np.random.default_rng(row)
        own = [values[i, :n] for values in measures.values()]
        agreement[i] = [[rank_correlation(a, b) for b in own] for a in own]
        orders = [np.argsort(-values, kind="stable") for values in own]
        orders += [numbers.permutation(n) for _ in range(RANDOM_ORDERS)]
        for j, order in enumerate(orders):
            log_p[i, j] = _removal_curves(opened, trace, row, order, removal)
            means = log_p[:, count:].mean(axis=1, keepdims=True)
            done = (i + (j + 1) / len(orders)) / len(rows)
            curves = np.concatenate([log_p[:, :count], means], axis=1)
            yield Verdict(curves, agreement.copy(), done, measures)


def _removal_curves(opened: Checkpoint, trace: Trace, row: int, order: Array, removal: Removal) -> Array:
    """(2, share): log p of the row's token; `order` is (token,), the first to be removed first."""
    counts, rank = np.round(np.array(SHARES) * len(order))[:, None], np.argsort(order)
    present = np.concatenate([rank >= counts, rank < counts])
    tokens = sum(len(stream.tokens) for stream in trace.streams.values())
    size = max(TOKENS_IN_A_PASS // tokens, 1)
    passes = [_log_p(opened, trace, row, present[i : i + size], removal) for i in range(0, len(present), size)]
    return np.concatenate(passes).reshape(2, len(SHARES))


@torch.inference_mode()
def _log_p(opened: Checkpoint, trace: Trace, row: int, present: Array, removal: Removal) -> Array:
    """(run,): log p of the row's token in nats; `present` (run, token) says which tokens each run has."""
    check_cancelled()
    model, kind = opened.model, explained_kind(opened)
    device, runs = model.output.weight.device, len(present)
    kept = torch.ones(runs, len(trace.streams[kind.keys].tokens), dtype=torch.bool)
    kept[:, : present.shape[1]] = torch.from_numpy(present)
    kept = kept.to(device)
    positional = torch.tensor(trace.streams[kind.keys].embedded.positional, device=device)
    # 0 in place of the embedding leaves what is added for the position.
    edits: dict[str, Edit] = {f"{EMBEDDINGS[kind.keys]}.sum": lambda x: torch.where(kept[:, :, None], x, positional)}
    if removal == "attention":
        names = [each.name for each in model.kinds if each.keys == kind.keys]
        paths = [path for (name, _), (path, _) in model.attentions().items() if name in names]
        edits = {f"{path}.mask": lambda mask: mask & kept[:, None, None, :] for path in paths}
    with applied(model, trace.interventions), editing(model, edits):
        logits = model(*(ids.expand(runs, -1) for ids in model.texts_of(trace)))[:, row]
    return logits.double().log_softmax(-1)[:, trace.next_ids[row]].cpu().numpy()
