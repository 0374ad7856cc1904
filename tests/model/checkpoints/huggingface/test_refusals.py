"""Folders that do not open: a sentence names the file and what is wrong with it."""

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints.files import MOST_BYTES, MOST_TENSORS, MOST_TEXT
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.model.checkpoints.huggingface.folders import byte_level_tokenizer, change_json, refusal

Damage = Callable[[Path], object]
"""changes a folder"""
WEIGHTS = "model.safetensors"


def of_settings(file: str = "config.json", **values: object) -> Damage:
    return lambda folder: change_json(folder / file, **values)


def of_weights(part: str, change: Callable[[Tensor], Tensor | None]) -> Damage:
    """Another tensor, or none, in the place of the first one whose name ends so."""

    def damage(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        name = next(name for name in weights if name.endswith(part))
        changed = change(weights.pop(name))
        save_file(weights if changed is None else weights | {name: changed}, folder / WEIGHTS)

    return damage


def with_codes(folder: Path) -> None:
    codes = {"h.0.attn.c_attn.qweight": torch.ones(2, dtype=torch.int32)}
    save_file(load_file(folder / WEIGHTS) | codes, folder / WEIGHTS)


def with_tensors(count: int) -> Damage:
    """A header with so many names."""
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}

    def damage(folder: Path) -> None:
        header = json.dumps({f"tensor.{number}": tensor for number in range(count)}).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)

    return damage


def with_vocabulary_of_another(folder: Path) -> None:
    byte_level_tokenizer().save_pretrained(folder)
    tiny_model("GPT-2").save_pretrained(folder)


def with_endless_vocabulary(folder: Path) -> None:
    with open(folder / "tokenizer.json", "ab") as file:
        file.truncate(MOST_BYTES + 1)


REFUSED: dict[str, list[tuple[str, Damage]]] = {
    "GPT-2": [
        ("fewer than the model has layers", of_settings(n_layer=10**9)),
        ("the configuration requires", of_settings(n_embd=2**20)),
        ("the weights lack", of_settings(n_layer=4)),
        ("cannot be used", of_settings(model_type="made-up", auto_map={"AutoConfig": "evil.Config"})),
        *(("n_head is .*, and must be at least 1", of_settings(n_head=size)) for size in (0, -4)),
        *(("config.json", of_settings(**wrong)) for wrong in ({"n_head": 5}, {"n_embd": "wide"})),
        *(
            (f"is quantised .*{method}.*Open the original weights", of_settings(quantization_config=quantised))
            for method in ("gptq", "something new")
            for quantised in [{"quant_method": method, "bits": 4}]
        ),
        ("is quantised", with_codes),
        *(
            ("c_attn.weight is stored as", of_weights("c_attn.weight", lambda x, dtype=dtype: x.to(dtype)))
            for dtype in (torch.int8, torch.float8_e4m3fn)
        ),
        *(
            (f"values in .*{part} that are not finite", of_weights(part, lambda x, number=number: x * 0 + number))
            for part, number in (("wte.weight", torch.nan), ("c_attn.bias", torch.inf), ("ln_2.weight", -torch.inf))
        ),
        (
            ".bin files are not opened, because they can run code",
            lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        ),
        (
            "not a valid safetensors file",
            lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-100]),
        ),
        (f"{MOST_TENSORS + 1:,} tensors", with_tensors(MOST_TENSORS + 1)),
        ("take .* bytes", with_tensors(300_000)),
        ("they do not belong together", with_vocabulary_of_another),
        ("bytes", with_endless_vocabulary),
        *(
            ("labels|settings|bytes", of_settings(**{name: values}))
            for name, values in (
                ("id2label", {str(number): "name" for number in range(200_000)}),
                ("label2id", {f"name {number}": number for number in range(20_000)}),
                ("num_labels", 20_000),
                ("task_specific_params", {str(number): [number] for number in range(60_000)}),
                ("text", "a" * (MOST_TEXT + 1)),
            )
        ),
    ],
    "BERT": [("cls.predictions.bias among them", of_weights("cls.predictions.bias", lambda _: None))],
    "BART": [
        ("fc1.weight among them", of_weights("decoder.layers.1.fc1.weight", lambda _: None)),
        *(
            (f"{name} is 5000", of_settings("generation_config.json", **{name: 5000}))
            for name in ("decoder_start_token_id", "forced_bos_token_id")
        ),
    ],
}
"""what is said of a family's folder, and what was done to it"""


@pytest.mark.parametrize(
    ("name", "words", "damage"), [(name, *each) for name, damages in REFUSED.items() for each in damages]
)
def test_a_folder_that_makes_no_model_is_refused_with_what_is_wrong(
    name: str, words: str, damage: Damage, copy: Callable[[str], Path]
) -> None:
    folder = copy(name)
    damage(folder)
    problem = refusal(folder)
    assert str(folder) in problem
    assert re.search(words, problem)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["model-q4.gguf"], "a model for llama.cpp (GGUF) ("),
        (["model.bin", "config.json", "shared_vocabulary.json"], "a model for CTranslate2 ("),
        (["decoder.onnx"], "a model for ONNX Runtime ("),
        (["consolidated.00.pth"], "a model for the reference code of Llama ("),
        (["README.md"], "has no config.json"),
    ],
)
def test_a_folder_for_another_program_is_refused_by_its_name(files: list[str], words: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    assert words in refusal(tmp_path)
    assert "there is no such folder" in refusal(tmp_path / "nothing")
