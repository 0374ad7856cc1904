"""The letters task as a training that can be stopped, changed and gone on with, a step at a time.

It is the trainer of the command line: as long as nothing is changed, its log is the one that the command writes.
"""

import copy
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic

import pandas as pd

from model.cancel import cancellable
from model.checkpoints.translator import Translator
from model.interventions import LiftCausalMask, applied
from model.network.attention import MultiHeadAttention
from model.trace import Trace
from model.train import new_trainer
from model.training import reversal_task
from model.training.trainer import TrainingDiverged

RECIPE = (
    "--preset toy --steps 1500 --warmup 300 --lr-factor 0.7 --cooldown 700 --max-tokens 1500 --evaluate-every 25 "
    "--average 1"
)
"""what follows `python -m model.train`, besides the files and the seed"""
TEXT = "s p i d e r"
"""what the pictures show, with its reverse as target"""
HEADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class TrainedModel:
    """What of the training can be changed while it runs."""

    rate: float = 1.0
    """multiplies the learning rate of the recipe"""
    heads: int = 4
    """the same weights, cut into so many heads"""
    masked: bool = True
    """False trains without the causal mask"""
    scaled: bool = True
    """False does not divide scores by sqrt(d_k)"""


def first_trace(seed: int, heads: int) -> Trace:
    """What a training begins with: the run of `TEXT` before the first step; arguments as of `LiveTraining`."""
    with closing(LiveTraining(seed, heads)) as training:
        return training.trace()


class LiveTraining:
    """One run of the letters task, with so many heads to begin with; several threads may show it, and one at a time
    takes its steps. The seed is of the initial weights and of the order of the texts; the recipe has options of the
    command line."""

    def __init__(self, seed: int = 0, heads: int = 4, recipe: str = RECIPE) -> None:
        self._folder = TemporaryDirectory()
        letters = Path(self._folder.name) / "letters"
        reversal_task.main(["--out", str(letters)])
        files = ["--train", str(letters / "train.tsv"), "--dev", str(letters / "dev.tsv"), "--out", str(self._out)]
        options = [*recipe.split(), "--n-heads", str(heads), "--seed", str(seed)]
        self.options = " ".join(options)
        """of the command that trains the same"""
        self._trainer = new_trainer([*options, "--device", "cpu", *files])
        self._factor = self._trainer.options.lr_factor
        self._run, self._lock = self._trainer.run(), Lock()
        self.model = TrainedModel(heads=heads)
        self.changed = False
        """whether anything was changed while it ran, so that no command repeats it"""
        self.problem = ""
        """why it cannot go on; empty: it can"""

    @property
    def _out(self) -> Path:
        return Path(self._folder.name) / "run"

    @property
    def step(self) -> int:
        """How many it has taken."""
        return self._trainer.progress.step

    @property
    def most_steps(self) -> int:
        """How many it takes in all."""
        return self._trainer.options.steps

    @property
    def finished(self) -> bool:
        """Whether it takes no more."""
        return bool(self.problem) or self.step >= self.most_steps

    @property
    def log(self) -> pd.DataFrame:
        """The rows of log.csv so far."""
        path = self._out / "log.csv"
        return pd.read_csv(path) if path.exists() else pd.DataFrame()

    def change(self, model: TrainedModel) -> None:
        """From the next step on, train this instead.

        Raises:
            ValueError: the heads do not divide the width of the model.
        """
        if model == self.model:
            return
        network = self._trainer.model
        network.config = config = replace(network.config, n_heads=model.heads, scale_scores=model.scaled)
        for attention in (each for each in network.modules() if isinstance(each, MultiHeadAttention)):
            attention.n_heads = attention.n_kv_heads = config.n_heads
            attention.d_k, attention.divisor = config.d_k, config.score_divisor
        self._trainer.options = replace(self._trainer.options, lr_factor=self._factor * model.rate)
        self.model, self.changed = model, True

    def go_on(self, seconds: float) -> Iterator[int]:
        """Take steps for this time, one at least, and yield the number of each; none while another thread does."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            end = monotonic() + seconds
            while not self.finished:
                self._take_step()
                yield self.step
                if monotonic() > end:
                    return
        finally:
            self._lock.release()

    def _take_step(self) -> None:
        changes = () if self.model.masked else (LiftCausalMask(),)
        # A visitor who leaves in the middle of a step must not end the training, which others may go on with.
        with cancellable(None), applied(self._trainer.model, changes) if changes else nullcontext():
            try:
                next(self._run)
            except TrainingDiverged:
                self.problem = "diverged"

    def trace(self, text: str = TEXT) -> Trace:
        """The model as it is now, on a text and its reverse."""
        network = copy.deepcopy(self._trainer.model).eval().requires_grad_(False)
        opened = Translator("letters", f"step-{self.step}", network, self._trainer.tokenizer)
        changes = () if self.model.masked else (LiftCausalMask(),)
        return opened.trace(text, " ".join(reversed(text.split())), interventions=changes)

    def written(self, text: str = TEXT) -> str:
        """What the model makes of a text now, greedily."""
        network = copy.deepcopy(self._trainer.model).eval().requires_grad_(False)
        return Translator("letters", "", network, self._trainer.tokenizer).translate([text], beam_size=1)[0]

    def close(self) -> None:
        """Delete its files."""
        self._folder.cleanup()
