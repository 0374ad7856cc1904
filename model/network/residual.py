"""The residual connection and layer normalisation around each sub-layer (section 3.1)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.dropout import Dropout

NORM_EPS = 1e-5
"""Added to the variance, or to the mean of the squares, before the root."""


class BatchNorm(nn.Module):
    """gamma (x - mean) / sqrt(variance + eps) + beta, of each dimension over all tokens of a batch (Ioffe & Szegedy
    2015); after training with the running means of both. A batch must not hold padding, which would count."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.eps = NORM_EPS
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.register_buffer("mean", torch.zeros(d_model))
        self.register_buffer("variance", torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        normed = F.batch_norm(tokens, self.mean, self.variance, self.weight, self.bias, self.training, eps=self.eps)
        return normed.view_as(x)


def new_norm(config: TransformerConfig) -> nn.Module:
    """LayerNorm (Ba et al. 2016); RMSNorm, which neither subtracts the mean nor adds (Zhang & Sennrich 2019); BatchNorm
    (Ioffe & Szegedy 2015); or nothing."""
    if config.norm_function == "none":
        return nn.Identity()
    if config.norm_function == "batch_norm":
        return BatchNorm(config.d_model)
    if config.norm_function == "rms_norm":
        return nn.RMSNorm(config.d_model, eps=NORM_EPS)
    return nn.LayerNorm(config.d_model, eps=NORM_EPS, bias=config.biases)


class Residual(nn.Module):
    """Around each sub-layer: Norm(x + Sublayer(x)) (section 3.1), or x + Sublayer(Norm(x)) if pre-norm.

    Without residual connections Norm(Sublayer(x)), or Sublayer(Norm(x)).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm, self.adds = config.norm == "pre", config.residual
        self.norm = new_norm(config)
        self.dropout = Dropout(config.dropout)
        self.before, self.added, self.normed = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.before(x)
        if not self.adds:
            return self._alone(x, sublayer)
        if self.pre_norm:
            return self.added(x + self.dropout(sublayer(self.normed(self.norm(x)))))
        return self.normed(self.norm(self.added(x + self.dropout(sublayer(x)))))

    def _alone(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sub-layer and its norm, without what it read."""
        if self.pre_norm:
            return self.added(self.dropout(sublayer(self.normed(self.norm(x)))))
        return self.normed(self.norm(self.added(self.dropout(sublayer(x)))))
