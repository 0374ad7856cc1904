"""Hook points: PyTorch's hooks and our recordings read and edit a run, that run alone, and change nothing else."""

import copy
import threading

import pytest
import torch

from model.hooks import editing, explicit_path, hook_points, recording
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from tests.model.tiny import random_model

SRC, TGT = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
PATTERN = "decoder.layers.1.cross_attn.pattern"


@pytest.fixture
def model(tiny_model) -> Transformer:
    """A copy, so that a failing test leaves nothing behind in the shared one."""
    return copy.deepcopy(tiny_model)


def test_a_native_hook_that_returns_a_tensor_replaces_it(model):
    uniform = torch.full((1, 4, 3, 4), 0.25)
    before = model(SRC, TGT)
    handle = hook_points(model)[PATTERN].register_forward_hook(lambda _module, _args, _pattern: uniform)
    with recording(model, ["decoder.layers.1.cross_attn.v", "decoder.layers.1.cross_attn.z"]) as activations:
        after = model(SRC, TGT)
    mean = activations["decoder.layers.1.cross_attn.v"].mean(dim=2, keepdim=True)
    assert torch.allclose(activations["decoder.layers.1.cross_attn.z"], mean.expand(-1, -1, 3, -1), atol=1e-6)
    assert not torch.allclose(after, before, atol=1e-3)
    handle.remove()
    assert torch.equal(model(SRC, TGT), before)


def test_recording_takes_only_the_paths_asked_for(model):
    with recording(model, [PATTERN, "logits"]) as activations:
        logits = model(SRC, TGT)
    assert activations.keys() == {PATTERN, "logits"}
    assert torch.equal(activations["logits"], logits)


def test_what_was_recorded_can_be_read_after_the_block_and_holds_no_gradient(model):
    model.requires_grad_(True)
    with recording(model, [PATTERN]) as activations:
        model(SRC, TGT)
    model(SRC, torch.tensor([[2]]))
    assert activations[PATTERN].shape == (1, 4, 3, 4), "the run after the block is not recorded"
    assert not activations[PATTERN].requires_grad


def test_an_edit_replaces_and_none_leaves_alone(model):
    before = model(SRC, TGT)
    with editing(model, {"memory": lambda _memory: None}):
        assert torch.equal(model(SRC, TGT), before)
    with editing(model, {"memory": torch.zeros_like}), recording(model, ["memory"]) as activations:
        assert not torch.equal(model(SRC, TGT), before)
    assert not activations["memory"].any(), "what is recorded is what the model went on with"
    assert torch.equal(model(SRC, TGT), before)


def test_the_outer_edit_comes_first_wherever_the_recording_stands(model):
    double, add_one = {"logits": lambda x: 2 * x}, {"logits": lambda x: x + 1}
    plain = model(SRC, TGT)
    with (
        recording(model, ["logits"]) as outside,
        editing(model, double),
        editing(model, add_one),
        recording(model, ["logits"]) as inside,
    ):
        assert torch.equal(model(SRC, TGT), 2 * plain + 1)
    assert torch.equal(outside["logits"], inside["logits"])
    with editing(model, add_one), editing(model, double):
        assert torch.equal(model(SRC, TGT), 2 * (plain + 1))


def test_2_nothing_is_left_behind_after_an_exception(model):
    before = model(SRC, TGT)

    def fail(_activation: torch.Tensor) -> None:
        raise RuntimeError("on purpose")

    with (
        pytest.raises(RuntimeError, match="on purpose"),
        recording(model) as activations,
        editing(model, {"memory": torch.zeros_like, "logits": fail}),
        explicit_path(),
    ):
        model(SRC, TGT)
    recorded = dict(activations)
    assert torch.equal(model(SRC, TGT), before)
    assert all(activations[path] is tensor for path, tensor in recorded.items()), "nothing is recorded any more"
    assert not any(point.observed for point in hook_points(model).values())


@pytest.mark.parametrize("context", [recording, editing])
def test_an_unknown_path_lists_the_known_ones(model, context):
    wrong = ["decoder.pattern"] if context is recording else {"decoder.pattern": lambda x: x}
    with pytest.raises(ValueError, match=r"no hook point 'decoder\.pattern'") as error, context(model, wrong):
        pass
    assert PATTERN in str(error.value)


def test_two_models_do_not_see_each_others_runs(model, tiny_config):
    other = random_model(tiny_config, seed=1)
    before = other(SRC, TGT)
    with recording(model) as activations, editing(model, {"logits": torch.zeros_like}):
        assert torch.equal(other(SRC, TGT), before)
        assert not activations
        assert not any(point.observed for point in hook_points(other).values())


def test_another_thread_does_not_see_this_ones_edits(model):
    before, found = model(SRC, TGT), []
    with recording(model) as activations, editing(model, {"logits": torch.zeros_like}):
        thread = threading.Thread(target=lambda: found.append(model(SRC, TGT)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], before)
    assert not activations


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_sentence_of_nothing_but_padding_gives_no_nan_on_either_path(tiny_config, dtype):
    model = random_model(tiny_config, dtype=dtype)
    src = torch.tensor([[5, 6, 7], [0, 0, 0]])
    tgt = torch.tensor([[2, 8], [2, 8]])
    fused = model(src, tgt)
    with recording(model) as activations:
        explicit = model(src, tgt)
    assert explicit.isfinite().all()
    torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-10 if dtype == torch.float64 else 5e-5)
    for path, pattern in activations.items():
        if path.endswith("pattern"):
            assert pattern.isfinite().all()
    cross = activations[PATTERN]
    assert not cross[1].any(), "who may attend to nothing gathers nothing"
    assert not padding_mask(src)[1].any()


def test_while_nobody_watches_the_inner_points_of_attention_are_not_visited(model):
    visited = []
    point = hook_points(model)[PATTERN]
    forward = point.forward
    point.forward = lambda x: visited.append(1) or forward(x)
    model(SRC, TGT)
    assert not visited
    with explicit_path():
        model(SRC, TGT)
    assert visited


def test_training_on_a_cpu_takes_the_explicit_path_and_its_gradients_agree(tiny_config):
    """It is the faster one there; the fused gradient must be the same."""
    model = random_model(tiny_config, dtype=torch.float64).requires_grad_(True)
    model(SRC, TGT).square().sum().backward()
    explicit = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    for _path, attention in model.attentions().values():
        attention._explicit_needed = lambda _q: False
    model(SRC, TGT).square().sum().backward()
    for ours, parameter in zip(explicit, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, ours, rtol=1e-9, atol=1e-9)
