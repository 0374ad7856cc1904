"""Models without norm, without residual connections, and with BatchNorm: the network, its file and its trace."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.stream.residual_stream import layer_norm
from model.analysis.stream.whole_model import model_boxes, switch_off_each
from model.analysis.written.of_stream import last_parts, pull_back, total
from model.background import studies
from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.commands import norm_and_residual
from model.network.batch import without_padding
from model.network.config import PAD, TransformerConfig
from model.network.residual import BatchNorm
from model.proof.steps import verify_steps
from model.train import new_trainer
from model.training import reversal_task
from tests.model.strategies import few
from tests.model.tiny import random_model

CHANGES = {
    "no norm": {"norm_function": "none"},
    "no norm, pre": {"norm_function": "none", "norm": "pre"},
    "no residual": {"residual": False},
    "no residual, pre": {"residual": False, "norm": "pre"},
    "BatchNorm": {"norm_function": "batch_norm"},
    "BatchNorm, pre": {"norm_function": "batch_norm", "norm": "pre"},
}


@pytest.fixture(scope="module", params=CHANGES)
def changed(request, tiny_config: TransformerConfig, tokenizer: Tokenizer) -> Translator:
    model = random_model(replace(tiny_config, **CHANGES[request.param]))
    numbers = torch.Generator().manual_seed(1)
    for norm in (module for module in model.modules() if isinstance(module, BatchNorm)):
        norm.mean.normal_(generator=numbers)
        norm.variance.uniform_(0.5, 2, generator=numbers)
    return Translator("changed", "0" * 64, model, tokenizer)


def test_every_step_of_its_trace_is_read(changed: Translator) -> None:
    steps = verify_steps(changed, changed.trace("a dog runs", "ein Hund"))
    assert not [step for step in steps if not step.read]
    norms = [step for step in steps if step.name == "norm"]
    assert bool(norms) == (changed.config.norm_function != "none")


def test_its_stream_is_the_sum_of_what_its_parts_wrote(changed: Translator) -> None:
    trace = changed.trace("a dog runs", "ein Hund")
    for stack, stream in trace.streams.items():
        assert total(last_parts(trace, stack)) == pytest.approx(stream.final, abs=1e-4, rel=1e-4)
        directions = np.random.default_rng(0).standard_normal(stream.final.shape)
        terms = pull_back(trace, stack, directions, range(len(stream.final)))
        expected = (directions * stream.final).sum(axis=-1)
        assert sum(terms.values()) == pytest.approx(expected, abs=1e-3, rel=1e-3)


def test_one_token_at_a_time_it_computes_what_it_does_all_at_once(changed: Translator) -> None:
    trace = changed.trace("a dog runs")
    forced = changed.model(torch.tensor([trace.src_ids]), torch.tensor([trace.tgt_ids]))[0]
    forced[:, : changed.model.barred.stop] = -torch.inf
    assert forced.argmax(dim=-1).tolist() == list(trace.next_ids)


def test_its_boxes_say_what_it_has(changed: Translator) -> None:
    trace, config = changed.trace("a dog", "ein Hund"), changed.config
    parts = {box.part for box in model_boxes(changed, trace)}
    assert bool(parts & {"add", "add_norm"}) == config.residual
    switches = list(switch_off_each(changed, trace))[-1]
    assert any(name.endswith(" residual") for name in switches) == config.residual
    assert any(name.endswith(" norm") for name in switches) == (config.norm_function != "none")


def test_the_norm_of_one_token_is_the_models(changed: Translator) -> None:
    for sublayer in changed.trace("a dog runs", "ein Hund").sublayers:
        if (norm := layer_norm(sublayer, 1)) is None:
            assert changed.config.norm_function == "none"
            continue
        by_hand = norm.gamma * (sublayer.norm_input[1] - norm.mean) / norm.std + norm.beta
        assert by_hand == pytest.approx(sublayer.normed[1], abs=1e-5)


def test_its_file_keeps_what_it_needs(changed: Translator, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, changed.model, changed.tokenizer, changed.model.weights())
    opened = load_checkpoint(str(tmp_path), "cpu")
    for name, values in changed.model.weights().items():
        assert torch.equal(opened.model.weights()[name], values.half().float()), name


def test_without_residual_a_layer_gets_only_what_the_last_one_wrote(tiny_config: TransformerConfig) -> None:
    model = random_model(replace(tiny_config, residual=False, norm_function="none"))
    block = model.encoder.layers[0].feed_forward_residual
    x = torch.randn(1, 3, tiny_config.d_model)
    assert torch.equal(block(x, lambda x: 2 * x), 2 * x)


def test_batch_norm_takes_mean_and_variance_of_each_dimension_over_all_tokens() -> None:
    numbers = torch.Generator().manual_seed(0)
    x, norm = 3 * torch.randn(4, 5, 8, generator=numbers) + 2, BatchNorm(8).train()
    tokens = norm(x).detach().flatten(0, 1)
    assert tokens.mean(dim=0).tolist() == pytest.approx([0] * 8, abs=1e-5)
    assert tokens.var(dim=0, correction=0).tolist() == pytest.approx([1] * 8, abs=1e-3)
    for _ in range(200):
        norm(x)
    kept = norm.eval()(x[:1]).detach()
    # Afterwards a token's neighbours no longer matter.
    assert torch.allclose(kept[:, :2], norm(x[:1, :2]))
    assert kept.numpy() == pytest.approx(tokens.view_as(x)[:1].numpy(), abs=0.2)


@few
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=30), st.integers(1, 8))
def test_batches_without_padding_lose_nothing_and_have_one_shape(shapes: list[tuple[int, int]], size: int) -> None:
    batches = [list(range(start, min(start + size, len(shapes)))) for start in range(0, len(shapes), size)]
    divided = without_padding(batches, shapes)
    assert sorted(i for batch in divided for i in batch) == list(range(len(shapes)))
    assert all(len({shapes[i] for i in batch}) == 1 for batch in divided)


TINY = (
    "--preset toy --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 --steps 12 --warmup 100 "
    "--max-tokens 200 --evaluate-every 12 --average 1"
)


@pytest.mark.usefixtures("few_letters")
@pytest.mark.parametrize("norm", ["batch_norm", "layer_norm"])
def test_only_batch_norm_is_trained_without_padding(norm: str, tmp_path: Path) -> None:
    letters = tmp_path / "letters"
    reversal_task.main(["--out", str(letters), "--longest", "5"])
    files = ["--train", f"{letters / 'train.tsv'}", "--dev", f"{letters / 'dev.tsv'}", "--out", str(tmp_path)]
    trainer = new_trainer([*TINY.split(), "--norm-function", norm, *files])
    padded = []
    trainer.model.register_forward_pre_hook(
        lambda model, batch: padded.append(any((ids == PAD).any().item() for ids in batch)) if model.training else None
    )
    assert list(trainer.run())
    assert any(padded) == (norm == "layer_norm")
    if norm == "batch_norm":
        opened = load_checkpoint(str(tmp_path), "cpu").model.weights()
        running = [values for name, values in opened.items() if name.endswith("norm.mean")]
        assert running
        assert all(values.abs().sum() > 0 for values in running)


@pytest.mark.usefixtures("few_letters")
def test_the_study_writes_what_the_page_reads(tmp_path: Path, monkeypatch) -> None:
    names = ("no-norm", "pre-2")
    monkeypatch.setattr(norm_and_residual, "RUNS", {name: norm_and_residual.RUNS[name] for name in names})
    recipe = TINY.replace("--n-encoder-layers 1 --n-decoder-layers 1 ", "")
    command = ["--out", str(tmp_path / "runs"), "--gather", str(tmp_path / "shipped"), "--recipe", recipe]
    norm_and_residual.main(command)
    logs, gradients = (pd.read_csv(tmp_path / "shipped" / name) for name in (studies.NORMS, studies.GRADIENTS))
    assert set(logs["run"]) == set(gradients["run"]) == set(names)
    # no-norm has the toy's layers, pre-2 its own.
    assert gradients.groupby("run").size().to_dict() == {"no-norm": 4, "pre-2": 4}
    assert (gradients["gradient"] > 0).all()
    assert load_checkpoint(str(tmp_path / "shipped" / "no-norm"), "cpu").config.norm_function == "none"
    weights = tmp_path / "runs" / "pre-2" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    norm_and_residual.main(command)  # what is finished is not trained again
    assert weights.stat().st_mtime_ns == written
    # A run of its own, from another folder, leaves the rows of the others as they are.
    others = [logs[logs["run"] == "no-norm"], gradients[gradients["run"] == "no-norm"]]
    alone = ["--out", str(tmp_path / "alone"), "--runs", "pre-2"]
    norm_and_residual.main([*command, *alone])
    assert not (tmp_path / "alone" / "no-norm").exists()
    for name, before, other in zip((studies.NORMS, studies.GRADIENTS), (logs, gradients), others, strict=True):
        after = pd.read_csv(tmp_path / "shipped" / name)
        assert list(dict.fromkeys(after["run"])) == [*names]
        assert after.groupby("run").size().equals(before.groupby("run").size())
        pd.testing.assert_frame_equal(after[after["run"] == "no-norm"], other)


def test_every_run_has_a_name_in_the_table() -> None:
    from pages.views.model.training.studies import NORM_RUNS

    assert set(NORM_RUNS) == set(norm_and_residual.RUNS)
