"""Gradients through Hugging Face models: central differences agree, and a run without its residuals is that run."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch

from model.analysis.runs.gradients import loss_gradients, stream_gradients
from model.checkpoints.huggingface.opened import HookedCheckpoint
from model.hooks import editing
from model.interventions import Intervention, ResidualOff, Unscaled, applied
from model.network.network import EMBEDDINGS
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import FAMILIES, SOURCE, TARGET
from tests.model.checkpoints.huggingface.test_families import opened, traced

KEPT = {
    "GPT-NeoX": "shares its residual connection",
    "Phi": "shares its residual connection",
    "Granite": "multiplies what it adds",
    "OLMo 2": "what its residual connection carries could not be read",
}
"""family whose residual connections cannot be taken off, and why"""
SMOOTH = ("GPT-2", "BERT", "RoBERTa", "DistilBERT", "ELECTRA", "ALBERT", "BART")
"""computed in the precision of their weights throughout, without ReLU"""
SINGLE = ("gpt-oss",)
"""whose experts do not multiply in double precision"""
EPSILON = float(np.finfo(np.float32).eps)
STEP = 1e-3
EDITABLE = ("sum", ".out", ".contribution", "attn.q", "attn.v", "attn.z")


@lru_cache
def precise(name: str) -> HookedCheckpoint:
    """In double precision where the family's code allows."""
    model = opened(name)
    return model if name in SINGLE else replace(model, model=copy.deepcopy(model.model).double())


def run(name: str, *changes: Intervention) -> Trace:
    both = len(opened(name).model.stacks) == 2
    return precise(name).trace(SOURCE, TARGET if both else None, interventions=changes)


def loss(model: HookedCheckpoint, trace: Trace, changes: Sequence[Intervention], move: dict[str, Callable]) -> float:
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    with torch.inference_mode(), applied(model.model, changes), editing(model.model, move):
        logits = model.model(*texts)[0].double().log_softmax(-1)
    return -logits[range(len(trace.next_ids)), list(trace.next_ids)].sum().item()


def move_by(distance: np.ndarray) -> Callable[[torch.Tensor], torch.Tensor]:
    move = torch.from_numpy(distance)
    return lambda x: x + move.to(x.dtype).reshape(x.shape)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_gradient_is_a_central_difference(name: str) -> None:
    """Along random directions; closely where the whole model computes in double precision and without kinks."""
    changes = () if name in KEPT else (Unscaled(), ResidualOff("decoder"))
    changes = changes if "decoder" in opened(name).model.stacks else (Unscaled(), ResidualOff(layer=1))
    model, trace = precise(name), run(name, *changes)
    found = loss_gradients(model, trace)
    assert found.loss == pytest.approx(-trace.log_probability, rel=1e-5)
    numbers = np.random.default_rng(0)
    paths = [path for path in found.by_path if path.endswith(EDITABLE)]
    # All points of one kind move at once, each in a direction of its own; a family is dealt every second kind.
    kinds = EDITABLE[[*FAMILIES].index(name) % 2 :: 2]
    for moved in filter(None, ([path for path in paths if path.endswith(point)] for point in kinds)):
        directions = {path: numbers.standard_normal(found[path].shape) for path in moved}
        length = np.sqrt(sum((direction**2).sum() for direction in directions.values()))
        directions = {path: direction / length for path, direction in directions.items()}

        def at(step: float, directions: dict[str, np.ndarray] = directions) -> float:
            return loss(model, trace, changes, {path: move_by(step * each) for path, each in directions.items()})

        near, far = (at(step) - at(-step) for step in (STEP, 2 * STEP))
        typical = np.sqrt(np.concatenate([found[path].ravel() ** 2 for path in moved]).mean())
        slope = sum((found[path] * direction).sum() for path, direction in directions.items())
        error = abs(slope - (8 * near - far) / (12 * STEP))
        rounding = 1e-9 if name in SMOOTH else 4 * EPSILON * found.loss / STEP
        assert error <= (1e-5 if name in SMOOTH else 0.2) * typical + rounding, moved
    assert len(paths) > 4 * len(trace.attentions)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_of_the_stream_is_that_of_each_of_its_terms(name: str) -> None:
    """With residual connections, moving what a sub-layer adds moves the stream by as much."""
    trace, model = traced(name), opened(name)
    norms, whole = stream_gradients(model, trace), loss_gradients(model, trace)
    for stack, stream in trace.streams.items():
        assert len(norms[stack]) == len(stream.sublayers) + 1
        assert norms[stack].all()
        assert norms[stack][0] == pytest.approx(np.linalg.norm(whole[f"{EMBEDDINGS[stack]}.sum"]), rel=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_without_its_residual_a_sub_layer_hands_on_what_it_computed(name: str) -> None:
    if name in KEPT:
        with pytest.raises(ValueError, match=KEPT[name]):
            traced(name, ResidualOff())
        return
    trace = traced(name, ResidualOff())
    for sublayer in trace.sublayers:
        if sublayer.name == "feed_forward":
            continue
        kind = "cross" if sublayer.name == "cross_attn" else f"{sublayer.stack}_self"
        attention = trace.attention(kind, sublayer.layer)
        own = np.einsum("hqd,hdm->qm", attention.z, attention.projections.w_o) + attention.projections.b_o
        own = own if sublayer.result_norm is None else sublayer.result_norm(own)
        tolerance = 1e-5 * np.abs(sublayer.before).max() + 1e-5 * np.abs(own).max()
        np.testing.assert_allclose(sublayer.added, own, atol=tolerance)
    assert not np.array_equal(trace.logits, traced(name).logits)


@pytest.mark.parametrize("name", ["GPT-2", "Gemma 2", "OPT", "ALBERT", "T5", "Marian"])
def test_random_weights_are_drawn_from_the_seed_alone_and_leave_the_model_as_it_is(name: str) -> None:
    model, trace = opened(name), traced(name)
    before = torch.get_rng_state()
    first, again, other = (stream_gradients(model, trace, (), seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    for stack in trace.streams:
        np.testing.assert_array_equal(first[stack], again[stack])
        assert not np.array_equal(first[stack], other[stack])
    np.testing.assert_array_equal(traced(name).logits, trace.logits)
