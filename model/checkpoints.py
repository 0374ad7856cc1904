"""Checkpoints: folders of data files, checked when they are opened, never running code from a file."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.config import TransformerConfig
from model.files import atomic_write
from model.tokenizer import Tokenizer
from model.transformer import Transformer
from model.translator import Translator

DEFAULT_CHECKPOINT = "en-de"
CHECKPOINTS_VARIABLE = "ATTENTION_EXPLORER_CHECKPOINTS"


class CheckpointError(ValueError):
    """A checkpoint that is missing or not whole; the sentence names file, expectation and remedy."""


def checkpoint_folder() -> Path:
    """Where checkpoints are looked for: `checkpoints/`, or what ATTENTION_EXPLORER_CHECKPOINTS names."""
    return Path(os.environ.get(CHECKPOINTS_VARIABLE) or Path(__file__).parent.parent / "checkpoints")


def checkpoint_path(name: str) -> Path:
    """The folder of a checkpoint, given by its name there or by a path."""
    folder, elsewhere = checkpoint_folder() / name, Path(name).resolve()
    return elsewhere if (elsewhere / "config.json").is_file() and not folder.is_dir() else folder


def available_checkpoints() -> list[str]:
    """Names of the folders that hold a config.json, the default one first."""
    names = sorted(path.parent.name for path in checkpoint_folder().glob("*/config.json"))
    return sorted(names, key=lambda name: name != DEFAULT_CHECKPOINT)


def save_checkpoint(folder: Path, model: Transformer, tokenizer: Tokenizer, weights: Mapping[str, Tensor]) -> None:
    """Write config.json, tokenizer.model and model.safetensors (fp16) into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / "model.safetensors", weights)
    with atomic_write(folder / "tokenizer.model") as path:
        path.write_bytes(tokenizer.serialized)
    config = {
        "model": asdict(model.config),
        "sha256": {name: sha256(folder / name) for name in ("model.safetensors", "tokenizer.model")},
    }
    with atomic_write(folder / "config.json") as path:
        path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def save_weights(path: Path, weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float16) -> None:
    """Write tensors by name; `weights` comes from `named_parameters`, which lists a tied matrix once."""
    with atomic_write(path) as temporary:
        save_file({name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in weights.items()}, temporary)


def load_checkpoint(name: str = DEFAULT_CHECKPOINT, device: str = "auto") -> Translator:
    """Open a checkpoint by its folder's name, or by a path.

    Args:
        name: one of `available_checkpoints()`, or the path of such a folder.
        device: "auto" (CUDA where there is one), "cpu", "cuda", "cuda:1", ...

    Raises:
        CheckpointError: (a ValueError) a file is missing, cut off, altered or does not fit the others.
    """
    folder = checkpoint_path(name)
    if not (folder / "config.json").is_file():
        found = ", ".join(available_checkpoints()) or "none"
        raise CheckpointError(
            f"no checkpoint {name!r}: {folder / 'config.json'} is not there. "
            f"Available in {checkpoint_folder()}: {found}. Pick one of these, or train one with python -m model.train."
        )
    config, hashes = _read_config(folder / "config.json")
    for file, expected in hashes.items():
        _check_hash(folder / file, expected)
    tokenizer = _read_tokenizer(folder / "tokenizer.model", config)
    model = Transformer(config)
    load_weights(model, folder / "model.safetensors")
    model = model.to(pick_device(device)).eval().requires_grad_(False)
    return Translator(name=folder.name, hash=hashes["model.safetensors"], model=model, tokenizer=tokenizer)


def load_weights(model: Transformer, path: Path) -> None:
    """Fill `model` from a safetensors file whose names and shapes must be the model's own.

    Raises:
        CheckpointError: the file cannot be read, or a tensor is missing, unknown, misshapen or not finite.
    """
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a whole safetensors file ({error}). {_REMEDY}") from error
    expected = dict(model.named_parameters())
    if weights.keys() != expected.keys():
        odd = sorted(weights.keys() ^ expected.keys())[0]
        state = "lacks" if odd in expected else "has an unexpected"
        raise CheckpointError(f"{path} {state} tensor {odd!r} for the configuration in config.json. {_REMEDY}")
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape:
            found, wanted = tuple(tensor.shape), tuple(expected[name].shape)
            raise CheckpointError(f"{path}: {name} has shape {found}, config.json asks for {wanted}. {_REMEDY}")
        if not tensor.isfinite().all():
            raise CheckpointError(f"{path}: {name} holds values that are not finite numbers. {_REMEDY}")
        expected[name].data.copy_(tensor)


def pick_device(device: str) -> str:
    """ "auto" -> "cuda" where there is one, else "cpu"; any other name stays.

    Raises:
        ValueError: PyTorch knows no such device, or it is not there.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used here; try 'auto' or 'cpu'") from error
    return device


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_REMEDY = "Restore the folder (git checkout), or train it again with python -m model.train."
_FILES = {"model.safetensors", "tokenizer.model"}


def _read_config(path: Path) -> tuple[TransformerConfig, dict[str, str]]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        hashes = config["sha256"]
        if set(hashes) != _FILES:
            raise ValueError(f"sha256 must name {sorted(_FILES)}")
        if not all(isinstance(value, str) for value in hashes.values()):
            raise ValueError("a SHA-256 is a text of 64 hexadecimal digits")
        unknown = set(config["model"]) - {field.name for field in fields(TransformerConfig)}
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
        return TransformerConfig(**config["model"]), hashes
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a checkpoint's configuration ({error}). {_REMEDY}") from error


def _check_hash(path: Path, expected: str) -> None:
    if not path.is_file():
        raise CheckpointError(f"{path} is missing. {_REMEDY}")
    try:
        found = sha256(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error}). {_REMEDY}") from error
    if found != expected:
        raise CheckpointError(
            f"{path} ({path.stat().st_size:,} bytes) is cut off or altered: its SHA-256 is {found[:12]}..., "
            f"config.json expects {expected[:12]}.... {_REMEDY}"
        )


def _read_tokenizer(path: Path, config: TransformerConfig) -> Tokenizer:
    try:
        tokenizer = Tokenizer(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not this project's vocabulary ({error}). {_REMEDY}") from error
    if len(tokenizer) != config.vocab_size:
        raise CheckpointError(
            f"{path} has {len(tokenizer)} pieces, config.json says vocab_size {config.vocab_size}. {_REMEDY}"
        )
    return tokenizer
