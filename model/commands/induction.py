"""Train a language model of two layers on random tokens that repeat, until an induction head has formed in it.

`python -m model.commands.induction --out checkpoints/studies/induction` writes the checkpoint, snapshots of its weights
and what was measured on the way.

Olsson et al. (2022) describe what forms: a head of the first layer copies into each token what stood before it; a head
of the second finds the place whose copy is the row's own token, and so attends to what followed it last time.
"""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import ascii_letters, digits

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.heads.induction import Repetition, measure_repetition, text_pieces
from model.background.induction import COLUMNS, FILE
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.snapshots import snapshot_path
from model.checkpoints.store import save_checkpoint, save_weights
from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from model.command_line import command_parser, run_command, whole_number
from model.network.config import BOS, PRESETS
from model.network.families import new_network
from model.training.schedule import cooldown
from model.training.small import round_weights, take_step, write_table

VOCABULARY = 323
"""the special tokens, 256 bytes, and a piece for each letter, digit and the space"""
SIZES = {"d_model": 64, "n_heads": 2, "d_ff": 64, "n_decoder_layers": 2, "max_len": 64}
STEPS, WARMUP, BATCH, PEAK_RATE, COOLDOWN = 2400, 100, 32, 3e-3, 800
LENGTH, SHORTEST, LONGEST = 32, 3, 12
"""tokens of a text, and after how many it repeats itself"""
UNKNOWN = 0.1
"""what a token that cannot be known counts in the loss; its gradient is noise, which would hide that of the others"""
MEASURED = 41
"""how often it is measured, first and last step included"""
SNAPSHOTS = (0, 2, 4, 5, 6, 7, 10, 20)
"""of these measurements, those whose weights are kept; most of them are where the head forms"""


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, save."""
    parser = command_parser("commands.induction", "An induction head forms in a small language model.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint, its snapshots and tables")
    parser.add_argument("--steps", type=whole_number(1), default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)  # for a model this small more threads are slower
    snapshot_path(args.out, 0).parent.mkdir(parents=True, exist_ok=True)
    opened = new_model(args.seed)
    weights = dict(opened.model.named_parameters())
    measured = np.unique(np.linspace(0, args.steps, MEASURED).round().astype(int))
    kept = [measured[number] for number in SNAPSHOTS if number < len(measured) - 1]
    tables: list[pd.DataFrame] = []
    log: list[dict] = []
    losses, start = [], time.monotonic()
    for step, loss in enumerate(train(opened, args.steps, args.seed)):
        losses.append(loss)
        if step in measured:
            tables.append(table_of(step, measure_repetition(opened)))
            write_table(args.out / FILE, pd.concat(tables))
            if step:
                hours = (time.monotonic() - start) / 3600
                rate = learning_rate(step - 1, args.steps)
                log.append({"step": step, "learning_rate": rate, "train_loss": np.nanmean(losses), "hours": hours})
                write_table(args.out / "log.csv", pd.DataFrame(log))
            losses = []
        if step in kept:
            save_weights(snapshot_path(args.out, step), weights)
    save_checkpoint(args.out, opened.model, opened.tokenizer, weights)


def table_of(step: int, measured: Repetition) -> pd.DataFrame:
    """A row for each head, in the columns of the table."""
    layers, heads = zip(*measured.heads, strict=True)
    scores = measured.prefix_matching, measured.previous_token, measured.without
    values = step, layers, heads, measured.first, measured.second, *scores
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))


def new_model(seed: int) -> LanguageModel:
    """A language model with random weights, whose vocabulary has a piece for each letter, each digit and the space."""
    symbols = ascii_letters + digits
    tokenizer = train_tokenizer([left + right for left in symbols for right in symbols], VOCABULARY)
    torch.manual_seed(seed)
    model = new_network(replace(PRESETS["lm-2017"], vocab_size=len(tokenizer), norm="pre", dropout=0.0, **SIZES))
    return LanguageModel("induction", "", model.eval(), tokenizer)


def learning_rate(step: int, steps: int) -> float:
    """It rises linearly to its peak, stays there, and falls linearly to 0 at the end."""
    return PEAK_RATE * min((step + 1) / WARMUP, cooldown(step, steps, min(COOLDOWN, steps)))


def batches(tokenizer: Tokenizer, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Texts of random tokens, (BATCH, 1 + LENGTH), which begin with <s>; and what each counts, (BATCH, LENGTH).

    Each text repeats itself after another number of tokens, so that looking back at a fixed distance does not help.
    """
    pieces, numbers = text_pieces(tokenizer), np.random.default_rng(seed)
    while True:
        ids, counts = np.full((BATCH, 1 + LENGTH), BOS), np.full((BATCH, LENGTH), UNKNOWN, np.float32)
        for row, period in enumerate(numbers.integers(SHORTEST, LONGEST + 1, BATCH)):
            ids[row, 1:] = np.resize(numbers.choice(pieces, period), LENGTH)
            counts[row, period + 1 :] = 1  # nothing says where the repetition begins
        yield torch.from_numpy(ids), torch.from_numpy(counts)


def train(opened: LanguageModel, steps: int, seed: int) -> Iterator[float]:
    """Adam; yields nan before the first step, then the loss of each, and leaves the last weights rounded to fp16."""
    model = opened.model
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    yield math.nan
    for step, (ids, counts) in enumerate(itertools.islice(batches(opened.tokenizer, seed), steps)):
        logits = model.train()(ids[:, :-1])
        nats = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        loss = (nats * counts).sum() / counts.sum()
        take_step(optimizer, loss, learning_rate(step, steps))
        model.eval()
        if step == steps - 1:  # they are saved so, and the last row of the table is to be theirs
            round_weights(model)
        yield loss.item()


if __name__ == "__main__":
    run_command(main)
