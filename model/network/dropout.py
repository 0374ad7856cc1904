"""Dropout (section 5.4)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout (section 5.4) that on a CPU uses one random byte per element, eight from each 64-bit number.

    One random float per element would take a third of a training step on two cores. With bytes, `rate` is rounded to
    a multiple of 1/256 (0.3 becomes 77/256 = 0.3008), and the remaining elements are scaled accordingly.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.threshold = min(round(256 * rate), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return x * (kept * (256 / (256 - self.threshold)))
