"""Train the models of model.background.recurrence on the letters task: three models, three seeds, one recipe.

`python -m model.commands.recurrence --out checkpoints/recurrence` writes the weights of the first seed and all results.
"""

import random
from collections.abc import Collection, Mapping
from string import ascii_lowercase

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

from model.background import recurrence
from model.checkpoints.store import save_weights
from model.command_line import run_command
from model.training.reversal_task import reversals
from model.training.schedule import cooldown
from model.training.small import read_options, round_weights, take_step, write_table

SEEDS = (0, 1, 2)
STEPS, WARMUP, BATCH = 2500, 250, 64
PEAK_RATES = {recurrence.FIXED: 3e-3, recurrence.ADDITIVE: 3e-3, recurrence.TRANSFORMER: 1e-3}
"""post-norm Transformers do not bear the rate of an LSTM"""
TRAIN_TEXTS, TEST_TEXTS, GRADIENT_TEXTS = 100_000, 300, 100
"""in all; of each length; of the longest length"""


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, save."""
    args = read_options("recurrence", arguments, "Three models, three seeds.", STEPS)
    tests = test_texts()
    batches = texts_by_length(known={text for texts in tests.values() for text in texts})
    rows: list[dict] = []
    for name in recurrence.LETTER_MODELS:
        for seed in SEEDS:
            model = new_letters_model(name, seed)
            measured = {recurrence.GRADIENT_BEFORE: mean_gradients(model, tests)}
            train(model, batches, args.steps, PEAK_RATES[name], seed)
            measured |= {
                recurrence.EXACT_MATCH: {
                    n: recurrence.exact_matches(model, texts).float().mean().item() for n, texts in tests.items()
                },
                recurrence.GRADIENT_AFTER: mean_gradients(model, tests),
            }
            rows += [
                {"model": name, "seed": seed, "measure": measure, "at": at, "value": value}
                for measure, values in measured.items()
                for at, value in values.items()
            ]
            write_table(args.out / recurrence.RESULTS, pd.DataFrame(rows), digits=6)
            if seed == SEEDS[0]:
                save_weights(args.out / f"{name}.safetensors", dict(model.named_parameters()))


def new_letters_model(name: str, seed: int) -> nn.Module:
    """A model with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    return recurrence.LETTER_MODELS[name]()


def test_texts() -> dict[int, list[str]]:
    """Random texts of each tested length, by length."""
    rng = random.Random("test")
    return {
        n: ["".join(rng.choices(ascii_lowercase, k=n)) for _ in range(TEST_TEXTS)] for n in recurrence.TESTED_LENGTHS
    }


def texts_by_length(known: Collection[str]) -> dict[int, list[str]]:
    """The texts of the letters task that are not in `known`, by length."""
    texts = [source.replace(" ", "") for source, _ in reversals(TRAIN_TEXTS, seed=0)]
    return {n: [text for text in texts if len(text) == n and text not in known] for n in recurrence.TRAINED_LENGTHS}


def train(model: nn.Module, texts: Mapping[int, list[str]], steps: int, peak_rate: float, seed: int) -> None:
    """Adam with warm-up up to the peak rate and linear decay to 0; each batch has texts of one length, which the seed
    decides. Rounds the weights to fp16 at last."""
    rng = random.Random(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(steps):
        batch = rng.sample(texts[rng.choice(recurrence.TRAINED_LENGTHS)], BATCH)
        tgt = recurrence.targets(batch)
        loss = F.cross_entropy(model(recurrence.sources(batch), tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten())
        take_step(optimizer, loss, peak_rate * min((step + 1) / WARMUP, cooldown(step, steps, steps)))
    round_weights(model)


def mean_gradients(model: nn.Module, tests: Mapping[int, list[str]]) -> dict[int, float]:
    """Norm of the gradient of the last letter's loss, by the distance between the letter that is read and it.

    Mean over texts of the longest trained length.
    """
    texts = tests[recurrence.TRAINED_LENGTHS[-1]][:GRADIENT_TEXTS]
    return dict(
        zip(
            recurrence.distances(len(texts[0])),
            recurrence.loss_gradient(model, texts).mean(dim=0).tolist(),
            strict=True,
        )
    )


if __name__ == "__main__":
    run_command(main)
