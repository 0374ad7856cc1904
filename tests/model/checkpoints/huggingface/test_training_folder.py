"""A Trainer's folder opens as its newest finished checkpoint, whatever the Trainer is writing or deleting just then."""

import json
import shutil

import numpy as np
import pytest

from model.checkpoints.files import CheckpointError
from model.checkpoints.huggingface import loading
from model.checkpoints.snapshots import newest_step, open_snapshot, snapshot_steps, unfinished_steps
from model.checkpoints.store import file_stamp, load_checkpoint
from tests.model.checkpoints.huggingface.training_folder import ORDER, save_step

TEXT = "A dog runs."


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Finished checkpoints of three steps."""
    root = tmp_path_factory.mktemp("whole")
    for step in (90, 1000, 1010):
        save_step(root, step)
    return root


@pytest.fixture
def folder(whole, tmp_path):
    """With two of them, which sorted by name come in the wrong order."""
    for step in (1000, 90):
        shutil.copytree(whole / f"checkpoint-{step}", tmp_path / "run" / f"checkpoint-{step}")
    return tmp_path / "run"


def test_the_newest_of_its_checkpoints_is_open_by_the_name_of_the_folder(folder):
    opened, alone = load_checkpoint(str(folder), "cpu"), load_checkpoint(str(folder / "checkpoint-1000"), "cpu")
    assert (opened.hash, opened.name) == (alone.hash, str(folder))
    assert opened.step == alone.step == newest_step(str(folder)) == 1000
    assert snapshot_steps(folder) == (90, 1000)


def test_a_checkpoint_that_is_being_written_does_not_count_before_its_last_byte(folder, whole):
    """Every file comes in two halves, in the Trainer's order."""
    last, path = whole / "checkpoint-1010", folder / "checkpoint-1010"
    path.mkdir()
    before = file_stamp(str(folder))
    for name in ORDER:
        content = (last / name).read_bytes()
        for size in (0, len(content) // 2, len(content) - 2):
            (path / name).write_bytes(content[:size])
            assert (newest_step(str(folder)), file_stamp(str(folder))) == (1000, before), (name, size)
            assert snapshot_steps(folder) == (90, 1000)
            (problem,) = unfinished_steps(folder)
            assert "checkpoint-1010 is not finished" in problem
        (path / name).write_bytes(content)
    assert newest_step(str(folder)) == 1010
    assert file_stamp(str(folder)) != before
    assert load_checkpoint(str(folder), "cpu").hash == load_checkpoint(str(last), "cpu").hash


@pytest.mark.parametrize("name", ORDER)
def test_a_checkpoint_that_is_being_deleted_does_not_count(folder, name):
    """Files go in no order; those of the weights or the state are enough, the others are not part of the model."""
    (folder / "checkpoint-1000" / name).unlink()
    needed = name in ("config.json", "model.safetensors", "trainer_state.json")
    assert snapshot_steps(folder) == ((90,) if needed else (90, 1000))
    assert load_checkpoint(str(folder), "cpu").step == (90 if needed else 1000)


def test_weights_with_fewer_bytes_than_their_header_promises_do_not_count_though_the_state_is_there(folder):
    weights = folder / "checkpoint-1000" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    (problem,) = unfinished_steps(folder)
    assert "checkpoint-1000/model.safetensors is not a valid safetensors file" in problem
    assert load_checkpoint(str(folder), "cpu").step == 90


def test_an_index_that_names_a_file_which_is_not_there_does_not_count(folder):
    path = folder / "checkpoint-1000"
    (path / "model.safetensors").rename(path / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    (problem,) = unfinished_steps(folder)
    assert "has no model-00002-of-00002.safetensors" in problem
    assert newest_step(str(folder)) == 90


def test_without_a_finished_checkpoint_a_sentence_says_why_and_what_to_do(folder):
    shutil.rmtree(folder / "checkpoint-90")
    (folder / "checkpoint-1000" / "trainer_state.json").unlink()
    with pytest.raises(CheckpointError, match="has no finished checkpoint yet") as error:
        load_checkpoint(str(folder), "cpu")
    assert "trainer_state.json" in str(error.value)
    assert str(error.value).endswith(str(folder / "checkpoint-1000"))
    assert (file_stamp(str(folder)), newest_step(str(folder))) == ((), None)


@pytest.mark.parametrize("above", [True, False])
def test_a_tokenizer_may_stand_beside_the_checkpoints_and_without_one_texts_are_token_ids(folder, above):
    path = folder / "checkpoint-1000"
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (path / name).exists():
            (path / name).rename(folder / name) if above else (path / name).unlink()
    opened = load_checkpoint(str(folder), "cpu")
    assert opened.step == 1000
    assert opened.tokenizer.reads_text == above
    assert opened.trace(TEXT if above else "5 17 42").logits.size


def test_the_model_that_is_saved_at_the_end_is_open_as_soon_as_it_is_whole(folder, whole):
    last = whole / "checkpoint-1010"
    content = (last / "model.safetensors").read_bytes()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(last / name, folder)
    (folder / "model.safetensors").write_bytes(content[:5000])
    assert load_checkpoint(str(folder), "cpu").step == 1000
    (folder / "model.safetensors").write_bytes(content)
    opened = load_checkpoint(str(folder), "cpu")
    assert (opened.step, opened.hash) == (None, load_checkpoint(str(last), "cpu").hash)
    assert snapshot_steps(folder) == (90, 1000)


def test_what_is_open_stays_when_its_files_go_and_an_earlier_step_that_went_is_named(folder):
    opened = load_checkpoint(str(folder), "cpu")
    before = opened.trace(TEXT)
    then = open_snapshot(opened, 90)
    assert then.hash == load_checkpoint(str(folder / "checkpoint-90"), "cpu").hash != opened.hash
    assert (then.name, then.step) == (opened.name, 90)
    shutil.rmtree(folder / "checkpoint-90")
    with pytest.raises(CheckpointError, match=r"no longer has the checkpoint of step 90; it has: 1,000\."):
        open_snapshot(opened, 90)
    shutil.rmtree(folder)
    np.testing.assert_array_equal(opened.trace(TEXT).logits, before.logits)


@pytest.mark.parametrize("gone", ["checkpoint-90", "checkpoint-90/tokenizer.json", "checkpoint-90/model.safetensors"])
def test_what_is_deleted_while_it_is_opened_is_named_as_gone_or_opens(folder, gone, monkeypatch):
    opened = load_checkpoint(str(folder), "cpu")
    read = loading.read_weights

    def delete_and_read(files):
        path = folder / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return read(files)

    monkeypatch.setattr(loading, "read_weights", delete_and_read)
    if gone.endswith("tokenizer.json"):
        assert open_snapshot(opened, 90).step == 90
    else:
        with pytest.raises(CheckpointError, match="no longer has the checkpoint of step 90"):
            open_snapshot(opened, 90)
