"""An opened checkpoint: text in, translation or Trace out. Immutable, so many threads can share it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch

from model.checkpoints.tokenizer import Tokenizer
from model.generation.fast_steps import FastTransformer
from model.generation.long_text import first_sentences, one_line, split_sentences
from model.generation.search import Hypothesis, beam_search, greedy
from model.generation.steps import length_limits
from model.interventions import Intervention, applied
from model.network.batch import token_batches
from model.network.config import BOS, EOS, PAD, UNK, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.trace import Array, Kind, StackName, Trace
from model.tracer import build_trace, record

TOKENS_PER_BATCH = 2048
MAX_TRACE_TOKENS = 256
"""A Trace keeps four (token, token) matrices per head; beyond this length they are too large for a browser."""
CHARACTERS_PER_TOKEN = 64
"""No piece is longer, so text beyond this many characters per token is too long without being tokenised."""


@dataclass(frozen=True)
class Translator:
    """A Transformer with its vocabulary, in evaluation mode on its device."""

    name: str
    """the checkpoint's folder"""
    hash: str
    """SHA-256 of the weights' file"""
    model: Transformer
    tokenizer: Tokenizer

    @property
    def device(self) -> str:
        """Where the weights are, such as "cpu" or "cuda:0"."""
        return str(self.model.output.weight.device)

    @property
    def dtype(self) -> str:
        """Number format of the weights, such as "torch.float32"."""
        return str(self.model.output.weight.dtype)

    @property
    def config(self) -> TransformerConfig:
        """Sizes and choices of architecture."""
        return self.model.config

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that the model has."""
        return self.model.kinds

    @property
    def features(self) -> frozenset[str]:
        """What the model consists of: "an encoder", "a decoder", "cross-attention"; a page says which it needs."""
        stacks = {"encoder": "an encoder", "decoder": "a decoder"}
        crosses = {"cross-attention"} if any(kind.crosses for kind in self.kinds) else set()
        return frozenset({stacks[kind.queries] for kind in self.kinds} | crosses)

    def parameters_by_part(self) -> dict[str, int]:
        """How many parameters each part learns; a tied matrix is counted once."""
        return self.model.parameters_by_part()

    def parameters_by_block(self) -> dict[tuple[str, int], dict[str, int]]:
        """(stack, layer) -> part -> how many parameters it learns."""
        return self.model.parameters_by_block()

    def read_logits(self, x: Array) -> Array:
        """(position, d_model) -> (position, vocabulary): the model's last lines, applied to any residual stream.

        With post-norm that is the output matrix alone; with pre-norm the decoder's final norm comes first.
        """
        with torch.inference_mode():
            stream = torch.from_numpy(np.array(x))[None].to(self.device)
            return self.model.output(self.model.decoder.final_norm(stream))[0].cpu().numpy()

    def embedding_matrix(self, side: Literal["source", "target"]) -> Array:
        """(vocabulary, d_model): E, before it is multiplied by `embedding_scale`; one matrix for both sides if tied."""
        embedding = self.model.src_embedding if side == "source" else self.model.tgt_embedding
        return embedding.tokens.weight.detach().cpu().numpy()

    @property
    def embedding_scale(self) -> float:
        """What embeddings are multiplied by before positions are added (section 3.4)."""
        return self.model.src_embedding.scale

    def output_matrix(self) -> Array:
        """(vocabulary, d_model): logits are x times its transpose."""
        return self.model.output.weight.detach().cpu().numpy()

    def second_matrix(self, stack: StackName, layer: int) -> tuple[Array, Array]:
        """W_2, (d_ff, d_model), and b_2, (d_model,), of a feed-forward (equation 2)."""
        w_2 = getattr(self.model, stack).layers[layer].feed_forward.w_2
        return w_2.weight.detach().T.cpu().numpy(), w_2.bias.detach().cpu().numpy()

    def on(self, device: str) -> "Translator":
        """A copy on another device."""
        return replace(self, model=copy.deepcopy(self.model).to(device))

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
            raise ValueError("translate takes a list of sentences: write translate([sentence]) for a single one.")
        parts = [(i, part) for i, text in enumerate(texts) for part in self.parts(text)]
        # Text that is translated in one piece keeps its surrounding space.
        cores = [part if part == texts[i] and self._fits(part) else part.strip() for i, part in parts]
        sources = [[*self.tokenizer.encode(core), EOS] for core in cores]
        translated = [""] * len(parts)
        # Interventions on positions, or on means over them, must not see another sentence's padding.
        room = TOKENS_PER_BATCH // max(beam_size, 1) if _position_free(interventions) else 1
        for batch in token_batches([len(source) for source in sources], room, seed="translate"):
            found = self._decode([sources[j] for j in batch], beam_size, alpha, interventions)
            for j, hypothesis in zip(batch, found, strict=True):
                translated[j] = self.tokenizer.decode(list(hypothesis.tokens))
        translations = [""] * len(texts)
        for (i, part), core, translation in zip(parts, cores, translated, strict=True):
            translations[i] += translation + part[len(part.rstrip()) :] * (part != core)
        return translations

    def parts(self, text: str) -> list[str]:
        """What is translated in one run each: all of `text` if it fits, else its sentences; nothing if it is blank."""
        if not text.strip():
            return []
        if self._fits(text):
            return [text]
        return [part for part in split_sentences(text, self._fits) if part.strip()]

    def truncate(self, text: str) -> str:
        """`text` on one line if it fits a Trace, else as many of its first sentences as fit."""
        line = one_line(text)
        if self._fits(line):
            return line
        # Whatever comes after this many characters cannot fit, so it need not be tokenised.
        return one_line(first_sentences(text.lstrip()[: CHARACTERS_PER_TOKEN * self.token_limit], self._fits))

    @property
    def token_limit(self) -> int:
        """Maximum number of tokens in one run, including </s>."""
        return min(MAX_TRACE_TOKENS, self.model.config.max_len)

    def _fits(self, text: str) -> bool:
        limit = self.token_limit
        return len(text) <= CHARACTERS_PER_TOKEN * limit and len(self.tokenizer.encode(text)) < limit

    def trace(
        self,
        source: str,
        target: str | None = None,
        beam_size: int = 4,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """Decode unless a `target` is given, then run the model once, teacher-forced, and record everything inside.

        Args:
            source: one sentence.
            target: the translation to force; None decodes one.
            beam_size: for the model's own translation; 1 is greedy decoding.
            interventions: what to change in the model, both while decoding and in the recorded run.

        Raises:
            ValueError: the text is blank or has too many tokens for a Trace.
        """
        src_ids = self._ids(source, "source")
        if target is None:
            tgt_out = list(self._decode([src_ids], beam_size, 0.6, interventions)[0].tokens)
        else:
            tgt_out = self._ids(target, "target")
        return self.trace_ids(source, tgt_out[:MAX_TRACE_TOKENS], interventions)

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
        src_ids, prefix = self._ids(source, "source"), list(prefix_ids)
        for token in prefix:
            if token in (PAD, UNK, BOS, EOS) or not 0 <= token < self.model.config.vocab_size:
                raise ValueError(f"The prefix contains the token {token}, after which no translation can continue.")
        (limit,) = length_limits(self.model, [src_ids])
        if len(prefix) >= limit:
            raise ValueError(f"The prefix has {len(prefix)} tokens; a translation of this source has at most {limit}.")
        return self._decode([src_ids], beam_size, 0.6, interventions, prefix)[0]

    def trace_ids(self, source: str, tgt_out: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """The teacher-forced run on a finished target given as token ids, </s> included."""
        return build_trace(self.model, self.tokenizer, (self.name, self.hash), source, tgt_out, interventions)

    def rerun(self, trace: Trace, interventions: Sequence[Intervention]) -> Trace:
        """The run on the same source and target tokens as `trace`, under these interventions instead of its own."""
        return self.trace_ids(trace.source, trace.next_ids, interventions)

    def check_intervention(self, change: Intervention) -> None:
        """Raise ValueError if the model has no such attention, head or sub-layer."""
        change.edits(self.model)

    def record(
        self, trace: Trace, interventions: Sequence[Intervention], tgt_ids: Sequence[int] | None = None
    ) -> dict[str, Array]:
        """All activations of a rerun by hook point path; `tgt_ids`: what the decoder reads instead of the trace's."""
        return record(self.model, trace.src_ids, trace.tgt_ids if tgt_ids is None else tgt_ids, interventions)

    def positional_encoding(self, side: Literal["source", "target"] = "source") -> Array:
        """What the model adds for each position (paper, section 3.5): a copy of its table, (max_len, d_model)."""
        embedding = self.model.src_embedding if side == "source" else self.model.tgt_embedding
        return embedding.positions.detach().cpu().numpy().copy()

    def _ids(self, text: str, side: str) -> list[int]:
        """Token ids with </s>, at most `token_limit` of them."""
        if not text.strip():
            raise ValueError(f"The {side} sentence is empty: there is nothing to look at. Type at least one word.")
        limit = self.token_limit
        if len(text) > CHARACTERS_PER_TOKEN * limit:
            raise ValueError(f"The {side} has {len(text):,} characters; at most {limit} tokens fit. Shorten it.")
        ids = [*self.tokenizer.encode(text), EOS]
        if len(ids) > limit:
            raise ValueError(f"The {side} has {len(ids):,} tokens; at most {limit} fit. Shorten it.")
        return ids

    def _decode(
        self,
        sources: list[list[int]],
        beam_size: int,
        alpha: float,
        interventions: Sequence[Intervention],
        prefix: Sequence[int] = (),
    ) -> list[Hypothesis]:
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, got {beam_size}")
        cached = _position_free(interventions)
        with applied(self.model, interventions):
            if beam_size == 1:
                return greedy(self.model, sources, cached, self.fast, prefix)
            found = beam_search(self.model, sources, beam_size, alpha, cached, self.fast, prefix)
        return [hypotheses[0] for hypotheses in found]


def _position_free(interventions: Sequence[Intervention]) -> bool:
    return all(intervention.position_free for intervention in interventions)
