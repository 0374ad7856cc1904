"""The residual connection and layer normalisation around each sub-layer (section 3.1)."""

from collections.abc import Callable

from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.dropout import Dropout


class Residual(nn.Module):
    """Around each sub-layer: LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) if pre-norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.before, self.added, self.normed = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.before(x)
        if self.pre_norm:
            return self.added(x + self.dropout(sublayer(self.normed(self.norm(x)))))
        return self.normed(self.norm(self.added(x + self.dropout(sublayer(x)))))
