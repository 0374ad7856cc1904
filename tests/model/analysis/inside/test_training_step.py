"""One training step written out: Adam is PyTorch's, clipping is PyTorch's, and the shared model stays as it is."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils import clip_grad_norm_

from model.analysis.double_precision import in_double_precision
from model.analysis.inside.training_step import Block, StepOptions, adam_step, take_steps
from model.training.loss import label_smoothed_loss
from model.training.schedule import noam
from tests.model.checkpoints.test_language_model import opened as language_model

PATH = "decoder.layers.1.cross_attn.w_k.weight"


@given(
    st.integers(0, 2**31),
    st.integers(1, 6),
    st.sampled_from([0.98, 0.999]),
    st.sampled_from([1e-9, 1e-8, 1e-4]),
    st.floats(1e-6, 1e-1),
)
def test_steps_written_out_are_those_of_torch(
    seed: int, steps: int, beta_2: float, epsilon: float, rate: float
) -> None:
    numbers = torch.Generator().manual_seed(seed)
    gradients = torch.randn(steps, 3, 4, generator=numbers, dtype=torch.float64) * 10.0 ** -torch.arange(4)
    weights = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=rate, betas=(0.9, beta_2), eps=epsilon)
    own, m, v = torch.zeros(3, 4).double(), torch.zeros(3, 4).double(), torch.zeros(3, 4).double()
    for t, gradient in enumerate(gradients, start=1):
        weights.grad = gradient.clone()
        optimizer.step()
        step = adam_step(gradient, m, v, t, rate, beta_2, epsilon)
        m, v, own = step.m, step.v, own + step.update
        state = optimizer.state[weights]
        for mine, theirs in ((m, state["exp_avg"]), (v, state["exp_avg_sq"]), (own, weights.detach())):
            assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-12 * rate)


@pytest.mark.parametrize("largest", [0.0, 1e-3, 1e9])
@pytest.mark.parametrize("options", [{}, {"beta_2": 0.999, "epsilon": 1e-4, "first": 7, "warmup": 9, "factor": 0.5}])
def test_the_model_after_the_steps_is_the_one_that_torch_trains(translator, trace, largest, options) -> None:
    double, steps = in_double_precision(translator), StepOptions(3, largest_norm=largest, **options)
    trace = double.rerun(trace, ())
    block = Block(PATH, 2, 3, 5)
    found = take_steps(double, trace, steps, block)
    model = copy.deepcopy(double.model).requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, steps.beta_2), eps=steps.epsilon)
    inputs = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    for number in range(steps.steps):
        optimizer.zero_grad()
        loss = label_smoothed_loss(model(*inputs), torch.tensor([trace.next_ids]), 0.1) / len(trace.next_ids)
        assert loss.item() == pytest.approx(found.losses[number], rel=1e-9)
        loss.backward()
        norm = float(clip_grad_norm_(model.parameters(), largest or torch.inf))
        assert norm == pytest.approx(found.norms[number], rel=1e-9)
        optimizer.param_groups[0]["lr"] = noam(steps.first + number, 32, steps.warmup, steps.factor)
        before = block.of(model.get_parameter(PATH))
        optimizer.step()
    after = block.of(model.get_parameter(PATH))
    assert np.allclose(found.after, after, rtol=1e-6)
    assert np.allclose(found.before, before, rtol=1e-6)
    assert np.allclose(found.after - found.before, found.adam["update"], rtol=1e-6, atol=1e-15)
    assert found.rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)


def test_the_shared_model_is_not_trained(translator, trace) -> None:
    before = copy.deepcopy(translator.model.state_dict())
    found = take_steps(translator, trace, StepOptions(2, first=10, warmup=10), Block(PATH))
    assert found.losses[0] != found.losses[-1]
    assert all(torch.equal(weights, before[path]) for path, weights in translator.model.state_dict().items())
    assert not any(weights.requires_grad or weights.grad is not None for weights in translator.model.parameters())
    assert translator.rerun(trace, ()).log_probability == trace.log_probability


def test_a_small_step_makes_the_pair_more_probable(translator, trace) -> None:
    found = take_steps(translator, trace, StepOptions(3, first=1, warmup=1000), Block(PATH))
    assert np.all(np.diff(found.losses) < 0)
    assert found.log_probabilities[1].sum() > found.log_probabilities[0].sum()


def test_a_language_model_learns_from_its_own_tokens(tokenizer) -> None:
    opened = language_model(tokenizer)
    trace = opened.trace("A dog runs.")
    path = "decoder.layers.0.self_attn.w_q.weight"
    found = take_steps(opened, trace, StepOptions(first=1, warmup=100), Block(path, size=3))
    assert found.losses[1] < found.losses[0]
    assert found.texts[0] == opened.continue_text([trace.source], 12, temperature=0.0)[0]
