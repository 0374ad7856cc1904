"""Sampling a translation: each token drawn from the model's distribution, tempered and cut (top-k, top-p)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.generation.search import length_limits
from model.interventions import AttentionTemperature, Intervention
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from model.trace import Array, Trace
from model.tracer import record


@dataclass(frozen=True)
class Sampling:
    """How the distribution is changed before a token is drawn from it."""

    temperature: float = 1.0
    """divides the logits: below 1 sharper, above 1 flatter"""
    top_k: int = 0
    """keep this many of the most probable tokens; 0 keeps all"""
    top_p: float = 1.0
    """keep the fewest tokens that together have this probability (the nucleus of Holtzman et al. 2020)"""

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise ValueError(f"temperature must be above 0, top_k at least 0 and top_p in (0, 1], got {self}")


@dataclass(frozen=True)
class SampleStep:
    """One token of several translations that are drawn side by side."""

    tokens: Array
    """(sample,): ids that were drawn"""
    alive: Array
    """bool (sample,): False where the translation had ended before"""
    before: Array
    """(sample, vocabulary): the model's own probabilities"""
    after: Array
    """(sample, vocabulary): the probabilities that the token was drawn from"""


def filtered(logits: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities to draw from: softmax(logits / temperature), then top-k, then top-p, renormalised each time.

    Args:
        logits: (..., vocabulary); -inf where a token may never come.
        sampling: what to do with them.

    Returns:
        (..., vocabulary), in double precision; exactly 0 where a token was cut.
    """
    # Less the largest before the division: a temperature near 0 then cannot overflow.
    shifted = logits.double() - logits.double().amax(-1, keepdim=True)
    probabilities = (shifted / sampling.temperature).softmax(-1)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    if sampling.top_k:
        ordered[..., sampling.top_k :] = 0.0
        ordered /= ordered.sum(-1, keepdim=True)
    # A token stays if those before it do not have top_p yet, so the first always stays.
    enough = ordered.cumsum(-1) - ordered >= sampling.top_p
    if sampling.top_p < 1:
        ordered = ordered.masked_fill(enough, 0.0)
    ordered = ordered / ordered.sum(-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, ids, ordered)


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """One token id for each row of (row, vocabulary), drawn on the CPU so that a seed means the same everywhere."""
    return torch.multinomial(probabilities.cpu(), 1, generator=generator)[:, 0]


@torch.inference_mode()
def sample(model: Transformer, source: list[int], sampling: Sampling, seed: int, n: int) -> Iterator[SampleStep]:
    """Draw `n` translations of `source` (ids that end with </s>), a token of each at a step, until all have ended.

    The same seed draws the same translations. Interventions of a surrounding `applied` block take part; they must be
    position-free, as steps are cached.
    """
    generator = torch.Generator().manual_seed(seed)
    device = model.output.weight.device
    src = pad_batch([source] * n, device)
    src_mask, cache = padding_mask(src), model.new_cache()
    memory = model.encode(src, src_mask)
    tokens, alive = torch.full((n,), BOS), torch.ones(n, dtype=torch.bool)
    forbidden = torch.tensor([PAD, UNK, BOS], device=device)
    (limit,) = length_limits(model, [source])
    for position in range(limit):
        check_cancelled()
        logits = model.decode_next(tokens.to(device), position, memory, src_mask, cache)
        logits = logits.float().index_fill(-1, forbidden, -torch.inf)
        after = filtered(logits, sampling)
        tokens = draw(after, generator)
        before = logits.double().softmax(-1)
        yield SampleStep(tokens.numpy(), alive.numpy(), before.cpu().numpy(), after.cpu().numpy())
        alive = alive & (tokens != EOS)
        if not alive.any():
            return


def tempered_inside(model: Transformer, trace: Trace, tau: float) -> Array:
    """Logits (target position, vocabulary) of the trace's target, teacher-forced, with tau in every attention.

    It takes the place of temperatures that the trace's own run had.
    """
    others: Sequence[Intervention] = [i for i in trace.interventions if not isinstance(i, AttentionTemperature)]
    return record(model, trace.src_ids, trace.tgt_ids, [*others, AttentionTemperature(tau)])["logits"]


LISTED = 12
"""Most probable tokens that a Look lists."""


@dataclass(frozen=True)
class Look:
    """The two distributions of one drawn token, as far as a figure shows them."""

    ids: tuple[int, ...]
    """the most probable tokens, best first, and the drawn one if it is not among them"""
    before: Array
    """(listed,): the model's own probabilities"""
    after: Array
    """(listed,): the probabilities it was drawn from"""
    kept: int
    """tokens of the whole vocabulary that could be drawn"""
    kept_before: float
    """what the model itself gave those together"""
    drawn: int
    """index of the drawn token in `ids`"""


@dataclass(frozen=True)
class Drawn:
    """One sampled translation."""

    tokens: tuple[int, ...]
    """up to </s>, if it came"""
    log_probability: float
    """log p(tokens | source) of the model itself, natural logarithm, untempered and uncut"""
    looks: tuple[Look, ...]
    """one a token"""


def draw_translations(
    model: Transformer, source: list[int], sampling: Sampling, seed: int, n: int
) -> tuple[Drawn, ...]:
    """`sample` to its end, with what a figure needs of each step."""
    looks: list[list[Look]] = [[] for _ in range(n)]
    for step in sample(model, source, sampling, seed, n):
        for row in np.flatnonzero(step.alive):
            looks[row].append(_look(step.before[row], step.after[row], int(step.tokens[row])))
    return tuple(
        Drawn(
            tokens=tuple(look.ids[look.drawn] for look in found),
            log_probability=float(sum(np.log(look.before[look.drawn]) for look in found)),
            looks=tuple(found),
        )
        for found in looks
    )


def _look(before: Array, after: Array, token: int) -> Look:
    ids = np.argsort(-before, kind="stable")[:LISTED].tolist()
    if token not in ids:
        ids.append(token)
    kept = after > 0
    return Look(tuple(ids), before[ids], after[ids], int(kept.sum()), float(before[kept].sum()), ids.index(token))
