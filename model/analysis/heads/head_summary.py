"""What a head does on one sentence, in numbers, and a type with the rule that gave it.

Measured on the attention weights of one run, by piece, special tokens included. A type says which threshold the head
reached on this sentence, and nothing about the head's effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from model.analysis.distributions import entropy, ratio
from model.analysis.words import is_punctuation
from model.language import Sentence, later, sentence
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
    numbers = _measure(attention)
    heads = (
        HeadSummary(
            attention.kind,
            attention.layer,
            head,
            **{name: None if values is None else float(values[head]) for name, values in numbers.items()},
            choice=bool((attention.mask[head].sum(axis=-1) > 1).any()),
        )
        for head in range(attention.n_heads)
    )
    return tuple(map(name_type, heads))


def summarise_kind(trace: Trace, kind: str) -> tuple[HeadSummary, ...]:
    """Numbers and type of each head of one kind of attention, layer by layer."""
    return tuple(head for layer in trace.kind(kind).layers for head in summarise(trace.attention(kind, layer)))


def distances(crosses: bool, queries: int, keys: int) -> Array:
    """(query, key): |i - j| in tokens; in cross-attention the distance from the diagonal, corner to corner."""
    rows = np.arange(queries, dtype=np.float64)
    if crosses:
        rows *= (keys - 1) / max(queries - 1, 1)
    return np.abs(rows[:, None] - np.arange(keys))


def _measure(attention: Attention) -> dict[str, Array | None]:
    """The numbers of a HeadSummary by name, (heads,) each."""
    pattern, allowed = attention.pattern.astype(np.float64), attention.mask.sum(axis=-1)
    bits, total, crosses = entropy(pattern), pattern.sum(axis=(-2, -1)), attention.crosses
    free = allowed > 1
    relative = ratio(bits, np.log2(np.maximum(allowed, 1)))
    diagonals = [None if crosses else ratio(np.diagonal(pattern, k, -2, -1).sum(-1), total) for k in (-1, 0, 1)]
    of_key = pattern.sum(axis=-2)
    return {
        "entropy": bits.mean(axis=-1),
        "confidence": pattern.max(axis=-1).mean(axis=-1),
        "distance": ratio((pattern * distances(crosses, *pattern.shape[1:])).sum(axis=(-2, -1)), total),
        **dict(zip(("previous", "same", "next"), diagonals, strict=True)),
        "special": ratio(of_key[:, list(attention.key_special)].sum(axis=-1), total),
        "punctuation": ratio(of_key[:, is_punctuation(attention.key_tokens)].sum(axis=-1), total),
        "spread": relative.sum(axis=-1) / np.maximum(free.sum(axis=-1), 1),
        "order": _order(pattern),
    }


def _order(pattern: Array) -> Array:
    """(heads,): Pearson correlation of row number and mean key position; 0 for fewer than three rows or constant
    positions."""
    means = ratio(pattern @ np.arange(pattern.shape[-1]), pattern.sum(axis=-1))
    if means.shape[-1] < 3:
        return np.zeros(len(pattern))
    moves = np.ptp(means, axis=-1) >= 1e-9
    rows = np.arange(means.shape[-1]) - (means.shape[-1] - 1) / 2
    apart = means - means.mean(axis=-1, keepdims=True)
    size = np.linalg.norm(rows) * np.linalg.norm(apart, axis=-1)
    return np.divide(apart @ rows, size, out=np.zeros(len(pattern)), where=moves)


TYPES = (
    "no choice",
    "previous token",
    "same token",
    "next token",
    "sink",
    "local",
    "broad",
    "monotone",
    "mixed",
)
"""the names that rules give"""


def name_type(head: HeadSummary) -> HeadSummary:
    """The head with its type: the first rule that it meets."""
    rules = _SELF_RULES if head.previous is not None else _CROSS_RULES
    name, rule = next(filter(None, (rule(head) for rule in rules)), None) or ("mixed", _why_mixed(head))
    return replace(head, type=name, rule=rule)


Rule = Callable[[HeadSummary], tuple[str, Sentence] | None]


def _no_choice(head: HeadSummary) -> tuple[str, Sentence] | None:
    return None if head.choice else ("no choice", sentence("each row may attend to one key only"))


def _positional(head: HeadSummary) -> tuple[str, Sentence] | None:
    shares = {
        "previous token": (head.previous, later("{share:.1%} of its mass on the previous token: ≥ {limit:.0%}")),
        "same token": (head.same, later("{share:.1%} of its mass on the same token: ≥ {limit:.0%}")),
        "next token": (head.next, later("{share:.1%} of its mass on the next token: ≥ {limit:.0%}")),
    }
    name, (share, rule) = max(shares.items(), key=lambda one: one[1][0])
    return _reached(name, share, POSITIONAL, rule)


def _local(head: HeadSummary) -> tuple[str, Sentence] | None:
    near = head.previous + head.same + head.next
    rule = later("{share:.1%} of its mass on the previous, same and next token together: ≥ {limit:.0%}")
    return _reached("local", near, LOCAL, rule)


def _sink(head: HeadSummary) -> tuple[str, Sentence] | None:
    rule = later("{share:.1%} of its mass on special tokens and punctuation: ≥ {limit:.0%}")
    return _reached("sink", head.special + head.punctuation, SINK, rule)


def _broad(head: HeadSummary) -> tuple[str, Sentence] | None:
    rule = later("{share:.1%} of the entropy that equal weights would have: ≥ {limit:.0%}")
    return _reached("broad", head.spread, BROAD, rule)


def _monotone(head: HeadSummary) -> tuple[str, Sentence] | None:
    if head.order < MONOTONE:
        return None
    return "monotone", sentence(
        "row number and mean key position correlate with {order:.3f}: ≥ {limit}", order=head.order, limit=MONOTONE
    )


_SELF_RULES: tuple[Rule, ...] = (_no_choice, _positional, _sink, _local, _broad)
_CROSS_RULES: tuple[Rule, ...] = (_no_choice, _sink, _broad, _monotone)


def _reached(name: str, share: float, limit: float, rule: str) -> tuple[str, Sentence] | None:
    return (name, sentence(rule, share=share, limit=limit)) if share >= limit else None


def _why_mixed(head: HeadSummary) -> Sentence:
    sink = sentence(
        "special tokens and punctuation {share:.1%} < {limit:.0%}", share=head.special + head.punctuation, limit=SINK
    )
    spread = sentence("entropy {share:.1%} of that of equal weights < {limit:.0%}", share=head.spread, limit=BROAD)
    if head.same is None:
        order = sentence("order {order:.3f} < {limit}", order=head.order, limit=MONOTONE)
        return sentence("no rule fits: {sink}; {spread}; {order}", sink=sink, spread=spread, order=order)
    near = (head.previous, head.same, head.next)
    local = sentence(
        "previous, same and next token ≤ {most:.1%} < {limit:.0%} each, {sum:.1%} < {local:.0%} in sum",
        most=max(near),
        limit=POSITIONAL,
        sum=sum(near),
        local=LOCAL,
    )
    return sentence("no rule fits: {local}; {sink}; {spread}", local=local, sink=sink, spread=spread)
