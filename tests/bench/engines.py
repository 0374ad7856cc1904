"""Three ways to translate with the same weights, tokenizer and limits: ours, CTranslate2's and Hugging Face's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import ctranslate2
import torch
from torch import Tensor
from transformers import MarianMTModel

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.commands.export import FORBIDDEN, save_for_ctranslate2, to_marian
from model.generation.steps import length_limits
from model.network.batch import pad_batch
from model.network.config import EOS, PAD, SPECIAL_TOKENS
from model.network.encoder_decoder import Transformer


class Engine(Protocol):
    """Texts in, translations out; one batch a call, beam size 1 is greedy."""

    def translate(self, texts: Sequence[str], beam_size: int) -> list[str]: ...


def engines(translator: Translator, folder: Path) -> Mapping[str, Engine]:
    """All three, on the CPU with as many threads as torch has now; `folder` keeps CTranslate2's copy of the weights."""
    return {
        "ours": translator,
        "CTranslate2": CTranslate2(translator, folder),
        "Hugging Face": HuggingFace(translator),
    }


def source_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    return [[*tokenizer.encode(text), EOS] for text in texts]


def longest_limit(model: Transformer, sources: Sequence[list[int]]) -> int:
    """Tokens a batch may generate; ours holds each sentence to its own limit, theirs know one for all."""
    return max(length_limits(model, sources))


class CTranslate2:
    """CTranslate2 in float32: one translation at a time, on as many threads as torch."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        self.model, self.tokenizer = translator.model, translator.tokenizer
        save_for_ctranslate2(self.model, self.tokenizer, folder)
        self.translator = ctranslate2.Translator(
            str(folder), compute_type="float32", inter_threads=1, intra_threads=torch.get_num_threads()
        )
        self.ids = {piece: number for number, piece in enumerate(self.tokenizer.tokens(range(len(self.tokenizer))))}

    def translate(self, texts: Sequence[str], beam_size: int) -> list[str]:
        sources = source_ids(self.tokenizer, texts)
        found = self.translator.translate_batch(
            [self.tokenizer.tokens(source) for source in sources],
            beam_size=beam_size,
            length_penalty=0.6,
            max_decoding_length=longest_limit(self.model, sources),
            suppress_sequences=[[SPECIAL_TOKENS[token]] for token in FORBIDDEN],
        )
        return [self.tokenizer.decode([self.ids[piece] for piece in result.hypotheses[0]]) for result in found]

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        """log p of each token of `target`, which ends with </s>, after those before it (natural logarithm)."""
        pieces = self.tokenizer.tokens
        return self.translator.score_batch([pieces(source)], [pieces(target[:-1])])[0].log_probs


class HuggingFace:
    """Hugging Face's `generate` with a MarianMTModel."""

    def __init__(self, translator: Translator) -> None:
        self.ours, self.tokenizer = translator.model, translator.tokenizer
        self.model: MarianMTModel = to_marian(translator.model)

    @torch.inference_mode()
    def translate(self, texts: Sequence[str], beam_size: int) -> list[str]:
        sources = source_ids(self.tokenizer, texts)
        src = pad_batch(sources)
        # Done, as ours, when as many beams have ended as there are; greedy decoding would warn of either.
        ranking = {"length_penalty": 0.6, "early_stopping": True} if beam_size > 1 else {}
        found = self.model.generate(
            src,
            attention_mask=(src != PAD).long(),
            num_beams=beam_size,
            max_new_tokens=longest_limit(self.ours, sources),
            **ranking,
        )
        return [self.tokenizer.decode(row) for row in found.tolist()]

    @torch.inference_mode()
    def logits(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Teacher-forced: (batch, target position, vocabulary)."""
        return self.model(src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt).logits
