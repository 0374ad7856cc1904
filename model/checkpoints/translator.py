"""An opened encoder-decoder: a source sentence in, its translation or a Trace out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from model.checkpoints.checkpoint import Checkpoint
from model.generation.fast_steps import FastTransformer
from model.generation.long_text import split_sentences
from model.generation.search import Hypothesis, beam_search, greedy
from model.generation.steps import length_limits
from model.interventions import Intervention, applied
from model.language import Refusal
from model.network.batch import token_batches
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.trace import Trace

TOKENS_PER_BATCH = 2048


SENTENCE_TOKENS = 256
"""of a source or a target: the checkpoints were trained on lines of a few sentences at most"""


@dataclass(frozen=True, repr=False)
class Translator(Checkpoint):
    """The model of the paper: a source sentence in, its translation out."""

    model: Transformer
    most_tokens: int = SENTENCE_TOKENS

    @cached_property
    def fast(self) -> FastTransformer | None:
        """The same model laid out for speed, built when first needed; None: it has later parts."""
        return FastTransformer(self.model) if self.config.classic else None

    def translate(
        self,
        texts: Sequence[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        interventions: Sequence[Intervention] = (),
    ) -> list[str]:
        """Translate each text; blank text gives an empty string.

        Text that is too long for one run is translated sentence by sentence.

        Args:
            texts: one sentence each, or more.
            beam_size: prefixes kept at each step; 1 is greedy decoding.
            alpha: exponent of the length penalty.
            interventions: what to change in the model while it decodes.

        Raises:
            ValueError: `texts` is a single string, or beam_size is below 1.
        """
        if isinstance(texts, str):
            raise Refusal("translate takes a list of sentences: write translate([sentence]) for a single one.")
        parts = [(i, part) for i, text in enumerate(texts) for part in self.parts(text)]
        translations = [""] * len(texts)
        written = self.write_ids([part for _, part in parts], beam_size, alpha, interventions)
        for (i, part), ids in zip(parts, written, strict=True):
            translation = self.tokenizer.decode(ids)
            between = "" if part == texts[i] else part[len(part.rstrip()) :]
            translations[i] += translation + between
        return translations

    def write_ids(
        self,
        texts: Sequence[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        interventions: Sequence[Intervention] = (),
    ) -> list[list[int]]:
        """The translation of each text, which fits one run, as token ids with </s>; arguments as of `translate`."""
        sources = [self._read_all(self.prepare(text)) for text in texts]
        written: list[list[int]] = [[]] * len(texts)
        # Interventions on positions, or on means over them, must not see another sentence's padding.
        room = TOKENS_PER_BATCH // max(beam_size, 1) if _position_free(interventions) else 1
        for batch in token_batches([len(source) for source in sources], room, seed="translate"):
            found = self._decode([sources[j] for j in batch], beam_size, alpha, interventions)
            for j, hypothesis in zip(batch, found, strict=True):
                written[j] = list(hypothesis.tokens)
        return written

    def parts(self, text: str) -> list[str]:
        """What is translated in one run each: all of `text` if it fits, else its sentences; nothing if it is blank."""
        if self.fits(text):
            return [text] if self.prepare(text) else []
        return [part for part in split_sentences(text, self.fits) if self.prepare(part)]

    def trace(
        self,
        source: str,
        target: str | None = None,
        beam_size: int = 4,
        interventions: Sequence[Intervention] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Trace:
        """Decode unless a `target` is given, then run the model once, teacher-forced, and record everything inside.

        Args:
            source: one sentence.
            target: the translation to force; None decodes one.
            beam_size: for the model's own translation; 1 is greedy decoding.
            interventions: what to change in the model, both while decoding and in the recorded run.
            source_language: as of `in_languages`.
            target_language: as of `in_languages`.

        Raises:
            ValueError: the text is blank or has too many tokens for a Trace; or there is no such language.
        """
        if source_language or target_language:
            spoken = self.in_languages(source_language, target_language)
            return spoken.trace(source, target, beam_size, interventions)
        src_ids = self._ids_to_end(source, "source")
        if target is None:
            tgt_out = list(self._decode([src_ids], beam_size, 0.6, interventions)[0].tokens)
        else:
            tgt_out = self._ids_to_end(target, "target")
        return self.trace_ids(source, tgt_out[: self.token_limit], interventions)

    def continue_from(
        self,
        source: str,
        prefix_ids: Sequence[int],
        beam_size: int = 4,
        interventions: Sequence[Intervention] = (),
    ) -> Hypothesis:
        """The translation that starts with the target tokens `prefix_ids`, found by the same search as `translate`.

        Args:
            source: one sentence.
            prefix_ids: target tokens without start and end; empty for the model's own translation.
            beam_size: prefixes kept at each step; 1 is greedy decoding.
            interventions: what to change in the model while it decodes.

        Returns:
            all tokens, including the prefix; log_probability is that of all of them.

        Raises:
            ValueError: the source is blank or too long; the prefix is too long or has a token that cannot be forced.
        """
        src_ids, prefix = self._ids_to_end(source, "source"), list(prefix_ids)
        for token in prefix:
            if token in (PAD, UNK, BOS, EOS) or not 0 <= token < self.model.config.vocab_size:
                raise Refusal(
                    "The prefix contains the token {token}, after which no translation can continue.", token=token
                )
        (limit,) = length_limits(self.model, [src_ids])
        if len(prefix) >= limit:
            raise Refusal(
                "The prefix has {count} tokens; a translation of this source has at most {limit}.",
                count=len(prefix),
                limit=limit,
            )
        return self._decode([src_ids], beam_size, 0.6, interventions, prefix)[0]

    def trace_ids(self, source: str, tgt_out: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """The teacher-forced run on a finished target given as token ids, </s> included."""
        source = self.prepare(source)
        reads = {
            "encoder": self.tokenizer.describe(self._read_all(source), source),
            "decoder": self.tokenizer.describe((self.model.start, *tgt_out[:-1])),
        }
        return self._trace(reads, {"decoder": self.tokenizer.describe(tgt_out)}, interventions)

    def _ids_to_end(self, text: str, what: str) -> list[int]:
        return self._ids(text, what)

    def _decode(
        self,
        sources: list[list[int]],
        beam_size: int,
        alpha: float,
        interventions: Sequence[Intervention],
        prefix: Sequence[int] = (),
    ) -> list[Hypothesis]:
        if beam_size < 1:
            raise Refusal("beam_size must be at least 1, got {beam_size}", beam_size=beam_size)
        cached = _position_free(interventions)
        with applied(self.model, interventions):
            if beam_size == 1:
                return greedy(self.model, sources, cached, self.fast, prefix)
            found = beam_search(self.model, sources, beam_size, alpha, cached, self.fast, prefix)
        return [hypotheses[0] for hypotheses in found]


def _position_free(interventions: Sequence[Intervention]) -> bool:
    return all(intervention.position_free for intervention in interventions)
