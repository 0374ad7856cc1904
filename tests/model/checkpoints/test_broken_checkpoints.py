"""What the files of a checkpoint may do to whoever opens them: nothing, but for a sentence."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoints.card import read_card
from model.checkpoints.files import atomic_write
from model.checkpoints.store import CheckpointError, load_checkpoint, save_checkpoint
from tests.model.checkpoints.test_store import CONFIG, NAME, VOCABULARY, WEIGHTS, error_of, folder, rewrite_config, sign
from tests.model.tiny import random_model

__all__ = ["folder"]

HUGE = 10**12


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda values: values.update(n_heads=2), "are not those that were saved"),
        (lambda values: values.update(norm="pre"), "are not those that were saved"),
        (lambda values: values.update(activation="gelu"), "are not those that were saved"),
    ],
)
def test_another_model_of_the_same_sizes_is_noticed(folder, change, said):
    """The weights would fit, and every number would be wrong."""
    rewrite_config(folder, lambda config: change(config["model"]))
    assert said in error_of(folder)


def test_a_checkpoint_from_before_configurations_had_a_hash_still_opens(folder):
    rewrite_config(folder, lambda config: config["sha256"].pop("config"))
    assert load_checkpoint(device="cpu").trace("Two dogs", "Zwei Hunde")


@pytest.mark.parametrize("field", ["vocab_size", "d_model", "d_ff", "max_len", "n_encoder_layers", "n_decoder_layers"])
@pytest.mark.parametrize("size", [HUGE, 10**40])
def test_a_configuration_that_asks_for_all_memory_gets_none(folder, field, size):
    def forge(config: dict) -> None:
        config["model"][field] = size
        config["sha256"].pop("config")

    rewrite_config(folder, forge)
    assert "config.json" in error_of(folder)


@pytest.mark.parametrize("header", [2**63, 10**9, 0, 7])
def test_a_header_that_lies_about_its_length_is_refused(folder, header):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", header) + content[8:])
    sign(folder, WEIGHTS)
    assert "is not a valid safetensors file" in error_of(folder)


def test_a_header_of_a_hundred_megabytes_is_refused(folder):
    header = json.dumps({f"tensor{i}": {"dtype": "F16", "shape": [], "data_offsets": [0, 0]} for i in range(100)})
    with open(folder / WEIGHTS, "wb") as file:
        file.write(struct.pack("<Q", 100_000_001) + header.encode().ljust(100_000_001))
    sign(folder, WEIGHTS)
    assert "is not a valid safetensors file" in error_of(folder)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8, torch.bool, torch.int64])
def test_numbers_of_another_kind_are_refused(folder, dtype):
    weights = load_file(folder / WEIGHTS)
    weights[NAME] = weights[NAME].to(dtype)
    save_file(weights, folder / WEIGHTS)
    sign(folder, WEIGHTS)
    assert f"has {NAME} in torch." in error_of(folder)


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


BROKEN = {
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "cut off": b'{"dev": {"beam_size": 4, "scores": {"BLEU": {"val',
    "another kind": b"[1, 2, 3]",
    "null": b"null",
    "number too large": b'{"a": {"beam_size": 4, "scores": {"BLEU": {"value": 1'
    + b"0" * 400
    + b', "signature": ""}}}}',
    "NaN": b'{"a": {"beam_size": 4, "scores": {"BLEU": {"value": NaN, "signature": ""}}}}',
    "infinite beam": b'{"a": {"beam_size": 1e999, "scores": {"BLEU": {"value": 1, "signature": ""}}}}',
    "nested": b"[" * 100_000,
    "words": b"step,dev_loss\none,two\n",
    "infinity": b"step,dev_loss\ninf,1\n",
    "not a number": b"step,dev_loss\nnan,1\n",
    "longer rows": b"step,dev_loss\n1,2,3,4\n",
    "a huge cell": b"step\n" + b"1" * 200_000,
    "a quote that never ends": b'step,dev_loss\n1,"2\n3,4\n',
    "NUL": b"step,dev_loss\n1,\x002\n",
}


@pytest.mark.parametrize("name", ["metrics.json", "log.csv"])
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_card_is_a_card_with_a_sentence_or_without_rows(folder, name, content):
    (folder / name).write_bytes(content)
    card = read_card(folder)
    found = card.scores if name == "metrics.json" else card.log
    if found:
        assert name not in card.missing
        assert all(
            np.isfinite(value) for row in found for value in (row.values() if name == "log.csv" else [row.value])
        )
    elif content:
        assert card.missing.get(name, f"This checkpoint's {name} cannot be read").endswith(("read", "writes it."))


def test_unfinished_files_of_a_save_do_not_count(folder):
    sizes = read_card(folder).files
    with atomic_write(folder / WEIGHTS) as path:
        path.write_bytes(b"half")
        assert read_card(folder).files == sizes
        path.write_bytes((folder / WEIGHTS).read_bytes())
    with pytest.raises(CheckpointError):
        load_checkpoint("nothing", device="cpu")
