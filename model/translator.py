"""A loaded checkpoint: text in, translation or Trace out. Frozen, so that many threads can share it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from model.config import EOS
from model.data import token_batches
from model.decoding import Hypothesis, beam_search, greedy
from model.interventions import Intervention, applied
from model.tokenizer import Tokenizer
from model.trace import Array, Trace
from model.tracer import build_trace
from model.transformer import Transformer

TOKENS_PER_BATCH = 2048
MAX_TRACE_TOKENS = 256
"""A Trace keeps four matrices a head of tokens times tokens: past this they no longer fit a browser."""


@dataclass(frozen=True)
class Translator:
    """A Transformer with its vocabulary, in evaluation mode on its device."""

    name: str
    """the checkpoint's folder"""
    hash: str
    """SHA-256 of the weights' file"""
    model: Transformer
    tokenizer: Tokenizer

    def translate(
        self,
        texts: Sequence[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        interventions: Sequence[Intervention] = (),
    ) -> list[str]:
        """Translate each text; blank text gives an empty string.

        Args:
            texts: one sentence each.
            beam_size: hypotheses kept at each step; 1 is greedy decoding.
            alpha: exponent of the length penalty.
            interventions: what to change in the model while it decodes.

        Raises:
            ValueError: `texts` is a single string, a text has more tokens than the model has positions, or
                beam_size is below 1.
        """
        if isinstance(texts, str):
            raise ValueError("translate takes a list of sentences: write translate([sentence]) for a single one.")
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        sources = {i: self._source_ids(texts[i], self.model.config.max_len) for i in wanted}
        translations = [""] * len(texts)
        lengths = [len(sources[i]) for i in wanted]
        # What names positions, or means over them, must not meet another sentence's padding.
        room = TOKENS_PER_BATCH // max(beam_size, 1) if _position_free(interventions) else 1
        for batch in token_batches(lengths, room, seed="translate"):
            found = self._decode([sources[wanted[j]] for j in batch], beam_size, alpha, interventions)
            for j, hypothesis in zip(batch, found, strict=True):
                translations[wanted[j]] = self.tokenizer.decode(list(hypothesis.tokens))
        return translations

    def trace(
        self,
        source: str,
        target: str | None = None,
        beam_size: int = 4,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """Decode, unless a `target` is given; then run once, teacher-forced, and keep everything inside.

        Args:
            source: one sentence.
            target: the translation to force; None lets the model find its own.
            beam_size: for the model's own; 1 is greedy decoding.
            interventions: what to change in the model, in decoding and in the run that is kept.

        Raises:
            ValueError: blank text, or more tokens than a Trace can hold.
        """
        src_ids = self._source_ids(source, MAX_TRACE_TOKENS)
        if target is None:
            tgt_out = list(self._decode([src_ids], beam_size, 0.6, interventions)[0].tokens)
        else:
            tgt_out = self._ids(target, MAX_TRACE_TOKENS, "target")
        return build_trace(self, source, tgt_out[:MAX_TRACE_TOKENS], interventions)

    def positional_encoding(self, side: Literal["source", "target"] = "source") -> Array:
        """What the model adds for each position (paper, section 3.5): a copy of its table, (max_len, d_model)."""
        embedding = self.model.src_embedding if side == "source" else self.model.tgt_embedding
        return embedding.positions.detach().cpu().numpy().copy()

    def _source_ids(self, text: str, limit: int) -> list[int]:
        return self._ids(text, limit, "source")

    def _ids(self, text: str, limit: int, side: str) -> list[int]:
        """Token ids with </s>, within `limit` and the model's positions."""
        if not text.strip():
            raise ValueError(f"The {side} sentence is empty: there is nothing to look at. Type at least one word.")
        limit = min(limit, self.model.config.max_len)
        # A piece holds at most a few dozen characters: far longer text need not be tokenised to be refused.
        if len(text) > 64 * limit:
            raise ValueError(f"The {side} has {len(text):,} characters; at most {limit} tokens fit. Shorten it.")
        ids = [*self.tokenizer.encode(text), EOS]
        if len(ids) > limit:
            raise ValueError(f"The {side} has {len(ids):,} tokens; at most {limit} fit. Shorten it.")
        return ids

    def _decode(
        self, sources: list[list[int]], beam_size: int, alpha: float, interventions: Sequence[Intervention]
    ) -> list[Hypothesis]:
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, got {beam_size}")
        cached = _position_free(interventions)
        with applied(self.model, interventions):
            if beam_size == 1:
                return greedy(self.model, sources, use_cache=cached)
            return [found[0] for found in beam_search(self.model, sources, beam_size, alpha, use_cache=cached)]


def _position_free(interventions: Sequence[Intervention]) -> bool:
    return all(intervention.position_free for intervention in interventions)
