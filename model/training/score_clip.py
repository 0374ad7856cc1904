"""QK-clip (Kimi K2 2025, section 2.1): scores that may not grow without bound, in a network that stays as it is."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from model.hooks import Edit, editing
from model.network.attention import MultiHeadAttention
from model.network.network import Network


class ScoreClip:
    """Scales W_Q and W_K of a head down after a step in which its largest score q·k / sqrt(d_k) was above `limit`.

    The score is linear in both, so the largest one of that step would have been `limit`. Queries and keys stay linear
    maps of the stream, which RMSNorm of them (QK-norm) would end.

    Raises:
        ValueError: the network normalises queries and keys, so that scaling their matrices changes nothing.
    """

    def __init__(self, model: Network, limit: float) -> None:
        if limit and model.config.qk_norm:
            raise ValueError(
                "clip_scores does nothing where qk_norm normalises queries and keys: leave one of them out"
            )
        self.model, self.limit = model, limit
        self.attentions = dict(model.attentions().values()) if limit else {}
        self.largest: dict[str, Tensor] = {}
        """path of an attention -> (heads,) largest score of the last step"""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep each head's largest score of the runs inside the block; nothing to do without a limit."""
        if not self.limit:
            yield
            return
        self.largest = {}
        with editing(self.model, {f"{path}.masked": self._keeping(path) for path in self.attentions}):
            yield

    def _keeping(self, path: str) -> Edit:
        def keep(scores: Tensor) -> None:
            # Scores that the softmax sees: masked ones are -inf.
            self.largest[path] = scores.detach().float().amax(dim=(0, 2, 3))

        return keep

    @torch.no_grad()
    def apply(self) -> None:
        """Scale the matrices of each head that was above the limit."""
        for path, largest in self.largest.items():
            if dist.is_initialized():
                dist.all_reduce(largest, op=dist.ReduceOp.MAX)
            # A head whose scores are all negative is below every limit.
            _scale_scores(self.attentions[path], self.limit / largest.clamp(min=self.limit))


def _scale_scores(attention: MultiHeadAttention, factors: Tensor) -> None:
    """Multiply all scores of each head by its factor, (heads,): half of it in W_Q, half in W_K.

    All of it in W_Q where heads share their keys: another head's scores are none of its business.
    """
    shared = attention.n_kv_heads < attention.n_heads
    for linear in (attention.w_q,) if shared else (attention.w_q, attention.w_k):
        rows = (factors if shared else factors.sqrt()).repeat_interleave(attention.d_k)
        linear.weight.mul_(rows[:, None])
        if linear.bias is not None:
            linear.bias.mul_(rows)
