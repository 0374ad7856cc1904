"""The same words in another order, with and without positional encoding (section 3.5).

Without it the encoder is permutation equivariant: permuted tokens give permuted memory rows. The decoder reads the
memory by content alone, so its logits stay the same.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.words import split_at_word_starts
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.translator import Translator
from model.generation.search import beam_search
from model.hooks import editing, recording
from model.interventions import applied
from model.language import Refusal
from model.network.config import EOS
from model.network.encoder_decoder import Transformer
from model.trace import Array, Trace

SIDES = {"encoder": ("src_embedding",), "both": ("src_embedding", "tgt_embedding")}
"""part of the model that runs without positions -> embeddings whose positional encoding becomes 0"""


@dataclass(frozen=True)
class OrderRun:
    """A sentence in its own order and in another one, teacher-forced with the same target."""

    weights: tuple[Array, Array]
    """attention weights in both orders, each (heads, query, key)"""
    memory: tuple[Array, Array]
    """the encoder's output in both orders, each (source position, d_model)"""
    moved: Array
    """(source position,), in the own order: ||change of the token's memory row|| / ||row||"""
    memory_error: float
    """largest absolute difference between memory rows of the same token"""
    cross_error: float
    """largest absolute difference between outputs of any cross-attention"""
    logits_error: float
    """largest absolute difference between logits"""


def source_words(tokens: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Positions of the pieces of each word that can move; trailing punctuation and </s> belong to no word."""
    words = split_at_word_starts(tokens[:-1], [False] * len(tokens))
    for word in words:
        while len(word) > 1 and not any(character.isalnum() for character in tokens[word[-1]]):
            word.pop()
    return tuple(map(tuple, words))


def reorder(tokens: Sequence[str], order: Sequence[int]) -> tuple[int, ...]:
    """Positions of the source's tokens after word `order[i]` has taken the place of word i.

    Raises:
        ValueError: `order` is not a permutation of the words.
    """
    return move_words(len(tokens), source_words(tokens), order)


def move_words(n_tokens: int, words: Sequence[Sequence[int]], order: Sequence[int]) -> tuple[int, ...]:
    """Positions of the tokens after word `order[i]`, of those whose positions are given, has taken the place of word i;
    tokens of no word stay in place.

    Raises:
        ValueError: `order` is not a permutation of the words.
    """
    if sorted(order) != list(range(len(words))):
        raise Refusal("The order must hold each of the numbers 0 to {last} once.", last=len(words) - 1)
    starts = {word[0]: i for i, word in enumerate(words)}
    inside = {position for word in words for position in word[1:]}
    positions: list[int] = []
    for position in range(n_tokens):
        if position in starts:
            positions += words[order[starts[position]]]
        elif position not in inside:
            positions.append(position)
    return tuple(positions)


def shuffle_words(n_words: int, seed: int) -> tuple[int, ...]:
    """A random order other than their own, where there is one; the same for the same seed."""
    own, rng = tuple(range(n_words)), random.Random(seed)
    while n_words > 1:
        order = tuple(rng.sample(own, n_words))
        if order != own:
            return order
    return own


@contextmanager
def without_positions(model: Transformer, embeddings: Sequence[str]) -> Iterator[None]:
    """Within the block, these embeddings add 0 instead of the positional encoding."""
    with editing(model, {f"{name}.positional": torch.zeros_like for name in embeddings}):
        yield


@torch.inference_mode()
def run_both_orders(
    translator: Translator, trace: Trace, permutation: Sequence[int], off: Sequence[str], address: tuple[str, int]
) -> OrderRun:
    """Run the source in its own order and in another one, in one batch, with the trace's target and interventions.

    `permutation` says which of the source's tokens stands at each position, `off` which embeddings run without
    positions, and `address`, (kind, layer), of which attention the weights are returned.
    """
    model = translator.model
    device = model.output.weight.device
    src = torch.tensor([trace.src_ids, [trace.src_ids[i] for i in permutation]], device=device)
    tgt = torch.tensor([trace.tgt_ids] * 2, device=device)
    cross = [f"{path}.out" for (kind, _), (path, _) in model.attentions().items() if kind == "cross"]
    pattern = f"{model.attentions()[address][0]}.pattern"
    paths = ["memory", "logits", pattern, *cross]
    with applied(model, trace.interventions), without_positions(model, off), recording(model, paths) as recorded:
        model(src, tgt)
    pair = {name: tuple(tensor.cpu().numpy()) for name, tensor in recorded.items()}
    own, other = pair["memory"][0], pair["memory"][1][np.argsort(permutation)]
    return OrderRun(
        weights=pair[pattern],
        memory=pair["memory"],
        moved=np.linalg.norm(other - own, axis=-1) / np.linalg.norm(own, axis=-1),
        memory_error=_largest(own, other),
        cross_error=max(_largest(*pair[path]) for path in cross),
        logits_error=_largest(*pair["logits"]),
    )


def translate_both_orders(
    translator: Translator, trace: Trace, permutation: Sequence[int], off: Sequence[str]
) -> tuple[str, str]:
    """Translations of the source in both orders, by beam search with 4 beams."""
    orders = [trace.src_ids, [trace.src_ids[i] for i in permutation]]
    with applied(translator.model, trace.interventions), without_positions(translator.model, off):
        found = beam_search(translator.model, orders)
    first, second = (translator.tokenizer.decode(list(best.tokens)) for best, *_ in found)
    return first, second


@dataclass(frozen=True)
class Reordered:
    """A text and the same tokens in another order, through a model of one stack."""

    order: tuple[int, ...]
    """which token stands at each position"""
    logits_change: Array
    """(position,), in the own order: largest change of the logits in the row of the same token"""


def word_positions(trace: Trace) -> tuple[tuple[int, ...], ...]:
    """The positions of each word's tokens; special tokens belong to no word."""
    (stream,) = trace.streams.values()
    numbers = [number for number in dict.fromkeys(stream.tokens.words) if number is not None]
    return tuple(tuple(i for i, word in enumerate(stream.tokens.words) if word == number) for number in numbers)


def reorder_words(checkpoint: Checkpoint, trace: Trace, seed: int) -> Reordered:
    """Shuffle the words of a model of one stack, run it again, and compare each token's logits."""
    (stream,) = trace.streams.values()
    words = word_positions(trace)
    order = move_words(len(stream.tokens.ids), words, shuffle_words(len(words), seed))
    ids = [stream.tokens.ids[i] for i in order]
    own, other = (checkpoint.record(trace, trace.interventions, each)["logits"] for each in (stream.tokens.ids, ids))
    return Reordered(order, np.abs(other[np.argsort(order)] - own).max(axis=-1))


def reordered_text(translator: Translator, trace: Trace, permutation: Sequence[int]) -> str:
    """The source in the other order, as text."""
    ids = [trace.src_ids[i] for i in permutation]
    return translator.tokenizer.decode([i for i in ids if i != EOS])


def _largest(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())
