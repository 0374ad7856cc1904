"""Attention as transformers' models call it, computed through this project's hook points, one equation a line."""

import sys
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from model.hooks import HookPoint, observed
from model.trace import Array

NAME = "attention_explorer"
"""under which transformers knows `attend`"""


class AttentionPoints(nn.Module):
    """The hook points of one attention, named as in `model.network.attention`, and the numbers of its formula."""

    NAMES = (
        *(
            "query_input",
            "key_input",
            "q_pre",
            "k_pre",
            "q_normed",
            "k_normed",
            "q_turned",
            "k_turned",
            *(f"{side}_{step}" for side in ("q", "kv") for step in ("down", "latent", "up")),
            "cos",
            "sin",
            "q",
            "k",
            "v",
            "mask",
        ),
        *("scores", "scaled", "bias", "masked", "temperature", "pattern", "z", "out"),
    )

    def __init__(self, call: "AttentionCall") -> None:
        super().__init__()
        for name in self.NAMES:
            setattr(self, name, HookPoint())
        self.n_heads, self.n_kv_heads, self.d_k = call.query.shape[1], call.key.shape[1], call.query.shape[-1]
        self.divisor = 1 / call.scale
        self.softcap: float | None = call.options.get("softcap")
        sink = call.options.get("s_aux")
        self.sink: Array | None = None if sink is None else sink.detach().cpu().numpy()
        self.error = 0.0
        """largest difference of `compute` from what the model itself computes"""


@dataclass
class AttentionCall:
    """One call of an attention: (batch, heads, position, d_k) each, and what transformers gives besides."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    """(batch, 1 or heads, query, key): added to the scores, a very low number where a key is hidden"""
    scaling: float | None
    options: Mapping[str, Any]
    out: Tensor | None = None
    """(batch, query, heads, d_v), as the model computed it"""
    weights: Tensor | None = None
    """(batch, heads, query, key)"""

    @property
    def scale(self) -> float:
        return float(self.query.shape[-1] ** -0.5 if self.scaling is None else self.scaling)


@dataclass(eq=False)
class HookedAttention:
    """An attention module and the points of each layer that runs it: several where layers share weights (ALBERT)."""

    points: list[AttentionPoints]
    exact: bool = True
    """whether `compute` repeats what the model does; if not, its own weights are recorded and nothing else"""


@dataclass
class Pass:
    """One forward pass in this context."""

    calls: dict[HookedAttention, int] = field(default_factory=dict)
    """how often each attention has been called"""
    looked_up: dict[nn.Module, Tensor] = field(default_factory=dict)
    """what each table of token embeddings gave last"""
    entered: set[nn.Module] = field(default_factory=set)
    """embeddings whose stack has begun"""
    norms: dict[nn.Module, int] = field(default_factory=dict)
    """how often each norm that queries and keys share has been called"""
    moved: dict[nn.Module, Tensor] = field(default_factory=dict)
    """what edits in the middle of a layer have added to its stream, until the layer ends"""
    seen: list[Any] | None = None
    """every call of this pass, in order, where they are asked for"""


PASS: ContextVar[Pass | None] = ContextVar("forward_pass", default=None)


def layer_of(site: HookedAttention, done: bool = False) -> int:
    """Which of its points the next call of the site belongs to; `done`: the one that has just been called."""
    if len(site.points) == 1:
        return 0
    run = PASS.get()
    return ((run.calls.get(site, 0) if run else 0) - done) % len(site.points)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """What transformers calls in place of its eager attention, which still computes where nobody watches."""
    call = AttentionCall(module, query, key, value, attention_mask, scaling, options)
    site: HookedAttention | None = getattr(module, "attention_site", None)
    points = site and site.points[layer_of(site)]
    run = PASS.get()
    if points and run:
        run.calls[site] = run.calls.get(site, 0) + 1
    if points and site.exact and not module.training and observed(points.modules()):
        return compute(points, call)
    eager = sys.modules[type(module).__module__].eager_attention_forward
    out, weights = eager(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **options)
    if points and not site.exact:
        points.pattern(weights)  # recorded; an edit has no effect
    if run and run.seen is not None:
        call.out, call.weights = out, weights
        run.seen.append(call)
    return out, weights


def compute(points: AttentionPoints, call: AttentionCall) -> tuple[Tensor, Tensor]:
    """z, (batch, query, heads, d_v), and the attention weights; bit for bit what transformers' eager functions give."""
    groups = call.query.shape[1] // call.key.shape[1]
    q = points.q(call.query)
    k, v = points.k(share(call.key, groups)), points.v(share(call.value, groups))
    scores = points.scores(q @ k.transpose(-2, -1))
    allowed = visible(call.mask, scores)
    mask = points.mask(allowed.expand(scores.shape))
    scaled = points.scaled(scores * call.scale)
    softcap, bias = call.options.get("softcap"), score_bias(call, allowed)
    capped = scaled if softcap is None else (scaled / softcap).tanh() * softcap
    biased = capped if bias is None else capped + points.bias(bias.expand(scores.shape))
    # A padded row that sees no key has uniform weights in transformers.
    masked = points.masked(biased.masked_fill(~mask, -torch.inf).masked_fill(~mask.any(-1, keepdim=True), 0.0))
    if points.temperature.observed:
        masked = masked / points.temperature(masked.new_ones(1, q.shape[1], 1, 1))
    pattern = points.pattern(softmax(masked, call.options.get("s_aux")))
    z = points.z(pattern @ v)
    return z.transpose(1, 2).contiguous(), pattern


def softmax(scores: Tensor, sink: Tensor | None) -> Tensor:
    """Over the keys, and the `sink` (heads,) where there is one: a logit that is no key (Xiao et al. 2024, gpt-oss)."""
    if sink is None:
        return scores.softmax(dim=-1)
    column = sink.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
    with_sink = torch.cat([scores, column], dim=-1)
    return (with_sink - with_sink.amax(-1, keepdim=True)).softmax(dim=-1)[..., :-1]


def share(x: Tensor, groups: int) -> Tensor:
    """Grouped-query attention: (batch, kv_heads, key, width) -> (batch, heads, key, width)."""
    return x if groups == 1 else x.repeat_interleave(groups, 1)


def visible(mask: Tensor | None, scores: Tensor) -> Tensor:
    """bool, broadcastable to `scores`: True = may attend."""
    if mask is None:
        return torch.ones_like(scores, dtype=torch.bool)
    return mask if mask.dtype == torch.bool else mask > torch.finfo(scores.dtype).min / 2


def score_bias(call: AttentionCall, allowed: Tensor) -> Tensor | None:
    """What is added to the scores besides the mask: T5's relative bias, or a bias that travels in the mask (ALiBi)."""
    bias = call.options.get("position_bias")
    if call.mask is not None and call.mask.dtype != torch.bool and bool((found := call.mask.where(allowed, 0.0)).any()):
        return found if bias is None else bias + found
    return bias


def compute_here(model: nn.Module) -> None:
    """Let a transformers model compute its attention with `attend` from now on."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)  # without it causal models would get no mask, and look ahead
    model.set_attn_implementation(NAME)
