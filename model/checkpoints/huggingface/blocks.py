"""The residual stream of a layer: which sums and norms lead from its input to its output, found by arithmetic."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from model.checkpoints.huggingface.heads import LINEAR
from model.checkpoints.huggingface.probe import Event, ModuleCall, batched, close, same
from model.network.feed_forward import FUNCTIONS
from model.trace import Norm


@dataclass(frozen=True)
class Gate:
    """How a gated feed-forward makes what W_2 reads: act(x W_gate) * (x W_1)."""

    gate: nn.Module
    """its output is act(x W_gate)"""
    up: nn.Module
    """its output is x W_1, or has it as one of its halves"""
    half: int | None
    """which half; None: all of it"""

    def up_part(self, out: Tensor) -> Tensor:
        return out if self.half is None else out.chunk(2, dim=-1)[self.half]


@dataclass(frozen=True)
class BlockLayout:
    """The sub-layers of one layer and the norms around them."""

    placement: str
    """post, pre, sandwich, res-post or parallel"""
    norms: list[ModuleCall | None]
    """of each sub-layer: the norm before it, or after its sum (post); None: there is none"""
    after_norms: list[ModuleCall | None]
    """sandwich and res-post: the norm of what each sub-layer computed"""
    multipliers: list[float]
    """by which what each sub-layer computed, or its norm, is multiplied before it is added"""
    w_2: nn.Module
    """whose output the feed-forward adds: its last linear map, or a mixture of experts"""
    gate: Gate | None
    activation: str
    """one of FUNCTIONS, or other"""
    activating: nn.Module | None = None
    """the module that applies it; None: no module does"""


def read_called_norm(call: ModuleCall | None) -> Norm | None:
    """Which formula a module's numbers follow: LayerNorm or RMSNorm, with its weight or 1 + weight; None: neither."""
    if call is None or not call.inputs or call.x.shape != call.y.shape:
        return None
    weight, bias = (_learned(call, name) for name in ("weight", "bias"))
    x, y = call.x.double().cpu().numpy(), call.y.double().cpu().numpy()
    width = x.shape[-1]
    gammas = [np.ones(width)] if weight is None else [weight.cpu().numpy(), 1 + weight.cpu().numpy()]
    fitting = (width,), (x.shape[1], 1, width), x.shape[-2:]
    if any(gamma.shape not in fitting for gamma in gammas) or (bias is not None and bias.shape not in fitting):
        return None
    beta = None if bias is None else bias.cpu().numpy()
    for eps in _epsilons(call.module):
        for kind in ("LayerNorm", "RMSNorm"):
            for gamma in gammas:
                norm = Norm(kind, gamma, beta, eps)
                if np.abs(norm(x) - y).max() <= 1e-5 * max(1.0, np.abs(y).max()):
                    return norm
    return None


def _learned(call: ModuleCall, name: str) -> Tensor | None:
    """The module's own parameter; of a module with a norm for each head, those of all heads, (heads, 1, width)."""
    own = getattr(call.module, name, None)
    own = own if isinstance(own, Tensor) else None
    norms = [part for part in call.module.modules() if isinstance(getattr(part, "weight", None), Tensor)]
    if own is not None or call.x.dim() != 4 or len(norms) != call.x.shape[1]:
        return own
    parts = [getattr(part, name, None) for part in norms]
    return torch.stack(parts)[:, None] if all(isinstance(part, Tensor) for part in parts) else None


def _epsilons(module: nn.Module) -> list[float]:
    """Small numbers that the module holds, one of them added before its root."""
    held = {each for part in module.modules() for each in held_numbers(part) if 0 < each <= 1e-2}
    return sorted(held | {1e-5, 1e-6, 1e-12}, key=lambda eps: eps not in held)


def held_numbers(module: nn.Module) -> list[float]:
    """The numbers that a module keeps beside its parameters."""
    return [float(each) for each in vars(module).values() if isinstance(each, float)]


def block_of(model: nn.Module, attention: nn.Module) -> nn.Module | None:
    """The layer of an attention: the element of the outermost list of modules around it."""
    path = next(path for path, module in model.named_modules() if module is attention).split(".")
    first = next((i for i, part in enumerate(path) if part.isdigit()), None)
    return None if first is None else model.get_submodule(".".join(path[: first + 1]))


def find_arrangement(
    block: ModuleCall, inner: Sequence[Event], outputs: Sequence[nn.Module | None], own: set[nn.Module]
) -> BlockLayout | None:
    """How a layer's output follows from its input; None where no arrangement gives it.

    `inner` are the calls inside the layer's, `outputs` W_O of each of its attentions, in their order, and `own` the
    modules of these.
    """
    calls = [each for each in inner if isinstance(each, ModuleCall) and each.inputs]
    wide = [each for each in calls if batched(each.out).shape == block.x.shape]
    attended = [next((each for each in wide if each.module is module), None) for module in outputs]
    if None in attended:
        return None
    norms = [each for each in wide if read_called_norm(each)]
    others = [each for each in reversed(wide) if each.module not in own and each not in norms]
    for down in sorted(others, key=lambda each: not isinstance(each.module, LINEAR)):
        found = _arrange(block, [*(each.y for each in attended), down.y], norms)
        if found:
            gate = _find_gate(calls, down)
            activated = next((each.y for each in calls if gate and each.module is gate.gate), None)
            if activated is None and isinstance(down.module, LINEAR):
                activated = down.x
            return BlockLayout(*found, down.module, gate, *_activation(calls, activated))
    return None


def _arrange(
    block: ModuleCall, parts: Sequence[Tensor], norms: Sequence[ModuleCall]
) -> tuple[str, list[ModuleCall | None], list[ModuleCall | None], list[float]] | None:
    """Placement, the norm of each sub-layer, the norm of its result, and what multiplies that, which lead from the
    layer's input to its output."""

    def norm_of(stream: Tensor) -> ModuleCall | None:
        return next((each for each in norms if close(each.x, stream)), None)

    x, end = block.x, block.y
    none: list[ModuleCall | None] = [None] * len(parts)
    ones = [1.0] * len(parts)
    after = [norm_of(part) for part in parts]
    if all(after) and (factors := _multipliers(block, [each.y for each in after])):
        added = [each.y * factor for each, factor in zip(after, factors, strict=True)]
        before = list(_before(x, added, norm_of))
        return ("sandwich" if any(before) else "res-post"), before, after, factors
    if factors := _multipliers(block, parts):
        reads = [each for each in norms if close(each.x, x)]
        before = list(_before(x, [part * factor for part, factor in zip(parts, factors, strict=True)], norm_of))
        if None in before[1:] and reads:  # all sub-layers read the layer's input
            return "parallel", [reads[min(i, len(reads) - 1)] for i in range(len(parts))], none, factors
        return "pre", before, none, factors
    used, stream = [], x
    for part in parts:
        if (norm := norm_of(stream + part)) is None:
            return None
        used.append(norm)
        stream = norm.y
    return ("post", used, none, ones) if close(stream, end) else None


def _multipliers(block: ModuleCall, parts: Sequence[Tensor]) -> list[float] | None:
    """Numbers by which the parts are multiplied so that, added to a layer's input, they give its output; None: there
    are none."""
    if close(block.x + sum(parts), block.y):
        return [1.0] * len(parts)
    columns = torch.stack([part.flatten() for part in parts], dim=-1).double()
    wanted = (block.y - block.x).flatten().double()
    measured = torch.linalg.lstsq(columns, wanted[:, None]).solution[:, 0].tolist()
    kept = held_numbers(block.module)
    exact = [next((each for each in kept if each and abs(found / each - 1) < 1e-4), found) for found in measured]
    total = block.x + sum(part * factor for part, factor in zip(parts, exact, strict=True))
    return exact if 0.0 not in exact and close(total, block.y) else None


def _before(x: Tensor, parts: Sequence[Tensor], norm_of) -> Iterator[ModuleCall | None]:
    stream = x
    for part in parts:
        yield norm_of(stream)
        stream = stream + part


def _activation(calls: Sequence[ModuleCall], activated: Tensor | None) -> tuple[str, nn.Module | None]:
    """The function that made `activated` of what a module read, and that module."""
    for call in calls:
        if activated is not None and same(call.out, activated) and call.inputs[0].shape == call.out.shape:
            for name, function in FUNCTIONS.items():
                if close(function(call.inputs[0]), call.out):
                    return name, call.module
    return "other", None


def _find_gate(calls: Sequence[ModuleCall], down: ModuleCall) -> Gate | None:
    """Two modules whose outputs, multiplied, are what W_2 reads."""
    if not isinstance(down.module, LINEAR):
        return None
    hidden = batched(down.inputs[0])
    linear = [each for each in calls if isinstance(each.module, LINEAR)]
    for gate in calls:
        if isinstance(gate.module, LINEAR) or batched(gate.out).shape != hidden.shape:
            continue
        for up in linear:
            wide = up.y.shape[-1] == 2 * hidden.shape[-1]
            for half, part in enumerate(up.y.chunk(2, dim=-1)) if wide else ((None, up.y),):
                if part.shape == hidden.shape and close(gate.y * part, hidden) and not same(gate.y, hidden):
                    return Gate(gate.module, up.module, half)
    return None
