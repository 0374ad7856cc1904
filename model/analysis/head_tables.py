"""Every head of one attention kind as tables, the way a person chose to look at them.

The steps, in this order: the numbers (weights, norms or rollout), pieces merged into words, special tokens
hidden, rows renormalised. Each is optional but the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from model.analysis.words import Groups, hide_keys, is_special, merge, merge_mask, word_groups
from model.trace import Array, Attention, Trace

Values = Literal["weights", "norms", "rollout"]


@dataclass(frozen=True)
class Look:
    """What to show of the heads."""

    values: Values = "weights"
    words: bool = False
    hide: bool = False
    renormalise: bool = False


@dataclass(frozen=True)
class HeadTables:
    """The tables of all heads of one kind; rollout has a single one a layer."""

    kind: str
    look: Look
    values: Array
    """(layers, heads, query, key)"""
    mask: Array
    """bool (layers, heads, query, key): True = may look"""
    removed: Array
    """(layers, heads, query): share of the row's sum that went with the hidden keys"""
    queries: Groups
    """the positions behind each row"""
    keys: Groups

    def __post_init__(self) -> None:
        rows, columns = len(self.queries), len(self.keys)
        if self.values.shape[-2:] != (rows, columns) or self.mask.shape != self.values.shape:
            raise ValueError(
                f"values {self.values.shape} and mask {self.mask.shape} for {rows} query groups {self.queries} "
                f"and {columns} key groups {self.keys}"
            )


def head_tables(trace: Trace, kind: str, look: Look) -> HeadTables:
    """The tables of all heads of `kind`.

    Raises:
        ValueError: rollout of another attention than the encoder's own.
    """
    attentions = [attention for (name, _), attention in trace.attentions.items() if name == kind]
    values, mask = _values(attentions, look.values)
    queries, keys = _groups(trace, attentions[0], look.words)
    if look.words:
        values, mask = merge(values, queries, keys), merge_mask(mask, queries, keys)
    removed = np.zeros(values.shape[:-1])
    if look.hide:
        gone = _special(attentions[0].key_tokens, keys)
        # Rows of cross-attention stay: each predicts a target token, also the one that reads <s>.
        stays = ~_special(attentions[0].query_tokens, queries) if kind != "cross" else np.ones(len(queries), dtype=bool)
        values, removed = hide_keys(values[..., stays, :], gone, look.renormalise)
        mask = mask[..., stays, :][..., ~gone]
        queries = tuple(group for group, kept in zip(queries, stays, strict=True) if kept)
        keys = tuple(group for group, left_out in zip(keys, gone, strict=True) if not left_out)
    return HeadTables(kind, look, values, mask, removed, queries, keys)


def _values(attentions: list[Attention], values: Values) -> tuple[Array, Array]:
    """(layers, heads, query, key): the numbers, and which cells have one."""
    mask = np.stack([attention.mask for attention in attentions])
    if values == "norms":
        return np.stack([norm_weighted(attention) for attention in attentions]), mask
    patterns = np.stack([attention.pattern for attention in attentions])
    if values == "weights":
        return patterns, mask
    if attentions[0].kind != "encoder_self":
        raise ValueError(f"rollout is of the encoder's self-attention, not of {attentions[0].kind}")
    rolled = rollout(patterns)[:, None]
    return rolled, np.ones(rolled.shape, dtype=bool)


def _groups(trace: Trace, attention: Attention, words: bool) -> tuple[Groups, Groups]:
    if not words:
        return tuple(tuple((i,) for i in range(len(t))) for t in (attention.query_tokens, attention.key_tokens))
    # A row of cross-attention looks for the source of what it predicts, so its rows form the words predicted.
    rows = trace.next_tokens if attention.kind == "cross" else attention.query_tokens
    return word_groups(rows), word_groups(attention.key_tokens)


def _special(tokens: tuple[str, ...], groups: Groups) -> Array:
    """bool (group,): special tokens stand alone in their group."""
    special = is_special(tokens)
    return np.array([bool(special[list(group)].all()) for group in groups], dtype=bool)


def norm_weighted(attention: Attention) -> Array:
    """The length of what each key adds to each query's output, per head (Kobayashi et al. 2020).

    A weight can be large on a key whose value is small; this is the length of the product of the two.
    b_O, which no key adds, is left out.

    Returns:
        (heads, query, key), in double precision: ||alpha_ij v_j W_O||.
    """
    v, w_o = attention.v.astype(np.float64), attention.projections.w_o.astype(np.float64)
    values = v @ w_o  # (heads, key, d_model): f(x_j) = v_j W_O
    lengths = np.linalg.norm(values, axis=-1)  # (heads, key): ||f(x_j)||
    return attention.pattern * lengths[:, None, :]  # ||alpha_ij f(x_j)||, as alpha_ij >= 0


def rollout(patterns: Sequence[Array]) -> Array:
    """How much of each input token reaches each position after each layer (Abnar & Zuidema 2020).

    Args:
        patterns: the self-attention weights of each layer, lowest first, (heads, position, position) each.

    Returns:
        (layers, position, position), in double precision: entry l is the product of layers l to 0; rows sum to 1.
    """
    found: list[Array] = []
    for pattern in patterns:
        a = pattern.astype(np.float64).mean(axis=0)  # over the heads
        a_bar = 0.5 * a + 0.5 * np.eye(len(a))  # the residual connection carries the other half
        found.append(a_bar @ found[-1] if found else a_bar)
    return np.stack(found)
