"""One run in single precision, bfloat16 and half precision: where they part, and how near scores come to a limit.

Weights, tables and activations are all in the format, on a copy of the model that belongs to the call.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.analysis.inside.training_step import write_greedily
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import recording
from model.network.network import EMBEDDINGS
from model.trace import Array, Trace, log_probabilities

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FP16_LIMIT = torch.finfo(torch.float16).max
"""65,504: what is larger becomes infinite"""
ROUNDING = {name: torch.finfo(dtype).eps / 2 for name, dtype in FORMATS.items()}
"""largest relative error of one rounding"""


@dataclass(frozen=True)
class FormatRun:
    """The run in one number format."""

    differences: Mapping[str, Array]
    """stack -> (step,) ||x - x in fp32|| / ||x in fp32|| of all tokens: at the input, then after each sub-layer"""
    log_probabilities: Array
    """(position,) of the run's tokens; NaN where a number has overflowed"""
    best: Array
    """(position,) id of the most probable token"""
    text: str | None
    """what the model writes greedily in this format; None: a number has overflowed"""
    exact_weights: bool
    """whether all weights are the same numbers in this format"""


@dataclass(frozen=True)
class LargestScore:
    """The largest |q k| of a run, before the division by sqrt(d_k)."""

    score: float
    kind: str
    layer: int
    head: int


def run_in_formats(opened: Checkpoint, trace: Trace) -> dict[str, FormatRun]:
    """Run the tokens of a trace in each of the FORMATS, through a model of this project that predicts the next token;
    no intervention acts."""
    runs: dict[str, FormatRun] = {}
    reference: dict[str, Array] = {}
    for name, dtype in FORMATS.items():
        check_cancelled()
        other = replace(opened, model=copy.deepcopy(opened.model).to(dtype))
        stream, logits = _stream(other, trace)
        reference = reference or stream
        finite = bool(np.isfinite(logits).all())
        log_p = log_probabilities(logits) if finite else np.full(logits.shape, np.nan)
        pairs = zip(opened.model.parameters(), other.model.parameters(), strict=True)
        runs[name] = FormatRun(
            {stack: _differences(stream[stack], reference[stack]) for stack in stream},
            log_p[np.arange(len(trace.next_ids)), list(trace.next_ids)],
            logits.argmax(axis=-1),
            write_greedily(other, trace) if finite else None,
            all(torch.equal(ours, theirs.to(ours.dtype)) for ours, theirs in pairs),
        )
    return runs


def largest_score(trace: Trace) -> LargestScore:
    """Over all heads of a run; masked cells count, because their scores are computed too."""
    best = LargestScore(-1.0, "", 0, 0)
    for kind in trace.kinds:
        for layer in kind.layers:
            scores = np.abs(trace.attention(kind.name, layer).scores).max(axis=(1, 2))
            if scores.max() > best.score:
                best = LargestScore(float(scores.max()), kind.name, layer, int(scores.argmax()))
    return best


@torch.inference_mode()
def _stream(opened: Checkpoint, trace: Trace) -> tuple[dict[str, Array], Array]:
    """By stack (step, position, d_model), and the logits (position, vocabulary); in double."""
    model, paths = opened.model, {}
    for stack in trace.streams:
        layers, sublayers = f"{stack}.layers", trace.streams[stack].sublayers
        before = [model.before_point(f"{layers}.{one.layer}.{one.name}") for one in sublayers]
        paths[stack] = [f"{EMBEDDINGS[stack]}.sum", *before[1:], model.end_point(f"{layers}.{sublayers[-1].layer}")]
    points = list(dict.fromkeys(path for of_stack in paths.values() for path in of_stack))
    with recording(model, points) as activations:
        logits = model(*model.texts_of(trace))[0].double().cpu().numpy()
    return {
        stack: np.stack([activations[path][0].double().cpu().numpy() for path in of_stack])
        for stack, of_stack in paths.items()
    }, logits


def _differences(stream: Array, reference: Array) -> Array:
    """(step,) relative, of all tokens together; infinite where a number is."""
    with np.errstate(invalid="ignore"):
        apart = np.linalg.norm((stream - reference).reshape(len(stream), -1), axis=-1)
    apart = np.where(np.isfinite(apart), apart, np.inf)
    return apart / np.linalg.norm(reference.reshape(len(stream), -1), axis=-1)
