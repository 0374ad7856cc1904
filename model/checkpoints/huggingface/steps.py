"""Decoding with a Hugging Face model, one token at a time, for the searches and samplers of `model.generation`."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig

from model.cancel import check_cancelled
from model.checkpoints.huggingface.probe import call_model
from model.generation.steps import Steps

OBEYED = (
    *("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id"),
    *("forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens"),
    *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "repetition_penalty", "early_stopping"),
)
"""settings of transformers' own search that say what a text may consist of"""
ATTENTIONS = {"full_attention", "sliding_attention", "chunked_attention"}
"""kinds of layers in a configuration whose cache holds keys and values alone"""


def obeyed_settings(settings: GenerationConfig) -> GenerationConfig:
    """The same without what a page decides, such as how many beams, or what returns other things than one text."""
    made = {name: getattr(settings, name, None) for name in OBEYED}
    return GenerationConfig(**{name: value for name, value in made.items() if value is not None})


class HookedSteps(Steps):
    """As `Steps`, with transformers' own model and cache, and the logits as the model gives them.

    The sources of a batch are equally long; a language model's begin with its start token, if it has one.
    """

    adds_start: ClassVar[bool] = False

    def __init__(
        self,
        model: Any,
        sources: Sequence[Sequence[int]],
        copies: int = 1,
        use_cache: bool = True,
        fast: None = None,
    ) -> None:
        """`model`: a `HookedModel`; there is no faster form of it."""
        del fast
        weight = model.output.weight
        self.model = model
        self.dtype = torch.promote_types(weight.dtype, torch.float32)
        given = torch.tensor(sources, dtype=torch.long, device=weight.device).repeat_interleave(copies, 0)
        self._source, self._memory, self._cache = None, None, None
        self.prefixes = given
        if "encoder" in model.stacks:
            self._source, self.prefixes = given, torch.full_like(given[:, :1], model.start)
        # A cache without windows: what a window leaves out is masked, so every key keeps its place.
        if use_cache and _remembers_keys_alone(model.model.config):
            both = self._source is not None
            self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache()) if both else DynamicCache()
        self._n_given = self.prefixes.shape[1]
        self._n_cached = 0
        # Of a prompt, only what follows its last token: the logits of all others are a third of GPT-2's work.
        takes = signature(model.model.forward).parameters
        self._last_alone = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}

    def __next__(self) -> Tensor:
        check_cancelled()
        length = self.prefixes.shape[1]
        if length > self.model.config.max_len:
            raise StopIteration
        texts, options = [self.prefixes[:, self._n_cached :]], dict(self._last_alone)
        if self._source is not None:
            texts = [self._source, *texts]
            options["attention_mask"] = torch.ones_like(self._source)
        if self._memory is not None:
            options["encoder_outputs"] = (self._memory,)
        if self._cache is not None:
            options |= {"use_cache": True, "past_key_values": self._cache}
            self._n_cached = length
        out = call_model(self.model.model, texts, **options)
        self._memory = getattr(out, "encoder_last_hidden_state", None)
        return out.logits[:, -1].to(self.dtype)

    def _bar(self, scores: Tensor) -> Tensor:
        """As of all steps; some models must begin with a certain token, such as that of the target language."""
        forced = self.model.forced_start
        if forced is not None and not self.written.shape[1]:
            scores[..., torch.arange(scores.shape[-1], device=scores.device) != forced] = -torch.inf
        return super()._bar(scores)

    def extend(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        if rows is not None:
            self.prefixes = self.prefixes[rows]
            if self._source is not None:
                self._source, self._memory = self._source[rows], self._memory[rows]
            if self._cache is not None:
                self._cache.reorder_cache(rows)
        self.prefixes = torch.cat([self.prefixes, tokens[:, None].to(self.prefixes.device)], dim=1)


def _remembers_keys_alone(config: Any) -> bool:
    """True if every layer is an attention, of which the cache holds keys and values; convolutions keep other states."""
    return set(getattr(config.get_text_config(decoder=True), "layer_types", None) or ()) <= ATTENTIONS
