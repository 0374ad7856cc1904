"""Sampling: each token is drawn from the model's distribution after temperature, top-k and top-p."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.generation.steps import EXTRA_LENGTH, ids_to_decode_from, length_limits, steps_of
from model.interventions import AttentionTemperature, Intervention, applied
from model.network.network import Network
from model.trace import Array, Trace, probabilities
from model.tracer import record


@dataclass(frozen=True)
class Sampling:
    """How the next-token distribution is changed before a token is drawn."""

    temperature: float = 1.0
    """divides the logits; below 1 sharpens, above 1 flattens"""
    top_k: int = 0
    """keep only the k most probable tokens; 0 keeps all"""
    top_p: float = 1.0
    """keep the smallest set of tokens with at least this total probability (nucleus sampling, Holtzman et al. 2020)"""

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise ValueError(f"temperature must be above 0, top_k at least 0 and top_p in (0, 1], got {self}")


@dataclass(frozen=True)
class SampleStep:
    """One token of each of several texts sampled in parallel."""

    tokens: Array
    """(sample,): drawn ids"""
    alive: Array
    """bool (sample,): False if that text has already ended"""
    before: Array
    """(sample, vocabulary): the model's own probabilities, softmax(logits)"""
    after: Array
    """(sample, vocabulary): the distribution the token was drawn from; <pad>, <unk> and <s> have 0"""


def sampling_distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """softmax(logits / temperature), then top-k, then top-p, renormalised after each; of (..., vocabulary), where -inf
    rules a token out.

    Returns:
        (..., vocabulary), in double precision; exactly 0 where a token was removed.
    """
    # Subtract the maximum first, so that a temperature near 0 cannot overflow.
    shifted = logits.double() - logits.double().amax(-1, keepdim=True)
    probabilities = (shifted / sampling.temperature).softmax(-1)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    if sampling.top_k:
        ordered[..., sampling.top_k :] = 0.0
        ordered /= ordered.sum(-1, keepdim=True)
    # A token stays while the tokens before it have less than top_p, so the first always stays.
    enough = ordered.cumsum(-1) - ordered >= sampling.top_p
    if sampling.top_p < 1:
        ordered = ordered.masked_fill(enough, 0.0)
    ordered = ordered / ordered.sum(-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, ids, ordered)


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """One token id per row of (row, vocabulary); drawn on the CPU, so that a seed gives the same on every device."""
    return torch.multinomial(probabilities.cpu(), 1, generator=generator)[:, 0]


@torch.inference_mode()
def sample(
    model: Network,
    source: Sequence[int],
    sampling: Sampling,
    seed: int,
    n: int,
    max_new_tokens: int = EXTRA_LENGTH,
    use_cache: bool = True,
) -> Iterator[SampleStep]:
    """Sample `n` translations or continuations of `source` in parallel, until all of them have ended.

    The same seed gives the same texts. Interventions of a surrounding `applied` block take part; with the cache they
    must be position-free. Arguments as in `beam_tree`.
    """
    generator = torch.Generator().manual_seed(seed)
    (limit,) = length_limits(model, [source], max_new_tokens)
    alive = torch.ones(n, dtype=torch.bool)
    steps = steps_of(model)(model, [source] * n, use_cache=use_cache)
    for _, logits in zip(range(limit), steps, strict=False):
        before = logits.double().softmax(-1)
        after = sampling_distribution(steps.rule_out(logits), sampling)
        tokens = draw(after, generator)
        yield SampleStep(tokens.numpy(), alive.numpy(), before.cpu().numpy(), after.cpu().numpy())
        alive = alive & torch.tensor([token not in steps.ends for token in tokens.tolist()])
        if not alive.any():
            return
        steps.extend(tokens.to(logits.device))


def logits_at_attention_temperature(model: Network, trace: Trace, tau: float) -> Array:
    """Logits (row, vocabulary) of the trace's own tokens, teacher-forced, with tau in every attention.

    It replaces the attention temperatures of the trace's own run.
    """
    texts = [stream.tokens.ids for stream in trace.streams.values()]
    others: Sequence[Intervention] = [i for i in trace.interventions if not isinstance(i, AttentionTemperature)]
    return record(model, texts, [*others, AttentionTemperature(tau)])["logits"]


def two_temperatures(model: Network, trace: Trace, row: int, temperature: float) -> dict[str, Array]:
    """(vocabulary,) probabilities of one row: of the run, with its logits divided, and with all attention scores."""
    logits = trace.logits[row].astype(np.float64)
    inside = logits_at_attention_temperature(model, trace, temperature)[row].astype(np.float64)
    scores = {"run": logits, "output": logits / temperature, "attention": inside}
    return {name: probabilities(values) for name, values in scores.items()}


N_LISTED = 12
"""Number of most probable tokens listed for each draw."""


@dataclass(frozen=True)
class TokenDraw:
    """The two distributions behind one drawn token, as far as a figure shows them."""

    ids: tuple[int, ...]
    """the most probable tokens, best first, then the drawn one if it is not among them"""
    before: Array
    """(listed + 1,): the model's own probabilities; the last is the sum over all other tokens"""
    after: Array
    """(listed + 1,): the distribution it was drawn from; the last is the sum over all others, 0 if all were cut"""
    kept: int
    """number of tokens in the vocabulary that could be drawn"""
    kept_before: float
    """total probability that the model itself gives those"""
    chosen: int
    """index of the drawn token in `ids`"""


@dataclass(frozen=True)
class SampledText:
    """One sampled translation or continuation."""

    tokens: tuple[int, ...]
    """ending with </s>, unless the length limit came first"""
    log_probability: float
    """log p(tokens | source) by the model itself, natural logarithm, without temperature, top-k and top-p"""
    draws: tuple[TokenDraw, ...]
    """one per token"""


def sample_texts(
    model: Network,
    source: Sequence[int],
    sampling: Sampling,
    seed: int,
    n: int,
    max_new_tokens: int = EXTRA_LENGTH,
    use_cache: bool = True,
) -> tuple[SampledText, ...]:
    """Run `sample` to its end and keep what a figure needs of each step."""
    draws: list[list[TokenDraw]] = [[] for _ in range(n)]
    for step in sample(model, source, sampling, seed, n, max_new_tokens, use_cache):
        for row in np.flatnonzero(step.alive):
            draws[row].append(_token_draw(step.before[row], step.after[row], int(step.tokens[row])))
    return tuple(
        SampledText(
            tokens=tuple(one.ids[one.chosen] for one in found),
            log_probability=float(sum(np.log(one.before[one.chosen]) for one in found)),
            draws=tuple(found),
        )
        for found in draws
    )


def sample_again(
    model: Network,
    trace: Trace,
    sampling: Sampling,
    seed: int,
    n: int,
    max_new_tokens: int = EXTRA_LENGTH,
) -> tuple[SampledText, ...]:
    """Texts sampled from a trace's source or prompt, with its interventions."""
    cached = all(change.position_free for change in trace.interventions)
    with applied(model, trace.interventions):
        return sample_texts(model, ids_to_decode_from(model, trace), sampling, seed, n, max_new_tokens, cached)


def _token_draw(before: Array, after: Array, token: int) -> TokenDraw:
    ids = np.argsort(-before, kind="stable")[:N_LISTED].tolist()
    if token not in ids:
        ids.append(token)
    # A sum over the others: one minus the listed would leave a rounding error where every other token was cut.
    shown_before, shown_after = (np.append(p[ids], np.delete(p, ids).sum()) for p in (before, after))
    kept = after > 0
    return TokenDraw(
        tuple(ids), shown_before, shown_after, int(kept.sum()), float(before[kept].sum()), ids.index(token)
    )
