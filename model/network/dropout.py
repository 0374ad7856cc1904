"""Dropout (section 5.4)."""

import math

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

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        return x * draw_factors(x.shape, self.rate)


def draw_factors(shape: torch.Size, rate: float, numbers: torch.Generator | None = None) -> Tensor:
    """What dropout on a CPU multiplies each element by: 0, or 1 / (1 - rate) with the rate in 256ths.

    The random numbers come from `numbers`, or from torch's own generator, which all threads share.
    """
    threshold, count = min(round(256 * rate), 255), math.prod(shape)
    words = torch.empty(-(-count // 8), dtype=torch.int64)
    words.random_(torch.iinfo(torch.int64).min, None, generator=numbers)
    return (words.view(torch.uint8)[:count].view(shape) >= threshold) * (256 / (256 - threshold))
