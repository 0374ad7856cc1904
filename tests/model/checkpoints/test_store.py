"""Checkpoints: what was saved comes back; what is missing, damaged or foreign gets a sentence, and never runs."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoints.files import atomic_write
from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    DEFAULT_CHECKPOINT,
    MODELS_VARIABLE,
    CheckpointError,
    available_checkpoints,
    find_offered_model,
    first_checkpoint,
    load_checkpoint,
    offered_family,
    pick_device,
    save_checkpoint,
    save_weights,
    sha256,
    shown_name,
    stored_config,
)
from model.needs import Need
from tests.model.tiny import random_model, train_tiny_tokenizer

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.model", "config.json"
REMEDY = "Restore the folder (git checkout), or train it again with python -m model.train."


@pytest.fixture
def folder(saved_checkpoints, tmp_path, monkeypatch) -> Path:
    """A checkpoint of one's own to damage."""
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    shutil.copytree(saved_checkpoints / DEFAULT_CHECKPOINT, tmp_path / DEFAULT_CHECKPOINT)
    return tmp_path / DEFAULT_CHECKPOINT


def rewrite_config(folder: Path, change: Callable[[dict], object]) -> None:
    config = json.loads((folder / CONFIG).read_text())
    change(config)
    (folder / CONFIG).write_text(json.dumps(config))


def sign(folder: Path, file: str) -> None:
    """Make config.json agree with what the file now holds, as a forger would."""
    rewrite_config(folder, lambda config: config["sha256"].update({file: sha256(folder / file)}))


def rewrite_weights(folder: Path, change: Callable[[dict], object]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS)
    sign(folder, WEIGHTS)


def error_of(_folder: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(device="cpu")
    assert isinstance(error.value, ValueError)
    return str(error.value)


def test_what_was_saved_comes_back_in_half_precision(folder, tiny_config, tokenizer):
    model = random_model(tiny_config)
    save_checkpoint(folder, model, tokenizer, dict(model.named_parameters()))
    translator = load_checkpoint(device="cpu")
    assert (translator.name, translator.hash) == (DEFAULT_CHECKPOINT, sha256(folder / WEIGHTS))
    assert translator.model.config == tiny_config
    assert translator.tokenizer.serialized == tokenizer.serialized
    for (name, loaded), (_, saved) in zip(translator.model.named_parameters(), model.named_parameters(), strict=True):
        assert torch.equal(loaded, saved.half().float()), name
    assert not translator.model.training
    assert not any(parameter.requires_grad for parameter in translator.model.parameters())
    assert translator.model.output.weight is translator.model.src_embedding.tokens.weight, "still tied"


def test_two_loads_are_the_same_model(folder):
    one, other = (load_checkpoint(device="cpu").trace("Two dogs", "Zwei") for _ in range(2))
    assert one.logits.tobytes() == other.logits.tobytes()
    assert one.checkpoint_hash == sha256(folder / WEIGHTS)


@pytest.mark.parametrize("file", [WEIGHTS, VOCABULARY])
def test_a_missing_file_is_named_with_a_remedy(folder, file):
    (folder / file).unlink()
    assert error_of(folder) == f"{folder / file} is missing. {REMEDY}"


@pytest.mark.parametrize("file", [WEIGHTS, VOCABULARY])
@pytest.mark.parametrize("keep", [0, 1000])
def test_a_cut_off_file_is_named_with_what_was_expected(folder, file, keep):
    expected = sha256(folder / file)
    (folder / file).write_bytes((folder / file).read_bytes()[:keep])
    message = error_of(folder)
    assert message.startswith(f"{folder / file} ({keep:,} bytes) is truncated or altered")
    assert f"expects {expected[:12]}" in message
    assert message.endswith(REMEDY)


@pytest.mark.parametrize("file", [WEIGHTS, VOCABULARY])
@pytest.mark.parametrize("position", [0, 0.5, -1])
def test_a_single_flipped_bit_is_noticed(folder, file, position):
    content = bytearray((folder / file).read_bytes())
    content[int(position * len(content)) if position == 0.5 else position] ^= 1
    (folder / file).write_bytes(content)
    assert "is truncated or altered" in error_of(folder)


def test_a_folder_in_the_place_of_a_file_is_missing_the_file(folder):
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()
    assert f"{WEIGHTS} is missing" in error_of(folder)


def test_a_pickle_in_disguise_is_refused_and_does_not_run(folder, tmp_path):
    class Attack:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    for file, complaint in (
        (WEIGHTS, "is not a valid safetensors file"),
        (VOCABULARY, "is not a vocabulary of this project"),
    ):
        original = (folder / file).read_bytes()
        for content in (pickle.dumps(Attack()), b"\x80\x04" + b"\xff" * 100):
            (folder / file).write_bytes(content)
            sign(folder, file)
            message = error_of(folder)
            assert complaint in message
            assert str(folder / file) in message
            assert message.endswith(REMEDY)
        (folder / file).write_bytes(original)
        sign(folder, file)
    assert not (tmp_path / "ran").exists()
    assert load_checkpoint(device="cpu")


def test_a_torch_file_in_disguise_is_refused(folder, tiny_model):
    torch.save(tiny_model.state_dict(), folder / WEIGHTS)
    sign(folder, WEIGHTS)
    assert "is not a valid safetensors file" in error_of(folder)


NAME = "decoder.layers.1.cross_attn.w_k.weight"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda weights: weights.pop(NAME), f"lacks tensor '{NAME}'"),
        (lambda weights: weights.update(extra=torch.ones(2)), "has an unexpected tensor 'extra'"),
        (
            lambda weights: weights.update({NAME: torch.ones(32, 16)}),
            "of shape (32, 16), but config.json requires (32, 32)",
        ),
        (lambda weights: weights[NAME].view(-1)[7].fill_(torch.nan), "that are not finite"),
        (lambda weights: weights[NAME].view(-1)[7].fill_(-torch.inf), "that are not finite"),
    ],
    ids=["missing tensor", "unexpected tensor", "shape", "NaN", "infinity"],
)
def test_weights_that_do_not_fit_are_refused_though_their_hash_is_right(folder, change, complaint):
    rewrite_weights(folder, change)
    message = error_of(folder)
    assert complaint in message
    assert str(folder / WEIGHTS) in message
    assert message.endswith(REMEDY)


def test_a_vocabulary_of_another_size_is_refused(folder):
    (folder / VOCABULARY).write_bytes(train_tiny_tokenizer(340).serialized)
    sign(folder, VOCABULARY)
    message = error_of(folder)
    assert f"{folder / VOCABULARY} has 340 pieces, but config.json says vocab_size 360" in message
    assert message.endswith(REMEDY)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda config: config["model"].update(colour="red"), "unknown field 'colour'"),
        (lambda config: config["model"].update(n_heads=3), "d_model (32) must be a multiple of n_heads (3)"),
        (lambda config: config["model"].update(norm="middle"), "norm must be one of post, pre"),
        (lambda config: config["model"].update(d_model=32.0), "d_model must be a positive whole number"),
        (lambda config: config.pop("model"), "'model'"),
        (lambda config: config.pop("sha256"), "'sha256'"),
        (lambda config: config["sha256"].pop(WEIGHTS), "sha256 must name"),
        (lambda config: config["sha256"].update({"../../secret": "0" * 64}), "sha256 must name"),
        (lambda config: config["sha256"].update({WEIGHTS: 5}), "a SHA-256 must be a string"),
        (lambda config: config.update(sha256=7), "not iterable"),
        (lambda config: config.update(model=[1]), "unknown field 1"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(folder, change, complaint):
    rewrite_config(folder, change)
    message = error_of(folder)
    assert message.startswith(f"{folder / CONFIG} is not a checkpoint's configuration (")
    assert complaint in message
    assert message.endswith(REMEDY)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"text"', b"[" * 100_000])
def test_a_configuration_that_is_no_json_object_is_refused(folder, content):
    (folder / CONFIG).write_bytes(content)
    assert f"{folder / CONFIG} is not a checkpoint's configuration" in error_of(folder)


def test_an_unknown_name_lists_the_known_ones(folder):
    with pytest.raises(CheckpointError) as error:
        load_checkpoint("en-fr", device="cpu")
    assert f"no checkpoint 'en-fr': {folder.parent / 'en-fr' / CONFIG} does not exist" in str(error.value)
    assert f"Available in {folder.parent}: {DEFAULT_CHECKPOINT}." in str(error.value)
    assert "python -m model.train" in str(error.value)


def test_an_empty_place_says_none(monkeypatch, tmp_path):
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "nowhere"))
    assert available_checkpoints() == []
    assert "nowhere: none." in error_of(tmp_path)


def test_available_checkpoints_are_folders_with_a_configuration_the_default_first(folder):
    for name in ("zebra", "ape"):
        shutil.copytree(folder, folder.parent / name)
    (folder.parent / "notes").mkdir()
    (folder.parent / "file").touch()
    assert available_checkpoints() == [DEFAULT_CHECKPOINT, "ape", "zebra"]
    assert load_checkpoint("ape", device="cpu").name == "ape"


def test_without_the_variable_they_are_looked_for_beside_the_code(monkeypatch):
    from model.checkpoints.store import checkpoint_folder

    monkeypatch.delenv(CHECKPOINTS_VARIABLE, raising=False)
    assert checkpoint_folder() == Path(__file__).parents[3] / "checkpoints"
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, "")
    assert checkpoint_folder() == Path(__file__).parents[3] / "checkpoints"


def test_a_checkpoint_can_be_opened_by_its_path(folder, monkeypatch, tmp_path):
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "elsewhere"))
    assert load_checkpoint(str(folder), device="cpu").name == DEFAULT_CHECKPOINT
    monkeypatch.chdir(folder.parent)
    assert load_checkpoint(f"./{DEFAULT_CHECKPOINT}", device="cpu").name == DEFAULT_CHECKPOINT
    monkeypatch.chdir(folder)
    assert load_checkpoint(".", device="cpu").name == DEFAULT_CHECKPOINT


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "CPU", "", "cuda:x"])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(folder, device):
    with pytest.raises(ValueError, match=f"device '{device}' is not available; try 'auto' or 'cpu'"):
        load_checkpoint(folder.name, device=device)


def test_auto_is_a_device_that_works():
    assert pick_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu") == "cpu"


def test_saving_over_a_checkpoint_replaces_it(folder, tiny_model, tokenizer):
    doubled = {name: 2 * tensor for name, tensor in tiny_model.named_parameters()}
    save_checkpoint(folder, tiny_model, tokenizer, doubled)
    bias = load_checkpoint(device="cpu").model.encoder.layers[0].self_attn.w_q.bias
    assert torch.equal(bias, (2 * tiny_model.encoder.layers[0].self_attn.w_q.bias).half().float())
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, WEIGHTS, VOCABULARY]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / WEIGHTS
    save_weights(path, {"a": torch.ones(3)})
    before = path.read_bytes()

    def fail() -> None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_configuration_is_read_without_the_weights(saved_checkpoints: Path, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(saved_checkpoints / DEFAULT_CHECKPOINT, tmp_path / DEFAULT_CHECKPOINT)
    (tmp_path / DEFAULT_CHECKPOINT / WEIGHTS).unlink()
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    opened = load_checkpoint(str(saved_checkpoints / DEFAULT_CHECKPOINT), "cpu")
    assert stored_config(DEFAULT_CHECKPOINT) == opened.config
    (tmp_path / DEFAULT_CHECKPOINT / CONFIG).write_text("[]")
    with pytest.raises(CheckpointError):
        stored_config(DEFAULT_CHECKPOINT)


def test_a_folder_in_our_format_opens_as_what_it_is_where_the_app_was_started_with_it(
    folder, tmp_path, monkeypatch
) -> None:
    mine = tmp_path / "elsewhere" / "mine"
    shutil.copytree(folder, mine)
    for given in (str(mine), DEFAULT_CHECKPOINT):
        monkeypatch.setenv(MODELS_VARIABLE, given)
        opened = load_checkpoint(given, device="cpu")
        assert Need.OWN_LAYERS in opened.features
        assert (opened.name, opened.hash) == (given, sha256(folder / WEIGHTS))
        assert find_offered_model(given) == (mine if given == str(mine) else folder)
        assert (first_checkpoint(), offered_family(given)) == (given, "encoder_decoder")
        assert shown_name(given) == given.rpartition("/")[2]
    (mine / VOCABULARY).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        load_checkpoint(str(mine), device="cpu")
