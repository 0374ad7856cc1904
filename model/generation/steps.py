"""Decoding one token at a time: every search, sampler and measurement in this package reads its logits from here."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.generation.fast_steps import FastTransformer
from model.hooks import observed
from model.network.batch import pad_batch
from model.network.decoder_only import DecoderOnly
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from model.network.network import Network
from model.trace import Trace

EXTRA_LENGTH = 50
"""A translation may be at most this much longer than its source (section 6.1), and a text than its prompt."""


class Steps(Iterator[Tensor]):
    """Growing prefixes of a translation or of a text, and the logits of the token that follows each of them.

    Iterate for logits (row, vocabulary); call `extend` once before asking for the next ones:

        steps = Steps(model, [source])
        for logits in steps:
            steps.extend(logits.argmax(dim=-1))

    The last prefix is the one that fills all positions of the model. Interventions of a surrounding `applied` block
    take part; with the cache they must be position-free.

    Args:
        model: in evaluation mode.
        sources: token ids of each sentence, ending with </s>; for a language model the prompts, without <s> and all
            of one length.
        copies: prefixes per sentence; their rows are adjacent.
        use_cache: False recomputes the whole prefix at every step.
        fast: the same model without hook points; used unless something outside the layers is observed or edited.
    """

    adds_start: ClassVar[bool] = True
    """whether `sources` of a language model are without their start token"""

    def __init__(
        self,
        model: Transformer | DecoderOnly,
        sources: Sequence[Sequence[int]],
        copies: int = 1,
        use_cache: bool = True,
        fast: FastTransformer | None = None,
    ) -> None:
        device = model.output.weight.device
        self.model = model
        self.dtype = torch.promote_types(model.output.weight.dtype, torch.float32)
        """of logits and of sums of log-probabilities"""
        self.prefixes = torch.full((len(sources) * copies, 1), model.start, device=device)
        """(row, length): <s>, the prompt of a language model, and what was written"""
        self._n_given = 1
        self._fast = self._cache = None
        self._context: tuple[Tensor, ...] = ()
        """the memory and its mask, where the model has an encoder"""
        if isinstance(model, DecoderOnly):
            self._cache = model.new_cache() if use_cache else None
            prompts = torch.tensor(sources, dtype=torch.long, device=device).repeat_interleave(copies, 0)
            if use_cache and prompts.shape[1]:
                model.read(torch.cat([self.prefixes, prompts[:, :-1]], dim=1), self._cache)
            self.prefixes = torch.cat([self.prefixes, prompts], dim=1)
            self._n_given += prompts.shape[1]
            return
        src = pad_batch([list(source) for source in sources], device)
        src_mask = padding_mask(src)
        if fast and use_cache and not observed(fast.other_modules):
            memory = model.encode(src, src_mask) if observed(fast.encoder_modules) else None
            self._fast = fast.start(src, src_mask, copies, memory)
        else:
            context = (model.encode(src, src_mask), src_mask)
            self._context = tuple(tensor.repeat_interleave(copies, 0) for tensor in context)
            self._cache = model.new_cache() if use_cache else None

    @property
    def ends(self) -> frozenset[int]:
        """Ids of the tokens that end a text."""
        return self.model.ends

    @property
    def written(self) -> Tensor:
        """(row, length): the prefixes without <s> and the prompt."""
        return self.prefixes[:, self._n_given :]

    def __next__(self) -> Tensor:
        check_cancelled()
        newest, length = self.prefixes[:, -1], self.prefixes.shape[1]
        if length > self.model.config.max_len:
            raise StopIteration
        if self._fast:
            logits = self._fast(newest)
        elif self._cache:
            logits = self.model.decode_next(newest, length - 1, *self._context, self._cache)
        else:
            logits = self.model.decode(self.prefixes, *self._context)[:, -1]
        return logits.to(self.dtype)

    def extend(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """Append one token (row,) to each prefix; `rows` first selects and reorders the prefixes (None: all stay).

        Each sentence's rows must stay adjacent, and its number of copies the same.
        """
        if rows is not None:
            self.prefixes = self.prefixes[rows]
            if self._fast:
                self._fast.reorder(rows)
            else:
                self._context = tuple(tensor[rows] for tensor in self._context)
                for layer in self._cache or ():
                    layer.reorder(rows)
        self.prefixes = torch.cat([self.prefixes, tokens[:, None]], dim=1)

    def force(self, prefix: Sequence[int]) -> Tensor:
        """Extend every row with the same tokens; returns log p(prefix | source) of each row, (row,)."""
        total = torch.zeros(len(self.prefixes), dtype=self.dtype, device=self.prefixes.device)
        for token in prefix:
            total += self.log_probabilities(next(self))[:, token]
            self.extend(torch.full_like(self.prefixes[:, 0], token))
        return total

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """log p(next token), the softmax taken over the whole vocabulary, as in training.

        Tokens that are never written are then ruled out with -inf.
        """
        return self._bar(logits.log_softmax(dim=-1))

    def rule_out(self, logits: Tensor, end: bool = False) -> Tensor:
        """A copy of the logits with -inf for tokens that are never written, and on request for end tokens."""
        found = self._bar(logits.clone())
        if end:
            found[..., list(self.ends)] = -torch.inf
        return found

    def _bar(self, scores: Tensor) -> Tensor:
        """`scores` themselves, with -inf for tokens that are never written."""
        scores[..., self.model.barred] = -torch.inf
        return scores


def steps_of(model: Network) -> type[Steps]:
    """How the model decodes step by step; a Hugging Face model brings its own steps."""
    return getattr(model, "steps", Steps)


def length_limits(model: Network, sources: Sequence[Sequence[int]], max_new_tokens: int = EXTRA_LENGTH) -> list[int]:
    """Maximum number of tokens to write for each source, within max_len.

    For a translation it is the length of the source + 50; after the prompt of a language model it is `max_new_tokens`.
    """
    max_len = model.config.max_len
    if "encoder" not in model.stacks:
        start = 1 if steps_of(model).adds_start else 0
        return [min(max_new_tokens, max_len + 1 - start - len(source)) for source in sources]
    return [min(len(source) + EXTRA_LENGTH, max_len - 1) for source in sources]


def ids_to_decode_from(model: Network, trace: Trace) -> list[int]:
    """The token ids that the model's steps start from: a run's source, or its prompt."""
    start = 1 if steps_of(model).adds_start else 0
    return list(trace.src_ids or trace.tgt_ids[start : trace.first_written + 1])
