"""Induction heads: heads that find the last time they saw a token, and attend to what followed (Olsson et al. 2022)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.stream.vocabulary import kind_of
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.hooks import recording
from model.interventions import HeadGate, applied
from model.needs import Need
from model.network.config import BOS, EOS
from model.trace import Array

SEQUENCES, LENGTH, EVERY = 50, 10, 5
"""random sequences; tokens of each, which it then repeats, together about as long as the sentences that small models
learn from; of a masked model's repetition, each fifth is hidden"""
CHANCE = float(np.mean(1 / np.arange(LENGTH + 2, 2 * LENGTH + 2)))
"""the score of equal weights in a language model"""
TESTED = 128
"""sequences that losses are measured on, as long as the others"""


def text_pieces(tokenizer: Tokenizer) -> Array:
    """(piece,): ids of the pieces that are text; not those of single bytes and special tokens."""
    every = np.arange(len(tokenizer))
    return every[[kind_of(tokenizer, token, i) == "text" for i, token in enumerate(tokenizer.tokens(every))]]


@torch.inference_mode()
def induction_scores(opened: Checkpoint, seed: int = 0) -> dict[tuple[str, int], Array]:
    """(kind, layer) -> (heads, sequences): mean weight on the token to copy, in random tokens that are repeated once.

    In a language model that is the token after the row's own token in the first half, as in Olsson et al. (2022). A
    masked model reads both halves with some tokens of the second one hidden: of each hidden row the same place in the
    first half. A translator has none: nothing repeats in its source that its target would have to copy.
    """
    masked = Need.MASKED_MODEL in opened.features
    if not masked and Need.LANGUAGE_MODEL not in opened.features:
        return {}
    tokenizer, numbers = opened.tokenizer, np.random.default_rng(seed)
    pieces = text_pieces(tokenizer)
    paths = {place: f"{path}.pattern" for place, (path, _) in opened.model.attentions().items()}
    found = {place: [] for place in paths}
    for _ in range(SEQUENCES):
        half = numbers.choice(pieces, min(LENGTH, len(pieces)), replace=False)
        rows = len(half) + 1 + np.arange(len(half))
        ids = np.array([BOS, *half, *half] + [EOS] * masked)
        if masked:
            rows = rows[EVERY // 2 :: EVERY]
            ids[rows] = tokenizer.mask
        keys = rows - len(half) + (not masked)
        with recording(opened.model, list(paths.values())) as activations:
            opened.model(torch.from_numpy(ids)[None].to(opened.device))
        for place, path in paths.items():
            found[place].append(activations[path][0][:, rows, keys].mean(-1).cpu().numpy())
    return {place: np.stack(each, axis=-1).astype(np.float64) for place, each in found.items()}


def repeat_random_tokens(tokenizer: Tokenizer, count: int, length: int, seed: int) -> Tensor:
    """(count, 1 + 2 length): <s>, then random tokens twice; no token is twice in a half."""
    pieces, numbers = text_pieces(tokenizer), np.random.default_rng(seed)
    halves = np.stack([numbers.choice(pieces, length, replace=False) for _ in range(count)])
    return torch.from_numpy(np.concatenate([np.full((count, 1), BOS), halves, halves], axis=1))


@dataclass(frozen=True)
class Repetition:
    """What a language model does with random tokens that are repeated once, and what each of its heads does."""

    first: float
    """mean cross-entropy of the tokens of the first half, in nats"""
    second: float
    """of those of the second, the first of them left out: nothing says that the repetition begins"""
    heads: tuple[tuple[int, int], ...]
    """layer and head"""
    prefix_matching: Array
    """(head,) mean weight on the token to copy, as `induction_scores`"""
    previous_token: Array
    """(head,) mean weight on the token before"""
    without: Array
    """(head,) `second` where this head writes nothing"""
    without_layer: Array
    """(layer,) `second` where no head of the layer writes"""


@torch.inference_mode()
def measure_repetition(opened: Checkpoint, seed: int = 1) -> Repetition:
    """The losses over TESTED sequences; each head's scores, and what its absence costs."""
    ids = repeat_random_tokens(opened.tokenizer, TESTED, LENGTH, seed).to(opened.device)

    def losses(*changes: HeadGate) -> Tensor:
        with applied(opened.model, changes):
            logits = opened.model(ids[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none").mean(dim=0).double().cpu()

    paths = {place: f"{path}.pattern" for place, (path, _) in opened.model.attentions().items()}
    with recording(opened.model, list(paths.values())) as activations:
        nats = losses()
    diagonals = [activations[path].diagonal(-1, -2, -1).mean(dim=(0, 2)) for path in paths.values()]
    heads = [(kind, layer, head) for kind, layer in paths for head in range(opened.config.n_heads)]
    return Repetition(
        first=nats[:LENGTH].mean().item(),
        second=nats[LENGTH + 1 :].mean().item(),
        heads=tuple((layer, head) for _, layer, head in heads),
        prefix_matching=np.concatenate([scores.mean(axis=-1) for scores in induction_scores(opened).values()]),
        previous_token=torch.cat(diagonals).double().cpu().numpy(),
        without=np.array([losses(HeadGate(0.0, *head))[LENGTH + 1 :].mean() for head in heads]),
        without_layer=np.array([losses(HeadGate(0.0, *place))[LENGTH + 1 :].mean() for place in paths]),
    )
