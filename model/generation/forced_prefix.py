"""Decoding that starts from given words: what the model goes on with after a forced prefix."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from model.generation.search import Hypothesis, beam_search, greedy, length_limits, length_penalty
from model.hooks import editing
from model.interventions import Intervention, applied
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer

FORBIDDEN = 1e6
"""What is taken off every other token's logit while the prefix is forced: exp of it is 0 in any precision."""
ALPHA = 0.6
"""exponent of the length penalty (section 6.1)"""


@torch.inference_mode()
def continue_from(
    model: Transformer,
    src_ids: Sequence[int],
    prefix_ids: Sequence[int],
    beam_size: int = 4,
    interventions: Sequence[Intervention] = (),
) -> Hypothesis:
    """The translation that starts with `prefix_ids`, found by the search that `translate` uses.

    The search takes every step, of the prefix too, with all but the prefix's own token ruled out.

    Args:
        model: in evaluation mode.
        src_ids: source tokens, </s> last.
        prefix_ids: target tokens without start and end; empty for the model's own translation.
        beam_size: hypotheses kept at each step; 1 is greedy decoding.
        interventions: what to change in the model while it decodes.

    Returns:
        all tokens, the prefix's among them; log_probability is of them all.

    Raises:
        ValueError: the prefix is too long, or holds a token that no translation does.
    """
    src_ids = list(src_ids)
    prefix = list(prefix_ids)
    _check_prefix(prefix, model.config.vocab_size, length_limits(model, [src_ids])[0])
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, got {beam_size}")
    forced = _Forced(prefix)
    cached = all(intervention.position_free for intervention in interventions)
    with applied(model, interventions), editing(model, {"logits": forced} if prefix else {}):
        if beam_size == 1:
            found = greedy(model, [src_ids], use_cache=cached)
        else:
            found = beam_search(model, [src_ids], beam_size, ALPHA, use_cache=cached)[0]
    alpha = 0.0 if beam_size == 1 else ALPHA
    return max((_with_prefix(hypothesis, forced.log_probability, alpha) for hypothesis in found), key=lambda h: h.score)


class _Forced:
    """An edit of the logits that rules out all but the prefix's token, one step a call."""

    def __init__(self, prefix: list[int]) -> None:
        self.prefix = prefix
        self.step = 0
        self.log_probability = 0.0
        """log p(prefix so far | source), natural logarithm"""

    def __call__(self, logits: Tensor) -> Tensor:
        """(rows, position, vocabulary); the search reads the last position alone."""
        if self.step >= len(self.prefix):
            return logits
        token = self.prefix[self.step]
        self.step += 1
        # Row 0 is the best beam, so it holds the prefix: every other is ruled out.
        possible = logits[0, -1].float().index_fill(-1, torch.tensor([PAD, UNK, BOS], device=logits.device), -torch.inf)
        self.log_probability += possible.log_softmax(-1)[token].item()
        changed = torch.full_like(logits, -FORBIDDEN)
        # Beams that are ruled out must not finish either: they would count among the finished ones.
        changed[..., EOS] = -torch.inf
        changed[..., token] = 0.0
        return changed


def _with_prefix(hypothesis: Hypothesis, log_probability: float, alpha: float) -> Hypothesis:
    """The search has counted the forced tokens as certain: their own log-probability comes back in."""
    total = hypothesis.log_probability + log_probability
    return replace(hypothesis, log_probability=total, score=total / length_penalty(len(hypothesis.tokens), alpha))


def _check_prefix(prefix: list[int], vocab_size: int, limit: int) -> None:
    for token in prefix:
        if token in (PAD, UNK, BOS, EOS) or not 0 <= token < vocab_size:
            raise ValueError(f"the prefix holds the token {token}, which no translation can go on from")
    if len(prefix) >= limit:
        raise ValueError(f"The prefix has {len(prefix)} tokens; a translation of this source has at most {limit}.")
