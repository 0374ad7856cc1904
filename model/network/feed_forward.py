"""The position-wise feed-forward network (section 3.3), and its gated form (Shazeer 2020)."""

from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig

FUNCTIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu, by tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}
"""SiLU is Swish with a factor of 1"""
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu, "geglu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2 (or GELU for max).

    Gated: (act(x W_gate) * (x W_1)) W_2, where act is Swish (SwiGLU) or GELU (GeGLU).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff, bias=config.biases)
        self.w_2 = nn.Linear(config.d_ff, config.d_model, bias=config.biases)
        self.activation = ACTIVATIONS[config.activation]
        self.gated = config.gated
        if self.gated:
            self.w_gate = nn.Linear(config.d_model, config.d_ff, bias=config.biases)
            self.gate, self.up = HookPoint(), HookPoint()
        self.hidden, self.out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            gate = self.gate(self.activation(self.w_gate(x)))
            up = self.up(self.w_1(x))
            return self.out(self.w_2(self.hidden(gate * up)))
        hidden = self.hidden(self.activation(self.w_1(x)))
        return self.out(self.w_2(hidden))
