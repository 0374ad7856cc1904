"""Folders of models in transformers' format: safetensors alone, no code, nothing that does not fit in memory."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import safe_open
from torch import Tensor
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

from model.checkpoints.devices import available_memory
from model.checkpoints.files import (
    MOST_TEXT,
    CheckpointError,
    check_tensor_count,
    find_weights,
    quote,
    read_json_object,
    sha256,
)
from model.checkpoints.huggingface.copies import copies
from model.checkpoints.limited import Exceeded, try_tokenizer
from model.language import Sentence, joined, later, sentence, sentence_of, series

FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.jinja")
"""what is downloaded: weights, configuration, tokenizer"""
VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model", "*.spm", "*.tiktoken", "vocab*.bpe")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARE_OF_MEMORY = 0.5
"""of the available memory, that the weights may take"""
LARGEST_SIZE = 2**31
"""larger than any size of a model"""
MOST_SHARED = 100
"""layers of a model, all of which may share the tensors of one (ALBERT)"""
MOST_LABELS = 10_000
"""transformers makes a name for each before anything else is known"""
POSITIVE = re.compile("(^|_)(n_head|num_heads|attention_heads|key_value_heads|hidden_size|vocab_size|n_embd|d_model)$")
"""sizes without which there is no model"""
OTHER_FORMATS = {
    "*.gguf": "llama.cpp (GGUF)",
    "model.bin": "CTranslate2",
    "*.onnx": "ONNX Runtime",
    "*.h5": "TensorFlow",
    "*.msgpack": "Flax",
    "consolidated.*.pth": "the reference code of Llama",
    "*.nemo": "NeMo",
}
"""files that another program reads -> its name; CTranslate2 has a vocabulary beside them"""
MOST_NAMED = 4
"""folders in one sentence"""
MOST_NAMES = 4
"""of settings, tensors or files in one sentence"""
QUANTISED = (".qweight", ".weight_packed", ".weight_scale", ".weight_scale_inv", ".SCB", ".absmax", ".quant_map")
"""how names of tensors end that hold codes of weights, or their factors"""


@contextmanager
def explained(problem: str, **facts: Any) -> Iterator[None]:
    """Around what a library does: where it raises something, `problem` is raised, a sentence with that as {error}."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(problem, error=quote(error), **facts) from error


def find_folder(name: str) -> Path:
    """The folder of a model, given its path or its name in the local Hugging Face cache.

    Raises:
        CheckpointError: there is none.
    """
    if Path(name).is_dir():
        return Path(name)
    if Path(name).is_file():
        if other := _other_format(Path(name).parent, Path(name).name):
            raise other
        raise CheckpointError("{name} is a file. Give the folder that contains it.", name=name)
    if Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:  # no name in a cache
        raise CheckpointError("{name}: there is no such folder. Check the path.", name=name)
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError) as error:
        raise CheckpointError(
            "{name} is neither a folder nor in the local Hugging Face cache. Start the app with --download, or "
            "give the path of a folder.",
            name=name,
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
        raise CheckpointError("{name} could not be downloaded: {error}", name=name, error=sentence_of(error)) from error


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder; None if it has no file of one.

    Raises:
        CheckpointError: its files cannot be read.
    """
    files = any(True for pattern in VOCABULARIES for _ in folder.glob(pattern))
    if not files and not _needs_no_vocabulary(folder):
        return None
    there = [name for name in TOKENIZER_FILES if (folder / name).is_file()]
    for name in there:
        read_json_object(folder / name)
    problem = later("{folder}: its tokenizer cannot be read from {named} ({error}).")
    named = joined(there) if there else sentence("its files")
    with explained(problem, folder=folder, named=named), copies(folder) as copy:
        try:
            if (fast := copy / "tokenizer.json").is_file():
                try_tokenizer(fast, fast.stat().st_size)
        except Exceeded as error:
            raise CheckpointError(
                "{folder}: {problem} Without its files the model opens and reads token ids.",
                folder=folder,
                problem=sentence_of(error),
            ) from error
        return AutoTokenizer.from_pretrained(copy, local_files_only=True, trust_remote_code=False)


def _needs_no_vocabulary(folder: Path) -> bool:
    """True if the folder names a tokenizer that reads bytes or characters and so has no file of its pieces (ByT5)."""
    path = folder / "tokenizer_config.json"
    named = read_json_object(path).get("tokenizer_class") if path.is_file() else None
    known = tokenizer_class_from_name(named) if isinstance(named, str) else None
    return known is not None and not getattr(known, "vocab_files_names", True)


def weights_hash(folder: Path, files: Iterable[Path]) -> str:
    """SHA-256 of the weights' file; of several, that of their hashes, one after the other."""
    hashes = [sha256(path, folder) for path in files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def read_settings(folder: Path) -> dict[str, Any]:
    """config.json as it is written.

    Raises:
        CheckpointError: it is missing, or not a JSON object.
    """
    if not (folder / "config.json").is_file():
        if adapters(folder):
            raise CheckpointError(
                "{folder} holds an adapter ({adapter}) without its base model. Merge the two with peft "
                "(merge_and_unload), write them with save_pretrained, and open that folder.",
                folder=folder,
                adapter=adapters(folder)[0],
            )
        if other := _other_format(folder):
            raise other
        if inside := _models_inside(folder):
            raise CheckpointError(
                "{folder} has no config.json; the folders {names} in it have one. Give one of these: {path}",
                folder=folder,
                names=joined(inside),
                path=folder / inside[-1],
            )
        raise CheckpointError("{folder} has no config.json: it is not a model in transformers' format.", folder=folder)
    settings = read_json_object(folder / "config.json", MOST_TEXT)
    if "model_type" not in settings and (other := _other_format(folder)):
        raise other
    return settings


def _other_format(folder: Path, pattern: str = "") -> CheckpointError | None:
    """What is wrong with a folder, or one file of it, that holds a model for another program; None: it does not."""
    for files, program in OTHER_FORMATS.items():
        found = sorted(path.name for path in folder.glob(files) if not pattern or path.name == pattern)
        if found and (files != "model.bin" or any(True for _ in folder.glob("*vocabulary*"))):
            return CheckpointError(
                "{folder} holds a model for {program} ({file}), which this app does not read. Open the folder "
                "that it was made from, with config.json and model.safetensors.",
                folder=folder,
                program=program,
                file=found[0],
            )
    return None


def _models_inside(folder: Path) -> list[str]:
    """The folders one below that hold a model, such as the checkpoints of a training, in the order of their numbers."""
    names = [path.parent.name for path in folder.glob("*/config.json")]
    return sorted(names, key=lambda name: [(int(n or 0), text) for text, n in re.findall(r"(\D+)(\d*)", name)])[
        -MOST_NAMED:
    ]


def check_settings(folder: Path, settings: Mapping[str, Any], tensors: int) -> None:
    """Before transformers reads them: nothing that it would need another library, or all memory, for."""
    path = folder / "config.json"
    for name, value in _each_setting(settings):
        if name in ("quantization_config", "compression_config") and value is not None:
            method = value.get("quant_method") if isinstance(value, dict) else None
            raise quantised(
                folder,
                sentence("by {method}", method=method)
                if isinstance(method, str)
                else sentence("config.json has {name}", name=name),
            )
        if name in ("id2label", "label2id") and isinstance(value, dict | list):
            _check_labels(path, len(value))
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        # Qwen's max_window_layers counts no layers: it is the first that has a window, if the model has as many.
        counts_layers = name.endswith(("layers", "n_layer")) and not name.startswith("max_")
        if counts_layers and value > max(tensors, MOST_SHARED):
            raise CheckpointError(
                "{folder}: the weights have {tensors} tensors, fewer than the model has layers ({name} is "
                "{value:.4g} in config.json).",
                folder=folder,
                tensors=tensors,
                name=name,
                value=value,
            )
        if isinstance(value, int) and "theta" not in name and not -LARGEST_SIZE <= value <= LARGEST_SIZE:
            raise CheckpointError("{path} describes no model: {name} is too large a number.", path=path, name=name)
        if value < 1 and POSITIVE.search(name):
            raise CheckpointError(
                "{path} describes no model: {name} is {value}, and must be at least 1.",
                path=path,
                name=name,
                value=value,
            )
        if name == "num_labels":
            _check_labels(path, value)


def _check_labels(path: Path, count: float) -> None:
    if count > MOST_LABELS:
        raise CheckpointError(
            "{path} describes no model: it names {count:,} labels; at most {most:,} are allowed.",
            path=path,
            count=count,
            most=MOST_LABELS,
        )


def check_memory(folder: Path, parameters: int) -> None:
    """Raise CheckpointError if so many parameters would not fit the memory."""
    free = available_memory()
    if 4 * parameters > SHARE_OF_MEMORY * free:
        raise CheckpointError(
            "{folder} has {parameters:,} parameters, {needed:.1f} GB in single precision; of the {free:.1f} GB of "
            "memory that are free, at most half may be used. Choose a smaller model.",
            folder=folder,
            parameters=parameters,
            needed=4 * parameters / 1e9,
            free=free / 1e9,
        )


def _each_setting(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each setting with its name, those of configurations inside, such as `text_config`, too."""
    for name, value in settings.items():
        yield name, value
        if isinstance(value, dict):
            yield from _each_setting(value)


def quantised(folder: Path, how: str) -> CheckpointError:
    return CheckpointError(
        "{folder} is quantised ({how}): its matrices are stored as codes, which this app does not decode. Open "
        "the original weights, in 16 or 32 bits.",
        folder=folder,
        how=how,
    )


def weight_files(folder: Path, settings: Mapping[str, Any]) -> list[Path]:
    """The files that transformers reads the weights from: the one that config.json names, or model.safetensors, or
    those that an index names."""
    named = settings.get("transformers_weights") or WEIGHTS
    if not isinstance(named, str):
        raise CheckpointError("{path}: transformers_weights is not the name of a file.", path=folder / "config.json")
    first = _inside(folder, named, "config.json")
    if named == WEIGHTS and not first.is_file() and (folder / INDEX).is_file():
        first = folder / INDEX
    if not first.is_file():
        if elsewhere := _other_format(folder):
            raise elsewhere
        other = sentence("; .bin files are not opened, because they can run code") if any(folder.glob("*.bin")) else ""
        raise CheckpointError(
            "{folder} has no {named}{other}. Write the folder with save_pretrained.",
            folder=folder,
            named=named,
            other=other,
        )
    if not first.name.endswith(".index.json"):
        return [first]
    shards = read_json_object(first).get("weight_map")
    if not isinstance(shards, dict) or not shards or not all(isinstance(name, str) for name in shards.values()):
        raise CheckpointError(
            "{first} is not an index of weights: weight_map must give the file of each tensor.", first=first
        )
    files = [_inside(folder, name, first.name) for name in sorted(set(shards.values()))]
    for path in files:
        if not path.is_file():
            raise CheckpointError(
                "{folder} has no {name}, which {index} names. Copy the whole folder again.",
                folder=folder,
                name=path.name,
                index=first.name,
            )
    return files


def _inside(folder: Path, name: str, source: str) -> Path:
    """The file of that name in the folder; nothing elsewhere is read."""
    if Path(name).is_absolute() or ".." in Path(name).parts or not name.endswith((".safetensors", ".index.json")):
        raise CheckpointError(
            "{folder}: {source} names {name!r}, which is not a safetensors file in this folder.",
            folder=folder,
            source=source,
            name=name,
        )
    return folder / name


def shapes_of(files: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    """Of every tensor, from the files' headers."""
    shapes = {}
    damaged = later("{path} is not a valid safetensors file ({error}). Copy it again, or download it again.")
    for path in files:
        with explained(damaged, path=path), safe_open(find_weights(path), framework="pt") as file:
            shapes |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        check_tensor_count(path, len(shapes))
    return shapes


def read_weights(files: Iterable[Path]) -> dict[str, Tensor]:
    """Every tensor by its name; the numbers stay in the files until they are used."""
    weights = {}
    for path in files:
        with safe_open(find_weights(path), framework="pt") as file:
            weights |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return weights


def adapters(folder: Path) -> list[str]:
    """Names of the files of an adapter (LoRA and others): changes of weights that are kept beside them."""
    return sorted(path.name for pattern in ("adapter_config.json", "adapter_model*.*") for path in folder.glob(pattern))


def other_weights(folder: Path, files: Iterable[Path]) -> list[str]:
    """Names of the safetensors files, in the folder and in those inside, that hold other weights than `files`."""
    known = {path.name for path in files} | set(adapters(folder))
    inside = sorted(path for pattern in ("*.safetensors", "*/*.safetensors") for path in folder.glob(pattern))
    return [path.relative_to(folder).as_posix() for path in inside if path.name not in known or path.parent != folder]


def few_of(names: Sequence[Sentence | str]) -> Sentence:
    """The first of them, and how many more there are; names come from files, and may have braces."""
    said = [name if isinstance(name, Sentence) else sentence("{one}", one=name) for name in names]
    first, more = series(said[:MOST_NAMES]), len(said) - MOST_NAMES
    return sentence("{names} and {count} more", names=first, count=more) if more > 0 else first
