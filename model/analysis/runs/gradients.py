"""Gradients of a run's loss, -log p of its target, by back-propagation through the hook points.

The graph belongs to the call: no parameter collects a gradient, and nothing stays on the model. What is drawn as a
curve is computed in double precision in models of this project: without residual connections or the division by
sqrt(d_k), rounding in single precision grows from layer to layer, to a tenth of the gradient and more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.analysis.distributions import ratio
from model.analysis.double_precision import in_double_precision
from model.analysis.stream.residual_stream import INPUT, step_name
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import editing, hook_points, recording
from model.interventions import Intervention, applied
from model.needs import Need
from model.network.network import EMBEDDINGS, Network
from model.trace import Array, SubLayer, Trace

POINTS = (
    *("sum", "added", "normed", "contribution", "q", "k", "v", "scores", "pattern", "z", "out"),
    *("memory", "final", "logits"),
)
"""names of the hook points whose gradients are given"""
MOST_ROWS = 32
"""`distance_gradients` back-propagates from at most this many rows of a long text"""


@dataclass(frozen=True)
class LossGradients:
    """The loss of a run, and its derivative with respect to what the run computed."""

    loss: float
    """-log p of the target in nats, the sum over its rows"""
    by_path: Mapping[str, Array]
    """hook point path -> dL/d of the activation there, shaped as in the Trace"""

    def __getitem__(self, path: str) -> Array:
        return self.by_path[path]


def loss_gradients(opened: Checkpoint, trace: Trace) -> LossGradients:
    """Back-propagate the loss of a run, -trace.log_probability, through the same run, interventions included."""
    model = opened.model
    paths = [path for path in hook_points(model) if path.rpartition(".")[2] in POINTS]
    with torch.enable_grad():
        log_p, activations = _run(model, trace, paths)
        loss = -log_p.sum()
        found = torch.autograd.grad(loss, [*activations.values()], materialize_grads=True)
    gradients = {path: gradient[0].cpu().numpy() for path, gradient in zip(activations, found, strict=True)}
    return LossGradients(loss.item(), gradients)


def stream_gradients(
    opened: Checkpoint, trace: Trace, changes: Sequence[Intervention] = (), seed: int | None = None
) -> dict[str, Array]:
    """By stack: ||dL/dX|| of the residual stream of all tokens, (step,): at the input, then after each sub-layer.

    The run is that of the trace, with further changes. With a seed, the weights are random, drawn as at the start of
    training. In double precision, except in Hugging Face models; `rounding_of_streams` measures what that leaves open.
    """
    run = replace(trace, interventions=(*trace.interventions, *changes))
    return _norms(_precise(opened, seed), run)


def gradients_by_change(
    opened: Checkpoint, trace: Trace, runs: Sequence[Sequence[Intervention]], seed: int | None = None
) -> list[dict[str, Array]]:
    """`stream_gradients` of the same tokens with each of several lists of changes, of one and the same precise model.

    Arguments as there.
    """
    precise = _precise(opened, seed)
    return [stream_gradients(precise, trace, changes) for changes in runs]


def rounding_of_streams(
    opened: Checkpoint, trace: Trace, changes: Sequence[Intervention] = (), seed: int | None = None
) -> dict[str, Array]:
    """By stack: by which share `stream_gradients` change, (step,), if one rounding moves each number of the embeddings.

    The roundings of the layers do as much, so a curve means nothing within this share. Arguments as there.
    """
    run, opened = replace(trace, interventions=(*trace.interventions, *changes)), _precise(opened, seed)
    norms = _norms(opened, run)
    with editing(opened.model, {f"{EMBEDDINGS[stack]}.sum": _move_by_one_rounding for stack in trace.streams}):
        moved = _norms(opened, run)
    return {stack: ratio(np.abs(moved[stack] - norm), norm) for stack, norm in norms.items()}


def _move_by_one_rounding(x: Tensor) -> Tensor:
    signs = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(0)).to(x) * 2 - 1
    return x * (1 + signs * torch.finfo(x.dtype).eps)


def _norms(opened: Checkpoint, run: Trace) -> dict[str, Array]:
    gradients, norms = loss_gradients(opened, run), {}
    for stack, stream in run.streams.items():
        paths = [f"{EMBEDDINGS[stack]}.sum", *(_after(opened.model, sub) for sub in stream.sublayers)]
        # Where a model multiplies what it adds, the gradient of that is as many times the stream's.
        multipliers = np.array([1.0, *(sub.multiplier for sub in stream.sublayers)])
        sizes = [np.linalg.norm(gradients[path].astype(np.float64)) for path in paths]
        norms[stack] = np.array(sizes) / np.abs(multipliers)
    return norms


def _precise(opened: Checkpoint, seed: int | None = None) -> Checkpoint:
    """With its own weights or with random ones, in double precision where all its steps can be."""
    if seed is not None:
        opened = replace(opened, model=opened.model.untrained(torch.Generator().manual_seed(seed)))
    return in_double_precision(opened) if Need.OWN_LAYERS in opened.features else opened


def _after(model: Network, sub: SubLayer) -> str:
    """The hook point whose gradient is that of the stream after a sub-layer: a sum and its terms have the same."""
    path = f"{sub.stack}.layers.{sub.layer}.{sub.name}"
    return model.update_point(path) if sub.norm_first else f"{path}_residual.normed"


def stream_steps(trace: Trace, stack: str) -> tuple[str, ...]:
    """ "input", "0 self-attention", ...: the steps of `stream_gradients`."""
    return INPUT, *map(step_name, trace.streams[stack].sublayers)


def gradient_times_input(opened: Checkpoint, trace: Trace, rows: Sequence[int]) -> dict[str, Array]:
    """By stack: gradient of the log p of each row's token at each embedded token, times that token's vector.

    (row, token) in nats: to first order, what log p would lose if the token's embedding were set to 0.
    """
    found = list(_row_gradients(_precise(opened).model, trace, rows))
    return {
        name: np.stack([(row[name] * stream.embedded.embedding.astype(np.float64)).sum(axis=-1) for row in found])
        for name, stream in trace.streams.items()
    }


@dataclass(frozen=True)
class DistanceGradients:
    """Size of the gradient of one row's loss at the embedding of each token, over the distance between the two.

    The distance is the number of steps of a recurrent network between reading the token and predicting the row's: the
    source is read before the target.
    """

    distance: Array
    """int (distance,), ascending"""
    norm: Array
    """(distance,) mean of ||d(-log p)/dx|| over all rows and tokens at this distance"""
    pairs: Array
    """int (distance,): how many pairs of a row and a token"""
    done: float
    """share of the rows that are counted, 0 to 1"""


def distance_gradients(opened: Checkpoint, trace: Trace, seed: int | None = None) -> Iterator[DistanceGradients]:
    """Back-propagate from each row alone, or from MOST_ROWS evenly spaced ones; yields after each row.

    `seed`: of random weights, as in `stream_gradients`.
    """
    model = _precise(opened, seed).model
    count = len(trace.next_ids)
    rows = np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).round().astype(int))
    lengths = [len(stream.tokens) for stream in trace.streams.values()]
    sums, numbers = np.zeros(sum(lengths)), np.zeros(sum(lengths), int)
    for done, (row, found) in enumerate(zip(rows, _row_gradients(model, trace, rows), strict=True), start=1):
        norms = np.concatenate([np.linalg.norm(gradient, axis=-1) for gradient in found.values()])
        away = np.abs(sum(lengths[:-1]) + row - np.arange(len(norms)))
        # What a causal row cannot see has no gradient; it counts at no distance.
        seen = norms > 0
        np.add.at(sums, away[seen], norms[seen])
        np.add.at(numbers, away[seen], 1)
        distance = np.flatnonzero(numbers)
        pairs = numbers[distance]
        yield DistanceGradients(distance, sums[distance] / pairs, pairs, done / len(rows))


def _row_gradients(model: Network, trace: Trace, rows: Sequence[int]) -> Iterator[dict[str, Array]]:
    """For each row, by stack: gradient of its log p at the embeddings, (token, d_model) in double.

    The embedding and the encoding of its position are added: their sum has the same gradient.
    """
    paths = {stack: f"{EMBEDDINGS[stack]}.sum" for stack in trace.streams}
    with torch.enable_grad():
        log_p, activations = _run(model, trace, [*paths.values()])
    inputs = [activations[path] for path in paths.values()]
    for row in rows:
        check_cancelled()
        gradients = torch.autograd.grad(log_p[row], inputs, retain_graph=True, materialize_grads=True)
        yield {stack: each[0].double().cpu().numpy() for stack, each in zip(paths, gradients, strict=True)}


def _run(model: Network, trace: Trace, paths: Sequence[str]) -> tuple[Tensor, dict[str, Tensor]]:
    """Log p of each row's token, (row,) in double precision, and the activations at `paths`, all in one graph."""
    check_cancelled()
    # After the interventions, so that what they put in place of an activation is differentiated too.
    with (
        applied(model, trace.interventions),
        editing(model, dict.fromkeys(paths, _track)),
        recording(model, list(paths), detached=False) as activations,
    ):
        logits = model(*model.texts_of(trace))[0]
    ids = torch.tensor(trace.next_ids, device=logits.device)
    return logits.double().log_softmax(-1).gather(-1, ids[:, None])[:, 0], dict(activations)


def _track(x: Tensor) -> Tensor:
    """`x` as part of the graph: what depends on nothing tracked yet becomes a beginning of it."""
    return x if x.requires_grad else x.detach().requires_grad_()
