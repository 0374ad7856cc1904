"""Dropout where training has it (section 5.4), with a seed of its own: what it sets to 0, and what that costs.

No other run of this app has dropout. These call hook points at the places of the model's dropout modules, which stay
off: the embeddings with their positions, and what each sub-layer adds to the residual stream.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.analysis.sweep import log_probability
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit, editing, explicit_path, recording
from model.interventions.base import sublayer_paths
from model.network.dropout import draw_factors
from model.network.network import EMBEDDINGS, Network
from model.trace import Array, Trace

DRAWS = 20
EMBEDDED, EVERYWHERE = "embeddings", "everywhere"


def dropout_places(model: Network) -> dict[str, str]:
    """Hook point path -> kind of place: "embeddings", "self_attn", "cross_attn" or "feed_forward"."""
    embeddings = {f"{EMBEDDINGS[stack]}.sum": EMBEDDED for stack in model.stacks}
    sublayers = sublayer_paths(model, None, None, None)
    return embeddings | {model.update_point(path): path.rpartition(".")[2] for path in sublayers}


def drop(paths: Sequence[str], rate: float, seed: int) -> dict[str, Edit]:
    """By path, an edit that multiplies by random factors; the same for the same seed, whatever else is dropped."""

    def edit_at(path: str) -> Edit:
        def edit(x: Tensor) -> Tensor:
            return x * factors(path, x.shape, rate, seed).to(x)

        return edit

    return {path: edit_at(path) for path in paths}


def factors(path: str, shape: Sequence[int], rate: float, seed: int) -> Tensor:
    """What dropout multiplies an activation of this shape by at one place: 0, or 1 / (1 - rate)."""
    numbers = torch.Generator().manual_seed(random.Random(f"{seed}-{path}").getrandbits(63))
    return draw_factors(torch.Size(shape), rate, numbers)


@dataclass(frozen=True)
class Dropped:
    """One activation under one draw of dropout everywhere."""

    before: Array
    """(position, d_model) in the same run, before its own elements are dropped"""
    after: Array
    """(position, d_model)"""
    kept: Array
    """bool (position, d_model)"""


@torch.inference_mode()
def dropped_at(opened: Checkpoint, trace: Trace, path: str, rate: float, seed: int) -> Dropped:
    """Run with dropout at every place, and read one of them."""
    model, places = opened.model, dropout_places(opened.model)
    earlier = [one for one in places if one != path]
    with editing(model, drop(earlier, rate, seed)), recording(model, [path]) as activations:
        model(*model.texts_of(trace))
    before = activations[path]
    kept = factors(path, before.shape, rate, seed).to(before)
    before, after = before[0].cpu().numpy(), (before * kept)[0].cpu().numpy()
    return Dropped(before, after, kept[0].cpu().numpy() > 0)


@dataclass(frozen=True)
class DropoutCost:
    """What dropout does to log p of a run's tokens, by kind of place and everywhere, in nats."""

    without: float
    changes: Mapping[str, Array]
    """kind of place -> (draw,) log p with dropout there minus log p without"""


@torch.inference_mode()
def dropout_cost(opened: Checkpoint, trace: Trace, rate: float, draws: int = DRAWS, seed: int = 0) -> DropoutCost:
    """Run the same tokens `draws` times with dropout at each kind of place, and everywhere; one batch for a kind."""
    model, places = opened.model, dropout_places(opened.model)
    without = log_probability(opened.unrecorded_logits(replace(trace, interventions=())), trace.next_ids)
    kinds = {kind: [path for path, one in places.items() if one == kind] for kind in dict.fromkeys(places.values())}
    texts = [ids.expand(draws, -1) for ids in model.texts_of(trace)]
    changes = {}
    for kind, paths in {**kinds, EVERYWHERE: [*places]}.items():
        check_cancelled()
        with editing(model, drop(paths, rate, seed)), explicit_path():
            logits = model(*texts).cpu().numpy()
        changes[kind] = [log_probability(each, trace.next_ids) - without for each in logits]
    return DropoutCost(without, {kind: np.array(each) for kind, each in changes.items()})
