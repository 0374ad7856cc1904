"""FlashAttention, tile by tile (Dao et al. 2022, Algorithm 1), on the q, k and v of a run.

The softmax is computed online (Milakov & Gimelshein 2018): no more than one tile of scores exists at a time.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.attention import SDPBackend
from torch.nn.functional import scaled_dot_product_attention

from model.trace import Array, Attention

MOST_TILES = 144
BYTES = 4
"""of a float32"""


@dataclass(frozen=True)
class FlashRun:
    """One head, tile by tile; a step is a tile that was read."""

    rows: Array
    """(step, 2): the first query of the tile, and the one after its last"""
    columns: Array
    """(step, 2): the same of its keys"""
    skipped: Array
    """(tile, 4): first and end of queries and keys of each tile that is masked as a whole, and never read"""
    scores: Array
    """(query, key): what the softmax reads; NaN where masked"""
    m: Array
    """(step + 1, query): largest score so far, before the first step and after each; -inf: no key was seen yet"""
    l: Array  # noqa: E741 - the paper's name
    """(step + 1, query): sum of exp(score - m) so far"""
    o: Array
    """(step + 1, query, d_v): weighted mean of the values so far"""
    rescaling: Array
    """(step, query): exp(m before - m after), by which the old sum is multiplied; 1 outside the tile"""
    difference: float
    """largest |o - pattern @ v| at the end, relative to the largest |pattern @ v|, with the weights of the run"""
    rounding: float
    """relative error that rounding of the largest score to single precision, as in the run, can cause in its weight"""
    tile_bytes: int
    """of the largest tile in fast memory, in float32: q, k, v, scores, o, m and l"""
    square_bytes: int
    """of all scores of the head, in float32"""


def tile_sizes(attention: Attention) -> list[int]:
    """Powers of two below the number of tokens that give no more than `MOST_TILES` tiles; 1 for a single token."""
    queries, keys = attention.pattern.shape[1:]
    powers = [2**exponent for exponent in range(11)]
    return [
        size for size in powers if size < max(queries, keys, 2) and -(-queries // size) * -(-keys // size) <= MOST_TILES
    ]


def count_read_tiles(mask: Array, size: int) -> int:
    """The tiles of `size` queries and keys in which the mask, bool (query, key), leaves a cell."""
    queries, keys = mask.shape
    corners = ((row, key) for row in range(0, queries, size) for key in range(0, keys, size))
    return sum(bool(mask[row : row + size, key : key + size].any()) for row, key in corners)


def flash_attention(attention: Attention, head: int, size: int) -> FlashRun:
    """Algorithm 1 with square tiles of `size` queries and keys, in double precision.

    Tiles without a visible key are skipped, as a causal kernel does. A sink is where m and l begin; as in the
    run, the temperature does not divide it.
    """
    q, k, v = (x[head].astype(np.float64) for x in (attention.q, attention.k, attention.v))
    mask, tau = attention.mask[head], float(attention.temperature[head])
    bias = None if attention.bias is None else attention.bias[head]
    seen = np.full(len(q), -np.inf if attention.sink is None else float(attention.sink[head]))
    m, l, o = [seen], [np.isfinite(seen).astype(float)], [np.zeros((len(q), v.shape[1]))]  # noqa: E741
    scores, rescaling, read, skipped = np.full(mask.shape, np.nan), [], [], []
    for first_key in range(0, len(k), size):
        keys = slice(first_key, min(first_key + size, len(k)))
        for first_query in range(0, len(q), size):
            rows = slice(first_query, min(first_query + size, len(q)))
            ends = (rows.start, rows.stop, keys.start, keys.stop)
            if not mask[rows, keys].any():
                skipped.append(ends)
                continue
            s = q[rows] @ k[keys].T * attention.scale
            s = s if attention.softcap is None else attention.softcap * np.tanh(s / attention.softcap)
            s = s if bias is None else s + bias[rows, keys]
            s = np.where(mask[rows, keys], s / tau, -np.inf)
            old_m, old_l, old_o = m[-1][rows], l[-1][rows], o[-1][rows]
            new_m = np.maximum(old_m, s.max(axis=1))
            # A query that has seen no key has m = -inf, l = 0 and O = 0, and keeps them.
            finite_m = np.where(np.isfinite(new_m), new_m, 0)
            p = np.exp(s - finite_m[:, None])
            factor = np.exp(old_m - finite_m)
            new_l = factor * old_l + p.sum(axis=1)
            divisor = np.where(new_l > 0, new_l, 1)[:, None]
            new_o = ((factor * old_l)[:, None] * old_o + p @ v[keys]) / divisor
            for states, new in ((m, new_m), (l, new_l), (o, new_o)):
                states.append(states[-1].copy())
                states[-1][rows] = new
            scores[rows, keys] = np.where(np.isfinite(s), s, np.nan)
            rescaling.append(np.ones(len(q)))
            rescaling[-1][rows] = factor
            read.append(ends)
    tiles = np.array(read, dtype=int).reshape(-1, 4)
    height, width = min(size, len(q)), min(size, len(k))
    numbers = height * (q.shape[1] + v.shape[1] + 2) + width * (k.shape[1] + v.shape[1]) + height * width
    return FlashRun(
        rows=tiles[:, :2],
        columns=tiles[:, 2:],
        skipped=np.array(skipped, dtype=int).reshape(-1, 4),
        scores=scores,
        m=np.stack(m),
        l=np.stack(l),
        o=np.stack(o),
        rescaling=np.array(rescaling).reshape(-1, len(q)),
        difference=_difference(attention, head, o[-1]),
        rounding=float(np.finfo(np.float32).eps * max(1, np.nanmax(abs(scores), initial=0))),
        tile_bytes=BYTES * numbers,
        square_bytes=BYTES * mask.size,
    )


def fused_kernel(attention: Attention, head: int, device: str) -> tuple[str, float] | None:
    """The kernel that torch picks for this attention's q, k and v, and how far its z of a head is from the run's.

    The distance is the largest |z - pattern @ v|, relative to the largest |pattern @ v|. None where
    scaled_dot_product_attention has no such formula: a soft cap, or a sink.
    """
    if attention.softcap is not None or attention.sink is not None:
        return None
    q, k, v = (torch.tensor(x[None], device=device) for x in (attention.q, attention.k, attention.v))
    tau = attention.temperature[:, None, None]
    bias = np.zeros_like(attention.scaled) if attention.bias is None else attention.bias / tau
    # The temperature divides q, so that one scale serves all heads.
    q = q / torch.tensor(tau, device=device, dtype=q.dtype)
    added = torch.tensor(np.where(attention.mask, bias, -np.inf)[None], device=device, dtype=q.dtype)
    with torch.no_grad():
        backend = SDPBackend(torch._fused_sdp_choice(q, k, v, added, scale=attention.scale))
        z = scaled_dot_product_attention(q, k, v, attn_mask=added, scale=attention.scale)[0, head].cpu().numpy()
    return backend.name, _difference(attention, head, z)


def _difference(attention: Attention, head: int, z: Array) -> float:
    """Largest |z - pattern @ v|, relative to the largest |pattern @ v|."""
    of_run = attention.pattern[head].astype(np.float64) @ attention.v[head]
    return float(abs(z - of_run).max() / max(abs(of_run).max(), np.finfo(np.float32).tiny))
