"""The training loop (paper, section 5): resumable at any step, in one process or several.

The state on disk is one file, replaced atomically. All randomness depends on (seed, epoch) and (seed, step, process)
only, so a resumed run equals the uninterrupted one, bit for bit on a CPU.
"""

import copy
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from model.checkpoints.files import atomic_write
from model.checkpoints.snapshots import snapshot_path
from model.checkpoints.store import save_checkpoint, save_weights
from model.checkpoints.tokenizer import Tokenizer
from model.network.batch import token_batches, without_padding
from model.network.config import PAD
from model.network.families import new_network
from model.network.network import Network
from model.training.data import Text, sample_epoch
from model.training.loss import label_smoothed_loss
from model.training.schedule import cooldown, noam
from model.training.score_clip import ScoreClip
from model.training.small import write_table
from model.training.tasks import TASKS

SNAPSHOT_STEPS = (0, 10, 32, 100, 316, 1000, 3162, 10_000, 31_623, 100_000)
"""Half powers of ten: the steps whose weights are kept, to show how attention forms."""
DIVERGED = 100
"""times ln |V|, what guessing costs: a run whose loss is above that has diverged, and does not come back"""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; the defaults are the paper's where it gives them.

    Raises:
        ValueError: a field is out of its range; the sentence names the field and what it may be.
    """

    steps: int = 100_000
    max_tokens: int = 4096
    """per batch and process, padding included"""
    warmup: int = 4000
    """0 starts at the highest rate"""
    rise: bool = True
    """False starts at the peak to which the rate would rise during the warm-up, and stays there as long"""
    lr_factor: float = 1.0
    cooldown: int = 0
    """number of final steps over which the rate decays linearly to zero"""
    label_smoothing: float = 0.1
    sampling: float = 0.0
    """0: one segmentation per sentence; above 0: a new random one each epoch (Kudo 2018), smaller is more varied"""
    evaluate_every: int = 500
    average: int = 5
    """number of evaluations whose weights are averaged (section 6.1)"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """of matrix products; sums, weights and Adam's moments stay float32"""
    optimizer: Literal["adam", "muon"] = "adam"
    """muon: Muon (Jordan et al. 2024) for the matrices of the layers, Adam for everything else"""
    clip_scores: float = 0.0
    """above 0: after a step in which a head's largest score q·k / sqrt(d_k) was above this, its W_Q and W_K are scaled
    down to it (QK-clip, Kimi K2 2025, section 2.1)"""
    decay_qk: float = 0.0
    """decoupled weight decay (Loshchilov and Hutter 2019) of W_Q and W_K"""
    seed: int = 0

    def __post_init__(self) -> None:
        least = dict.fromkeys(("steps", "max_tokens", "evaluate_every", "average"), 1)
        for name, at_least in (
            least | dict.fromkeys(("warmup", "cooldown", "sampling", "clip_scores", "decay_qk"), 0)
        ).items():
            if not at_least <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be {at_least} or more, got {value}")
        if not 0 < self.lr_factor < math.inf:
            raise ValueError(f"lr_factor must be above 0, got {self.lr_factor}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), got {self.label_smoothing}")
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed must fit into 64 bits, got {self.seed}")


class TrainingDiverged(ValueError):
    """The loss or the weights are no longer finite numbers; the message says at which step, and what to do."""


def make_optimizers(
    model: nn.Module, name: Literal["adam", "muon"], decay_qk: float = 0.0
) -> list[torch.optim.Optimizer]:
    """Adam with the paper's constants (section 5.3) for all parameters; with muon, Muon for the layers' matrices.

    Muon's steps get the size of Adam's, so that one learning rate serves both. Of all weights, only W_Q and W_K decay.
    """
    parameters = dict(model.named_parameters())
    matrices = {path for path, each in parameters.items() if name == "muon" and each.ndim == 2 and ".layers." in path}
    others = _decaying([path for path in parameters if path not in matrices], parameters, decay_qk)
    # Without decay, AdamW is Adam.
    adam = torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True)
    if not matrices:
        return [adam]
    inside = _decaying([path for path in parameters if path in matrices], parameters, decay_qk)
    return [adam, torch.optim.Muon(inside, lr=0.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")]


def _decaying(paths: list[str], parameters: dict[str, nn.Parameter], decay_qk: float) -> list[dict[str, Any]]:
    """The parameters at `paths` as groups of an optimizer; W_Q and W_K are one of their own where they decay."""
    chosen = [path for path in paths if decay_qk and path.endswith((".w_q.weight", ".w_k.weight"))]
    groups = [{"params": [parameters[path] for path in paths if path not in chosen]}]
    if chosen:
        groups.append({"params": [parameters[path] for path in chosen], "weight_decay": decay_qk})
    return [group for group in groups if group["params"]]


@dataclass
class Progress:
    """How far a run is: everything besides tensors that the next step depends on."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """batches of this epoch already done, in all processes together"""
    seconds: float = 0.0
    tokens: int = 0
    """predicted"""
    read: int = 0
    """tokens that the model has read, padding left out"""
    loss: float = 0.0
    """summed since the last evaluation, like `loss_tokens`"""
    loss_tokens: int = 0


class Trainer:
    """Trains `model` on `texts` and saves a loadable checkpoint in `folder` at each evaluation.

    `evaluate` gets the averaged model and returns the columns it adds to log.csv.
    """

    def __init__(
        self,
        folder: Path,
        model: Network,
        tokenizer: Tokenizer,
        texts: list[Text],
        options: TrainingOptions,
        evaluate: Callable[[Network], dict[str, float]],
    ) -> None:
        self.folder, self.model, self.tokenizer, self.texts = folder, model, tokenizer, texts
        self.options, self.evaluate = options, evaluate
        self.task = TASKS[model.config.family]
        self.device = next(model.parameters()).device.type
        self.optimizers = make_optimizers(model, options.optimizer, options.decay_qk)
        self.score_clip = ScoreClip(model, options.clip_scores)
        self.progress = Progress()
        self._beginning: dict | None = None
        """the state at step 0 until another one is saved"""
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.parallel: nn.Module = DistributedDataParallel(model) if self.world > 1 else model

    def run(self, minutes: float | None = None) -> Iterator[Progress]:
        """Train until `options.steps` or for `minutes`, yielding after each step; save when stopping.

        Raises:
            TrainingDiverged: nothing was saved since the numbers were finite, so the run can be resumed from there.
        """
        if self.progress.step >= self.options.steps:
            return
        deadline = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
        if self.progress.step == 0 and self.rank == 0:
            self._snapshot()
            self._beginning = copy.deepcopy(self._state())
        last_save = time.monotonic()
        for samples in self._batches():
            started = time.monotonic()
            self._step(samples)
            self.progress.seconds += time.monotonic() - started
            finished = self.progress.step >= self.options.steps or self._any_process(time.monotonic() > deadline)
            if self.progress.step % self.options.evaluate_every == 0 or finished:
                self._evaluate_and_save()
                last_save = time.monotonic()
            elif time.monotonic() - last_save > 120 and self.world == 1:
                self._check_weights()
                self.save()
                last_save = time.monotonic()
            yield self.progress
            if finished:
                return

    def _batches(self) -> Iterator[list]:
        """This process's batches, epoch after epoch, starting at the current progress."""
        while True:
            seed = f"{self.options.seed}-{self.progress.epoch}"
            examples = sample_epoch(self.texts, seed)
            max_len = self.model.config.max_len
            samples = self.task.encode(self.tokenizer, examples, max_len, self.options.sampling, seed)
            if not samples:
                raise ValueError(f"no example has at most max_len = {max_len} tokens")
            lengths = [self.task.length(sample) for sample in samples]
            batches = token_batches(lengths, self.options.max_tokens, seed)
            if self.model.config.norm_function == "batch_norm":  # padding would be part of its means
                batches = without_padding(batches, [self.task.shape(sample) for sample in samples])
            while self.progress.batch < len(batches):
                # The last round of an epoch may have fewer batches than processes: wrap around to fill it.
                mine = batches[(self.progress.batch + self.rank) % len(batches)]
                self.progress.batch += self.world
                yield [samples[i] for i in mine]
            self.progress.epoch += 1
            self.progress.batch = 0

    def _step(self, samples: list) -> None:
        seed = f"{self.options.seed}-{self.progress.step}-{self.rank}"
        batch = self.task.batch(samples, self.model.config, self.device, seed)
        self.parallel.train()
        # Dropout depends on step and process only, not on what was drawn before.
        torch.manual_seed(random.Random(seed).getrandbits(63))
        precision = torch.autocast(self.device, torch.bfloat16, enabled=self.options.precision == "bfloat16")
        with precision, self.score_clip.watching():
            logits = self.parallel(*batch.inputs)
            loss = label_smoothed_loss(logits, batch.targets, self.options.label_smoothing)
        tokens = (batch.targets != PAD).sum()
        read = torch.tensor(sum(map(self.task.count_read, samples)), device=self.device)
        totals = torch.stack([loss.detach().double(), tokens.double(), read.double()])
        if self.world > 1:
            dist.all_reduce(totals)
        loss_sum, token_sum, read_sum = totals.tolist()
        # Before the weights change: those of the last step are still as they were when the loss was finite.
        self._check_loss(loss_sum / max(token_sum, 1), self.progress.step + 1)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        # DDP averages over processes; times their number, this is the gradient per token over all of them.
        (loss * self.world / totals[1].float()).backward()
        step = self.progress.step = self.progress.step + 1
        rate = noam(step, self.model.config.d_model, self.options.warmup, self.options.lr_factor, self.options.rise)
        rate *= cooldown(step, self.options.steps, self.options.cooldown)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        self.score_clip.apply()
        self.progress.loss += loss_sum
        self.progress.loss_tokens += int(token_sum)
        self.progress.tokens += int(token_sum)
        self.progress.read += int(read_sum)
        if step in SNAPSHOT_STEPS:
            self._check_weights()
            if self.rank == 0:
                self._snapshot()

    def _check_loss(self, loss: float, step: int) -> None:
        """Raise TrainingDiverged if the loss per token, in nats, is not finite or absurd: guessing costs ln |V|."""
        if not loss <= DIVERGED * math.log(self.model.config.vocab_size):
            raise self._diverged(f"the loss is {loss:.3g} nats per token", step)

    def _check_weights(self) -> None:
        """Raise TrainingDiverged if a checkpoint, which is stored in half precision, could not hold the weights."""
        if not all(parameter.detach().half().isfinite().all() for parameter in self.model.parameters()):
            raise self._diverged("weights are not finite or too large to be stored", self.progress.step)

    def _diverged(self, how: str, step: int) -> TrainingDiverged:
        if self._beginning:
            self._write_state(self._beginning)
        factor = self.options.lr_factor
        return TrainingDiverged(
            f"Training diverged at step {step:,}: {how}. {self.folder} keeps what was last saved, with finite weights: "
            f"go on from there with --resume and a smaller --lr-factor than {factor:g}, or with more --warmup."
        )

    def _evaluate_and_save(self) -> None:
        train_loss = self.progress.loss / max(self.progress.loss_tokens, 1)
        self.progress.loss, self.progress.loss_tokens = 0.0, 0
        self._check_weights()
        if self.rank == 0:
            self._save_for_average()
            averaged = self.averaged_weights()
            row = {
                "step": self.progress.step,
                "epoch": self.progress.epoch,
                "learning_rate": self.optimizers[0].param_groups[0]["lr"],
                "tokens": self.progress.read,
                "train_loss": train_loss,
                "hours": self.progress.seconds / 3600,
                "tokens_per_second": self.progress.tokens / self.progress.seconds,
            }
            model = new_network(self.model.config).to(self.device).eval()
            model.load_state_dict(averaged, strict=False)
            scores = self.evaluate(model)
            self._check_loss(scores.get("dev_loss", 0.0), self.progress.step)
            self._log(row | scores)
            save_checkpoint(self.folder, self.model, self.tokenizer, averaged)
            self.save()
        if self.world > 1:
            dist.barrier()

    def averaged_weights(self) -> dict[str, Tensor]:
        """Mean of the weights at the last evaluations (section 6.1)."""
        files = sorted((self.folder / "averaging").glob("*.safetensors"))
        loaded = [load_file(file, device=self.device) for file in files]
        return {name: torch.stack([weights[name] for weights in loaded]).mean(dim=0) for name in loaded[0]}

    def _save_for_average(self) -> None:
        folder = self.folder / "averaging"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.progress.step:08}.safetensors"
        save_weights(path, self.model.weights(), torch.float32)
        for old in sorted(folder.glob("*.safetensors"))[: -self.options.average]:
            old.unlink()

    def _snapshot(self) -> None:
        path = snapshot_path(self.folder, self.progress.step)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_weights(path, self.model.weights())

    def _log(self, row: dict[str, float]) -> None:
        path = self.folder / "log.csv"
        earlier = pd.read_csv(path) if path.exists() else pd.DataFrame()
        earlier = earlier[earlier["step"] < row["step"]] if len(earlier) else earlier
        write_table(path, pd.concat([earlier, pd.DataFrame([row])]), digits=6)

    def save(self) -> None:
        """Replace the state on disk: weights, the optimizers' moments and progress."""
        self._write_state(self._state())
        self._beginning = None

    def _state(self) -> dict[str, Any]:
        return {
            "progress": asdict(self.progress),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def _write_state(self, state: dict[str, Any]) -> None:
        with atomic_write(self.folder / "state.pt") as path:
            torch.save(state, path)

    def resume(self) -> None:
        """Return to the state on disk; whatever came after it is repeated identically."""
        state = torch.load(self.folder / "state.pt", weights_only=True, map_location=self.device)
        self.model.load_state_dict(state["model"])
        states = state["optimizers"] if "optimizers" in state else [state["optimizer"]]  # before Muon there was one
        for optimizer, moments in zip(self.optimizers, states, strict=True):
            optimizer.load_state_dict(moments)
        self.progress = Progress(**state["progress"])
        if self.rank == 0:
            for file in (self.folder / "averaging").glob("*.safetensors"):
                if int(file.stem) > self.progress.step:
                    file.unlink()

    def _any_process(self, stop: bool) -> bool:
        """True if any process wants to stop, because all must stop at the same step."""
        if self.world == 1:
            return stop
        flag = torch.tensor(float(stop), device=self.device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)
