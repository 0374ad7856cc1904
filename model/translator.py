"""A loaded checkpoint: text in, translation or Trace out. Frozen, so that many threads can share it."""

from collections.abc import Sequence
from dataclasses import dataclass

from model.config import EOS
from model.data import token_batches
from model.decoding import Hypothesis, beam_search, greedy
from model.tokenizer import Tokenizer
from model.transformer import Transformer

TOKENS_PER_BATCH = 2048


@dataclass(frozen=True)
class Translator:
    """A Transformer with its vocabulary, in evaluation mode on its device."""

    name: str
    """the checkpoint's folder"""
    hash: str
    """SHA-256 of the weights' file"""
    model: Transformer
    tokenizer: Tokenizer

    def translate(self, texts: Sequence[str], beam_size: int = 4, alpha: float = 0.6) -> list[str]:
        """Translate each text; blank text gives an empty string.

        Args:
            texts: one sentence each.
            beam_size: hypotheses kept at each step; 1 is greedy decoding.
            alpha: exponent of the length penalty.
        """
        sources = [[*self.tokenizer.encode(text), EOS] for text in texts]
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        translations = [""] * len(texts)
        for batch in token_batches([len(sources[i]) for i in wanted], TOKENS_PER_BATCH // beam_size, seed="translate"):
            best = self._decode([sources[wanted[j]] for j in batch], beam_size, alpha)
            for j, hypothesis in zip(batch, best, strict=True):
                translations[wanted[j]] = self.tokenizer.decode(list(hypothesis.tokens))
        return translations

    def _decode(self, sources: list[list[int]], beam_size: int, alpha: float) -> list[Hypothesis]:
        if beam_size == 1:
            return greedy(self.model, sources)
        return [found[0] for found in beam_search(self.model, sources, beam_size, alpha)]
