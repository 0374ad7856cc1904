"""Opened Hugging Face models: text in; its continuation, translation, missing words or a Trace out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint, LogitsHead
from model.checkpoints.huggingface.heads import LINEAR, matrix
from model.checkpoints.huggingface.network import HookedModel
from model.checkpoints.huggingface.reader import HookedReader
from model.checkpoints.huggingface.vocabulary import Vocabulary
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.pooling import Pooling
from model.checkpoints.translator import Translator
from model.generation.search import Hypothesis, hypothesis
from model.interventions import Intervention, applied
from model.language import Refusal
from model.needs import Need
from model.trace import Array, Prompt, StackName, Stream, Tokens, Trace


@dataclass(frozen=True, repr=False)
class HookedCheckpoint(Checkpoint):
    """What opened Hugging Face models have in common."""

    model: HookedModel
    tokenizer: Vocabulary
    reader = HookedReader

    @property
    def notes(self) -> tuple[str, ...]:
        """As of every checkpoint; what the folder holds and the model does not use comes first."""
        unused = self.model.unused
        return *unused, *(note for note in self.model.notes if note not in unused)

    @property
    def departures(self) -> tuple[str, ...]:
        """As of every checkpoint."""
        return self.model.departures

    @property
    def pooling(self) -> Pooling:
        """As of every checkpoint."""
        return self.model.pooling

    @cached_property
    def features(self) -> frozenset[Need]:
        """As of every checkpoint, but no layers of our own, and no sines and cosines in another order than ours."""
        lacks = {Need.OWN_LAYERS} | ({Need.ADDED_POSITIONS} if self.config.positions == "sinusoidal" else set())
        attentions = [points for _, points in self.model.attentions().values()]
        parts = map(self.model.parts_of, attentions)
        if any(points.sink is not None for points in attentions):
            lacks.add(Need.FULL_ROWS)
        if not all(each.whole for each in parts):
            lacks.add(Need.MATRICES)
        if not self.model.head.modules:
            lacks.add(Need.LOGITS)
        if any(block.arrangement is None for block in self.model.blocks) or not self.model.blocks:
            lacks.add(Need.STREAM)
        types = {Need.ADDED_TYPES} if any(each.types is not None for each in self.model.embeddings.values()) else set()
        return super().features - lacks | types

    def read_logits(self, x: Array) -> Array:
        """(position, d_model) -> (position, vocabulary): the final norm and the head on any residual stream."""
        head = self.model.head
        with torch.inference_mode():
            stream = torch.from_numpy(np.array(x)).to(self.device)[None]
            return head(stream if head.final_norm is None else head.final_norm(stream))[0].cpu().numpy()

    def positional_rows(self, stream: Stream) -> Array | None:
        """The rows of the model's table that the run added; BERT and others add one for each token's type with it."""
        found, segments = self.model.embeddings[stream.name], stream.tokens.segments
        if found.rows is None:
            return None
        numbers = stream.embedded.rows or range(len(stream.tokens))
        rows = found.rows[[number + found.first_row for number in numbers]].cpu().numpy()
        if segments is None:
            return rows
        return rows + self.model.embeddings[stream.name].types[list(segments)].double().cpu().numpy()

    @property
    def logits_head(self) -> LogitsHead:
        head = self.model.head
        own = [getattr(module, "bias", None) is not None for module in head.modules if isinstance(module, LINEAR)]
        return LogitsHead(
            layers=len(own) != 1 or len(head.modules) > 1,
            scale=head.scale * head.out_scale,
            bias=head.bias is not None or getattr(self.model.output, "bias", None) is not None,
            softcap=head.softcap,
        )

    @torch.inference_mode()
    def head_in_double(self, final: Array) -> Array | None:
        if self.model.head.unknown:
            return None
        return self.model.head.in_double()(torch.from_numpy(final.astype(np.float64)).to(self.device)).cpu().numpy()

    def logit_direction(self, token: int, final: Array) -> tuple[Array, float]:
        """As of every checkpoint."""
        head, has = self.model.head, self.logits_head
        if head.unknown or not head.modules:
            raise Refusal("How the logits of {name} follow from its last layer could not be read.", name=self.name)
        if has.layers:
            return self._logit_gradient(final, token)
        w, b = matrix(head.modules[0])
        rest = (0.0 if b is None else float(b[token])) * head.out_scale
        rest += 0.0 if head.bias is None else float(head.bias[token])
        return w[:, token].double().cpu().numpy() * has.scale, rest

    def _logit_gradient(self, final: Array, token: int) -> tuple[Array, float]:
        """As `logit_direction`, of a head with layers of its own."""
        head = replace(self.model.head, softcap=None)
        with torch.inference_mode(False), torch.enable_grad():
            x = torch.tensor(final[None, None], dtype=self.model.output.weight.dtype, device=self.device)
            logit = head(x.requires_grad_())[0, 0, token]
            (gradient,) = torch.autograd.grad(logit, x)
        direction = gradient[0, 0].double().cpu().numpy()
        return direction, float(logit.detach()) - float(final.astype(np.float64) @ direction)

    def unrecorded_logits(self, trace: Trace) -> Array:
        """As of every checkpoint; of a model without a head, its last vectors."""
        if trace.logits.size:
            return super().unrecorded_logits(trace)
        with torch.inference_mode(), applied(self.model, trace.interventions):
            return self.model.run(*self.model.texts_of(trace)).last_hidden_state[0].cpu().numpy()

    def _same_path(self) -> AbstractContextManager:
        """Nothing: the model's own attention is what a recorded run is compared with."""
        return nullcontext()

    def head_columns(self, kind: str, layer: int) -> dict[str, tuple[Array, list[int]]]:
        """As of every checkpoint; a factor by which the model multiplies its queries is in the matrix."""
        _, points = self.model.attentions()[kind, layer]
        columns = {}
        if self.model.parts_of(points).latents:
            learned = self.model.projections(points)
            for name in "qkv":
                w = getattr(learned, f"w_{name}")
                columns[name] = np.concatenate(list(w), axis=-1), [head * w.shape[-1] for head in range(len(w))]
            return columns
        for name, heads in self.model.parts_of(points).projections.items():
            sharing = points.n_heads // len(heads.blocks)
            starts = [heads.blocks[head // sharing] * heads.width for head in range(points.n_heads)]
            columns[name] = (matrix(heads.module)[0] * heads.factor).cpu().numpy(), starts
        return columns

    def second_matrix(self, stack: StackName, layer: int) -> tuple[Array, Array]:
        """W_2, (d_ff, d_model), and b_2, (d_model,), of a feed-forward."""
        w, b = matrix(self.model.stacks[stack].layers[layer].feed_forward.w_2)
        return w.cpu().numpy(), (torch.zeros_like(w[0]) if b is None else b).cpu().numpy()

    @property
    def added_tokens(self) -> int:
        """As many as the tokenizer adds."""
        return max(self.tokenizer.added_tokens, 1)

    def prepare(self, text: str) -> str:
        """`text` as it was typed: what to make of it is up to the model's own tokenizer."""
        return text

    def _read_all(self, text: str) -> list[int]:
        return self.tokenizer.read(text)


@dataclass(frozen=True, repr=False)
class HookedLanguageModel(HookedCheckpoint, LanguageModel):
    """A decoder-only model. A text begins with a start token where the tokenizer adds one."""

    def _read(self, text: Prompt, what: str = "text") -> list[int]:
        if not isinstance(text, str):
            # The template has written the special tokens already.
            return self._encode(self.tokenizer.apply_chat_template(text), "chat")
        ids = self._ids(text, what)
        return ids[:-1] if len(ids) > 1 and ids[-1] == self.tokenizer.end else ids

    def _read_both(self, source: Prompt, target: str) -> list[int]:
        if isinstance(source, str):
            return super()._read_both(source, target)
        ids = [*self._read(source), *self.tokenizer.encode(target)]
        if len(ids) + 1 > self.token_limit:
            raise Refusal(
                "The chat has {count:,} tokens; at most {limit} fit. Shorten it.",
                count=len(ids) + 1,
                limit=self.token_limit,
            )
        return ids

    def trace_ids(self, source: Prompt, next_ids: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """As of every language model; the tokens of a chat know their roles."""
        if isinstance(source, str):
            return super().trace_ids(source, next_ids, interventions)
        prompt = self.tokenizer.describe_chat(source)
        if prompt.ids[1 : len(next_ids) + 1] != tuple(next_ids[: len(prompt) - 1]):
            raise Refusal("The tokens do not begin with those of the chat.")
        written = self.tokenizer.describe(next_ids[len(prompt) - 1 :])
        chat = _append(prompt, replace(written, roles=("assistant",) * len(written)))
        reads = replace(chat.between(0, len(next_ids)), prompt_length=len(prompt))
        return self._trace({"decoder": reads}, {"decoder": chat.between(1, len(next_ids) + 1)}, interventions)

    def generate(self, text: str, interventions: Sequence[Intervention] = (), max_new_tokens: int = 20) -> str:
        """`text` with what the model writes after it, the most probable token each time."""
        return self.continue_text([text], max_new_tokens, temperature=0, interventions=interventions)[0]


def _append(first: Tokens, second: Tokens) -> Tokens:
    """Both, one after the other, as one text."""
    start, word = len(first.text), max((word for word in first.words if word is not None), default=-1) + 1
    return replace(
        first,
        text=first.text + second.text,
        ids=first.ids + second.ids,
        labels=first.labels + second.labels,
        special=first.special + second.special,
        spans=first.spans + tuple(span and (span[0] + start, span[1] + start) for span in second.spans),
        words=first.words + tuple(number if number is None else number + word for number in second.words),
        roles=first.roles + second.roles,
    )


@dataclass(frozen=True, repr=False)
class HookedMaskedModel(HookedCheckpoint, MaskedModel):
    """An encoder-only model, with a head that fills in masks or without one."""


@dataclass(frozen=True, repr=False)
class HookedTranslator(HookedCheckpoint, Translator):
    """An encoder-decoder model: a source text in, what the model makes of it out."""

    @property
    def fast(self) -> None:
        """There is no faster form of it."""
        return None

    @property
    def languages(self) -> tuple[str, ...]:
        """As of every checkpoint: those of the tokenizer."""
        return self.tokenizer.languages.codes if self.tokenizer.languages else ()

    @property
    def chosen_languages(self) -> tuple[str, str] | None:
        """As of every checkpoint."""
        chosen = self.tokenizer.languages
        return chosen and (chosen.source, chosen.target)

    def in_languages(self, source_language: str | None = None, target_language: str | None = None) -> Self:
        """As of every checkpoint; weights and hooks are the same."""
        if self.tokenizer.languages is None:
            return super().in_languages(source_language, target_language)
        chosen = self.tokenizer.languages.choose(source_language, target_language)
        return replace(self, model=self.model.in_languages(chosen), tokenizer=self.tokenizer.in_languages(chosen))

    def translate(
        self,
        texts: Sequence[str],
        beam_size: int = 4,
        alpha: float = 0.6,
        interventions: Sequence[Intervention] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> list[str]:
        """What the model writes for each text; blank text gives an empty string. Arguments as of `Translator`, and
        languages as of `in_languages`."""
        if source_language or target_language:
            spoken = self.in_languages(source_language, target_language)
            return spoken.translate(texts, beam_size, alpha, interventions)
        if isinstance(texts, str):
            raise Refusal("translate takes a list of sentences: write translate([sentence]) for a single one.")
        sources = {text: self._ids_to_end(text, "source") for text in texts if text.strip()}
        found = {text: self._decode([ids], beam_size, alpha, interventions)[0] for text, ids in sources.items()}
        return [self.tokenizer.decode(found[text].tokens) if text in found else "" for text in texts]

    def generate(
        self,
        text: str,
        interventions: Sequence[Intervention] = (),
        max_new_tokens: int = 50,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> str:
        """What the model writes for `text`, the most probable token each time; languages as of `in_languages`."""
        if source_language or target_language:
            return self.in_languages(source_language, target_language).generate(text, interventions, max_new_tokens)
        tokens = self._search(self._ids_to_end(text, "source"), 1, 1.0, interventions, (), max_new_tokens)
        return self.tokenizer.decode(tokens)

    def _ids_to_end(self, text: str, what: str) -> list[int]:
        ids = self._ids(text, what)
        return ids if what == "source" else self.tokenizer.read(text, target=True)

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
        found = []
        for source in sources:
            tokens = self._search(source, beam_size, alpha, interventions, prefix, len(source) + 50)
            if not self.model.writes:
                found.append(hypothesis(tokens, 0.0, alpha))
                continue
            with torch.inference_mode(), applied(self.model, interventions):
                logits = self.model(*self._tensors(source, (self.model.start, *tokens[:-1])))[0]
            scores = logits.log_softmax(-1)[torch.arange(len(tokens)), tokens]
            found.append(hypothesis(tokens, float(scores.sum()), alpha))
        return found

    @torch.inference_mode()
    def _search(
        self,
        source: Sequence[int],
        beam_size: int,
        alpha: float,
        interventions: Sequence[Intervention],
        prefix: Sequence[int],
        most: int,
    ) -> list[int]:
        """Target tokens, found by transformers' own search; of a model without a head, the source's."""
        check_cancelled()
        if not self.model.writes:
            return [*prefix, *source[len(prefix) :]]
        ids, target = self._tensors(source, (self.model.start, *prefix))
        room = max(min(most, self.token_limit) - len(prefix), 1)
        with applied(self.model, interventions):
            found = self.model.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                decoder_input_ids=target,
                do_sample=False,
                num_beams=beam_size,
                **({"length_penalty": alpha} if beam_size > 1 else {}),
                **self._first_tokens,
                max_new_tokens=room,
                use_cache=all(change.position_free for change in interventions),
            )
        return found[0, 1:].tolist()

    @property
    def _first_tokens(self) -> dict[str, int | None]:
        """What transformers' search is told: the start, which a T5's settings may lack, and the target language."""
        forced = {"forced_bos_token_id": self.model.forced_start} if self.tokenizer.languages else {}
        return {"decoder_start_token_id": self.model.start, **forced}

    def _tensors(self, *texts: Sequence[int]) -> list[Tensor]:
        return [torch.tensor([list(ids)], device=self.device) for ids in texts]
