"""Snapshots of a training: found by name, opened into the checkpoint's own configuration, refused when broken."""

from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import CheckpointError, load_checkpoint, save_weights
from model.checkpoints.store import sha256 as hash_of
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from tests.model.tiny import random_model

SHIPPED = Path(__file__).parents[3] / "checkpoints" / "multi30k-tiny"


@pytest.fixture
def folder(folder: Path, tiny_config: TransformerConfig) -> Path:
    """With two snapshots of other random weights."""
    (folder / "snapshots").mkdir()
    for step in (0, 1000):
        weights = dict(random_model(tiny_config, seed=step + 1).named_parameters())
        save_weights(folder / "snapshots" / f"step-{step:06}.safetensors", weights)
    return folder


@pytest.fixture
def opened(folder: Path) -> Translator:
    return load_checkpoint(str(folder), "cpu")


def test_only_files_named_as_training_names_them_are_snapshots(folder: Path) -> None:
    assert snapshot_steps(folder) == (0, 1000)
    for name in ("step-1.safetensors", "step-00000٣.safetensors", "step-0001000.safetensors", "x.safetensors"):
        (folder / "snapshots" / name).write_bytes(b"")
    (folder / "snapshots" / "step-000007.safetensors").mkdir()
    assert snapshot_steps(folder) == (0, 1000)
    assert snapshot_steps(folder.parent) == ()


@pytest.mark.parametrize("step", [0, 1000])
def test_a_snapshot_has_its_own_weights_and_hash_and_the_checkpoints_rest(
    opened: Translator, folder: Path, tiny_config: TransformerConfig, step: int
) -> None:
    snapshot = open_snapshot(opened, step)
    wanted = dict(random_model(tiny_config, seed=step + 1).named_parameters())
    for name, parameter in snapshot.model.named_parameters():
        assert torch.equal(parameter, wanted[name].half().float()), name
        assert not parameter.requires_grad
    assert not snapshot.model.training
    assert snapshot.hash == hash_of(folder / "snapshots" / f"step-{step:06}.safetensors") != opened.hash
    assert (snapshot.name, snapshot.tokenizer) == (opened.name, opened.tokenizer)


def test_the_forced_run_reads_the_same_tokens_and_is_the_snapshots_own(opened: Translator) -> None:
    trace, snapshot = opened.trace("a dog and a cat", beam_size=1), open_snapshot(opened, 1000)
    found = snapshot.rerun(trace, trace.interventions)
    assert (found.src_ids, found.tgt_ids, found.next_ids) == (trace.src_ids, trace.tgt_ids, trace.next_ids)
    assert found.checkpoint_hash == snapshot.hash
    assert not np.array_equal(found.logits, trace.logits)
    assert np.array_equal(opened.rerun(trace, trace.interventions).logits, trace.logits)


def test_a_step_that_was_not_kept_is_refused_with_those_that_were(opened: Translator) -> None:
    with pytest.raises(CheckpointError, match=r"no snapshot of step 7; it has: 0, 1,000\."):
        open_snapshot(opened, 7)


@pytest.mark.parametrize("kept", [0, 7, 2000])
def test_a_file_that_is_cut_off_is_a_sentence_without_the_machines_folders(
    opened: Translator, folder: Path, kept: int
) -> None:
    path = folder / "snapshots" / "step-001000.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"snapshots/step-001000\.safetensors is not a valid") as error:
        open_snapshot(opened, 1000)
    assert str(folder) not in str(error.value)


def test_weights_of_another_shape_are_refused(opened: Translator, folder: Path) -> None:
    other = TransformerConfig(vocab_size=360, d_model=16, n_heads=4, d_ff=64, n_encoder_layers=2, n_decoder_layers=2)
    save_weights(folder / "snapshots" / "step-000010.safetensors", dict(random_model(other).named_parameters()))
    with pytest.raises(CheckpointError, match=r"step-000010\.safetensors has .* of shape"):
        open_snapshot(opened, 10)


def test_every_shipped_snapshot_opens() -> None:
    translator = load_checkpoint(str(SHIPPED), "cpu")
    steps = snapshot_steps(SHIPPED)
    assert steps == (0, 10, 32, 100, 316, 1000, 3162)
    assert len({open_snapshot(translator, step).hash for step in steps} | {translator.hash}) == len(steps) + 1
