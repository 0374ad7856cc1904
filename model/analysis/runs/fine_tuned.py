"""Fine-tuning in small: a copy of the model learns one text; what it gains there, and loses elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Trace
from model.training.fine_tuning import copy_to_train, new_optimizer

STEPS, RATE = 8, 1e-4
"""of the optimizer, Adam as in the paper without warm-up"""


@dataclass(frozen=True)
class FineTuning:
    """log p of texts in nats per token, before the first step and after each."""

    own: Array
    """(step + 1,) of the text that is learned"""
    others: Array
    """(step + 1, text) of the others"""


def fine_tune(opened: Checkpoint, trace: Trace, others: Sequence[Trace], steps: int = STEPS) -> Iterator[FineTuning]:
    """Train a copy of the model on the run's text, without its changes; the opened model stays as it is. `others`: runs
    of it on other texts. Yields what is known before any step and after each."""
    tuned = replace(opened, model=copy_to_train(opened.model))
    optimizer = new_optimizer(tuned.model, RATE)
    rows = [_measure(tuned, (trace, *others))]
    yield _so_far(rows)
    for _ in range(steps):
        check_cancelled()
        with torch.inference_mode(False), torch.enable_grad():
            logits = tuned.model(*tuned.model.texts_of(trace))[0, : len(trace.next_ids)]
            wanted = torch.tensor(trace.next_ids, device=logits.device)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, wanted).backward()
            optimizer.step()
        rows.append(_measure(tuned, (trace, *others)))
        yield _so_far(rows)


def _measure(tuned: Checkpoint, traces: Sequence[Trace]) -> list[float]:
    return [tuned.rerun(one, ()).log_probability / len(one.next_ids) for one in traces]


def _so_far(rows: Sequence[Sequence[float]]) -> FineTuning:
    table = np.array(rows)
    return FineTuning(table[:, 0], table[:, 1:])
