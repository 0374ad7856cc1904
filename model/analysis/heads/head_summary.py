"""What a head does on one sentence, in numbers, and a type with the rule that gave it.

Measured on the attention weights of one run, by piece, special tokens included. A type says which threshold the head
reached on this sentence, and nothing about the head's effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.words import is_punctuation
from model.trace import Array, Attention, Trace

POSITIONAL = 0.5
"""Smallest share of a head's weight on one relative position that makes it positional. Voita et al. (2019, section
5.1) instead require the largest weight there in at least 90% of the cases, over many sentences."""
LOCAL = 0.75
"""Smallest share on the previous, the same and the next token together."""
SINK = 0.5
"""Smallest share on special tokens and punctuation. Clark et al. (2019, section 3.2) find heads with over half of
their attention on [SEP], and interpret it as a no-op."""
BROAD = 0.8
"""Smallest entropy relative to that of equal weights: Clark et al. (2019, section 3.3) call such heads broad."""
MONOTONE = 0.8
"""Smallest correlation between row number and mean key position: such rows go through the source in order."""


@dataclass(frozen=True)
class HeadSummary:
    """One head on one sentence. Shares are of the sum of all its weights, so each row counts the same."""

    kind: str
    layer: int
    head: int
    entropy: float
    """bits, mean over the rows: 0 for a single key, log2(n) for n equal weights"""
    confidence: float
    """mean of the rows' largest weights (Voita et al. 2019 exclude </s>; here it counts)"""
    distance: float
    """weighted mean of |i - j| in tokens (Vig & Belinkov 2019); in cross-attention the distance from the diagonal"""
    previous: float | None
    """share on the previous token; None in cross-attention, whose keys are another sentence"""
    same: float | None
    """share on the row's own token"""
    next: float | None
    """share on the next token"""
    special: float
    """share on <s> and </s>"""
    punctuation: float
    """share on pieces that consist of punctuation only"""
    spread: float
    """entropy / entropy of equal weights, mean over the rows that may attend to several keys; 0 if there are none"""
    order: float
    """correlation of row number and mean key position, -1 to 1; 0 where it is undefined"""
    choice: bool
    """whether any row may attend to more than one key"""
    type: str = ""
    """name of the first rule that the head meets; "mixed" for none"""
    rule: str = ""
    """that rule in words, with the head's numbers"""


def summarise(attention: Attention) -> tuple[HeadSummary, ...]:
    """Numbers and type of each head of one attention."""
    return tuple(name_type(_measure(attention, head)) for head in range(attention.n_heads))


def summarise_kind(trace: Trace, kind: str) -> tuple[HeadSummary, ...]:
    """Numbers and type of each head of one kind of attention, layer by layer."""
    return tuple(head for layer in trace.kind(kind).layers for head in summarise(trace.attention(kind, layer)))


def distances(crosses: bool, queries: int, keys: int) -> Array:
    """(query, key): |i - j| in tokens; in cross-attention the distance from the diagonal, corner to corner."""
    rows = np.arange(queries, dtype=np.float64)
    if crosses:
        rows *= (keys - 1) / max(queries - 1, 1)
    return np.abs(rows[:, None] - np.arange(keys))


def _measure(attention: Attention, head: int) -> HeadSummary:
    pattern, mask = attention.pattern[head].astype(np.float64), attention.mask[head]
    crosses = attention.crosses
    bits, allowed = entropy(pattern), mask.sum(axis=-1)
    free = allowed > 1
    apart = distances(crosses, *pattern.shape)
    diagonals = (None,) * 3 if crosses else tuple(_share(np.diagonal(pattern, k), pattern) for k in (-1, 0, 1))
    return HeadSummary(
        kind=attention.kind,
        layer=attention.layer,
        head=head,
        entropy=float(bits.mean()),
        confidence=float(pattern.max(axis=-1).mean()),
        distance=_share(pattern * apart, pattern),
        previous=diagonals[0],
        same=diagonals[1],
        next=diagonals[2],
        special=_share(pattern[:, list(attention.key_special)], pattern),
        punctuation=_share(pattern[:, is_punctuation(attention.key_tokens)], pattern),
        spread=float((bits[free] / np.log2(allowed[free])).mean()) if free.any() else 0.0,
        order=_order(pattern),
        choice=bool(free.any()),
    )


def _share(part: Array, whole: Array) -> float:
    total = whole.sum()
    return float(part.sum() / total) if total else 0.0


def _order(pattern: Array) -> float:
    """Pearson correlation of row number and mean key position; 0 for fewer than three rows or constant positions."""
    total = pattern.sum(axis=-1)
    means = np.divide(pattern @ np.arange(pattern.shape[1]), total, out=np.zeros_like(total), where=total > 0)
    if len(means) < 3 or np.ptp(means) < 1e-9:
        return 0.0
    return float(np.corrcoef(np.arange(len(means)), means)[0, 1])


def name_type(head: HeadSummary) -> HeadSummary:
    """The head with its type: the first rule that it meets."""
    rules = _SELF_RULES if head.previous is not None else _CROSS_RULES
    name, rule = next(filter(None, (rule(head) for rule in rules)), None) or ("mixed", _why_mixed(head))
    return replace(head, type=name, rule=rule)


Rule = Callable[[HeadSummary], tuple[str, str] | None]


def _no_choice(head: HeadSummary) -> tuple[str, str] | None:
    return None if head.choice else ("no choice", "each row may attend to one key only")


def _positional(head: HeadSummary) -> tuple[str, str] | None:
    shares = {"previous token": head.previous, "same token": head.same, "next token": head.next}
    name = max(shares, key=shares.__getitem__)
    return _reached(name, shares[name], POSITIONAL, f"of its mass on the {name}")


def _local(head: HeadSummary) -> tuple[str, str] | None:
    near = head.previous + head.same + head.next
    return _reached("local", near, LOCAL, "of its mass on the previous, same and next token together")


def _sink(head: HeadSummary) -> tuple[str, str] | None:
    return _reached("sink", head.special + head.punctuation, SINK, "of its mass on special tokens and punctuation")


def _broad(head: HeadSummary) -> tuple[str, str] | None:
    return _reached("broad", head.spread, BROAD, "of the entropy that equal weights would have")


def _monotone(head: HeadSummary) -> tuple[str, str] | None:
    if head.order < MONOTONE:
        return None
    return "monotone", f"row number and mean key position correlate with {head.order:.3f}: ≥ {MONOTONE}"


_SELF_RULES: tuple[Rule, ...] = (_no_choice, _positional, _sink, _local, _broad)
_CROSS_RULES: tuple[Rule, ...] = (_no_choice, _sink, _broad, _monotone)


def _reached(name: str, share: float, threshold: float, of: str) -> tuple[str, str] | None:
    return (name, f"{share:.1%} {of}: ≥ {threshold:.0%}") if share >= threshold else None


def _why_mixed(head: HeadSummary) -> str:
    sink = f"special tokens and punctuation {head.special + head.punctuation:.1%} < {SINK:.0%}"
    spread = f"entropy {head.spread:.1%} of that of equal weights < {BROAD:.0%}"
    if head.same is None:
        return f"no rule fits: {sink}; {spread}; order {head.order:.3f} < {MONOTONE}"
    near = (head.previous, head.same, head.next)
    local = f"previous, same and next token ≤ {max(near):.1%} < {POSITIONAL:.0%} each, "
    local += f"{sum(near):.1%} < {LOCAL:.0%} in sum"
    return f"no rule fits: {local}; {sink}; {spread}"
