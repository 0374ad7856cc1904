"""Checkpoints: what was saved comes back; what is missing, damaged or foreign gets a sentence, and never runs."""

import json
import pickle
import shutil
import struct
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
    checkpoint_folder,
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

Damage = Callable[[Path], object]
"""changes a folder"""

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.model", "config.json"
NAME, EYE = "decoder.layers.1.cross_attn.w_k.weight", torch.eye(32)
REMEDY = "Restore the folder (git checkout), or train it again with python -m model.train."


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


def test_a_pickle_in_disguise_is_refused_and_does_not_run(folder, tmp_path):
    class Attack:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    for file, complaint in ((WEIGHTS, "valid safetensors file"), (VOCABULARY, "vocabulary of this project")):
        original = (folder / file).read_bytes()
        forge(file, pickle.dumps(Attack()))(folder)
        assert f"is not a {complaint}" in error_of(folder)
        forge(file, original)(folder)
    assert not (tmp_path / "ran").exists()
    assert load_checkpoint(device="cpu")


def forge(file: str, content: bytes) -> Damage:
    """Other content, with which the hash in config.json agrees."""

    def damage(folder: Path) -> None:
        (folder / file).write_bytes(content)
        sign(folder, file)

    return damage


def of_config(change: Callable[[dict], object]) -> Damage:
    return lambda folder: rewrite_config(folder, change)


def of_model(**values: object) -> Damage:
    return of_config(lambda config: config["model"].update(values))


def of_hashes(change: Callable[[dict], object]) -> Damage:
    return of_config(lambda config: change(config["sha256"]))


def of_weights(change: Callable[[dict], object]) -> Damage:
    return lambda folder: rewrite_weights(folder, change)


def of_bytes(file: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))


def with_header(length: int) -> Damage:
    """Weights whose header says that it has another length."""
    return lambda folder: forge(WEIGHTS, struct.pack("<Q", length) + (folder / WEIGHTS).read_bytes()[8:])(folder)


def with_number(number: float) -> Damage:
    return of_weights(lambda weights: weights[NAME].view(-1)[7].fill_(number))


DAMAGES: dict[str, list[tuple[str, Damage]]] = {
    WEIGHTS: [
        ("is missing", lambda folder: (folder / WEIGHTS).unlink()),
        ("(1,000 bytes) is truncated or altered", of_bytes(WEIGHTS, lambda content: content[:1000])),
        ("is truncated or altered", of_bytes(WEIGHTS, lambda content: content[:-1] + bytes([content[-1] ^ 1]))),
        *(("is not a valid safetensors file", with_header(length)) for length in (2**63, 10**9, 0, 7)),
        (f"lacks tensor '{NAME}'", of_weights(lambda weights: weights.pop(NAME))),
        ("has an unexpected tensor 'extra'", of_weights(lambda weights: weights.update(extra=torch.ones(2)))),
        (
            f"has {NAME} of shape (32, 16), but config.json requires (32, 32)",
            of_weights(lambda weights: weights.update({NAME: torch.ones(32, 16)})),
        ),
        *(("that are not finite", with_number(number)) for number in (torch.nan, -torch.inf)),
        *(
            (f"has {NAME} in {dtype}", of_weights(lambda weights, dtype=dtype: weights.update({NAME: EYE.to(dtype)})))
            for dtype in (torch.float8_e4m3fn, torch.int8, torch.bool)
        ),
    ],
    VOCABULARY: [
        ("is missing", lambda folder: (folder / VOCABULARY).unlink()),
        ("(0 bytes) is truncated or altered", of_bytes(VOCABULARY, lambda _: b"")),
        ("is truncated or altered", of_bytes(VOCABULARY, lambda content: bytes([content[0] ^ 1]) + content[1:])),
        (
            "has 340 pieces, but config.json says vocab_size 360",
            lambda folder: forge(VOCABULARY, train_tiny_tokenizer(340).serialized)(folder),
        ),
    ],
    CONFIG: [
        ("are not those that were saved", of_model(n_heads=2)),  # the weights would fit, and all numbers be wrong
        ("are not those that were saved", of_model(norm="pre")),
        ("unknown field 'colour'", of_model(colour="red")),
        ("d_model (32) must be a multiple of n_heads (3)", of_model(n_heads=3)),
        ("'model'", of_config(lambda config: config.pop("model"))),
        ("unknown field 1", of_config(lambda config: config.update(model=[1]))),
        ("'sha256'", of_config(lambda config: config.pop("sha256"))),
        ("not iterable", of_config(lambda config: config.update(sha256=7))),
        ("sha256 must name", of_hashes(lambda hashes: hashes.pop(WEIGHTS))),
        ("sha256 must name", of_hashes(lambda hashes: hashes.update({"../../secret": "0" * 64}))),
        ("a SHA-256 must be a string", of_hashes(lambda hashes: hashes.update({WEIGHTS: 5}))),
        *(
            ("is not a checkpoint's configuration", of_bytes(CONFIG, lambda _, content=content: content))
            for content in (b"", b"[]", b"null", b"\xff\xfe", b'"text"', b"[" * 100_000)
        ),
    ],
}
"""what is said of a file, and what was done to it"""


@pytest.mark.parametrize(
    ("file", "complaint", "damage"), [(file, *each) for file, damages in DAMAGES.items() for each in damages]
)
def test_a_damaged_file_is_named_with_what_is_wrong_and_a_remedy(folder, file, complaint, damage):
    damage(folder)
    message = error_of(folder)
    assert message.startswith(f"{folder / file} ")
    assert complaint in message
    assert message.endswith(REMEDY)


def test_a_checkpoint_from_before_configurations_had_a_hash_still_opens(folder):
    of_hashes(lambda hashes: hashes.pop("config"))(folder)
    assert load_checkpoint(device="cpu").trace("Two dogs", "Zwei Hunde")


@pytest.mark.parametrize("field", ["vocab_size", "d_model", "d_ff", "max_len", "n_encoder_layers", "n_decoder_layers"])
@pytest.mark.parametrize("size", [10**12, 10**40])
def test_a_configuration_that_asks_for_all_memory_gets_none(folder, field, size):
    of_model(**{field: size})(folder)
    of_hashes(lambda hashes: hashes.pop("config"))(folder)
    assert "config.json" in error_of(folder)


def test_an_unknown_name_lists_the_known_ones(folder, monkeypatch, tmp_path):
    with pytest.raises(CheckpointError) as error:
        load_checkpoint("en-fr", device="cpu")
    assert f"no checkpoint 'en-fr': {folder.parent / 'en-fr' / CONFIG} does not exist" in str(error.value)
    assert f"Available in {folder.parent}: {DEFAULT_CHECKPOINT}." in str(error.value)
    assert "python -m model.train" in str(error.value)
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
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, "")
    assert checkpoint_folder() == Path(__file__).parents[3] / "checkpoints"
    monkeypatch.delenv(CHECKPOINTS_VARIABLE)
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


def test_a_configuration_is_read_without_the_weights(folder, tiny_config) -> None:
    (folder / WEIGHTS).unlink()
    assert stored_config(DEFAULT_CHECKPOINT) == tiny_config
    (folder / CONFIG).write_text("[]")
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


@pytest.mark.parametrize("file", [CONFIG, WEIGHTS, VOCABULARY])
def test_a_file_that_may_not_be_read_is_named(folder, file, monkeypatch):
    """Root may read everything: here the system says no for it."""

    def refusing(call):
        def refuse(path, *args, **kwargs):
            if Path(path) == folder / file:
                raise PermissionError(13, "Permission denied", str(path))
            return call(path, *args, **kwargs)

        return refuse

    monkeypatch.setattr("builtins.open", refusing(open))
    monkeypatch.setattr("io.open", refusing(open))
    message = error_of(folder)
    assert str(folder / file) in message
    assert "Permission denied" in message


def test_a_folder_that_may_not_be_entered_gets_a_sentence(folder, monkeypatch):
    stat = Path.stat

    def refuse(path, **options):
        if folder in (path, path.parent):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    assert f"{folder / CONFIG} does not exist" in error_of(folder)


class Killed(BaseException):
    """A process that ends between two system calls."""


@pytest.mark.parametrize("last", range(8))
def test_a_save_that_is_killed_between_any_two_files_leaves_a_checkpoint_that_opens(
    folder, tiny_config, tiny_model, tokenizer, monkeypatch, last
):
    other, before = random_model(tiny_config, seed=1), load_checkpoint(device="cpu").hash
    moves = iter(range(100))
    replace = Path.replace

    def move(path, target):
        if next(moves) == last:
            raise Killed
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", move)
    try:
        save_checkpoint(folder, other, tokenizer, dict(other.named_parameters()))
        killed = False
    except Killed:
        killed = True
    monkeypatch.undo()
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(folder.parent))
    opened = load_checkpoint(device="cpu")
    changed = opened.hash != before
    assert changed or killed
    expected = (other if changed else tiny_model).encoder.layers[0].self_attn.w_q.bias
    assert torch.equal(opened.model.encoder.layers[0].self_attn.w_q.bias, expected.half().float())
    save_checkpoint(folder, other, tokenizer, dict(other.named_parameters()))
    assert load_checkpoint(device="cpu").hash != before
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, WEIGHTS, VOCABULARY]
    assert "before" not in json.loads((folder / CONFIG).read_text())
