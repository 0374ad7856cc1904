"""Run by torchrun: python -m model.train, and then each process writes down the weights that it ended with."""

import sys
from collections.abc import Iterator

import torch

from model import train
from model.training.trainer import Progress, Trainer

plain_run = Trainer.run


def run(self: Trainer, minutes: float | None = None) -> Iterator[Progress]:
    yield from plain_run(self, minutes)
    torch.save(self.model.state_dict(), self.folder / f"rank-{self.rank}.pt")


if __name__ == "__main__":
    Trainer.run = run
    train.main(sys.argv[1:])
