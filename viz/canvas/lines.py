"""Lines between two columns of tokens, for the lines component: the run's own weights."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from viz.drawing import Drawing, named
from viz.theme import KEY, OKABE_ITO, QUERY, Array

MOST_HEADS = len(OKABE_ITO)
LEAST = 0.004
"""fraction of `high`: lines of smaller weights would be invisible and are not drawn"""


@dataclass(frozen=True)
class Choices:
    """What a click on a token chooses, and the row and the column that are chosen now."""

    kind: str
    """of attention"""
    query: Sequence[int]
    """position of the token that each row begins with"""
    key: Sequence[int]
    """the same of each column"""
    chosen: tuple[int | None, int | None]


STYLE = {"colours": OKABE_ITO, "query_colour": QUERY, "key_colour": KEY}


def lines(  # noqa: PLR0913 - all but three are keywords with defaults
    weights: Array,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    heads: Sequence[int] | None = None,
    shown: Sequence[int] | None = None,
    allowed: Array | None = None,
    predicts: Sequence[str] | None = None,
    high: float = 1.0,
    measure: str = "attention weight",
    title: str = "",
    numbered: bool = True,
    path: str = "",
    choices: Choices | None = None,
) -> Drawing:
    """The picture; of each head it takes `pattern[head]`, and `mask[head]` where `allowed` is given, both at `path`.

    Args:
        weights: (heads, query, key), 0 to `high`; NaN is masked.
        queries: plain-text label of each query, without its position (viz.tokens.labels).
        keys: plain-text label of each key.
        heads: the number in the model of each head of `weights`; None: 0, 1, 2, ...
        shown: numbers of the heads that are drawn at first; None: all. When this changes, the person's choice is reset.
        allowed: bool, broadcast to the shape of weights: False is masked.
        predicts: in the decoder, the label of the token that each row predicts.
        high: the number of the thickest, opaque line: 1 for weights, else the largest.
        measure: what the numbers are.
        title: what the picture shows, for screen readers; empty: `measure`.
        numbered: whether positions from 0 on stand before the labels; if not, the labels say what they are.
        path: of the attention in the model, such as decoder.layers.1.cross_attn; empty where the weights are of none.
        choices: what a click chooses, which the picture sends as "choose"; None: it only shows the token's lines alone.

    Raises:
        ValueError: labels that do not fit, more than eight heads, weights outside 0 to `high`.
    """
    weights = np.asarray(weights, np.float32)
    heads = [int(head) for head in (range(len(weights)) if heads is None else heads)]
    _check_names(weights, heads, queries, keys)
    _check_range(weights[np.broadcast_to(True if allowed is None else allowed, weights.shape)], high)
    shown = heads if shown is None else [head for head in heads if head in set(shown)]
    header = {"heads": heads, "shown": shown, "looks": _looks(heads), "least": LEAST * high, "high": high}
    header |= {"measure": measure, "title": title or measure, "numbered": numbered}
    parts = {"pattern": weights} | ({} if allowed is None else {"mask": np.broadcast_to(allowed, weights.shape)})
    header |= {"path": path, "masked": allowed is not None, "choices": choices and asdict(choices)}
    arrays = {named(path, name, head): part for name in parts for head, part in zip(heads, parts[name], strict=True)}
    return Drawing.pack("lines", header | _names(queries, keys, predicts) | STYLE, arrays)


def _names(queries: Sequence[str], keys: Sequence[str], predicts: Sequence[str] | None) -> dict:
    if predicts is not None and len(predicts) != len(queries):
        raise ValueError(f"{len(predicts)} predicted tokens do not fit {len(queries)} queries.")
    return {"queries": list(queries), "keys": list(keys), "predicts": None if predicts is None else list(predicts)}


def _check_names(weights: Array, heads: Sequence[int], queries: Sequence[str], keys: Sequence[str]) -> None:
    expected = (len(heads), len(queries), len(keys))
    if weights.shape != expected or not weights.size:
        raise ValueError(f"The weights have shape {weights.shape}; heads, queries and keys say {expected}.")
    if len(heads) > MOST_HEADS or len(set(heads)) < len(heads):
        raise ValueError(f"Lines are drawn for 1 to {MOST_HEADS} different heads at once, not for {heads}.")


def _check_range(weights: Array, high: float) -> None:
    seen = weights[~np.isnan(weights)]
    # In float32 the weight of a single key can be slightly above 1.
    if not high > 0 or (seen.size and (seen.min() < 0 or seen.max() > high * (1 + 1e-5))):
        span = f"from {seen.min():.4g} to {seen.max():.4g}" if seen.size else "nowhere: all are masked"
        raise ValueError(f"Weights run from 0 to a positive number, here {high:.4g}; these run {span}.")


def _looks(heads: Sequence[int]) -> list[int]:
    """The colour and dashes (0 to 7) of each head: those of its number, unless another head has them already."""
    free, looks = list(range(MOST_HEADS)), []
    for head in heads:
        wanted = head % MOST_HEADS
        looks.append(free.pop(free.index(wanted) if wanted in free else 0))
    return looks
