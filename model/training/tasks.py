"""What each family learns: to translate, to predict the next token, or to guess masked tokens."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from model.checkpoints.tokenizer import MASK, Tokenizer
from model.network.batch import token_batches
from model.network.config import PAD, TransformerConfig
from model.network.network import Network
from model.training.data import Batch, Example, LineBatch, Pair, encode_lines, encode_pairs
from model.training.loss import label_smoothed_loss


@dataclass(frozen=True)
class Task:
    """How the examples of one family become batches."""

    masked: bool = False
    """whether the vocabulary needs <mask>"""

    @abstractmethod
    def encode(
        self, tokenizer: Tokenizer, examples: Iterable[Example], max_len: int, sampling: float = 0.0, seed: str = ""
    ) -> list[Any]:
        """Token ids of each example that fits `max_len`."""

    def length(self, sample: Any) -> int:
        """Tokens of an encoded example, padding considered."""
        return len(sample)

    def count_read(self, sample: Any) -> int:
        """Tokens that the model reads of an encoded example."""
        return len(sample)

    def shape(self, sample: Any) -> Hashable:
        """The same for two encoded examples that need no padding beside each other."""
        return len(sample)

    @abstractmethod
    def batch(self, samples: Sequence[Any], config: TransformerConfig, device: str, seed: str) -> Batch | LineBatch:
        """Encoded examples as a batch; `seed` decides what is random about it."""


class Translation(Task):
    """Predict each target token from the source and the target before it."""

    def encode(self, tokenizer, examples, max_len, sampling=0.0, seed=""):
        return encode_pairs(tokenizer, examples, max_len, sampling, seed)

    def length(self, sample: Pair) -> int:
        return max(self.shape(sample))

    def count_read(self, sample: Pair) -> int:
        src, tgt = sample
        return len(src) + len(tgt) - 1  # The last token of the target is only predicted.

    def shape(self, sample: Pair) -> tuple[int, int]:
        src, tgt = sample
        return len(src), len(tgt)

    def batch(self, samples, config, device, seed):  # noqa: ARG002 - nothing is random
        return Batch.of(samples, device)


class NextToken(Task):
    """Predict each token from those before it (Radford et al. 2018)."""

    def count_read(self, sample: list[int]) -> int:
        return len(sample) - 1

    def encode(self, tokenizer, examples, max_len, sampling=0.0, seed=""):
        return encode_lines(tokenizer, examples, max_len, sampling, seed)

    def batch(self, samples, config, device, seed):  # noqa: ARG002 - nothing is random
        return LineBatch.of_next_tokens(samples, device)


class MaskedTokens(NextToken):
    """Guess hidden tokens from both sides (Devlin et al. 2019)."""

    def count_read(self, sample: list[int]) -> int:
        return len(sample)

    def encode(self, tokenizer, examples, max_len, sampling=0.0, seed=""):
        # A whole piece is read at once, where the next token is predicted from all of it but its last one.
        return encode_lines(tokenizer, examples, max_len - 1, sampling, seed)

    def batch(self, samples, config, device, seed):
        return LineBatch.of_masked_tokens(samples, MASK, config.vocab_size, seed, device)


@dataclass(frozen=True)
class Predictions:
    """How well a model predicts the tokens of a text, teacher-forced, without label smoothing."""

    nats: float
    """summed cross-entropy"""
    tokens: int
    """predicted, end tokens included"""
    correct: int
    """of which the most probable token was the right one"""

    def bits_per_byte(self, lines: Sequence[str]) -> float:
        """Of the text as UTF-8, so that vocabularies of different sizes compare."""
        return self.nats / math.log(2) / sum(len(line.encode()) for line in lines)


@torch.inference_mode()
def predict_tokens(model: Network, tokenizer: Tokenizer, examples: Sequence[Example], device: str) -> Predictions:
    """Run the model over all examples that fit its max_len; what is masked is the same in each call."""
    task, nats, tokens, correct = TASKS[model.config.family], 0.0, 0, 0
    samples = task.encode(tokenizer, examples, model.config.max_len)
    for number, indices in enumerate(token_batches(list(map(task.length, samples)), 4096, seed="dev")):
        batch = task.batch([samples[i] for i in indices], model.config, device, f"dev-{number}")
        logits, asked = model(*batch.inputs), batch.targets != PAD
        nats += label_smoothed_loss(logits, batch.targets, smoothing=0.0).item()
        tokens += int(asked.sum())
        correct += int((asked & (logits.argmax(-1) == batch.targets)).sum())
    return Predictions(nats, tokens, correct)


TASKS = {
    "encoder_decoder": Translation(),
    "decoder": NextToken(),
    "encoder": MaskedTokens(masked=True),
}
"""by family"""
