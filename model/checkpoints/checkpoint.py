"""What every opened checkpoint has in common, whatever its family. Immutable, so many threads can share it."""

import copy
import hashlib
import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import torch

from model.checkpoints.pooling import Pooling
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.typed_text import prepare_text
from model.generation.long_text import first_sentences
from model.hooks import explicit_path
from model.interventions import Intervention, applied
from model.language import Refusal, sentence
from model.needs import EVERY_OWN, Need
from model.network.config import TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.network import Network
from model.trace import Array, Kind, Prompt, StackName, Stream, Tokens, Trace
from model.tracer import Reader, build_trace, record

TRACE_TOKENS = 512
"""in one run, unless LONG_TRACE_TOKENS are asked for, which takes seconds"""
LONG_TRACE_TOKENS = 1024
PROBE_TOKENS = 64
CHARACTERS_PER_TOKEN = 64
"""No piece is longer, so text beyond this many characters per token is too long without being tokenised."""


@dataclass(frozen=True)
class LogitsHead:
    """How the logits follow from what the final norm hands on: x times the output matrix, and what else there is."""

    layers: bool = False
    """whether layers of their own come before the output matrix, as in BERT"""
    scale: float = 1.0
    """by which x, or the logits, are multiplied"""
    bias: bool = False
    softcap: float | None = None
    """logits are capped at softcap * tanh(logits / softcap)"""


@dataclass(frozen=True)
class Checkpoint:
    """A network with its vocabulary, in evaluation mode on its device."""

    name: str
    """the checkpoint's folder"""
    hash: str
    """SHA-256 of the weights' file"""
    model: Network
    tokenizer: Tokenizer
    reader: ClassVar[type[Reader]] = Reader
    """what makes a Trace of a run's activations"""
    most_tokens: int = TRACE_TOKENS
    """of one run, where the model has as many positions"""
    step: int | None = None
    """after which training saved these weights, where the folder has those of several steps and says so"""

    def __repr__(self) -> str:
        """On one line: name, the first digits of the hash, and device."""
        return f"<{type(self).__name__} {self.name}, SHA-256 {self.hash[:8]}…, on {self.device}>"

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
    def notes(self) -> tuple[str, ...]:
        """What could not be read, in sentences."""
        return ()

    @property
    def departures(self) -> tuple[str, ...]:
        """What the folder says that the network does not use, in sentences; none: the file is the network."""
        return ()

    @property
    def pooling(self) -> Pooling:
        """How a text's vector follows from those of its tokens: it is their mean, unless the folder says otherwise."""
        return Pooling()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that the model has."""
        return self.model.kinds

    @cached_property
    def features(self) -> frozenset[Need]:
        """What the model has of all that pages and views need."""
        stacks = {"encoder": Need.ENCODER, "decoder": Need.DECODER}
        crosses = {Need.CROSS_ATTENTION} if any(kind.crosses for kind in self.kinds) else set()
        added = {Need.ADDED_POSITIONS} if self._embedding("source").positions is not None else set()
        return frozenset({stacks[kind.queries] for kind in self.kinds} | crosses | added | EVERY_OWN)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that a text may be in, and that may be written; empty where there is no choice."""
        return ()

    @property
    def chosen_languages(self) -> tuple[str, str] | None:
        """Source and target language; None where there is no choice."""
        return None

    def in_languages(self, source_language: str | None = None, target_language: str | None = None) -> Self:
        """The same model, for texts in other languages.

        Args:
            source_language: one of `languages`; None: the one that is chosen, at first the tokenizer's own.
            target_language: the same of what is written.

        Raises:
            ValueError: there is no such language, or no choice.
        """
        if (source_language, target_language) not in ((None, None), self.chosen_languages):
            raise Refusal("This model has no choice of languages: leave out source_language and target_language.")
        return self

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
            return self.model.output(list(self.model.stacks.values())[-1].final_norm(stream))[0].cpu().numpy()

    @property
    def logits_head(self) -> LogitsHead:
        """How the logits follow from the last stack's output."""
        return LogitsHead()

    def head_in_double(self, final: Array) -> Array | None:
        """(position, d_model), after the last norm -> (position, vocabulary): logits, computed in double precision.

        None where it is not known how they are computed.
        """
        weight = self.model.output.weight.detach().cpu().double()
        return (torch.from_numpy(final.astype(np.float64)) @ weight.T).numpy()

    def logit_direction(self, token: int, final: Array) -> tuple[Array, float]:
        """A vector (d_model,) and a number: the logit of `token` is `final`, (d_model,) after the last norm, times the
        vector plus the number.

        Before a soft cap. Where a head has layers of its own, the vector is the logit's gradient at `final`.

        Raises:
            ValueError: it is not known how the logits are computed.
        """
        direction = self.model.output.weight[token].detach().cpu().double().numpy()
        return direction.reshape(final.shape), 0.0

    @torch.inference_mode()
    def unrecorded_logits(self, trace: Trace) -> Array:
        """The logits of the same run when nothing is recorded."""
        with applied(self.model, trace.interventions), self._same_path():
            return self.model(*self.model.texts_of(trace))[0].cpu().numpy()

    def _same_path(self) -> AbstractContextManager:
        """Inside the block, attention is computed as in a recorded run."""
        return explicit_path()

    def embedding_matrix(self, side: Literal["source", "target"]) -> Array:
        """(vocabulary, d_model): E, before it is multiplied by `embedding_scale`; one matrix for both sides if tied."""
        return self._embedding(side).tokens.weight.detach().cpu().numpy()

    @property
    def embedding_scale(self) -> float:
        """What embeddings are multiplied by before positions are added (section 3.4)."""
        return self._embedding("source").scale

    def output_matrix(self) -> Array:
        """(vocabulary, d_model): logits are x times its transpose, and what `logits_head` has besides."""
        return self.model.output.weight.detach().cpu().numpy()

    def head_columns(self, kind: str, layer: int) -> dict[str, tuple[Array, list[int]]]:
        """For q, k and v the model's matrix, (d_model, columns), and the column at which each query head's begin."""
        _, attention = self.model.attentions()[kind, layer]
        columns = {}
        for name in "qkv":
            matrix, _ = _matrix(getattr(attention, f"w_{name}"))
            width = self.config.d_v if name == "v" else self.config.d_k
            sharing = self.config.n_heads * width // matrix.shape[1]
            columns[name] = matrix, [head // sharing * width for head in range(self.config.n_heads)]
        return columns

    def activated_matrix(self, stack: StackName, layer: int) -> tuple[Array, Array]:
        """(d_model, d_ff) and (d_ff,): W_gate of a gated feed-forward, W_1 of any other, and its bias or 0."""
        network = self.model.stacks[stack].layers[layer].feed_forward
        return _matrix(network.w_gate if network.gated else network.w_1)

    def second_matrix(self, stack: StackName, layer: int) -> tuple[Array, Array]:
        """W_2, (d_ff, d_model), and b_2, (d_model,), of a feed-forward (equation 2); without biases b_2 is 0."""
        return _matrix(self.model.stacks[stack].layers[layer].feed_forward.w_2)

    def _embedding(self, side: Literal["source", "target"]) -> InputEmbedding:
        """A model with one stack has one embedding, whatever the side."""
        embeddings = list(self.model.embeddings.values())
        return embeddings[0 if side == "source" else -1]

    def on(self, device: str) -> Self:
        """A copy on another device."""
        return replace(self, model=copy.deepcopy(self.model).to(device))

    @property
    def token_limit(self) -> int:
        """Maximum number of tokens in one run, special ones included."""
        return min(self.most_tokens, self.config.max_len)

    @property
    def added_tokens(self) -> int:
        """How many special tokens a text gets: </s> after a translator's, <s> before a language model's."""
        return len(self.model.frame(()))

    @torch.inference_mode()
    def expected_seconds(self, tokens: int) -> float:
        """What a run of so many tokens takes, about: measured with PROBE_TOKENS.

        Products with weights grow with n, those of queries with keys and of weights with values with n squared.
        """
        texts = [torch.ones(1, PROBE_TOKENS, dtype=torch.long, device=self.device) for _ in self.model.stacks]
        with explicit_path():
            self.model(*texts)
            start = time.perf_counter()
            self.model(*texts)
            seconds = time.perf_counter() - start
        weights = sum(self.parameters_by_part().values())
        cells = 2 * self.config.d_model * sum(len(kind.layers) for kind in self.kinds)

        def work(n: int) -> int:
            return n * (weights + cells * n)

        return seconds * work(tokens) / work(PROBE_TOKENS)

    def _trace(
        self,
        reads: dict[StackName, Tokens],
        predicts: dict[StackName, Tokens],
        interventions: Sequence[Intervention],
    ) -> Trace:
        identity = self.name, self.hash
        return build_trace(self.model, self.tokenizer, identity, reads, predicts, interventions, self.reader)

    @abstractmethod
    def trace_ids(self, source: Prompt, next_ids: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """The teacher-forced run on `source` whose rows should predict the tokens `next_ids`."""

    def rerun(self, trace: Trace, interventions: Sequence[Intervention]) -> Trace:
        """The run on the same tokens as `trace`, in its languages, under these interventions instead of its own."""
        spoken = self.in_languages(*(trace.languages or ()))
        return spoken.trace_ids(trace.prompt, trace.next_ids, interventions)

    def check_intervention(self, change: Intervention) -> None:
        """Raise ValueError if the model has no such attention, head or sub-layer."""
        change.edits(self.model)

    def record(
        self, trace: Trace, interventions: Sequence[Intervention], tgt_ids: Sequence[int] | None = None
    ) -> dict[str, Array]:
        """All activations of a rerun by hook point path; `tgt_ids`: what the decoder reads instead of the trace's."""
        texts = [stream.tokens.ids for stream in trace.streams.values()]
        return record(self.model, texts if tgt_ids is None else [*texts[:-1], tgt_ids], interventions)

    def positional_encoding(self, side: Literal["source", "target"] = "source") -> Array | None:
        """What the model adds for each position (paper, section 3.5): a copy of its table, (max_len, d_model).

        None: it adds nothing, because it rotates queries and keys instead, or knows no positions.
        """
        positions = self._embedding(side).positions
        return None if positions is None else positions.detach().cpu().numpy().copy()

    def positional_rows(self, stream: Stream) -> Array | None:
        """(position, d_model): the rows that are added to the embeddings of one stream; None: nothing is added."""
        table = self.positional_encoding("source" if stream.name == "encoder" else "target")
        return None if table is None else table[: len(stream.tokens)]

    def _ids(self, text: str, what: str) -> list[int]:
        """What the first stack reads of a text; `what` the text is, for the sentences.

        Raises:
            ValueError: the text is blank or too long, or has no token that the model knows.
        """
        self._encode(text, what)
        if ids := self._read_all(self.prepare(text)):
            return ids
        raise Refusal("The {what} has no token that this model knows: type other words.", what=sentence(what))

    def _read_all(self, text: str) -> list[int]:
        """Token ids of a prepared text, special ones included."""
        return self.model.frame(self.tokenizer.encode(text))

    def _encode(self, text: str, what: str) -> list[int]:
        """Token ids of a text without special ones, with room for those; raises as `_ids` does."""
        if not isinstance(text, str):
            raise Refusal("The tokenizer of this model has no chat template, so it reads no turns of a chat.")
        typed, text, limit = text, self.prepare(text), self.token_limit
        if not text.strip():
            raise Refusal(
                "The {what} is empty: there is nothing to look at. Type at least one word.", what=sentence(what)
            )
        if len(text) > CHARACTERS_PER_TOKEN * limit:
            raise Refusal(
                "The {what} has {count:,} characters; at most {limit} tokens fit. Shorten it.",
                what=sentence(what),
                count=len(typed),
                limit=limit,
            )
        ids = self.tokenizer.encode(text)
        if (count := len(ids) + self.added_tokens) > limit:
            raise Refusal(
                "The {what} has {count:,} tokens; at most {limit} fit. Shorten it.",
                what=sentence(what),
                count=count,
                limit=limit,
            )
        return ids

    def prepare(self, text: str) -> str:
        """What the model reads of a text, which is what a Trace of it has as its source."""
        return prepare_text(text, self.config.family)

    def fits(self, text: str) -> bool:
        """True if one run has room for the text."""
        text, limit = self.prepare(text), self.token_limit
        if len(text) > CHARACTERS_PER_TOKEN * limit:
            return False
        return len(self.tokenizer.encode(text)) + self.added_tokens <= limit

    def truncate(self, text: str) -> str:
        """What the model reads of `text` if that fits a Trace, else as many of its first sentences as fit."""
        if self.fits(text):
            return self.prepare(text)
        words = text.lstrip()
        indent = text[: len(text) - len(words)]
        indent = indent if self.fits(f"{indent}x") else ""
        # Whatever comes after this many characters cannot fit, so it need not be tokenised.
        words = words[: CHARACTERS_PER_TOKEN * self.token_limit]
        return self.prepare(indent + first_sentences(words, lambda part: self.fits(indent + part)))


def parameters_hash(model: torch.nn.Module) -> str:
    """SHA-256 of all parameters of a model that was not read from a file, or has changed since."""
    found = hashlib.sha256()
    for name, parameter in model.named_parameters():
        found.update(name.encode())
        found.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _matrix(linear: torch.nn.Linear) -> tuple[Array, Array]:
    """(in, out) and (out,): its weights as x is multiplied by them, and its bias, 0 where it has none."""
    bias = torch.zeros(len(linear.weight)) if linear.bias is None else linear.bias
    return linear.weight.detach().T.cpu().numpy(), bias.detach().cpu().numpy()
