"""Whatever a folder holds, it opens and traces a text, or one sentence says what is wrong with which file."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoints.files import CheckpointError
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from tests.model.checkpoints.huggingface.folders import save_family

Damage = Callable[[Path], object]
"""changes a folder"""

FAMILIES = {"GPT-2": {}, "BERT": {}, "T5": {}, "Llama, grouped": {"max_shard_size": "60KB"}}
"""with the options of `save_pretrained`: the last is written in shards"""
COPIES = {"T5": ("tokenizer",), "Llama, grouped": ("tokenizer", "model-00002")}
"""beginnings of the names of files that are as another family's, or as another shard"""
JSON = (None, [], {}, 0, -1, 1.5, True, "word", "\ud83e", 10**9, 10**40, 1e308, [[1]], {"a": {"b": None}}, [None] * 3)
"""values of other types and sizes than a setting has"""
BYTES = {
    "empty": b"",
    "text": b"hello",
    "no UTF-8": b"\xff\xfe\x00",
    "cut off": b'{"a": ',
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 20_000,
    "a mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"vocab_size": NaN}',
    "a pickle": b"\x80\x04\x95cos\nsystem\n.",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, saved_checkpoints: Path) -> dict[str, Path]:
    """A whole folder of each kind, by its name."""
    root = tmp_path_factory.mktemp("whole")
    made = {}
    for name, options in FAMILIES.items():
        folder = save_family(root / name, name, **options)
        made[name] = folder
    return made | {"ours": saved_checkpoints / DEFAULT_CHECKPOINT}


def damages(folder: Path, numbers: Random) -> Iterator[tuple[str, Damage]]:
    """What can happen to a folder, each with its name."""
    files = sorted(path.name for path in folder.iterdir())
    for name in files:
        yield f"{name} is missing", lambda at, name=name: (at / name).unlink()
        yield f"{name} is a folder", lambda at, name=name: _replace(at / name, Path.mkdir)
        yield f"{name} is a broken link", lambda at, name=name: _replace(at / name, lambda p: p.symlink_to("nowhere"))
        yield f"{name} is cut off", lambda at, name=name: _cut(at / name, 0.7)
        for what in numbers.sample(sorted(BYTES), 4):
            yield f"{name} is {what}", lambda at, name=name, what=what: (at / name).write_bytes(BYTES[what])
        other = numbers.choice([each for each in files if each != name])
        yield f"{name} is {other}", lambda at, name=name, other=other: shutil.copy(at / other, at / name)
        if name.endswith(".json"):
            yield from _settings(folder / name, numbers)
    for name in [each for each in files if each.endswith(".safetensors")]:
        yield from _tensors(folder / name, numbers)


def _settings(path: Path, numbers: Random) -> Iterator[tuple[str, Damage]]:
    """Settings that are missing, or of another type or size."""
    names = sorted(json.loads(path.read_text(encoding="utf-8")))
    for name in numbers.sample(names, min(len(names), 14)):
        value = numbers.choice(JSON)
        yield (
            f"{path.name}: {name} = {str(value)[:12]!r}",
            lambda at, name=name, value=value: _set(at / path.name, name, value),
        )
    name = numbers.choice(names)
    yield f"{path.name}: no {name}", lambda at, name=name: _set(at / path.name, name, ...)


def _tensors(path: Path, numbers: Random) -> Iterator[tuple[str, Damage]]:
    """Tensors of other shapes, types and numbers."""
    changes: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
        "missing": lambda _: None,
        "longer": lambda x: torch.cat([x, x]),
        "turned round": lambda x: x[None].contiguous(),
        "empty": lambda x: x[:0],
        "infinite": lambda x: x.double() * 1e60,
        "not a number": lambda x: x * torch.nan,
        **{str(dtype): lambda x, dtype=dtype: x.to(dtype) for dtype in _DTYPES},
    }
    names = sorted(load_file(path))
    for what, change in changes.items():
        name = numbers.choice(names)
        yield f"{name} is {what}", lambda at, name=name, change=change: _change(at / path.name, name, change)


_DTYPES = (torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.int8, torch.int64, torch.bool)


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def _cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def _set(path: Path, name: str, value: Any) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    found.pop(name)
    path.write_text(json.dumps(found if value is ... else found | {name: value}), encoding="utf-8")


def _change(path: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
    tensors = load_file(path)
    changed = change(tensors.pop(name))
    save_file(tensors if changed is None else tensors | {name: changed}, path, metadata={"format": "pt"})


def open_and_trace(folder: Path) -> str:
    """Empty where the folder opens and a text can be traced; else what is wrong."""
    try:
        opened = load_checkpoint(str(folder), "cpu")
    except CheckpointError as error:
        return str(error)
    for text in ("A dog runs.", "5 6 7"):  # token ids, where no tokenizer is left
        with suppress(ValueError):
            assert opened.trace(text, text).attentions
            return ""
    raise AssertionError(f"{folder} opens, and no text can be read")


@pytest.mark.parametrize("kind", [*FAMILIES, "ours"])
def test_a_damaged_folder_opens_or_is_refused_in_a_sentence(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    whole, numbers = folders[kind], Random(kind)
    assert open_and_trace(whole) == ""
    cases = [
        (what, damage)
        for what, damage in damages(whole, numbers)
        if what.endswith("is missing") or not what.startswith(COPIES.get(kind, ()))
    ]
    assert len(cases) >= 40
    for number, (what, damage) in enumerate(cases):
        folder = tmp_path / f"case{number}"
        shutil.copytree(whole, folder)
        damage(folder)
        try:
            problem = open_and_trace(folder)
        except BaseException as error:
            raise AssertionError(f"{what}: {type(error).__name__}") from error
        if problem:
            assert str(folder) in problem or str(folder / "config.json") in problem, what
            assert "\n" not in problem, what
            assert len(problem) < 700, what
            assert problem.endswith((".", ")")), what
        shutil.rmtree(folder)
