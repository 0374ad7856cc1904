"""Train a tiny Vision Transformer on scikit-learn's digits, with positions and without, three seeds each.

`python -m model.commands.digits --out checkpoints/digits` needs scikit-learn (digits-requirements.txt), for the images
alone: the app does without.
"""

import math

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from model.background.digits import CLASSES, IMAGES, INK, RESULTS, WEIGHTS, new_digits_model
from model.checkpoints.store import save_weights
from model.command_line import run_command
from model.network.vision import VisionTransformer
from model.training.schedule import cooldown
from model.training.small import read_options, round_weights, take_step, write_table

SEEDS = (0, 1, 2)
STEPS, WARMUP, BATCH, PEAK_RATE = 500, 50, 64, 3e-3
TESTED = 360
"""images that no training sees"""
SHIPPED = 5
"""of each digit, of those"""


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, save."""
    args = read_options("digits", arguments, "Digits as patches.", STEPS)
    images, digits = load_images()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    test, learn = order[:TESTED], order[TESTED:]
    write_table(args.out / IMAGES, shipped_images(images[test], digits[test]))
    rows = []
    for positions in (True, False):
        for seed in SEEDS:
            model = new_digits_model(positions)
            train(model, images[learn], digits[learn], args.steps, seed)
            rows.append({"positions": positions, "seed": seed, "accuracy": accuracy(model, images[test], digits[test])})
            write_table(args.out / RESULTS, pd.DataFrame(rows))
            if positions and seed == SEEDS[0]:
                save_weights(args.out / WEIGHTS, dict(model.named_parameters()))


def load_images() -> tuple[Tensor, Tensor]:
    """Images (image, 8, 8), 0 to 1, and digits (image,).

    Raises:
        ValueError: scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ValueError(
            "the images come with scikit-learn: pip install -r model/training/digits-requirements.txt"
        ) from error
    found = load_digits()
    return torch.tensor(found.images, dtype=torch.float32) / INK, torch.tensor(found.target)


def shipped_images(images: Tensor, digits: Tensor) -> pd.DataFrame:
    """The first few images of each digit, a row each: the digit and its 64 pixels."""
    chosen = torch.cat([(digits == digit).nonzero()[:SHIPPED, 0] for digit in range(CLASSES)])
    table = pd.DataFrame((images[chosen] * INK).round().int().flatten(1).numpy())
    table.insert(0, "digit", digits[chosen].numpy())
    return table


def train(model: VisionTransformer, images: Tensor, digits: Tensor, steps: int, seed: int) -> None:
    """Adam with warm-up and linear decay to 0; leaves the model in evaluation mode, its weights rounded to fp16."""
    numbers = torch.Generator().manual_seed(seed)
    model.initialise(numbers)
    torch.manual_seed(seed)  # of dropout
    optimizer = torch.optim.Adam(model.train().parameters(), betas=(0.9, 0.98))
    for step in range(steps):
        batch = torch.randint(len(images), (BATCH,), generator=numbers)
        loss = F.cross_entropy(model(images[batch]), digits[batch])
        take_step(optimizer, loss, PEAK_RATE * min((step + 1) / WARMUP, cooldown(step, steps, steps)), longest=math.inf)
    round_weights(model.eval())


@torch.inference_mode()
def accuracy(model: VisionTransformer, images: Tensor, digits: Tensor) -> float:
    """Share of the images that get the right digit."""
    return float((model(images).argmax(dim=-1) == digits).float().mean())


if __name__ == "__main__":
    run_command(main)
