"""Every head of one attention kind as tables: weights, norms or rollout, by piece or by word, with tokens hidden.

Merging pieces into words comes first, then hiding special tokens, then renormalising; each is optional.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from model.analysis.words import Groups, attention_words, hide_keys, merge, merge_mask
from model.trace import Array, Attention, Trace

Values = Literal["weights", "norms", "rollout"]

MOST_ROWS = 128
"""of each head in a picture of all heads"""


@dataclass(frozen=True)
class TableOptions:
    """What to show of the heads."""

    values: Values = "weights"
    words: bool = False
    """merge pieces into words"""
    hide: bool = False
    """leave out special tokens"""
    renormalise: bool = False
    """scale each row back to its former sum after hiding"""


@dataclass(frozen=True)
class HeadTables:
    """The tables of all heads of one kind; rollout has one table a layer."""

    kind: str
    look: TableOptions
    values: Array
    """(layers, heads, query, key)"""
    mask: Array
    """bool (layers, heads, query, key): True = allowed"""
    removed: Array
    """(layers, heads, query): share of the row's sum on hidden keys"""
    queries: Groups
    """positions shown in each row"""
    keys: Groups
    """positions shown in each column"""
    pool: int = 1
    """how many rows and columns were taken together, of which a cell is the largest"""

    def __post_init__(self) -> None:
        rows, columns = len(self.queries), len(self.keys)
        if self.values.shape[-2:] != (rows, columns) or self.mask.shape != self.values.shape:
            raise ValueError(
                f"values {self.values.shape} and mask {self.mask.shape} for {rows} query groups {self.queries} "
                f"and {columns} key groups {self.keys}"
            )


def head_tables(trace: Trace, kind: str, look: TableOptions, layers: Sequence[int] | None = None) -> HeadTables:
    """The tables of all heads of `kind`, in all its layers or in these.

    Raises:
        ValueError: rollout of a kind other than encoder self-attention.
    """
    chosen = trace.kind(kind).layers if layers is None else layers
    return _tables(trace, look, chosen, trace.attention(kind, chosen[0]))


def _tables(trace: Trace, look: TableOptions, layers: Sequence[int], first: Attention) -> HeadTables:
    """As `head_tables`; `first` is an attention of the kind, whose tokens all layers share."""
    kind = first.kind
    if look.values == "rollout":
        values, mask = _rollout(trace, kind, layers)
    else:
        read = _norms_and_mask if look.values == "norms" else Trace.weights_and_mask
        values, mask = map(np.stack, zip(*(read(trace, kind, layer) for layer in layers), strict=True))
    if look.words:
        queries, keys = attention_words(first)
        values, mask = merge(values, queries, keys), merge_mask(mask, queries, keys)
    else:
        queries, keys = (tuple((i,) for i in range(len(tokens))) for tokens in (first.query_tokens, first.key_tokens))
    removed = np.zeros(values.shape[:-1])
    if look.hide:
        hidden = _special_groups(first.key_special, keys)
        # Rows of cross-attention stay: each predicts a target token, also the one that reads <s>.
        rows = np.full(len(queries), True) if first.crosses else ~_special_groups(first.query_special, queries)
        values, removed = hide_keys(values[..., rows, :], hidden, look.renormalise)
        mask = mask[..., rows, :][..., ~hidden]
        queries = tuple(queries[i] for i in np.flatnonzero(rows))
        keys = tuple(keys[i] for i in np.flatnonzero(~hidden))
    return HeadTables(kind, look, values, mask, removed, queries, keys)


def overview(trace: Trace, kind: str, look: TableOptions) -> HeadTables:
    """The tables of all heads for one picture: of a long text, each cell is the largest of a square of cells.

    Beyond MOST_ROWS queries or keys, neighbours are taken together, so that no more rows and columns remain; `removed`
    stays as it is. Of such a text one layer is read at a time.
    """
    layers = trace.kind(kind).layers
    first = trace.attention(kind, layers[0])
    if max(len(first.query_tokens), len(first.key_tokens)) <= MOST_ROWS:
        return head_tables(trace, kind, look)
    together = [layers] if look.values == "rollout" else [[layer] for layer in layers]
    parts = [_pool(_tables(trace, look, each, first)) for each in together]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "mask", "removed")}
    return replace(parts[0], **joined)


def _pool(tables: HeadTables) -> HeadTables:
    size = -(-max(tables.values.shape[-2:]) // MOST_ROWS)
    if size == 1:
        return tables
    seen = np.where(tables.mask, tables.values, np.nan)
    for axis in (-2, -1):
        seen = np.fmax.reduceat(seen, range(0, seen.shape[axis], size), axis=axis)
    queries, keys = (_merged(groups, size) for groups in (tables.queries, tables.keys))
    return replace(tables, values=seen, mask=~np.isnan(seen), queries=queries, keys=keys, pool=size)


def _merged(groups: Groups, size: int) -> Groups:
    return tuple(sum(groups[i : i + size], ()) for i in range(0, len(groups), size))


def _norms_and_mask(trace: Trace, kind: str, layer: int) -> tuple[Array, Array]:
    """(heads, query, key) each."""
    attention = trace.attention(kind, layer)
    return norm_weighted(attention), attention.mask


def _rollout(trace: Trace, kind: str, layers: Sequence[int]) -> tuple[Array, Array]:
    """(layers, 1, query, key): rollout up to each of `layers`, and bool of the same shape."""
    found = trace.kind(kind)
    if found.crosses or found.causal:
        raise ValueError(f"rollout is defined for encoder self-attention, not for {kind}")
    rolled = rollout([trace.weights_and_mask(kind, layer)[0] for layer in found.layers])
    rolled = rolled[[found.layers.index(layer) for layer in layers], None]
    return rolled, np.ones(rolled.shape, dtype=bool)


def _special_groups(special: tuple[bool, ...], groups: Groups) -> Array:
    """bool (group,): True where the group is a special token, which always stands alone."""
    return np.array([all(special[i] for i in group) for group in groups], dtype=bool)


def norm_weighted(attention: Attention) -> Array:
    """The length of what each key adds to each query's output, per head (Kobayashi et al. 2020).

    A weight can be large on a key whose value is small; this is the length of their product. b_O, which belongs to
    no key, is left out.

    Returns:
        (heads, query, key), in double precision: ||alpha_ij v_j W_O||.
    """
    v, w_o = attention.v.astype(np.float64), attention.projections.w_o.astype(np.float64)
    values = v @ w_o  # (heads, key, d_model): f(x_j) = v_j W_O
    lengths = np.linalg.norm(values, axis=-1)  # (heads, key): ||f(x_j)||
    return attention.pattern * lengths[:, None, :]  # ||alpha_ij f(x_j)||, as alpha_ij >= 0


def rollout(patterns: Sequence[Array]) -> Array:
    """Attention rollout: how much of each input token reaches each position (Abnar & Zuidema 2020).

    Each layer passes on half its input unchanged (the residual connection) and half mixed by the mean of its heads.

    Args:
        patterns: self-attention weights of each layer from the lowest up, (heads, position, position) each.

    Returns:
        (layers, position, position), in double precision: entry l is the product of layers l to 0; rows sum to 1.
    """
    products: list[Array] = []
    for pattern in patterns:
        a = pattern.astype(np.float64).mean(axis=0)  # over the heads
        a_bar = 0.5 * a + 0.5 * np.eye(len(a))
        products.append(a_bar @ products[-1] if products else a_bar)
    return np.stack(products)
