"""Train the models of model.background.recall on random pairs: three models, one recipe.

`python -m model.commands.recall --out checkpoints/recall` writes the weights of the first of the seeds and all results.
"""

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from model.background import recall
from model.checkpoints.store import save_weights
from model.command_line import run_command
from model.network.state_space import HybridLanguageModel
from model.training.schedule import cooldown
from model.training.small import read_options, round_weights, take_step, write_table

SEEDS = (0, 1, 2)
STEPS, WARMUP, BATCH = 2000, 50, 32
PEAK_RATES = {recall.ATTENTION: 5e-3, recall.STATE_SPACE: 1e-2, recall.HYBRID: 5e-3}
"""a state space model learned little at half of its rate"""
TEST_TEXTS = 500
"""of each number of pairs"""


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, save."""
    args = read_options("recall", arguments, "Three models look letters up.", STEPS)
    rows: list[dict] = []
    for seed in SEEDS:
        for name in recall.RECALL_MODELS:
            model = recall.new_recall_model(name)
            train(model, args.steps, PEAK_RATES[name], seed)
            for pairs, share in measure_recall(model).items():
                rows.append({"model": name, "seed": seed, "pairs": pairs, "recall": share})
            write_table(args.out / recall.RESULTS, pd.DataFrame(rows))
            if seed == SEEDS[0]:
                save_weights(args.out / f"{name}.safetensors", dict(model.named_parameters()))


def draw_texts(count: int, pairs: int, questions: int, numbers: torch.Generator) -> Tensor:
    """Ids (text, position) of `count` random texts: pairs with different letters, at most as many as there are letters,
    then `questions`, some or all of them again in any order."""
    keys = torch.rand(count, len(recall.KEYS), generator=numbers).argsort(dim=1)[:, :pairs]
    values = torch.randint(len(recall.VALUES), (count, pairs), generator=numbers) + len(recall.KEYS)
    asked = torch.rand(count, pairs, generator=numbers).argsort(dim=1)[:, :questions]
    given = torch.stack([keys, values], dim=-1)
    again = torch.stack([keys.gather(1, asked), values.gather(1, asked)], dim=-1)
    return torch.cat([given, again], dim=1).flatten(1)


def train(model: HybridLanguageModel, steps: int, peak_rate: float, seed: int) -> None:
    """Adam with warm-up and linear decay to 0 on new texts in each batch, which ask for each pair once.

    The first texts have the fewest pairs, after half of the steps there are all numbers of them. The loss is that of
    the digits after the questions; nothing else can be known. Leaves the model in evaluation mode, its weights rounded
    to fp16.
    """
    numbers = torch.Generator().manual_seed(seed)
    model.initialise(numbers)
    optimizer = torch.optim.Adam(model.train().parameters(), betas=(0.9, 0.98))
    for step in range(steps):
        numbers_of_pairs = recall.TRAINED_PAIRS[: 1 + len(recall.TRAINED_PAIRS) * 2 * step // steps]
        pairs = numbers_of_pairs[int(torch.randint(len(numbers_of_pairs), (), generator=numbers))]
        ids = draw_texts(BATCH, pairs, pairs, numbers)
        logits = model(ids[:, :-1])[:, 2 * pairs :: 2]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 2 * pairs + 1 :: 2].flatten())
        take_step(optimizer, loss, peak_rate * min((step + 1) / WARMUP, cooldown(step, steps, steps)))
    round_weights(model.eval())


def measure_recall(model: HybridLanguageModel, texts: int = TEST_TEXTS) -> dict[int, float]:
    """Share of texts with one question that is answered right, by their number of pairs; always the same texts."""
    numbers = torch.Generator().manual_seed(1_000_000)
    tests = {pairs: draw_texts(texts, pairs, 1, numbers) for pairs in recall.TESTED_PAIRS}
    return {pairs: float(recall.recalled(model, ids).float().mean()) for pairs, ids in tests.items()}


if __name__ == "__main__":
    run_command(main)
