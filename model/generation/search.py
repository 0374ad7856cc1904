"""Turning logits into a translation: greedy and beam search (paper, section 6.1), cached step by step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.generation.fast_steps import PackedSteps, PackedTransformer
from model.hooks import observed
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask

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


class _NextToken:
    """log p(next token | prefix, source) for rows of prefixes.

    `step`, where it is not None, goes on from keys and values that it keeps; else every step computes its
    whole prefix again. The packed model's steps are the model's own, but for the time they take.
    """

    def __init__(
        self,
        model: Transformer,
        sources: Sequence[list[int]],
        use_cache: bool,
        copies: int = 1,
        packed: PackedTransformer | None = None,
    ) -> None:
        src = pad_batch(list(sources), model.output.weight.device)
        src_mask = padding_mask(src)
        self.device, self.model = src.device, model
        self.step: PackedSteps | _CachedSteps | None = None
        if use_cache and not observed(packed.modules if packed else model.modules()):
            self.step = (packed or PackedTransformer(model)).start(src, src_mask, copies)
        else:
            memory = model.encode(src, src_mask)
            self.memory, self.src_mask = (t.repeat_interleave(copies, 0) for t in (memory, src_mask))
            self.step = _CachedSteps(model, self.memory, self.src_mask) if use_cache else None
        # No translation holds padding, an unknown token or a second start.
        self.forbidden = torch.tensor([PAD, UNK, BOS], device=src.device)

    def __call__(self, prefixes: Tensor) -> Tensor:
        """Prefixes (rows, length), <s> first, one token longer at each call -> (rows, vocabulary)."""
        check_cancelled()
        if self.step is None:
            logits = self.model.decode(prefixes, self.memory, self.src_mask)[:, -1]
        else:
            logits = self.step(prefixes[:, -1])
        return logits.float().index_fill_(-1, self.forbidden, -torch.inf).log_softmax(-1)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; each sentence's rows stand together."""
        if self.step is None:
            self.memory, self.src_mask = self.memory[rows], self.src_mask[rows]
        else:
            self.step.keep(rows)


class _CachedSteps:
    """The model's own decoder, one position after the other: what hooks and interventions see."""

    def __init__(self, model: Transformer, memory: Tensor, src_mask: Tensor) -> None:
        self.model, self.memory, self.src_mask = model, memory, src_mask
        self.cache, self.position = model.new_cache(), 0

    def __call__(self, tokens: Tensor) -> Tensor:
        logits = self.model.decode_next(tokens, self.position, self.memory, self.src_mask, self.cache)
        self.position += 1
        return logits

    def keep(self, rows: Tensor) -> None:
        self.memory, self.src_mask = self.memory[rows], self.src_mask[rows]
        for layer in self.cache:
            layer.reorder(rows)


@torch.inference_mode()
def greedy(
    model: Transformer, sources: Sequence[list[int]], use_cache: bool = True, packed: PackedTransformer | None = None
) -> list[Hypothesis]:
    """The most probable token at each step, for a batch of source ids that end with </s>."""
    next_token = _NextToken(model, sources, use_cache, packed=packed)
    limits = length_limits(model, sources)
    prefixes = torch.full((len(sources), 1), BOS, device=next_token.device)
    growing, totals = set(range(len(sources))), []
    while growing:
        log_probabilities, tokens = next_token(prefixes).max(dim=-1)
        totals.append(totals[-1] + log_probabilities if totals else log_probabilities)
        # A finished row goes on beside the others; what it says then is left out below.
        prefixes = torch.cat([prefixes, tokens[:, None]], dim=1)
        ended = {row for row, token in enumerate(tokens.tolist()) if token == EOS or len(totals) >= limits[row]}
        growing -= ended
    rows = zip(prefixes[:, 1:].tolist(), torch.stack(totals, dim=1).tolist(), limits, strict=True)
    found = [(_until_end(tokens[:limit]), values) for tokens, values, limit in rows]
    return [_hypothesis(tokens, values[len(tokens) - 1], alpha=0.0) for tokens, values in found]


def _until_end(tokens: list[int]) -> list[int]:
    """The tokens up to the first </s>, with it."""
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


@dataclass
class _Search:
    """One sentence's beam: what it has finished, and how long it may still grow."""

    limit: int
    finished: list[Hypothesis] = field(default_factory=list)


@torch.inference_mode()
def beam_search(
    model: Transformer,
    sources: Sequence[list[int]],
    beam_size: int = 4,
    alpha: float = 0.6,
    use_cache: bool = True,
    packed: PackedTransformer | None = None,
) -> list[list[Hypothesis]]:
    """The `beam_size` best translations of each source, best first (beam 4, alpha 0.6 in the paper).

    A sentence is done when `beam_size` hypotheses have reached </s>; its rows then leave the batch.

    Args:
        model: the Transformer.
        sources: ids of each sentence, ending with </s>.
        beam_size: hypotheses kept at each step.
        alpha: exponent of the length penalty; 0 ranks by log-probability alone.
        use_cache: False computes every step from its whole prefix again.
        packed: of this model, if it is at hand: packing takes as long as a short sentence.
    """
    next_token = _NextToken(model, sources, use_cache, beam_size, packed)
    device = next_token.device
    active = searches = [_Search(limit) for limit in length_limits(model, sources)]
    prefixes = torch.full((len(sources) * beam_size, 1), BOS, device=device)
    # At the first step all beams are the same sentence: let only one of them speak.
    scores = torch.full((len(sources), beam_size), -torch.inf, device=device)
    scores[:, 0] = 0.0
    while active:
        candidates = scores[:, :, None] + next_token(prefixes).unflatten(0, (-1, beam_size))
        values, indices = candidates.flatten(1).topk(2 * beam_size)
        best = (values.tolist(), indices.tolist())
        grown = _advance(active, prefixes.tolist(), best, beam_size, alpha, candidates.shape[2])
        active = [search for search, _ in grown]
        if active:
            beams = [beam for _, beams in grown for beam in beams]
            rows, words, grown_to = (torch.tensor(column, device=device) for column in zip(*beams, strict=True))
            scores = grown_to.unflatten(0, (-1, beam_size))
            prefixes = torch.cat([prefixes[rows], words[:, None]], dim=1)
            next_token.keep(rows)
    return [sorted(search.finished, key=lambda h: -h.score)[:beam_size] for search in searches]


def _advance(
    searches: list[_Search],
    prefixes: list[list[int]],
    candidates: tuple[list[list[float]], list[list[int]]],
    beam_size: int,
    alpha: float,
    vocab_size: int,
) -> list[tuple[_Search, list[tuple[int, int, float]]]]:
    """Sort each sentence's 2 * beam candidates into finished hypotheses and beams that still grow.

    Returns:
        the searches that go on, each with its beams: row of `prefixes`, next token, log-probability.
    """
    going_on = []
    for number, (search, values, indices) in enumerate(zip(searches, *candidates, strict=True)):
        growing: list[tuple[int, int, float]] = []
        for rank, (value, index) in enumerate(zip(values, indices, strict=True)):
            beam, word = divmod(index, vocab_size)
            row = number * beam_size + beam
            if word != EOS:
                growing.append((row, word, value))
            elif rank < beam_size:
                search.finished.append(_hypothesis([*prefixes[row][1:], EOS], value, alpha))
        growing = growing[:beam_size]
        if len(prefixes[0]) >= search.limit:
            search.finished += [_hypothesis([*prefixes[row][1:], word], value, alpha) for row, word, value in growing]
        elif len(search.finished) < beam_size:
            going_on.append((search, growing))
    return going_on


def _hypothesis(tokens: list[int], log_probability: float, alpha: float) -> Hypothesis:
    return Hypothesis(tuple(tokens), log_probability, log_probability / length_penalty(len(tokens), alpha))
