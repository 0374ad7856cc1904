"""The kinds of attention that a model has, and where each is: what models, changes to them and traces all speak of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

Array = np.ndarray
StackName = Literal["encoder", "decoder"]

KIND_TITLES: Mapping[str, str] = {
    "encoder_self": "Encoder self-attention",
    "decoder_self": "Decoder self-attention",
    "cross": "Cross-attention",
}
"""On-screen title of each kind of attention, in the order of the menus."""


@dataclass(frozen=True)
class Kind:
    """One kind of attention that a model has."""

    name: str
    """encoder_self, decoder_self or cross"""
    queries: StackName
    """the stream that the queries come from"""
    keys: StackName
    """the stream that keys and values come from"""
    causal: bool
    """whether a query sees no key after its own position"""
    layers: tuple[int, ...]
    """numbers of the layers that have it"""
    heads: int
    kv_heads: int
    """heads of keys and values; fewer than `heads` where several query heads share them"""

    @property
    def title(self) -> str:
        return KIND_TITLES[self.name]

    @property
    def crosses(self) -> bool:
        """True if queries and keys belong to two different texts."""
        return self.queries != self.keys

    def path(self, layer: int) -> str:
        """The hook path of its attention in `layer`, such as decoder.layers.1.cross_attn."""
        return path_of(self.name, layer)


def path_of(kind: str, layer: int) -> str:
    """The hook path of an attention, such as decoder.layers.1.cross_attn."""
    stack = "encoder" if kind == "encoder_self" else "decoder"
    return f"{stack}.layers.{layer}.{'cross_attn' if kind == 'cross' else 'self_attn'}"
