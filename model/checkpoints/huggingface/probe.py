"""One run of a model on a few tokens, with every call of every module written down: parts are found by comparison."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from model.checkpoints.huggingface.attention import PASS, AttentionCall, Pass

SOURCE_TOKENS, TARGET_TOKENS = 11, 7
"""lengths of the probe's texts: they differ, so that shapes tell cross-attention"""


@dataclass
class ModuleCall:
    """One call of a module."""

    module: nn.Module
    inputs: list[Tensor]
    """its tensors, by position and then by keyword"""
    keywords: Mapping[str, Any]
    out: Tensor
    """what it returned, the first of several"""

    @property
    def x(self) -> Tensor:
        """Its first input, (batch, position, width)."""
        return batched(self.inputs[0])

    @property
    def y(self) -> Tensor:
        """Its output, (batch, position, width)."""
        return batched(self.out)


Event = ModuleCall | AttentionCall


def batched(x: Tensor) -> Tensor:
    """(position, width) -> (1, position, width): some models flatten the batch before their feed-forward."""
    return x[None] if x.dim() == 2 else x


def close(a: Tensor, b: Tensor) -> bool:
    """True if two tensors are equal but for rounding, which grows with the largest of their numbers."""
    return a.shape == b.shape and float((a - b).abs().max()) <= 1e-5 * max(1.0, float(b.abs().max()))


def same(a: Tensor, b: Tensor) -> bool:
    """True if two tensors hold the same numbers in the same order, whatever their shapes."""
    return a.numel() == b.numel() and torch.equal(a.flatten(), b.flatten())


def plain_factor(factor: float, width: int) -> float:
    """A factor measured on rounded numbers; exactly 1, sqrt(width) or 1 / sqrt(width) where it is one of them."""
    return next((each for each in (1.0, width**0.5, width**-0.5) if abs(factor / each - 1) < 1e-5), factor)


def probe_ids(model: nn.Module) -> list[list[int]]:
    """Random token ids of the probe's texts, the encoder's first."""
    numbers, vocabulary = torch.Generator().manual_seed(0), model.config.get_text_config().vocab_size
    lengths = (SOURCE_TOKENS, TARGET_TOKENS) if model.config.is_encoder_decoder else (SOURCE_TOKENS,)
    low = min(5, vocabulary - 1)
    return [torch.randint(low, vocabulary, (length,), generator=numbers).tolist() for length in lengths]


@torch.inference_mode()
def probe(model: nn.Module) -> tuple[list[Event], Tensor | None]:
    """The calls of one run, in the order in which they returned, and the logits (None: the model has none)."""
    texts = [torch.tensor([ids], device=model.device) for ids in probe_ids(model)]
    run = Pass(seen=[])
    hook = _write_down(run.seen)
    handles = [
        module.register_forward_hook(hook, with_kwargs=True) for module in model.modules() if module is not model
    ]
    token = PASS.set(run)
    try:
        out = call_model(model, texts)
    finally:
        PASS.reset(token)
        for handle in handles:
            handle.remove()
    return run.seen, getattr(out, "logits", None)


def call_model(model: nn.Module, texts: Sequence[Tensor], **options: Any) -> Any:
    """The model on token ids (batch, position), the encoder's first, without a cache."""
    inputs = dict(zip(("input_ids", "decoder_input_ids"), texts, strict=False))
    if hasattr(model.config, "use_cache"):
        options = {"use_cache": False} | options
    return model(**inputs, **options)


def _write_down(seen: list[Event]) -> Callable:
    def hook(module: nn.Module, args: tuple, keywords: dict, out: Any) -> None:
        out = out[0] if isinstance(out, tuple) else out
        inputs = [each for each in (*args, *keywords.values()) if isinstance(each, Tensor)]
        if isinstance(out, Tensor):
            seen.append(ModuleCall(module, inputs, keywords, out.clone()))  # Llama 4 adds experts to the shared one's

    return hook
