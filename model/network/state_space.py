"""A selective state space model (Gu and Dao 2023, "Mamba"), alone or among layers of attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.layers import EncoderLayer
from model.network.masks import causal_mask
from model.network.network import final_norm
from model.network.residual import Residual

LayerKind = Literal["attention", "state_space"]
SMALLEST_STEP, LARGEST_STEP = 0.01, 0.5
"""of delta before training; the paper's, for texts of thousands of tokens, are 0.001 and 0.1 (section 3.6)"""
START_A = 0.5
"""-A before training, one of the four of the paper's table 8: with n + 1, as S4D-Real has it, most of a state fades
within some tokens"""


@dataclass(frozen=True)
class StateSpaceConfig:
    """Sizes of one selective state space model, with the paper's names."""

    d_model: int
    d_inner: int
    """D, number of channels: the paper has 2 d_model (section 3.4)"""
    d_state: int
    """N, numbers in the state of a channel"""
    dt_rank: int
    """R, rank of the projection that gives delta (section 3.6)"""
    d_conv: int
    """tokens that the convolution reads: this one and those before it"""


class SelectiveStateSpace(nn.Module):
    """y = SSM(A, B, C, delta)(x) with delta, B and C made from x (algorithm 2), in the block of figure 3.

    Each of the d_inner channels has a state h of d_state numbers; it reads the tokens one after another:

        h_t = exp(delta_t A) h_{t-1} + delta_t B_t x_t,    y_t = C_t h_t

    A is diagonal and negative, so that a state decays: much where delta is large, hardly where it is near 0. A is
    discretised by zero-order hold (equation 4), B by delta B, to which equation 4 is close for small delta: so does the
    authors' program.
    """

    def __init__(self, config: StateSpaceConfig) -> None:
        super().__init__()
        self.config = config
        d_inner, d_state, dt_rank = config.d_inner, config.d_state, config.dt_rank
        self.w_x = nn.Linear(config.d_model, d_inner, bias=False)
        self.w_gate = nn.Linear(config.d_model, d_inner, bias=False)
        self.conv = nn.Conv1d(d_inner, d_inner, config.d_conv, groups=d_inner, padding=config.d_conv - 1)
        self.w_b = nn.Linear(d_inner, d_state, bias=False)
        self.w_c = nn.Linear(d_inner, d_state, bias=False)
        self.w_delta = nn.Linear(d_inner, dt_rank, bias=False)
        self.delta_from_rank = nn.Linear(dt_rank, d_inner)
        self.log_a = nn.Parameter(torch.empty(d_inner, d_state))
        self.skip = nn.Parameter(torch.empty(d_inner))
        self.w_out = nn.Linear(d_inner, config.d_model, bias=False)
        self.x, self.gate, self.delta, self.b, self.c, self.state = (HookPoint() for _ in range(6))
        self.y, self.gated, self.out = HookPoint(), HookPoint(), HookPoint()

    @property
    def a(self) -> Tensor:
        """(d_inner, d_state), negative."""
        return -self.log_a.exp()

    def initialise(self, numbers: torch.Generator | None = None) -> None:
        """A = -1/2, delta log-uniform (section 3.6), Xavier for the rest.

        W_C begins as W_B, so that a token reads most of what tokens like it have written: Trockman et al. 2024,
        "Mimetic Initialization Helps State Space Models Learn to Recall".
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=numbers)
        bound = self.config.d_conv**-0.5
        nn.init.uniform_(self.conv.weight, -bound, bound, generator=numbers)
        nn.init.zeros_(self.conv.bias)
        low, high = (torch.tensor(end).log().item() for end in (SMALLEST_STEP, LARGEST_STEP))
        delta = torch.empty(self.config.d_inner).uniform_(low, high, generator=numbers).exp()
        with torch.no_grad():
            self.w_c.weight.copy_(self.w_b.weight)
            self.delta_from_rank.bias.copy_(delta.expm1().log())  # the inverse of softplus
            self.log_a.fill_(START_A).log_()
            self.skip.fill_(1.0)

    def forward(self, u: Tensor) -> Tensor:
        """(batch, position, d_model) -> the same; a position reads itself and those before it."""
        x, gate = self.w_x(u), self.gate(F.silu(self.w_gate(u)))
        # Each channel alone, over this position and the d_conv - 1 before it.
        x = self.x(F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)))
        delta = self.delta(F.softplus(self.delta_from_rank(self.w_delta(x))))
        y = self.y(self._scan(x, delta, self.b(self.w_b(x)), self.c(self.w_c(x))))
        return self.out(self.w_out(self.gated((y + self.skip * x) * gate)))

    def _scan(self, x: Tensor, delta: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """The recurrence, token after token.

        Args:
            x: (batch, position, d_inner)
            delta: (batch, position, d_inner), positive.
            b: (batch, position, d_state), as c.

        Returns:
            y (batch, position, d_inner)
        """
        decay = torch.exp(delta[..., None] * self.a)
        written = (delta * x)[..., None] * b[:, :, None]
        h = torch.zeros_like(written[:, 0])
        states = []
        for decay_t, written_t in zip(decay.unbind(1), written.unbind(1), strict=True):
            h = decay_t * h + written_t
            states.append(h)
        return (self.state(torch.stack(states, dim=1)) @ c[..., None])[..., 0]


def equivalent_map(a: Tensor, delta: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """M with y = M x for each channel: M_ij = C_i (prod_{k=j+1..i} exp(delta_k A)) delta_j B_j for j <= i, else 0.

    The recurrence written as one lower-triangular matrix (Ali et al. 2024, "The Hidden Attention of Mamba Models",
    section 3; Dao and Gu 2024, "Transformers are SSMs", section 3): the products are exp(A (s_i - s_j)), s the running
    sum of delta. Its entries may be negative and its rows sum to anything; softmax would forbid both.

    Args:
        a: (d_inner, d_state)
        delta: (batch, position, d_inner)
        b: (batch, position, d_state), as c.

    Returns:
        (batch, d_inner, position read for, position read)
    """
    time = delta.transpose(1, 2).cumsum(dim=-1)  # (batch, d_inner, position)
    passed = (time[..., :, None] - time[..., None, :]).clamp(min=0)  # above the diagonal it would be negative
    decay = torch.exp(passed[..., None] * a[:, None, None])  # (batch, d_inner, i, j, d_state)
    weights = torch.einsum("bin,bjn,bdijn->bdij", c, b, decay) * delta.transpose(1, 2)[:, :, None]
    return weights.tril()


class StateSpaceLayer(nn.Module):
    """x + SSM(Norm(x)): attention and feed-forward of a Transformer's layer in one (section 3.4)."""

    def __init__(self, config: TransformerConfig, sizes: StateSpaceConfig) -> None:
        super().__init__()
        self.state_space, self.state_space_residual = SelectiveStateSpace(sizes), Residual(config)

    def forward(self, x: Tensor, _mask: Tensor) -> Tensor:
        return self.state_space_residual(x, self.state_space)


class HybridLanguageModel(nn.Module):
    """A decoder-only model, each of whose layers has attention and feed-forward, or a state space model.

    Args:
        config: of the model, and of its layers of attention.
        sizes: of its state space models.
        layers: the kind of each layer, from below; all alike: no hybrid.
    """

    def __init__(self, config: TransformerConfig, sizes: StateSpaceConfig, layers: Sequence[LayerKind]) -> None:
        super().__init__()
        self.config, self.kinds = config, tuple(layers)
        self.embedding = InputEmbedding(config, nn.Embedding(config.vocab_size, config.d_model))
        self.layers = nn.ModuleList(
            EncoderLayer(config) if kind == "attention" else StateSpaceLayer(config, sizes) for kind in layers
        )
        self.norm = final_norm(config)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.logits = HookPoint()

    def initialise(self, numbers: torch.Generator | None = None) -> None:
        """Xavier for projections, small normal embeddings, and what state space models begin with."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=numbers)
        nn.init.normal_(self.embedding.tokens.weight, std=self.config.d_model**-0.5, generator=numbers)
        for module in self.modules():
            if isinstance(module, SelectiveStateSpace):
                module.initialise(numbers)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (batch, position, vocabulary) of ids (batch, position)."""
        x, mask = self.embedding(tokens), causal_mask(tokens.shape[1], tokens.device)
        for layer in self.layers:
            x = layer(x, mask)
        return self.logits(self.output(self.norm(x)))
