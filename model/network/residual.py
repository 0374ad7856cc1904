"""The residual connection and layer normalisation around each sub-layer (section 3.1)."""

from collections.abc import Callable

from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.dropout import Dropout

NORM_EPS = 1e-5
"""Added to the variance, or to the mean of the squares, before the root."""


def new_norm(config: TransformerConfig) -> nn.LayerNorm | nn.RMSNorm:
    """LayerNorm (Ba et al. 2016), or RMSNorm, which neither subtracts the mean nor adds (Zhang & Sennrich 2019)."""
    if config.norm_function == "rms_norm":
        return nn.RMSNorm(config.d_model, eps=NORM_EPS)
    return nn.LayerNorm(config.d_model, eps=NORM_EPS, bias=config.biases)


class Residual(nn.Module):
    """Around each sub-layer: Norm(x + Sublayer(x)) (section 3.1), or x + Sublayer(Norm(x)) if pre-norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.norm = new_norm(config)
        self.dropout = Dropout(config.dropout)
        self.before, self.added, self.normed = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.before(x)
        if self.pre_norm:
            return self.added(x + self.dropout(sublayer(self.normed(self.norm(x)))))
        return self.normed(self.norm(self.added(x + self.dropout(sublayer(x)))))
