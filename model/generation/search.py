"""From logits to a translation or a continuation: greedy decoding and beam search (paper, section 6.1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from model.generation.fast_steps import FastTransformer
from model.generation.steps import EXTRA_LENGTH, Steps, length_limits, steps_of
from model.network.network import Network


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation or continuation."""

    tokens: tuple[int, ...]
    """ending with </s>, unless the length limit came first"""
    log_probability: float
    """log p(tokens | source), natural logarithm, summed over tokens"""
    score: float
    """log_probability / length penalty: what beam search ranks by"""


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^alpha, Wu et al. (2016), equation 14."""
    return ((5 + length) / 6) ** alpha


@torch.inference_mode()
def greedy(
    model: Network,
    sources: Sequence[Sequence[int]],
    use_cache: bool = True,
    fast: FastTransformer | None = None,
    prefix: Sequence[int] = (),
    max_new_tokens: int = EXTRA_LENGTH,
) -> list[Hypothesis]:
    """Decode each source with the most probable token at every step. Arguments as in `beam_search`; `max_new_tokens`:
    the maximum length of a continuation."""
    steps = steps_of(model)(model, sources, 1, use_cache, fast)
    limits = length_limits(model, sources, max_new_tokens)
    totals = [steps.force(prefix)]
    unfinished = set(range(len(sources)))
    for logits in steps:
        # Finished rows keep growing beside the others; what they add is cut off below.
        best, tokens = steps.log_probabilities(logits).max(dim=-1)
        totals.append(totals[-1] + best)
        steps.extend(tokens)
        length = steps.written.shape[1]
        unfinished -= {row for row, token in enumerate(tokens.tolist()) if token in steps.ends or length >= limits[row]}
        if not unfinished:
            break
    found = []
    rows = zip(steps.written.tolist(), torch.stack(totals, dim=1).tolist(), limits, strict=True)
    for tokens, row_totals, limit in rows:
        length = next((n for n, token in enumerate(tokens[:limit], 1) if token in steps.ends), limit)
        found.append(hypothesis(tokens[:length], row_totals[length - len(prefix)], alpha=0.0))
    return found


@torch.inference_mode()
def beam_search(
    model: Network,
    sources: Sequence[Sequence[int]],
    beam_size: int = 4,
    alpha: float = 0.6,
    use_cache: bool = True,
    fast: FastTransformer | None = None,
    prefix: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """The `beam_size` best translations found for each source, best first (the paper: beam 4, alpha 0.6).

    A language model continues each source instead.

    Args:
        model: in evaluation mode.
        sources: as in `Steps`.
        beam_size: prefixes kept at each step.
        alpha: exponent of the length penalty; 0 ranks by log-probability alone.
        use_cache: False recomputes the whole prefix at every step.
        fast: the same model without hook points; used while nothing observes or edits the model.
        prefix: tokens that every translation must start with; they count in its log-probability.
    """
    steps = steps_of(model)(model, sources, beam_size, use_cache, fast)
    finished: list[list[Hypothesis]] = [[] for _ in sources]
    for candidates, _ in beam_steps(steps, length_limits(model, sources), beam_size, prefix):
        for sentence, extended in candidates.items():
            for candidate in extended:
                if candidate.fate == "finished":
                    tokens = [*steps.written[candidate.row].tolist(), candidate.token]
                    finished[sentence].append(hypothesis(tokens, candidate.log_probability, alpha))
    return [sorted(found, key=lambda h: -h.score)[:beam_size] for found in finished]


def hypothesis(tokens: Sequence[int], log_probability: float, alpha: float) -> Hypothesis:
    """A finished hypothesis with its score."""
    return Hypothesis(tuple(tokens), log_probability, log_probability / length_penalty(len(tokens), alpha))


FATES = ("kept", "finished", "pruned", "left")
"""kept: grows on; finished: ended, by </s> or at the length limit; pruned: not among the best; left: among the best,
but enough sentences were finished"""


class Candidate(NamedTuple):
    """A prefix and one token more."""

    row: int
    """of the prefix, among those of the step"""
    token: int
    log_probability: float
    """log p(prefix and token | source)"""
    fate: str
    """one of FATES"""


def beam_steps(
    steps: Steps, limits: Sequence[int], beam_size: int, prefix: Sequence[int] = ()
) -> Iterator[tuple[dict[int, list[Candidate]], Tensor]]:
    """The beam search itself, one step at a time, of `beam_size` prefixes for each sentence. A sentence whose search is
    over leaves the batch. `limits`: maximum number of tokens for each; `prefix` as in `beam_search`.

    Yields:
        sentence -> its 2 * beam_size most probable candidates, best first; and log p(next token), (row, vocabulary).
    """
    device = steps.prefixes.device
    # All rows of a sentence start as the same prefix, so only the first one competes.
    scores = torch.full((len(limits), beam_size), -torch.inf, dtype=steps.dtype, device=device)
    scores[:, 0] = steps.force(prefix)[::beam_size]
    missing = dict.fromkeys(range(len(limits)), beam_size)
    for logits in steps:
        following = steps.log_probabilities(logits)
        totals = (scores[:, :, None] + following.unflatten(0, (-1, beam_size))).flatten(1)
        values, indices = totals.topk(2 * beam_size)
        beams, tokens = indices // following.shape[1], indices % following.shape[1]
        rows = beams + beam_size * torch.arange(len(beams), device=device)[:, None]
        length, survivors, candidates = steps.written.shape[1] + 1, [], {}
        extended = zip(rows.tolist(), tokens.tolist(), values.tolist(), strict=True)
        for sentence, columns in zip(list(missing), extended, strict=True):
            ended = length >= limits[sentence]
            candidates[sentence] = _decide(columns, missing[sentence], beam_size, steps.ends, ended)
            missing[sentence] -= sum(candidate.fate == "finished" for candidate in candidates[sentence])
            if kept := [candidate for candidate in candidates[sentence] if candidate.fate == "kept"]:
                # A tiny vocabulary may leave fewer than beam_size: fill up with rows that cannot win.
                survivors += kept + [kept[0]._replace(log_probability=-torch.inf)] * (beam_size - len(kept))
            else:
                del missing[sentence]
        yield candidates, following
        if not survivors:
            return
        totals = torch.tensor([c.log_probability for c in survivors], dtype=steps.dtype, device=device)
        scores = totals.unflatten(0, (-1, beam_size))
        rows, tokens = (torch.tensor([c[field] for c in survivors], device=device) for field in (0, 1))
        steps.extend(tokens, rows)


def _decide(
    columns: tuple[list, ...], missing: int, beam_size: int, ends: frozenset[int], at_limit: bool
) -> list[Candidate]:
    """What becomes of one sentence's candidates: lists of rows, tokens and log-probabilities, best first.

    An end counts if it is among the first `beam_size` candidates; of the others the first `beam_size` are kept. The
    search is over when nothing is kept, or once `missing` more hypotheses have finished.
    """
    candidates, n_growing = [], 0
    for rank, (row, token, log_probability) in enumerate(zip(*columns, strict=True)):
        if log_probability == -torch.inf:
            break
        if token in ends:
            fate = "finished" if rank < beam_size else "pruned"
        else:
            n_growing += 1
            fate = "pruned" if n_growing > beam_size else "finished" if at_limit else "kept"
        candidates.append(Candidate(row, token, log_probability, fate))
    if sum(candidate.fate == "finished" for candidate in candidates) >= missing:
        return [c._replace(fate="left") if c.fate == "kept" else c for c in candidates]
    return candidates
