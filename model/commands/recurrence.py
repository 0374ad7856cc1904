"""Train the models of model.background.recurrence on the letters task: three models, three seeds, one recipe.

`python -m model.commands.recurrence --out checkpoints/recurrence` writes the weights of the first seed and all results.
"""

import argparse
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from string import ascii_lowercase

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

from model.background.recurrence import (
    ADDITIVE,
    EXACT_MATCH,
    FIXED,
    GRADIENT_AFTER,
    GRADIENT_BEFORE,
    LETTER_MODELS,
    RESULTS,
    TESTED_LENGTHS,
    TRAINED_LENGTHS,
    TRANSFORMER,
    distances,
    exact_matches,
    loss_gradient,
    sources,
    targets,
)
from model.checkpoints.store import save_weights
from model.command_line import run_command, whole_number
from model.training.reversal_task import reversals
from model.training.schedule import cooldown

SEEDS = (0, 1, 2)
STEPS, WARMUP, BATCH = 2500, 250, 64
PEAK_RATES = {FIXED: 3e-3, ADDITIVE: 3e-3, TRANSFORMER: 1e-3}
"""post-norm Transformers do not bear the rate of an LSTM"""
LARGEST_NORM = 1.0
"""of the gradient of all weights together; a longer one is scaled down to it"""
TRAIN_TEXTS, TEST_TEXTS, GRADIENT_TEXTS = 100_000, 300, 100
"""in all; of each length; of the longest length"""


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, save."""
    parser = argparse.ArgumentParser(
        prog="python -m model.commands.recurrence", description="Three models, three seeds."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights and results.csv")
    parser.add_argument("--steps", type=whole_number(1), default=STEPS, help="of each model")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # for models this small more threads are slower
    tests = test_texts()
    batches = texts_by_length(known={text for texts in tests.values() for text in texts})
    rows: list[dict] = []
    for name in LETTER_MODELS:
        for seed in SEEDS:
            model = new_letters_model(name, seed)
            measured = {GRADIENT_BEFORE: mean_gradients(model, tests)}
            train(model, batches, args.steps, PEAK_RATES[name], seed)
            measured |= {EXACT_MATCH: exact_match(model, tests), GRADIENT_AFTER: mean_gradients(model, tests)}
            rows += [
                {"model": name, "seed": seed, "measure": measure, "at": at, "value": value}
                for measure, values in measured.items()
                for at, value in values.items()
            ]
            pd.DataFrame(rows).to_csv(args.out / RESULTS, index=False, float_format="%.6g")
            if seed == SEEDS[0]:
                save_weights(args.out / f"{name}.safetensors", dict(model.named_parameters()))


def new_letters_model(name: str, seed: int) -> nn.Module:
    """A model with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    return LETTER_MODELS[name]()


def test_texts() -> dict[int, list[str]]:
    """Random texts of each tested length, by length."""
    rng = random.Random("test")
    return {n: ["".join(rng.choices(ascii_lowercase, k=n)) for _ in range(TEST_TEXTS)] for n in TESTED_LENGTHS}


def texts_by_length(known: Collection[str]) -> dict[int, list[str]]:
    """The texts of the letters task that are not in `known`, by length."""
    texts = [source.replace(" ", "") for source, _ in reversals(TRAIN_TEXTS, seed=0)]
    return {n: [text for text in texts if len(text) == n and text not in known] for n in TRAINED_LENGTHS}


def train(model: nn.Module, texts: Mapping[int, list[str]], steps: int, peak_rate: float, seed: int) -> None:
    """Adam with warm-up and linear decay to 0; each batch has texts of one length. Rounds the weights to fp16 at last.

    Args:
        model: any of the LETTER_MODELS.
        texts: by length.
        steps: batches.
        peak_rate: of learning, at the end of the warm-up.
        seed: decides the batches.
    """
    rng = random.Random(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(steps):
        batch = rng.sample(texts[rng.choice(TRAINED_LENGTHS)], BATCH)
        tgt = targets(batch)
        loss = F.cross_entropy(model(sources(batch), tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        for group in optimizer.param_groups:
            group["lr"] = peak_rate * min((step + 1) / WARMUP, cooldown(step, steps, steps))
        optimizer.step()
    for parameter in model.parameters():
        parameter.data.copy_(parameter.data.half())


def exact_match(model: nn.Module, tests: Mapping[int, list[str]]) -> dict[int, float]:
    """Share of the texts of each length that are reversed without a mistake."""
    return {n: exact_matches(model, texts).float().mean().item() for n, texts in tests.items()}


def mean_gradients(model: nn.Module, tests: Mapping[int, list[str]]) -> dict[int, float]:
    """Norm of the gradient of the last letter's loss, by the distance between the letter that is read and it.

    Mean over texts of the longest trained length.
    """
    texts = tests[TRAINED_LENGTHS[-1]][:GRADIENT_TEXTS]
    return dict(zip(distances(len(texts[0])), loss_gradient(model, texts).mean(dim=0).tolist(), strict=True))


if __name__ == "__main__":
    run_command(main)
