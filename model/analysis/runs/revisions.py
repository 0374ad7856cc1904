"""Two revisions of one model: which parameters, layers and heads differ, by their weights and by what they put out.

All differences are relative: ||after - before|| / ||before||, Frobenius norms in double precision.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.analysis.distributions import total_variation
from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Trace

_LAYER = re.compile(r"^(?P<block>.*?(?:layers?|blocks?|h)\.\d+)(?=\.)")
"""of a parameter's name, up to the number of its layer"""


@dataclass(frozen=True)
class BlockDifference:
    """How far the parameters of one layer, or one matrix outside the layers, have moved."""

    name: str
    """`encoder.layers.0`, or the parameter's own name"""
    relative: float
    largest: float
    """absolute difference of any parameter"""


@dataclass(frozen=True)
class OutputDifference:
    """How far the two put out different things on the same tokens; means over the texts."""

    streams: Mapping[tuple[str, int, str], float]
    """(stack, layer, sub-layer) -> relative difference of the residual stream after it, in the order of the model"""
    patterns: Mapping[tuple[str, int], Array]
    """(kind, layer) -> (head,): total variation between the rows' attention weights, 0 to 1"""
    log_probability: float
    """mean of |log p after - log p before| of the tokens of the texts, in nats"""
    guesses: float
    """share of positions where the most probable token is another one"""

    @property
    def first(self) -> tuple[str, int, str] | None:
        """The first sub-layer after which the streams differ; None: none does."""
        return next((place for place, apart in self.streams.items() if apart > 0), None)


def block_differences(before: Checkpoint, after: Checkpoint) -> list[BlockDifference]:
    """What differs between the parameters of two models of one architecture, in the order of the model.

    Raises:
        ValueError: they do not have the same parameters.
    """
    ours, theirs = (dict(opened.model.named_parameters()) for opened in (before, after))
    odd = [n for n in {**ours, **theirs} if n not in ours or n not in theirs or ours[n].shape != theirs[n].shape]
    if odd:
        raise ValueError(
            f"{before.name} and {after.name} are not revisions of one model: {len(odd)} of their parameters "
            f"do not exist in both or have other sizes, first {odd[0]!r}"
        )
    blocks: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for name, values in ours.items():
        match = _LAYER.match(name)
        blocks.setdefault(match["block"] if match else name, []).append((values, theirs[name]))
    return [BlockDifference(name, *_difference(pairs)) for name, pairs in blocks.items()]


def _difference(pairs: Iterable[tuple[Tensor, Tensor]]) -> tuple[float, float]:
    moved = size = largest = 0.0
    for one, other in pairs:
        one, other = one.detach().double(), other.detach().double()
        moved += float((other - one).square().sum())
        size += float(one.square().sum())
        largest = max(largest, float((other - one).abs().max())) if one.numel() else largest
    return relative(moved**0.5, size**0.5), largest


def relative(moved: float, size: float) -> float:
    """`moved` over `size`; infinite where something moved from nothing."""
    return moved / size if size else (np.inf if moved else 0.0)


def head_differences(before: Trace, after: Trace) -> dict[tuple[str, int], Array]:
    """(kind, layer) -> (head,): how far each head's columns of W_Q, W_K, W_V and rows of W_O have moved.

    Biases count, too. Heads that share keys and values move together in those. NaN where a matrix could not be read.
    """
    differences: dict[tuple[str, int], Array] = {}
    for (kind, layer), attention in before.attentions.items():
        ours, theirs = attention.projections, after.attention(kind, layer).projections
        if ours is None or theirs is None:
            differences[kind, layer] = np.full(attention.n_heads, np.nan)
            continue
        names = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v", "w_o")
        parts = [(np.float64(getattr(ours, name)), np.float64(getattr(theirs, name))) for name in names]
        moved = [
            relative(_norm(other[head] - one[head] for one, other in parts), _norm(one[head] for one, _ in parts))
            for head in range(attention.n_heads)
        ]
        differences[kind, layer] = np.array(moved)
    return differences


def _norm(arrays: Iterable[Array]) -> float:
    return float(sum((array**2).sum() for array in arrays)) ** 0.5


def output_differences(pairs: Iterable[tuple[Trace, Trace]]) -> OutputDifference:
    """What differs inside, over pairs of runs (before, after) on the same tokens.

    Raises:
        ValueError: there is no pair, or a pair is not on the same tokens.
    """
    streams: dict[tuple[str, int, str], list[float]] = {}
    patterns: dict[tuple[str, int], list[Array]] = {}
    log_p, guesses = [], []
    for before, after in pairs:
        if (before.src_ids, before.next_ids) != (after.src_ids, after.next_ids):
            raise ValueError("the two runs are not on the same tokens, so they have no cells in common")
        for name, stream in before.streams.items():
            for one, other in zip(stream.sublayers, after.streams[name].sublayers, strict=True):
                apart = np.float64(other.after) - np.float64(one.after)
                place = name, one.layer, one.name
                streams.setdefault(place, []).append(relative(_norm([apart]), _norm([np.float64(one.after)])))
        for place, attention in before.attentions.items():
            apart = total_variation(attention.pattern, after.attentions[place].pattern)
            patterns.setdefault(place, []).append(apart.mean(axis=-1))
        log_p.append(np.abs(after.target_log_probabilities - before.target_log_probabilities))
        guesses.append(before.logits.argmax(axis=-1) != after.logits.argmax(axis=-1))
    if not log_p:
        raise ValueError("there is no text to run the two models on")
    return OutputDifference(
        {place: float(np.mean(each)) for place, each in streams.items()},
        {place: np.mean(each, axis=0) for place, each in patterns.items()},
        float(np.concatenate(log_p).mean()),
        float(np.concatenate(guesses).mean()),
    )


def ranked_heads(differences: Mapping[tuple[str, int], Array]) -> list[tuple[str, int, int, float]]:
    """(kind, layer, head, difference), the largest first; heads that could not be read are last."""
    heads = [
        (kind, layer, head, float(value))
        for (kind, layer), moved in differences.items()
        for head, value in enumerate(moved)
    ]
    return sorted(heads, key=lambda head: np.nan_to_num(head[3], nan=-1.0, posinf=np.inf), reverse=True)


def round_weights(opened: Checkpoint, precision: str) -> None:
    """Round the weights of a model that nobody else uses, in place: what a twin of lower precision would load.

    Computation stays in single precision, so that only the weights differ. The precision is "bf16", or "int8": whole
    numbers -127 to 127 with one scale a row of each matrix.
    """
    with torch.no_grad():
        for weights in opened.model.parameters():
            if precision == "bf16":
                weights.copy_(weights.to(torch.bfloat16).to(weights.dtype))
            elif weights.dim() > 1:
                scale = weights.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny) / 127
                weights.copy_((weights / scale).round() * scale)
