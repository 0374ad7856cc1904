"""Turning logits into a translation: greedy and beam search (paper, section 6.1), cached step by step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from model.config import BOS, EOS, PAD, UNK
from model.masks import padding_mask
from model.transformer import Transformer, pad_batch

EXTRA_LENGTH = 50
"""A translation may be this much longer than its source (section 6.1)."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation that a search has finished."""

    tokens: tuple[int, ...]
    """from the first word to </s>, if it was reached within the length limit"""
    log_probability: float
    """log p(tokens | source), natural logarithm, summed over tokens"""
    score: float
    """log_probability / length penalty: what the search ranks by"""


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^alpha, Wu et al. (2016), equation 14."""
    return ((5 + length) / 6) ** alpha


def length_limits(model: Transformer, sources: Sequence[Sequence[int]]) -> list[int]:
    """Most tokens a translation of each source may have: input + 50, within the model's max_len."""
    return [min(len(source) + EXTRA_LENGTH, model.config.max_len - 1) for source in sources]


@torch.inference_mode()
def greedy(model: Transformer, sources: Sequence[list[int]]) -> list[Hypothesis]:
    """The most probable token at each step, for a batch of source ids that end with </s>."""
    device = model.output.weight.device
    src = pad_batch(list(sources), device)
    src_mask = padding_mask(src)
    memory, cache = model.encode(src, src_mask), model.new_cache()
    limits = torch.tensor(length_limits(model, sources), device=device)
    tokens = torch.full((len(sources),), BOS, device=device)
    alive = torch.ones_like(tokens, dtype=torch.bool)
    total = torch.zeros(len(sources), device=device)
    chosen = []
    for position in range(int(limits.max())):
        log_p = _allowed(model.decode_next(tokens, position, memory, src_mask, cache)).log_softmax(-1)
        best, tokens = log_p.max(dim=-1)
        tokens = tokens.where(alive, PAD)
        total += best.where(alive, 0.0)
        chosen.append(tokens)
        alive = alive & (tokens != EOS) & (position + 1 < limits)
        if not alive.any():
            break
    rows = torch.stack(chosen, dim=1).tolist()
    return [_hypothesis([t for t in row if t != PAD], p, alpha=0.0) for row, p in zip(rows, total.tolist(), strict=True)]


@dataclass
class _Search:
    """One sentence's beam: what it has finished, and how long it may still grow."""

    limit: int
    finished: list[Hypothesis] = field(default_factory=list)


@torch.inference_mode()
def beam_search(
    model: Transformer, sources: Sequence[list[int]], beam_size: int = 4, alpha: float = 0.6
) -> list[list[Hypothesis]]:
    """The `beam_size` best translations of each source, best first (beam 4, alpha 0.6 in the paper).

    A sentence is done when `beam_size` hypotheses have reached </s>; its rows then leave the batch.

    Args:
        model: the Transformer.
        sources: ids of each sentence, ending with </s>.
        beam_size: hypotheses kept at each step.
        alpha: exponent of the length penalty; 0 ranks by log-probability alone.
    """
    device = model.output.weight.device
    src = pad_batch(list(sources), device)
    src_mask = padding_mask(src)
    searches = [_Search(limit) for limit in length_limits(model, sources)]
    active = list(range(len(sources)))
    memory, cache = model.encode(src, src_mask), model.new_cache()
    memory, src_mask = memory.repeat_interleave(beam_size, 0), src_mask.repeat_interleave(beam_size, 0)
    prefixes = torch.full((len(sources), beam_size, 1), BOS, device=device)
    # At the first step all beams are the same sentence: let only one of them speak.
    scores = torch.full((len(sources), beam_size), -torch.inf, device=device)
    scores[:, 0] = 0.0
    position = 0
    while active:
        logits = model.decode_next(prefixes[:, :, -1].flatten(), position, memory, src_mask, cache)
        candidates = scores[:, :, None] + _allowed(logits).log_softmax(-1).unflatten(0, (-1, beam_size))
        top, flat = candidates.flatten(1).topk(2 * beam_size)
        position += 1
        rows, parents, words, scores = _advance(
            [searches[i] for i in active], prefixes, top, flat, beam_size, alpha, candidates.shape[-1]
        )
        active = [active[row] for row in rows]
        if not active:
            break
        kept = torch.tensor(rows, device=device)
        parents = torch.tensor(parents, device=device)
        words = torch.tensor(words, device=device)
        scores = torch.tensor(scores, device=device)
        prefixes = torch.cat([prefixes[kept[:, None], parents], words[:, :, None]], dim=2)
        flat_rows = (kept[:, None] * beam_size + parents).flatten()
        memory, src_mask = memory[flat_rows], src_mask[flat_rows]
        for layer in cache:
            layer.reorder(flat_rows)
    return [sorted(search.finished, key=lambda h: -h.score)[:beam_size] for search in searches]


def _advance(
    searches: list[_Search], prefixes: Tensor, top: Tensor, flat: Tensor, beam_size: int, alpha: float, vocab_size: int
) -> tuple[list[int], list[list[int]], list[list[int]], list[list[float]]]:
    """Sort each sentence's 2 * beam candidates into finished and still growing ones.

    Returns:
        rows of `searches` that go on, and for each its beams' parents, next words and scores.
    """
    length = prefixes.shape[2]
    rows, parents, words, scores = [], [], [], []
    for row, (search, values, indices) in enumerate(zip(searches, top.tolist(), flat.tolist(), strict=True)):
        growing = []
        for rank, (value, index) in enumerate(zip(values, indices, strict=True)):
            parent, word = divmod(index, vocab_size)
            if word != EOS:
                growing.append((parent, word, value))
            elif rank < beam_size:
                tokens = [*prefixes[row, parent, 1:].tolist(), EOS]
                search.finished.append(_hypothesis(tokens, value, alpha))
        growing = growing[:beam_size]
        if length >= search.limit:
            search.finished += [
                _hypothesis([*prefixes[row, parent, 1:].tolist(), word], value, alpha) for parent, word, value in growing
            ]
        elif len(search.finished) < beam_size:
            rows.append(row)
            parents.append([parent for parent, _, _ in growing])
            words.append([word for _, word, _ in growing])
            scores.append([value for _, _, value in growing])
    return rows, parents, words, scores


def _allowed(logits: Tensor) -> Tensor:
    """Logits without the tokens that no translation holds: padding, unknown and the start token."""
    forbidden = torch.tensor([PAD, UNK, BOS], device=logits.device)
    return logits.float().index_fill(-1, forbidden, -torch.inf)


def _hypothesis(tokens: list[int], log_probability: float, alpha: float) -> Hypothesis:
    return Hypothesis(tuple(tokens), log_probability, log_probability / length_penalty(len(tokens), alpha))
