"""Changes to the scores, the head results and the values of an attention (paper, section 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from model.hooks import Edit
from model.interventions.base import Addressed, at_attentions, at_head, attention_paths, check_positions, per_head
from model.language import Refusal
from model.network.network import Network

MIN_TAU, MAX_TAU = 1e-30, 1e30


@dataclass(frozen=True)
class AttentionTemperature(Addressed):
    """softmax(x / tau) instead of softmax(x): sharper below 1, flatter above 1. Several temperatures multiply.

    Raises:
        ValueError: tau is outside [1e-30, 1e30], where x / tau still fits single precision.
    """

    tau: float
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not MIN_TAU <= self.tau <= MAX_TAU:
            raise Refusal("tau must be a number above 0, within [1e-30, 1e30], got {tau!r}", tau=self.tau)

    def edits(self, model: Network) -> dict[str, Edit]:
        def multiply(temperature: Tensor) -> Tensor:
            product = temperature * per_head(temperature.shape[1], self.head, self.tau, temperature)
            return product.clamp(MIN_TAU, MAX_TAU)

        return at_attentions(model, "temperature", self.kind, self.layer, self.head, multiply)


@dataclass(frozen=True)
class Unscaled(Addressed):
    """softmax(q k^T) instead of softmax(q k^T / sqrt(d_k)), so without the scaling of section 3.2.1."""

    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    position_free: ClassVar[bool] = True

    def edits(self, model: Network) -> dict[str, Edit]:
        def multiply_by(divisor: float) -> Edit:
            return lambda scaled: scaled * per_head(scaled.shape[1], self.head, divisor, scaled)

        paths = attention_paths(model, self.kind, self.layer, self.head)
        return {f"{path}.scaled": multiply_by(model.get_submodule(path).divisor) for path in paths}


@dataclass(frozen=True)
class HeadGate(Addressed):
    """Multiply a head's z by `gate`: 1 leaves it as it is, 0 removes it (Michel et al. 2019, section 2.3).

    With mode "mean" the removed part is replaced by the head's mean over the positions of the sentence; in the decoder
    over those up to the query's own, so that no row depends on later ones.
    """

    gate: float
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    mode: Literal["zero", "mean"] = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gate <= 1:
            raise Refusal("gate must lie in [0, 1], got {gate!r}", gate=self.gate)
        if self.mode not in ("zero", "mean"):
            raise Refusal("mode must be zero or mean, got {mode!r}", mode=self.mode)

    @property
    def position_free(self) -> bool:
        return self.mode == "zero"

    def edits(self, model: Network) -> dict[str, Edit]:
        def gate(z: Tensor) -> Tensor:
            return per_head(z.shape[1], self.head, self.gate, z)

        paths = at_attentions(model, "z", self.kind, self.layer, self.head, lambda z: z)
        return {path: gate_z(path, gate, self.mode) for path in paths}


def gate_z(path: str, gate: Callable[[Tensor], Tensor], mode: str) -> Edit:
    """An edit of z, (batch, heads, query, d_k), at the hook point `path`, which decides which positions a mean is over.

    `gate` gives the factor of z, broadcastable to it. With mode "mean" the head's mean replaces what is removed.
    """

    def zero(z: Tensor) -> Tensor:
        return z * gate(z)

    def mean(z: Tensor) -> Tensor:
        return zero(z) + (1 - gate(z)) * z.mean(dim=2, keepdim=True)

    def mean_so_far(z: Tensor) -> Tensor:
        positions = torch.arange(1, z.shape[2] + 1, dtype=z.dtype, device=z.device)[:, None]
        return zero(z) + (1 - gate(z)) * (z.cumsum(dim=2) / positions)

    if mode == "zero":
        return zero
    return mean if path.startswith("encoder.") else mean_so_far


@dataclass(frozen=True)
class SharedKeysValues(Addressed):
    """Let the heads of each group share keys and values: W_K and W_V are replaced by their mean over the group.

    So a trained multi-head attention begins as grouped-query attention, or with a single group as multi-query
    attention, before it is trained on (Ainslie et al. 2023, section 2.1); this model is not trained on.

    Raises:
        ValueError: `groups` is not a whole number from 1 on.
    """

    groups: int
    kind: str | None = None
    layer: int | None = None

    position_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positions((self.groups,), "number of groups")
        if self.groups < 1:
            raise Refusal("a number of groups must be a whole number from 1 on, got 0")

    def edits(self, model: Network) -> dict[str, Edit]:
        heads = model.config.n_heads
        if heads % self.groups:
            raise Refusal(
                "the {heads} heads cannot be divided into {groups} groups of the same size",
                heads=heads,
                groups=self.groups,
            )

        def pool(vectors: Tensor) -> Tensor:
            """(batch, heads, key, width): each head's keys or values are the mean of its group's."""
            groups = min(self.groups, vectors.shape[1])
            means = vectors.unflatten(1, (groups, -1)).mean(dim=2)
            return means.repeat_interleave(vectors.shape[1] // groups, dim=1)

        # The mean of the matrices is the mean of what they give, except beyond a norm of the keys.
        edits = {}
        for path in attention_paths(model, self.kind, self.layer, None):
            normed = model.get_submodule(path).qk_norm
            edits |= {f"{path}.{'k_pre' if normed else 'k'}": pool, f"{path}.v": pool}
        return edits


@dataclass(frozen=True)
class ValueZeroing(Addressed):
    """Set the values v of these key positions to 0: they keep their weights and contribute nothing.

    Mohebbi et al. (2023), section 3. Positions outside the sentence have no effect.
    """

    positions: tuple[int, ...]
    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positions(self.positions)

    @property
    def position_free(self) -> bool:
        """A cached step projects one new target key without its position, but all source keys at once."""
        return self.kind in ("encoder_self", "cross")

    def edits(self, model: Network) -> dict[str, Edit]:
        def zero(v: Tensor) -> Tensor:
            silent = v.clone()
            silent[:, :, [position for position in self.positions if position < v.shape[2]]] = 0
            return at_head(self.head, v, silent)

        return at_attentions(model, "v", self.kind, self.layer, self.head, zero)
