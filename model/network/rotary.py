"""RoPE: positions as rotations of queries and keys (Su et al. 2021)."""

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Turn dimensions i and i + d_k / 2 of each vector by position * base^(-2i / d_k) (Su et al. 2021, equation 34).

    The score of a turned query and a turned key depends on their contents and on how far apart they stand, not on
    where. Which dimensions form a pair is a convention: halves, as in Llama, instead of neighbours as in the paper.
    """

    def __init__(self, d_k: int, max_len: int, base: int) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(batch, heads, position, d_k), the first vector standing at position `start`: the same, turned."""
        places = slice(start, start + x.shape[-2])
        cos, sin = self.cos[places], self.sin[places]
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
