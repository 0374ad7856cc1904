"""Folders of models in transformers' format: safetensors alone, no code, nothing that does not fit in memory."""

import hashlib
import math
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from model.checkpoints.devices import available_memory
from model.checkpoints.files import CheckpointError, sha256

FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.jinja")
"""what is downloaded: weights, configuration, tokenizer"""
VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model", "*.spm", "*.tiktoken", "vocab*.bpe")
HEADS = (AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForMaskedLM)
SHARE_OF_MEMORY = 0.5
"""of the available memory, that the weights may take"""


def find_folder(name: str) -> Path:
    """The folder of a model, given its path or its name in the local Hugging Face cache.

    Raises:
        CheckpointError: there is none.
    """
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{name} is neither a folder nor in the local Hugging Face cache. "
            "Start the app with --download, or give the path of a folder."
        ) from error


def download(name: str) -> Path:
    """Bring a model into the local Hugging Face cache, unless it is a folder; only for the person who starts the app.

    Raises:
        CheckpointError: it could not be downloaded.
    """
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(snapshot_download(name, allow_patterns=list(FILES)))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise CheckpointError(f"{name} could not be downloaded: {error}") from error


def read_model(folder: Path) -> torch.nn.Module:
    """The model of a folder in single precision, after everything about it has been checked.

    Raises:
        CheckpointError: a file is missing or damaged, the family is unknown, or the model is too large.
    """
    config = _read_config(folder)
    files = _weight_files(folder)
    shapes = _shapes(files)
    factory = _factory(config)
    _check_size(folder, config, factory, shapes)
    try:
        model, info = factory.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise CheckpointError(f"{folder} cannot be opened: {error}") from error
    missing = sorted(info["missing_keys"]) + sorted(str(each) for each in info["mismatched_keys"])
    if missing:
        raise CheckpointError(
            f"{folder}: the weights lack {len(missing)} tensors of {type(model).__name__}, {missing[0]} among them; "
            "they would be random numbers."
        )
    return model.eval()


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder; None if it has no file of one.

    Raises:
        CheckpointError: its files cannot be read.
    """
    if not any(True for pattern in VOCABULARIES for _ in folder.glob(pattern)):
        return None
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise CheckpointError(f"{folder}: its tokenizer cannot be read ({error}).") from error


def weights_hash(folder: Path) -> str:
    """SHA-256 of the weights' file; of several, that of their hashes, one after the other."""
    hashes = [sha256(path) for path in _weight_files(folder)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def parameters_hash(model: torch.nn.Module) -> str:
    """SHA-256 of all parameters of a model that was not read from a folder."""
    found = hashlib.sha256()
    for name, parameter in model.named_parameters():
        found.update(name.encode())
        found.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _read_config(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} has no config.json: it is no model in transformers' format.")
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise CheckpointError(f"{folder / 'config.json'} cannot be used: {error}") from error


def _weight_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        other = "; .bin files are not opened, because they can run code" if any(folder.glob("*.bin")) else ""
        raise CheckpointError(f"{folder} has no model.safetensors{other}. Write the folder with save_pretrained.")
    return files


def _shapes(files: list[Path]) -> list[tuple[int, ...]]:
    """Of every tensor, from the files' headers."""
    shapes = []
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                shapes += [tuple(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118 - no mapping
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is not a valid safetensors file ({error}).") from error
    return shapes


def _factory(config: Any) -> type:
    """The Auto class that makes the class which the configuration names, or the first that knows the family."""
    named = (getattr(config, "architectures", None) or [""])[0]
    known = [head for head in (*HEADS, AutoModel) if type(config) in head._model_mapping]
    if not known:
        raise CheckpointError(f"transformers has no text model for the family {config.model_type!r}.")
    return next((head for head in known if head._model_mapping[type(config)].__name__ == named), known[0])


def _check_size(folder: Path, config: Any, factory: type, shapes: list[tuple[int, ...]]) -> None:
    """Before memory is allocated: the configuration must fit the file, and the weights must fit the memory."""
    found = sum(math.prod(shape) for shape in shapes)
    if getattr(config, "num_hidden_layers", 0) > len(shapes):
        raise CheckpointError(f"{folder}: the weights have {len(shapes)} tensors, fewer than the model has layers.")
    try:
        with torch.device("meta"):
            wanted = sum(parameter.numel() for parameter in factory.from_config(config).parameters())
    except (RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'config.json'} describes no model: {error}") from error
    if wanted > 2 * found + 2**16:
        raise CheckpointError(f"{folder}: the weights hold {found:,} numbers, the configuration asks for {wanted:,}.")
    free = available_memory()
    if 4 * wanted > SHARE_OF_MEMORY * free:
        raise CheckpointError(
            f"{folder} has {wanted:,} parameters, {4 * wanted / 1e9:.1f} GB in single precision; of the "
            f"{free / 1e9:.1f} GB of memory that are free, at most half may be used. Choose a smaller model."
        )
