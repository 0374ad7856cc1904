"""Gradients of the loss: central differences agree, for each family, and nothing stays on the shared model."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.analysis.double_precision import in_double_precision
from model.analysis.heads.softmax import softmax, softmax_jacobian
from model.analysis.runs.gradients import (
    distance_gradients,
    gradient_times_input,
    loss_gradients,
    rounding_of_streams,
    stream_gradients,
    stream_steps,
)
from model.checkpoints.store import load_checkpoint
from model.hooks import editing, hook_points
from model.interventions import (
    HeadGate,
    MaskEdit,
    PermutedAttention,
    ResidualOff,
    SublayerOff,
    UniformAttention,
    Unscaled,
    applied,
)
from model.network.config import TransformerConfig
from model.network.network import EMBEDDINGS
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.checkpoints.test_shipped import FOLDER
from tests.model.tiny import random_checkpoint

SOURCE, TARGET = "Two dogs play", "Zwei Hunde rennen"
CLASSIC = TransformerConfig(
    d_model=32, n_heads=4, d_ff=48, n_encoder_layers=2, n_decoder_layers=2, max_len=64, activation="gelu",
)  # fmt: skip
"""post-norm and sinusoids, without ReLU: a difference across its kink is no derivative"""
CHANGES = {
    "as trained": (),
    "no residual": (ResidualOff(),),
    "no residual, unscaled": (ResidualOff(), Unscaled()),
    "a head at half": (HeadGate(0.5, layer=1, head=2), PermutedAttention(3, layer=0)),
    "weights put in": (UniformAttention(layer=1), SublayerOff(layer=0, name="feed_forward")),
    "a row without keys": (MaskEdit(tuple((1, key) for key in range(20)), layer=0),),
}
STEP = 1e-5


def opened(family, tokenizer):
    """A model of random weights in double precision, and its run."""
    config = replace(CLASSIC if family == "translator" else MODERN, vocab_size=len(tokenizer))
    layers = {"translator": (2, 2), "lm": (0, 2), "mlm": (2, 0), "alibi": (2, 0)}[family]
    config = replace(config, n_encoder_layers=layers[0], n_decoder_layers=layers[1])
    config = replace(config, positions="alibi", norm="post", qk_norm=False) if family == "alibi" else config
    translator = random_checkpoint(config, tokenizer, torch.float64)
    return translator, translator.trace(SOURCE, TARGET if family == "translator" else None)


def move_by(distance: np.ndarray) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x + torch.from_numpy(distance)


FAMILIES = ("translator", "lm", "mlm", "alibi")
DEALT = [(family, name) for i, family in enumerate(FAMILIES) for j, name in enumerate(CHANGES) if (i + j) % 2 == 0]
"""each family with half of the changes, and each change with half of the families"""


@pytest.mark.parametrize(("family", "changed"), DEALT)
def test_every_gradient_is_a_central_difference(family, changed, tokenizer):
    """At each hook point, along random directions d: (L(x + h d) - L(x - h d)) / 2h = dL/dx . d, to fourth order."""
    changes, (translator, trace) = CHANGES[changed], opened(family, tokenizer)
    trace = translator.rerun(trace, changes)
    found = loss_gradients(translator, trace)
    assert found.loss == pytest.approx(-trace.log_probability, rel=1e-12)
    numbers = np.random.default_rng(0)
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]

    def loss(directions: dict[str, np.ndarray], step: float) -> float:
        moves = {path: move_by(step * direction) for path, direction in directions.items()}
        # Inside the interventions, so that what they put in place of an activation is what moves.
        with torch.inference_mode(), applied(translator.model, changes), editing(translator.model, moves):
            logits = translator.model(*texts)[0].log_softmax(-1)
        return -logits[range(len(trace.next_ids)), list(trace.next_ids)].sum().item()

    directions = {path: numbers.standard_normal(gradient.shape) for path, gradient in found.by_path.items()}
    for (kind, layer), (path, _) in translator.model.attentions().items():
        for name in ("scores", "pattern"):
            directions[f"{path}.{name}"] *= trace.attention(kind, layer).mask
    # All points of one name move at once: 4 runs for each name instead of for each point.
    for name in {path.rpartition(".")[2] for path in directions}:
        moved = {path: direction for path, direction in directions.items() if path.rpartition(".")[2] == name}
        near, far = (loss(moved, step) - loss(moved, -step) for step in (STEP, 2 * STEP))
        slope = sum((found[path] * direction).sum() for path, direction in moved.items())
        assert slope == pytest.approx((8 * near - far) / (12 * STEP), rel=1e-6, abs=1e-7), list(moved)
    assert len(found.by_path) >= 25


def test_nothing_stays_on_the_model_and_16_threads_get_what_each_gets_alone(translator):
    traces = [
        translator.trace(SOURCE, TARGET, interventions=(HeadGate(i / 16, layer=0), ResidualOff("decoder", 1)))
        for i in range(16)
    ]
    alone = [loss_gradients(translator, trace) for trace in traces]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda trace: loss_gradients(translator, trace), traces * 3))
    for i, found in enumerate(together):
        expected = alone[i % 16]
        assert found.loss == expected.loss
        assert all(np.array_equal(found[path], array) for path, array in expected.by_path.items())
    assert len({found.loss for found in alone}) == 16
    assert all(parameter.grad is None for parameter in translator.model.parameters())
    assert not any(point.observed for point in hook_points(translator.model).values())


RUNS = {"as it is": (), "no residual": (ResidualOff(),), "neither": (ResidualOff(), Unscaled())}


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", ["multi30k-tiny", "everyday-lm-2017"])
def test_curves_of_trained_weights_are_far_more_exact_than_what_one_rounding_of_single_precision_moves(name, changes):
    """Without residual connections, one rounding of the embeddings grows to a tenth of the gradient."""
    opened = load_checkpoint(str(FOLDER / name), "cpu")
    trace = opened.trace("A dog runs through the snow.")
    assert max(share.max() for share in rounding_of_streams(opened, trace, changes).values()) < 1e-6
    curves = stream_gradients(opened, trace, changes)
    double = in_double_precision(opened)
    assert double.model.output.weight.dtype == torch.float64
    exact = loss_gradients(double, replace(trace, interventions=changes))
    for stack, norms in curves.items():
        assert norms[0] == pytest.approx(np.linalg.norm(exact[f"{EMBEDDINGS[stack]}.sum"]), rel=1e-9)


def test_what_one_rounding_moves_is_told_where_a_model_runs_in_single_precision():
    pytest.importorskip("transformers")
    from tests.model.checkpoints.huggingface.test_families import opened as foreign

    model = foreign("GPT-2")
    trace = model.trace("7 30 11 5 90")
    assert model.model.output.weight.dtype == torch.float32
    found = rounding_of_streams(model, trace)
    assert list(found) == list(trace.streams)
    for stack, share in found.items():
        assert share.shape == stream_gradients(model, trace)[stack].shape
        assert 0 < share.max() < 1e-3


def test_a_stack_without_any_gradient_is_moved_by_nothing(translator):
    trace = translator.trace(SOURCE, TARGET, interventions=(HeadGate(0.0, "cross"),))
    assert not stream_gradients(translator, trace)["encoder"].any()
    assert not rounding_of_streams(translator, trace)["encoder"].any()


@pytest.mark.parametrize("family", ["translator", "lm"])
def test_norms_of_the_stream_are_those_of_the_gradients(family, tokenizer):
    translator, trace = opened(family, tokenizer)
    whole, norms = loss_gradients(translator, trace), stream_gradients(translator, trace)
    last = "normed" if family == "translator" else "added"
    assert stream_steps(trace, "decoder")[-1] == "1 feed-forward"
    assert norms["decoder"].shape == (len(stream_steps(trace, "decoder")),)
    expected = np.linalg.norm(whole[f"decoder.layers.1.feed_forward_residual.{last}"])
    assert norms["decoder"][-1] == pytest.approx(expected, rel=1e-12)
    assert norms["decoder"][0] == pytest.approx(np.linalg.norm(whole["tgt_embedding.sum"]), rel=1e-12)
    off = stream_gradients(translator, trace, (ResidualOff(),))
    again = stream_gradients(translator, translator.rerun(trace, (ResidualOff(),)))
    np.testing.assert_array_equal(off["decoder"], again["decoder"])


def test_gradient_times_input_is_the_slope_of_shrinking_an_embedding(tokenizer):
    translator, trace = opened("translator", tokenizer)
    found = gradient_times_input(translator, trace, [1, 2])
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]

    def log_p(token: int, factor: float) -> float:
        def shrink(x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:, :token], factor * x[:, token : token + 1], x[:, token + 1 :]], dim=1)

        with torch.inference_mode(), editing(translator.model, {"src_embedding.embedding": shrink}):
            return translator.model(*texts)[0, 2].log_softmax(-1)[trace.next_ids[2]].item()

    for token in range(len(trace.src_ids)):
        slope = (log_p(token, 1 + STEP) - log_p(token, 1 - STEP)) / (2 * STEP)
        assert found["encoder"][1, token] == pytest.approx(slope, rel=1e-6, abs=1e-8)
    assert found["decoder"].shape == (2, len(trace.tgt_ids))
    assert not found["decoder"][0, 2:].any(), "row 1 cannot see later target tokens"


@pytest.mark.parametrize("family", ["translator", "lm", "mlm"])
def test_the_gradient_over_distance_counts_every_pair_that_sees_each_other_once(family, tokenizer):
    translator, trace = opened(family, tokenizer)
    *_, found = distance_gradients(translator, trace)
    assert found.done == 1
    rows, before = len(trace.next_ids), len(trace.src_ids) if family == "translator" else 0
    assert found.distance.tolist() == list(range(before + rows))
    sums = np.zeros(before + rows)
    for row in range(rows):
        each = loss_of_row(translator, trace, row)
        for position, norm in enumerate(each):
            sums[abs(before + row - position)] += norm
    pairs = np.bincount([abs(before + row - at) for row in range(rows) for at in range(before + rows)
                         if family == "mlm" or at <= before + row])  # fmt: skip
    assert found.pairs.tolist() == pairs.tolist()
    np.testing.assert_allclose(found.norm, sums / pairs)


def loss_of_row(translator, trace, row):
    """(token,): ||d(-log p of the row)/d embedding||, of all streams, from a graph of its own."""
    with torch.enable_grad():
        leaves: list[torch.Tensor] = []

        def leaf(x: torch.Tensor) -> torch.Tensor:
            leaves.append(x.detach().requires_grad_())
            return leaves[-1]

        paths = [path for path in hook_points(translator.model) if path.endswith("_embedding.embedding")]
        with editing(translator.model, dict.fromkeys(paths, leaf)):
            logits = translator.model(*(torch.tensor([s.tokens.ids]) for s in trace.streams.values()))
        logits[0, row].log_softmax(-1)[trace.next_ids[row]].backward()
    return torch.cat([leaf.grad[0].norm(dim=-1) for leaf in leaves]).numpy()


def test_the_jacobian_is_the_derivative_of_the_softmax(translator):
    attention = translator.trace(SOURCE, TARGET).attention("decoder_self", 1)
    taus = [0.2, 1.0, 5.0]
    found = softmax_jacobian(attention, 2, 3, 0.5, taus)
    x = np.where(attention.mask[2, 3], attention.pre_softmax[2, 3].astype(float), -np.inf) / 0.5
    for key in range(len(x)):
        up, down = (x + sign * STEP * np.eye(len(x))[key] for sign in (1, -1))
        np.testing.assert_allclose(found.matrix[:, key], (softmax(up) - softmax(down)) / (2 * STEP), atol=1e-9)
    for i, tau in enumerate(taus):
        matrix = softmax_jacobian(attention, 2, 3, tau, [1.0]).matrix
        assert found.largest[i] == pytest.approx(np.linalg.norm(matrix, 2), abs=1e-12)
        assert found.frobenius[i] == pytest.approx(np.sqrt((matrix**2).sum()), abs=1e-12)
    assert found.largest.max() <= 0.5
