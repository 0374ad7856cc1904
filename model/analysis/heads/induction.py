"""Induction heads: heads that find the last time they saw a token, and attend to what followed (Olsson et al. 2022)."""

import numpy as np
import torch

from model.analysis.stream.vocabulary import kind_of
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import recording
from model.needs import Need
from model.network.config import BOS, EOS
from model.trace import Array

SEQUENCES, LENGTH, EVERY = 50, 10, 5
"""random sequences; tokens of each, which it then repeats, together about as long as the sentences that small models
learn from; of a masked model's repetition, each fifth is hidden"""
CHANCE = float(np.mean(1 / np.arange(LENGTH + 2, 2 * LENGTH + 2)))
"""the score of equal weights in a language model"""


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
    every = np.arange(len(tokenizer))
    pieces = every[[kind_of(tokenizer, token, i) == "text" for i, token in enumerate(tokenizer.tokens(every))]]
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
