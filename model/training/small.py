"""What the trainings of the smallest models share; each has its own loop, and no Trainer."""

from argparse import Namespace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from model.checkpoints.files import atomic_write
from model.command_line import command_parser, whole_number

LONGEST_GRADIENT = 1.0
"""of all weights together; a longer one is scaled down to it"""


def read_options(command: str, arguments: list[str] | None, description: str, steps: int) -> Namespace:
    """--out, a folder that is there from now on, and --steps of a command of model.commands; in one thread."""
    parser = command_parser(f"commands.{command}", description)
    parser.add_argument("--out", type=Path, required=True, help="folder of what it writes")
    parser.add_argument("--steps", type=whole_number(1), default=steps, help="of each model (default: %(default)s)")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # for models this small more threads are slower
    return args


def take_step(optimizer: Optimizer, loss: Tensor, rate: float, longest: float = LONGEST_GRADIENT) -> None:
    """One step down the gradient of the loss, at this rate."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([weights for group in optimizer.param_groups for weights in group["params"]], longest)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def round_weights(model: nn.Module) -> None:
    """To fp16, as they are saved."""
    for parameter in model.parameters():
        parameter.data.copy_(parameter.data.half())


def write_table(path: Path, table: pd.DataFrame, digits: int = 5) -> None:
    """A CSV with the first digits of each number, complete at any moment."""
    with atomic_write(path) as temporary:
        table.to_csv(temporary, index=False, float_format=f"%.{digits}g")
