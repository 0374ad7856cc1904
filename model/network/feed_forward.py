"""The position-wise feed-forward network (section 3.3)."""

import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2 (or GELU for max)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = {"relu": F.relu, "gelu": F.gelu}[config.activation]
        self.hidden, self.out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(self.activation(self.w_1(x)))
        return self.out(self.w_2(hidden))
