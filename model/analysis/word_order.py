"""The order experiment: the same tokens in another order, with and without positional encoding (section 3.5).

Without it the encoder is a function of a set: permuted tokens give permuted memory rows, and the decoder, which
gathers from the memory by content alone, gives the same logits.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.words import split_at_word_starts
from model.checkpoints.translator import Translator
from model.generation.search import beam_search
from model.hooks import editing, recording
from model.interventions import applied
from model.network.config import EOS
from model.network.encoder_decoder import Transformer
from model.trace import Array, Trace

SIDES = {"encoder": ("src_embedding",), "both": ("src_embedding", "tgt_embedding")}
"""what "without positions" leaves out -> the embeddings whose positions become 0"""


@dataclass(frozen=True)
class OrderRun:
    """A sentence in two orders, teacher-forced with the same target, with positions or without."""

    weights: tuple[Array, Array]
    """each (heads, query, key), of the chosen attention: in the sentence's own order, and in the other one"""
    memory: tuple[Array, Array]
    """each (source position, d_model)"""
    moved: Array
    """(source position,): by how much each token's memory row changed, over its length before; in the own order"""
    memory_error: float
    """largest element of the difference between memory rows of the same token"""
    cross_error: float
    """the same of the outputs of all cross-attentions, for the same decoder row"""
    logits_error: float
    """the same of the logits"""


def source_words(tokens: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Positions of the pieces of each word that can move. Marks behind a word, and </s>, belong to no word."""
    return tuple(tuple(_without_marks(word, tokens)) for word in split_at_word_starts(tokens[:-1]))


def _without_marks(word: list[int], tokens: Sequence[str]) -> list[int]:
    while len(word) > 1 and not any(character.isalnum() for character in tokens[word[-1]]):
        word = word[:-1]
    return word


def reorder(tokens: Sequence[str], order: Sequence[int]) -> tuple[int, ...]:
    """Positions of the tokens once word `order[i]` stands where word i stood; all else keeps its place among them.

    Raises:
        ValueError: `order` does not name each word once.
    """
    parts = source_words(tokens)
    if sorted(order) != list(range(len(parts))):
        raise ValueError(f"The order must hold each of the numbers 0 to {len(parts) - 1} once.")
    starts = {word[0]: i for i, word in enumerate(parts)}
    inside = {position for word in parts for position in word[1:]}
    found: list[int] = []
    for position in range(len(tokens)):
        if position in starts:
            found += parts[order[starts[position]]]
        elif position not in inside:
            found.append(position)
    return tuple(found)


def shuffle_words(n_words: int, seed: int) -> tuple[int, ...]:
    """The words in another order than their own, where there is one; the same for the same seed."""
    own, rng = tuple(range(n_words)), random.Random(seed)
    while n_words > 1:
        order = tuple(rng.sample(own, n_words))
        if order != own:
            return order
    return own


@contextmanager
def without_positions(model: Transformer, embeddings: Sequence[str]) -> Iterator[None]:
    """Add 0 instead of the positional encoding in these embeddings while the block runs."""
    with editing(model, {f"{name}.positional": torch.zeros_like for name in embeddings}):
        yield


@torch.inference_mode()
def run_both_orders(
    translator: Translator, trace: Trace, permutation: Sequence[int], off: Sequence[str], address: tuple[str, int]
) -> OrderRun:
    """Run the trace's source in its own order and in that of `permutation`, in one batch, with the trace's target.

    Args:
        translator: the model that made the trace; the trace's interventions are at work.
        trace: the sentence and its target.
        permutation: which of the source's tokens stands at each position.
        off: embeddings that run without positions; none: as trained.
        address: (kind, layer) of the attention whose weights are kept.
    """
    model = translator.model
    device = model.output.weight.device
    src = torch.tensor([trace.src_ids, [trace.src_ids[i] for i in permutation]], device=device)
    tgt = torch.tensor([trace.tgt_ids] * 2, device=device)
    cross = [f"{path}.out" for (kind, _), (path, _) in model.attentions().items() if kind == "cross"]
    pattern = f"{model.attentions()[address][0]}.pattern"
    asked = ["memory", "logits", pattern, *cross]
    with applied(model, trace.interventions), without_positions(model, off), recording(model, asked) as found:
        model(src, tgt)
    pair = {name: tuple(tensor.cpu().numpy()) for name, tensor in found.items()}
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
    """What beam search with 4 beams makes of the source in its own order and in the other one."""
    orders = (trace.src_ids, tuple(trace.src_ids[i] for i in permutation))
    with applied(translator.model, trace.interventions), without_positions(translator.model, off):
        found = [beam_search(translator.model, [list(ids)])[0][0] for ids in orders]
    first, second = (translator.tokenizer.decode(list(hypothesis.tokens)) for hypothesis in found)
    return first, second


def reordered_text(translator: Translator, trace: Trace, permutation: Sequence[int]) -> str:
    """The tokens in the other order as one reads them."""
    ids = [trace.src_ids[i] for i in permutation]
    return translator.tokenizer.decode([i for i in ids if i != EOS])


def _largest(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())
