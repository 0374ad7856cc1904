"""Whatever a folder holds, it opens and traces a text, or one sentence says what is wrong with which file."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoints.files import CheckpointError
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from tests.model.checkpoints.huggingface.folders import save_family

Damage = Callable[[Path], object]
"""changes a file"""

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
TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "longer": lambda x: torch.cat([x, x]),
    "turned round": lambda x: x[None].contiguous(),
    "empty": lambda x: x[:0],
    "infinite": lambda x: x.double() * 1e60,
    "not a number": lambda x: x * torch.nan,
    **{
        str(dtype): lambda x, dtype=dtype: x.to(dtype)
        for dtype in (torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.int8, torch.int64, torch.bool)
    },
}
"""other shapes, numbers and types"""


def damages(folder: Path, numbers: Random) -> Iterator[tuple[str, str, Damage]]:
    """What can happen to each file of a folder: its name, what it is then, and how it becomes that."""
    files = sorted(folder.iterdir())
    shards = [path for path in files if path.suffix == ".safetensors"]
    for path in files:
        yield path.name, "missing", Path.unlink
        yield path.name, "a folder", lambda at: (at.unlink(), at.mkdir())
        yield path.name, "a broken link", lambda at: (at.unlink(), at.symlink_to("nowhere"))
        content = path.read_bytes()
        other = numbers.choice([each for each in files if each != path])
        found = {"cut off": content[: int(0.7 * len(content))], other.name: other.read_bytes()}
        for what, new in (found | {what: BYTES[what] for what in numbers.sample(sorted(BYTES), 4)}).items():
            yield path.name, what, lambda at, new=new: at.write_bytes(new)
        if path.suffix == ".json":
            settings = json.loads(content)
            _, *others = sorted(settings)
            fewer = {name: settings[name] for name in others}
            yield path.name, "without its first setting", lambda at, new=fewer: at.write_text(json.dumps(new))
            for name in numbers.sample(sorted(settings), min(len(settings), 8)):
                changed = settings | {name: numbers.choice(JSON)}
                yield (
                    path.name,
                    f"{name}: {changed[name]!s:.12}",
                    lambda at, new=changed: at.write_text(json.dumps(new)),
                )
        if path.suffix == ".safetensors":
            tensors = load_file(path)
            _, *others = sorted(tensors)
            fewer = {name: tensors[name] for name in others}
            yield (
                path.name,
                "without its first tensor",
                lambda at, new=fewer: save_file(new, at, metadata={"format": "pt"}),
            )
            for what, change in [*TENSORS.items()][shards.index(path) :: len(shards)]:  # dealt
                name = numbers.choice(sorted(tensors))
                changed = tensors | {name: change(tensors[name])}
                yield (
                    path.name,
                    f"{name}: {what}",
                    lambda at, new=changed: save_file(new, at, metadata={"format": "pt"}),
                )


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


@pytest.mark.parametrize("kind", ["shards of a Hugging Face model", "ours"])
def test_a_damaged_folder_opens_or_is_refused_in_a_sentence(kind: str, saved_checkpoints: Path, tmp_path: Path) -> None:
    whole = saved_checkpoints / DEFAULT_CHECKPOINT
    if kind != "ours":
        whole = save_family(tmp_path / "whole", "Llama, grouped", max_shard_size="100KB")
    assert open_and_trace(whole) == ""
    cases = list(damages(whole, Random(kind)))
    assert len(cases) >= 40
    for number, (name, what, damage) in enumerate(cases):
        folder = tmp_path / f"case{number}"
        shutil.copytree(whole, folder)
        damage(folder / name)
        try:
            problem = open_and_trace(folder)
        except BaseException as error:
            raise AssertionError(f"{name} is {what}: {type(error).__name__}") from error
        if problem:
            assert str(folder) in problem or str(folder / "config.json") in problem, (name, what)
            assert "\n" not in problem, (name, what)
            assert len(problem) < 700, (name, what)
            assert problem.endswith((".", ")")), (name, what)
        shutil.rmtree(folder)
