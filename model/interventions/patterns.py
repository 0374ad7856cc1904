"""Attention weights in place of the softmax's: set by hand, uniform, permuted, or taken from another run.

All edit the pattern, after mask and softmax, and put weight only on keys that the mask allows: no decoder row depends
on later words, and each row still sums to 1. Rows and keys outside the sentence have no effect; a row without any
weight on a visible key stays as it is. While decoding, each new row is changed exactly as in the finished sentence.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from model.interventions.base import Addressed, Reading, at_head, attention_paths, check_permutation, check_positions
from model.kinds import Array
from model.language import Refusal
from model.network.network import Network

Row = tuple[float, ...]


@dataclass(frozen=True)
class PatternEdit(Addressed):
    """Give row `query` these weights, key 0 first, normalised over its visible keys; keys beyond them get 0.

    Raises:
        ValueError: a weight is negative or not finite, or all are 0.
    """

    query: int
    weights: Row
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positions((self.query,))
        if not all(0 <= weight < math.inf for weight in self.weights) or not any(self.weights):
            raise Refusal(
                "weights must be finite and not negative, one at least above 0, got {weights!r}", weights=self.weights
            )

    def edits(self, model: Network) -> dict[str, Reading]:
        largest = max(self.weights)

        def edit(pattern: Tensor, mask: Tensor) -> Tensor:
            if self.query >= pattern.shape[2]:
                return pattern
            row = pattern.new_zeros(pattern.shape[3], dtype=torch.float64)
            known = [weight / largest for weight in self.weights[: pattern.shape[3]]]
            row[: len(known)] = torch.tensor(known, dtype=torch.float64)
            changed = pattern.clone()
            changed[:, :, self.query] = _over_visible(row, mask[:, :, self.query], pattern[:, :, self.query])
            return changed

        return _at_patterns(model, self.kind, self.layer, self.head, lambda _path: edit)


@dataclass(frozen=True)
class UniformAttention(Addressed):
    """1 / n for each of the n keys that a query may see (Wiegreffe and Pinter 2019, section 3.2)."""

    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def edits(self, model: Network) -> dict[str, Reading]:
        def edit(pattern: Tensor, mask: Tensor) -> Tensor:
            visible = mask.to(pattern.dtype)
            return visible / visible.sum(dim=-1, keepdim=True).clamp(min=1)

        return _at_patterns(model, self.kind, self.layer, self.head, lambda _path: edit)


@dataclass(frozen=True)
class PermutedAttention(Addressed):
    """Shuffle each row's weights among its visible keys (Jain and Wallace 2019, section 4.2.1).

    `seed` gives each layer, head and row its own permutation, which depends on these alone and so stays the same while
    the target grows. With `order`, key k of every row gets the weight of key order[k] instead; a row that cannot see
    all of these keys stays as it is.

    Raises:
        ValueError: `seed` is not a whole number from 0 to 2^32 - 1, or `order` is not a permutation.
    """

    seed: int = 0
    order: tuple[int, ...] | None = None
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**32:
            raise Refusal("seed must be a whole number from 0 to 2^32 - 1, got {seed!r}", seed=self.seed)
        check_permutation(self.order or ())

    @property
    def position_free(self) -> bool:
        return self.order is not None

    def edits(self, model: Network) -> dict[str, Reading]:
        def reorder(pattern: Tensor, mask: Tensor) -> Tensor:
            n = len(self.order)
            if n > pattern.shape[3]:
                return pattern
            changed = pattern.clone()
            changed[..., :n] = pattern[..., list(self.order)]
            return changed.where(mask[..., :n].all(dim=-1, keepdim=True), pattern)

        def shuffle(path: str) -> Callable[[Tensor, Tensor], Tensor]:
            return lambda pattern, mask: _shuffle(pattern, mask, (self.seed << 32) + crc32(path.encode()))

        return _at_patterns(
            model, self.kind, self.layer, self.head, shuffle if self.order is None else lambda _path: reorder
        )


@dataclass(frozen=True)
class FrozenPattern(Addressed):
    """Another run's attention weights in place of this run's: `FrozenPattern.of(trace.attention(...).pattern, ...)`.

    The decoder may have more or fewer rows than the pattern: rows beyond it stay as they are. Weight on a masked key
    is spread over the row's other keys, in proportion.

    Raises:
        ValueError: the pattern is not (heads, query, key), or contains a negative or infinite number.
    """

    pattern: tuple[tuple[Row, ...], ...]
    """(heads, query, key); with a single head, the same for every head that the address names"""
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = {len(row) for head in self.pattern for row in head}
        rows = {len(head) for head in self.pattern}
        if len(rows) != 1 or len(shapes) != 1 or 0 in shapes:
            raise Refusal("a pattern must be (heads, query, key), with the same numbers of rows and keys everywhere")
        if not all(0 <= weight < math.inf for head in self.pattern for row in head for weight in row):
            raise Refusal("the weights of a pattern must be finite and not negative")

    @classmethod
    def of(
        cls, pattern: Array, kind: str | None = None, layer: int | None = None, head: int | None = None
    ) -> "FrozenPattern":
        """From an array (heads, query, key), such as `Attention.pattern`, without rounding."""
        if pattern.ndim != 3:
            raise Refusal("a pattern must be (heads, query, key), got shape {shape}", shape=pattern.shape)
        return cls(tuple(tuple(map(tuple, rows)) for rows in pattern.tolist()), kind, layer, head)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)"""
        return len(self.pattern), len(self.pattern[0]), len(self.pattern[0][0])

    def edits(self, model: Network) -> dict[str, Reading]:
        """Hook point path -> edit; in a run the edits raise ValueError where the pattern does not fit the sentence."""
        if self.shape[0] not in (1, model.config.n_heads):
            raise Refusal(
                "the pattern has {heads} heads; the model has {n_heads}",
                heads=self.shape[0],
                n_heads=model.config.n_heads,
            )
        frozen = torch.tensor(self.pattern, dtype=torch.float64)

        def at(path: str) -> Callable[[Tensor, Tensor], Tensor]:
            return lambda pattern, mask: self._put(path, frozen, pattern, mask)

        return _at_patterns(model, self.kind, self.layer, self.head, at)

    def _put(self, path: str, frozen: Tensor, pattern: Tensor, mask: Tensor) -> Tensor:
        (_, rows, keys), (queries, found) = self.shape, pattern.shape[2:]
        square = rows == keys if path.endswith("self_attn") else keys == found
        if not square or (path.startswith("encoder.") and keys != found):
            raise Refusal(
                "the frozen pattern has {rows} rows and {keys} keys, which does not fit {path}: this "
                "sentence has {queries} rows and {found} keys there",
                rows=rows,
                keys=keys,
                path=path,
                queries=queries,
                found=found,
            )
        rows, keys = min(rows, queries), min(keys, found)
        put = pattern.new_zeros(pattern.shape, dtype=torch.float64)
        put[:, :, :rows, :keys] = frozen[:, :rows, :keys].to(put.device)
        changed = pattern.clone()
        changed[:, :, :rows] = _over_visible(put[:, :, :rows], mask[:, :, :rows], pattern[:, :, :rows])
        return changed


def _at_patterns(
    model: Network,
    kind: str | None,
    layer: int | None,
    head: int | None,
    change: Callable[[str], Callable[[Tensor, Tensor], Tensor]],
) -> dict[str, Reading]:
    """`change(path)` at each addressed attention's pattern: (pattern, mask) -> pattern, (batch, heads, query, key)."""

    def reading(path: str) -> Reading:
        edit = change(path)
        return Reading(f"{path}.mask", lambda pattern, mask: at_head(head, pattern, edit(pattern, mask)))

    return {f"{path}.pattern": reading(path) for path in attention_paths(model, kind, layer, head)}


def _over_visible(weights: Tensor, mask: Tensor, otherwise: Tensor) -> Tensor:
    """`weights` over the keys that `mask` allows, summing to 1; `otherwise` where none of them has weight.

    A row without weight on other keys is taken as it is: dividing by a sum of 1 + 1e-8 would change its bits.
    """
    visible = weights * mask
    total = visible.sum(dim=-1, keepdim=True)
    whole = (visible == weights).all(dim=-1, keepdim=True) & ((total - 1).abs() < 1e-5)
    normed = (visible / total.clamp(min=torch.finfo(total.dtype).tiny)).where(~whole, visible)
    return normed.to(otherwise.dtype).where(total > 0, otherwise)


def _shuffle(pattern: Tensor, mask: Tensor, seed: int) -> Tensor:
    """Each row's weights, permuted among its visible keys by the rank of a hash of (seed, head, row, key)."""
    numbers = torch.from_numpy(_hash(seed, pattern.shape[1:])).to(pattern.device).expand(pattern.shape)
    last = torch.iinfo(torch.int64).max
    keys = torch.arange(pattern.shape[3], device=pattern.device)
    given = keys.expand(pattern.shape).where(mask, last).sort(dim=-1).indices
    taken = numbers.where(mask, last).sort(dim=-1, stable=True).indices
    changed = torch.zeros_like(pattern).scatter(-1, taken, pattern.gather(-1, given))
    return changed.where(mask, pattern)


def _hash(seed: int, shape: tuple[int, ...]) -> Array:
    """int64 of `shape`, at least 0: splitmix64 (Steele et al. 2014) of the indices, so that it can grow."""
    number = np.full((1,) * len(shape), seed, np.uint64)
    for axis in np.meshgrid(*(np.arange(size, dtype=np.uint64) for size in shape), indexing="ij"):
        number = _mix(number + (axis + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    return (number >> np.uint64(2)).astype(np.int64)


def _mix(x: Array) -> Array:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
