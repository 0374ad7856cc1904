"""RoPE: positions as rotations of queries and keys (Su et al. 2021)."""

import torch
from torch import Tensor, nn


def rotation(positions: Tensor, d_k: int, base: int = 10_000) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles position * base^(-2i / d_k) (Su et al. 2021, equation 15).

    Args:
        positions: (position,), any numbers.
        d_k: even.
        base: 10,000 in the paper.

    Returns:
        (position, d_k / 2) each, in double precision.
    """
    frequency = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angles = positions[:, None] * frequency
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Rotate pairs of dimensions of (..., position, d_k) by r angles a position (equation 34).

    Which dimensions form a pair is a convention: i and i + r, as in Llama, or neighbours as in the paper
    (`interleaved`). Dimensions beyond 2 r stay as they are.
    """
    rotated, rest = x[..., : 2 * cos.shape[-1]], x[..., 2 * cos.shape[-1] :]
    first, second = (rotated[..., ::2], rotated[..., 1::2]) if interleaved else rotated.chunk(2, dim=-1)
    pairs = first * cos - second * sin, second * cos + first * sin
    joined = torch.stack(pairs, dim=-1).flatten(-2) if interleaved else torch.cat(pairs, dim=-1)
    return torch.cat([joined, rest], dim=-1) if rest.shape[-1] else joined


class Rotary(nn.Module):
    """Rotates queries or keys by their positions.

    The score of a rotated query and a rotated key depends on their contents and on how far apart they stand, not on
    where.
    """

    def __init__(self, d_k: int, max_len: int, base: int) -> None:
        super().__init__()
        cos, sin = rotation(torch.arange(max_len), d_k, base)
        self.register_buffer("cos", cos.float(), persistent=False)
        self.register_buffer("sin", sin.float(), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(batch, heads, position, d_k), the first vector standing at position `start`: the same, rotated."""
        places = slice(start, start + x.shape[-2])
        return rotate(x, self.cos[places], self.sin[places])
