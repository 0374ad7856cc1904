"""Checkpoints: folders of data files, checked when they are opened, never running code from a file."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints.files import atomic_write
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.network.encoder_decoder import Transformer

DEFAULT_CHECKPOINT = "en-de"
CHECKPOINTS_VARIABLE = "ATTENTION_EXPLORER_CHECKPOINTS"


class CheckpointError(ValueError):
    """A checkpoint that is missing or not whole; the sentence names file, expectation and remedy."""


def checkpoint_folder() -> Path:
    """Where checkpoints are looked for: `checkpoints/`, or what ATTENTION_EXPLORER_CHECKPOINTS names."""
    return Path(os.environ.get(CHECKPOINTS_VARIABLE) or Path(__file__).parents[2] / "checkpoints")


def checkpoint_path(name: str) -> Path:
    """The folder of a checkpoint, given by its name there or by a path."""
    folder, elsewhere = checkpoint_folder() / name, Path(name).resolve()
    return elsewhere if is_file(elsewhere / "config.json") and not folder.is_dir() else folder


def available_checkpoints() -> list[str]:
    """Names of the folders that hold a config.json, the default one first."""
    names = sorted(path.parent.name for path in checkpoint_folder().glob("*/config.json"))
    return sorted(names, key=lambda name: name != DEFAULT_CHECKPOINT)


def save_checkpoint(folder: Path, model: Transformer, tokenizer: Tokenizer, weights: Mapping[str, Tensor]) -> None:
    """Write config.json, tokenizer.model and model.safetensors (fp16) into `folder`.

    Whoever opens the folder meanwhile, or after a stop at any moment, finds the old weights or the new ones: while they
    are replaced, config.json describes both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = asdict(model.config)
    staged = {
        "model.safetensors": folder / ".model.safetensors.new",
        "tokenizer.model": folder / ".tokenizer.model.new",
    }
    try:
        save_weights(staged["model.safetensors"], weights)
        with atomic_write(staged["tokenizer.model"]) as path:
            path.write_bytes(tokenizer.serialized)
        hashes = {name: sha256(path) for name, path in staged.items()} | {"config": _hash_of(values)}
        config = {"model": values, "sha256": hashes}
        if before := _described(folder / "config.json"):
            _write_config(folder, config | {"before": before})
        for name, path in staged.items():
            path.replace(folder / name)
        _write_config(folder, config)
    finally:
        for path in staged.values():
            path.unlink(missing_ok=True)


def _described(path: Path) -> dict | None:
    """What a whole config.json says; None where there is none."""
    try:
        _read_config(path)
    except CheckpointError:
        return None
    config = json.loads(path.read_text(encoding="utf-8"))
    return {name: config[name] for name in ("model", "sha256")}


def _write_config(folder: Path, config: Mapping) -> None:
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
    if not is_file(folder / "config.json"):
        found = ", ".join(available_checkpoints()) or "none"
        raise CheckpointError(
            f"no checkpoint {name!r}: {folder / 'config.json'} is not there. "
            f"Available in {checkpoint_folder()}: {found}. Pick one of these, or train one with python -m model.train."
        )
    config, hashes = _matching(folder)
    tokenizer = _read_tokenizer(folder / "tokenizer.model", config)
    _check_sizes(folder / "model.safetensors", config)
    model = Transformer(config)
    load_weights(model, folder / "model.safetensors")
    model = model.to(pick_device(device)).eval().requires_grad_(False)
    return Translator(name=folder.name, hash=hashes["model.safetensors"], model=model, tokenizer=tokenizer)


def is_file(path: Path) -> bool:
    """Whether a file is there, as far as it can be seen at all."""
    try:
        return path.is_file()
    except OSError:
        return False


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
        if tensor.dtype not in _DTYPES:
            raise CheckpointError(f"{path}: {name} holds {tensor.dtype}, no numbers of 16 to 64 bits. {_REMEDY}")
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
_FILES = ("model.safetensors", "tokenizer.model")
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_LONGEST = 2**16
"""most positions that a configuration is believed to have"""

_Description = tuple[TransformerConfig, dict[str, str]]


def _matching(folder: Path) -> _Description:
    """What config.json says of the files that are there: of two descriptions, during a replacement, the one that fits.

    Raises:
        CheckpointError: none fits; the sentence is about the first, which is the newer one.
    """
    problem = None
    for config, hashes in _read_config(folder / "config.json"):
        try:
            for file in _FILES:
                _check_hash(folder / file, hashes[file])
        except CheckpointError as error:
            problem = problem or error
        else:
            return config, hashes
    raise problem


def _read_config(path: Path) -> list[_Description]:
    """One description, or during a replacement of the weights two."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        described = [_description(config)]
        return described + ([_description(config["before"])] if "before" in config else [])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a checkpoint's configuration ({error}). {_REMEDY}") from error


def _description(config: Any) -> _Description:
    """Raises ValueError, KeyError or TypeError where the values make no sense or are not those that were saved."""
    values, hashes = config["model"], config["sha256"]
    if set(hashes) - {"config"} != set(_FILES):
        raise ValueError(f"sha256 must name {sorted(_FILES)}")
    if not all(isinstance(value, str) for value in hashes.values()):
        raise ValueError("a SHA-256 is a text of 64 hexadecimal digits")
    unknown = set(values) - {field.name for field in fields(TransformerConfig)}
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    described = TransformerConfig(**values)
    # Checkpoints from before this was written have no such hash.
    if hashes.get("config", _hash_of(values)) != _hash_of(values):
        raise ValueError('the values under "model" are not those that were saved: their SHA-256 differs')
    return described, hashes


def _hash_of(values: Mapping) -> str:
    """SHA-256 of a configuration's values, however the file writes them down."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _check_sizes(path: Path, config: TransformerConfig) -> None:
    """Before memory is asked for: config.json wants no model that is far larger than the file.

    Raises:
        CheckpointError: it does, or the file's header cannot be read.
    """
    try:
        with safe_open(path, framework="pt") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a whole safetensors file ({error}). {_REMEDY}") from error
    wanted = math.inf
    if config.n_encoder_layers + config.n_decoder_layers <= len(shapes) and config.max_len <= _LONGEST:
        # A configuration may ask for more numbers than any integer counts.
        with suppress(RuntimeError, TypeError), torch.device("meta"):
            wanted = sum(math.prod(parameter.shape) for parameter in Transformer(config).parameters())
    found = sum(math.prod(shape) for shape in shapes)
    if wanted > 2 * found + _LONGEST:
        raise CheckpointError(f"{path} holds {found:,} numbers, config.json asks for far more. {_REMEDY}")


def _check_hash(path: Path, expected: str) -> None:
    try:
        if not path.is_file():
            raise CheckpointError(f"{path} is missing. {_REMEDY}")
        found, size = sha256(path), path.stat().st_size
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error}). {_REMEDY}") from error
    if found != expected:
        raise CheckpointError(
            f"{path} ({size:,} bytes) is cut off or altered: its SHA-256 is {found[:12]}..., "
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
