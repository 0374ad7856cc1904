"""Checkpoints: folders of data files, verified when they are opened. Nothing in them is ever executed."""

import csv
import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import pick_device
from model.checkpoints.files import (
    CheckpointError,
    atomic_write,
    find_weights,
    read_file,
    read_json_object,
    read_text,
    sha256,
    trainer_checkpoints,
)
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.extras import HUGGING_FACE
from model.language import Refusal, Sentence, sentence, sentence_of
from model.needs import Need
from model.network.config import TransformerConfig
from model.network.families import new_network
from model.network.network import Network

DEFAULT_CHECKPOINT = "en-de"
OPENED = {"encoder_decoder": Translator, "decoder": LanguageModel, "encoder": MaskedModel}
"""by family"""
CHECKPOINTS_VARIABLE = "ATTENTION_EXPLORER_CHECKPOINTS"
MODELS_VARIABLE = "ATTENTION_EXPLORER_MODELS"
"""names and folders of the models on offer, mostly of Hugging Face, separated by commas; one that has a comma stands in
quotes"""
BROUGHT_VARIABLE = "ATTENTION_EXPLORER_BROUGHT"
"""the same of those that the person at this machine has opened since the app was started"""

MOST_ATTEMPTS = 5
"""to open a checkpoint that is being written"""


def checkpoint_folder() -> Path:
    """The folder of all checkpoints: `checkpoints/`, or the value of ATTENTION_EXPLORER_CHECKPOINTS."""
    return Path(os.environ.get(CHECKPOINTS_VARIABLE) or Path(__file__).parents[2] / "checkpoints")


def checkpoint_path(name: str) -> Path:
    """The folder of a checkpoint, given its name there or its path; of an offered model, also in the local cache."""
    folder = checkpoint_folder() / name
    # Unlike Path.is_dir, this raises nothing where the folder above may not be entered.
    if not os.path.isdir(folder):
        elsewhere = Path(name).resolve()
        if _is_file(elsewhere / "config.json") or trainer_checkpoints(elsewhere):
            return elsewhere
    if name in offered_models() and not _is_file(folder / "config.json"):
        with suppress(CheckpointError):
            return find_offered_model(name)
    return folder


def available_checkpoints() -> list[str]:
    """Names of the folders that contain a config.json, the default one first."""
    names = sorted(path.parent.name for path in checkpoint_folder().glob("*/config.json"))
    return sorted(names, key=lambda name: name != DEFAULT_CHECKPOINT)


def study_checkpoints() -> list[str]:
    """Names of the small checkpoints in `studies/`: "studies/heads-1"."""
    return sorted(f"studies/{path.parent.name}" for path in checkpoint_folder().glob("studies/*/config.json"))


def is_of_study(name: str | None) -> bool:
    """Whether this is one of `study_checkpoints()`."""
    return bool(name) and name.startswith("studies/") and name in study_checkpoints()


def first_checkpoint() -> str:
    """What is open at first, and where nobody has chosen: the first model that the app was started with, else the
    default checkpoint."""
    return next(iter((*given_models(), *available_checkpoints())), DEFAULT_CHECKPOINT)


def offered_models() -> list[str]:
    """Hugging Face models that may be opened: those that the app was started with, then those of `bring_model`."""
    return list(dict.fromkeys((*given_models(), *_names_in(BROUGHT_VARIABLE))))


def given_models() -> list[str]:
    """Hugging Face models that the app was started with: those that ATTENTION_EXPLORER_MODELS names."""
    return _names_in(MODELS_VARIABLE)


def bring_model(name: str) -> None:
    """Offer one more model, for the person at this machine alone: whoever calls this has to know that it is that one.

    Raises:
        CheckpointError: transformers is missing, or there is no such folder.
    """
    find_offered_model(name)
    os.environ[BROUGHT_VARIABLE] = _in_one_line((*_names_in(BROUGHT_VARIABLE), name))


def models_on_this_machine() -> list[tuple[str, Path]]:
    """Name and folder of each model in the local Hugging Face cache.

    Raises:
        CheckpointError: transformers is missing.
    """
    return list(_hugging_face("a model of the cache").cached_folders())


def describe_model(name: str, folder: Path) -> Any:
    """What a model in the local Hugging Face cache is, a `CachedModel`; None: it cannot be opened."""
    return _hugging_face(name).describe_cached(name, folder)


def _names_in(variable: str) -> list[str]:
    rows = csv.reader(StringIO(os.environ.get(variable, ""), newline=""), skipinitialspace=True)
    return list(dict.fromkeys(filter(None, (name.strip() for row in rows for name in row))))


def _in_one_line(names: Sequence[str]) -> str:
    with StringIO() as line:
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(names)
        return line.getvalue()


def shown_name(name: str) -> str:
    """A checkpoint's name as visitors see it: of an offered folder its last part, since the rest is the server's own.

    Where something else is called so, as many of the folders above it stand before it as tell the two apart.
    """
    return shown_names([name])[name]


def shown_names(names: Sequence[str]) -> dict[str, str]:
    """`shown_name` of each of them, for which the folders of all models are looked at once."""
    shown = _shown_names() if any(name in offered_models() for name in names) else {}
    return {name: shown.get(name, name) for name in names}


def shown_message(error: Exception | str) -> str:
    """A sentence for visitors: a folder of this machine goes by its last part, as the models do in the menu."""
    return _shorten_folders(
        sentence_of(error) if isinstance(error, Exception) else error,
        _shown_names() | {str(checkpoint_folder()): "checkpoints"},
    )


def _shorten_folders(said: Any, names: Mapping[str, str]) -> Any:
    """A text, or a sentence with its facts, with shorter names for folders; any other fact as it is."""
    if isinstance(said, Sentence):
        return sentence(said.template, **{name: _shorten_folders(fact, names) for name, fact in said.facts.items()})
    if not isinstance(said, str | Path):
        return said
    text = str(said)
    for folder, shown in names.items():
        text = text.replace(folder, shown)
    return text


def _shown_names() -> dict[str, str]:
    """By the names of `offered_models()` that are folders."""
    if not (offered := offered_models()):
        return {}
    taken = {*available_checkpoints(), *study_checkpoints(), *(name for name in offered if not _is_folder(name))}
    folders = {name: Path(name).resolve() for name in offered if _is_folder(name)}
    return {name: _name_among(folder, {*folders.values()} - {folder}, taken) for name, folder in folders.items()}


def _name_among(folder: Path, others: Collection[Path], taken: Collection[str]) -> str:
    """The end of a folder's path, from its last part on as long as another folder ends in the same, or is called so."""
    ends = ("/".join(folder.parts[-count:]) for count in range(1, len(folder.parts)))
    known = {"/".join(other.parts[-count:]) for other in others for count in range(1, len(other.parts) + 1)} | {*taken}
    return next((end for end in ends if end not in known), str(folder) if len(folder.parts) > 1 else "model")


def _is_folder(name: str) -> bool:
    return os.path.isdir(name) or os.path.isabs(name)


def offer_models(names: Sequence[str], download: bool = False) -> None:
    """Offer these models besides those that ATTENTION_EXPLORER_MODELS names; only for the person who starts the app.
    They are folders, or names in the local Hugging Face cache, into which `download` brings those that are in neither,
    once, now.

    Raises:
        CheckpointError: transformers is missing, or a model could not be downloaded.
    """
    os.environ[MODELS_VARIABLE] = _in_one_line((*names, *given_models()))
    if download:
        for name in offered_models():
            _hugging_face(name).download(name)


def find_offered_model(name: str) -> Path:
    """The folder of one of `offered_models()`, of the local Hugging Face cache, or of a checkpoint of this project.

    Raises:
        CheckpointError: transformers is missing, or there is no such folder.
    """
    own = (folder for folder in (Path(name), checkpoint_folder() / name) if _is_own(folder) or _has_begun(folder))
    return next(own, None) or _hugging_face(name).find_folder(name)


def open_offered_model(name: str, device: str = "auto") -> Checkpoint:
    """Open one of `offered_models()`, from its folder or from the local Hugging Face cache; nothing is downloaded.

    A folder in this project's format opens as what it is.

    Raises:
        CheckpointError: transformers is missing, or the model is missing, too large, or cannot be read.
    """
    folder = find_offered_model(name)
    if _is_own(folder):
        return _open_own(folder, name, device)
    if _has_begun(folder):
        raise CheckpointError(
            "{name} has no checkpoint yet: training saves the first one at its first evaluation (--evaluate-every). "
            "Open this page again then.",
            name=name,
        )
    return _hugging_face(name).open_folder(folder, name, device)


def _hugging_face(name: str) -> ModuleType:
    """The module that opens Hugging Face models; transformers is imported here and nowhere else."""
    try:
        from model.checkpoints.huggingface import opening
    except (ImportError, RuntimeError) as error:
        raise CheckpointError(
            "Opening {name} needs the transformers library ({error}). Stop the app and run: {command}",
            name=name,
            error=sentence_of(error),
            command=HUGGING_FACE,
        ) from error
    return opening


def checkpoint_with_hash(name: str, weights: str) -> str:
    """The name of a checkpoint that can be opened here and has the weights of this SHA-256; `name` is looked at first.

    Raises:
        CheckpointError: there is none.
    """
    ours = (*available_checkpoints(), *study_checkpoints())
    for each in sorted((*ours, *offered_models()), key=lambda other: other != name):
        with suppress(CheckpointError):
            if each in offered_models():
                hashes = {open_offered_model(each, "cpu").hash}
            else:
                described = _read_config(checkpoint_path(each) / "config.json")
                hashes = {files["model.safetensors"] for _, files in described}
            if weights in hashes:
                return each
    raise CheckpointError(
        "Its run is of the checkpoint {name} with the SHA-256 {sha}…; no checkpoint here has these weights.",
        name=name,
        sha=weights[:12],
    )


def save_checkpoint(folder: Path, model: Network, tokenizer: Tokenizer, weights: Mapping[str, Tensor]) -> None:
    """Write config.json, tokenizer.model and model.safetensors (fp16) into `folder`.

    At any moment, even after a crash, the folder opens with either the old weights or the new ones: while the files are
    replaced, config.json describes both versions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = asdict(model.config)
    staged = {name: folder / f".{name}.new" for name in _FILES}
    try:
        save_weights(staged["model.safetensors"], weights)
        with atomic_write(staged["tokenizer.model"]) as path:
            path.write_bytes(tokenizer.serialized)
        hashes = {name: sha256(path) for name, path in staged.items()} | {"config": _hash_of(values)}
        config = {"model": values, "sha256": hashes}
        with suppress(CheckpointError):  # there is no earlier version
            _read_config(folder / "config.json")
            before = json.loads(read_text(folder / "config.json"))
            _write_config(folder, config | {"before": {name: before[name] for name in config}})
        for name, path in staged.items():
            path.replace(folder / name)
        _write_config(folder, config)
    finally:
        for path in staged.values():
            path.unlink(missing_ok=True)


def save_weights(path: Path, weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float16) -> None:
    """Write tensors by name; `weights` comes from `named_parameters`, which lists a tied matrix once."""
    with atomic_write(path) as temporary:
        save_file({name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in weights.items()}, temporary)


def load_checkpoint(name: str = DEFAULT_CHECKPOINT, device: str = "auto") -> Translator | LanguageModel | MaskedModel:
    """Open a checkpoint by its name or path, of this project's format or of Hugging Face's.

    Args:
        name: one of `available_checkpoints()`, `study_checkpoints()` or `offered_models()`, or a checkpoint's path.
        device: "auto" (CUDA if available), "cpu", "cuda", "cuda:1", ...

    Raises:
        CheckpointError: (a ValueError) a file is missing, truncated, altered, or does not fit the others.
    """
    name = {shown: given for given, shown in _shown_names().items()}.get(name, name)
    if name in offered_models():
        return open_offered_model(name, device)
    folder = checkpoint_path(name)
    if _is_hugging_face(folder):
        inside = checkpoint_folder().absolute() in folder.absolute().parents
        return _hugging_face(name).open_folder(folder, _name_of(folder) if inside else str(name), device)
    if not _is_file(folder / "config.json"):
        found = ", ".join(available_checkpoints()) or "none"
        raise CheckpointError(
            "no checkpoint {name!r}: {path} does not exist. Available in {folder}: {found}. Choose one, or train "
            "one with python -m model.train; a model in the local Hugging Face cache opens by its name where "
            "{variable} has it.",
            name=name,
            path=folder / "config.json",
            folder=checkpoint_folder(),
            found=found,
            variable=MODELS_VARIABLE,
        )
    return _open_own(folder, _name_of(folder), device)


def _open_own(folder: Path, name: str, device: str) -> Translator | LanguageModel | MaskedModel:
    """A training may save while this reads: what was mixed of two versions is read again."""
    for attempt in range(1, MOST_ATTEMPTS + 1):
        before = stamp_of(folder)
        try:
            opened = _read_own(folder, name, device)
        except CheckpointError:
            if attempt == MOST_ATTEMPTS or stamp_of(folder) == before:
                raise
        else:
            if stamp_of(folder) == before:
                break
    return opened


def _read_own(folder: Path, name: str, device: str) -> Translator | LanguageModel | MaskedModel:
    config, hashes = _find_matching(folder)
    tokenizer = _read_tokenizer(folder / "tokenizer.model", config)
    _check_sizes(folder / "model.safetensors", config)
    model = new_network(config)
    load_weights(model, folder / "model.safetensors")
    model = model.to(pick_device(device)).eval().requires_grad_(False)
    opened = OPENED[config.family]
    return opened(name=name, hash=hashes["model.safetensors"], model=model, tokenizer=tokenizer)


def check_own(opened: Checkpoint, work: str) -> None:
    """For work that needs the networks and vocabularies of this project; `work` begins the sentence.

    Raises:
        CheckpointError: it is a Hugging Face model.
    """
    if Need.OWN_LAYERS not in opened.features:
        raise CheckpointError(
            "{work} takes only checkpoints of this project, and {name} is a Hugging Face model. Choose one of "
            "these: {names}.",
            work=work,
            name=opened.name,
            names=", ".join(available_checkpoints()) or sentence("none is here"),
        )


def load_translator(name: str, device: str) -> Translator:
    """As `load_checkpoint`.

    Raises:
        CheckpointError: it cannot be opened, or does not translate.
    """
    opened = load_checkpoint(name, device)
    if not isinstance(opened, Translator) or Need.LOGITS not in opened.features:
        raise CheckpointError(
            "{name} is not a translator: it lacks the encoder, decoder and output that write a target.", name=name
        )
    return opened


def stored_config(name: str) -> TransformerConfig:
    """What config.json says about a checkpoint, whose other files are not read.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    return _read_config(checkpoint_path(name) / "config.json")[0][0]


def offered_family(name: str) -> str:
    """The family of one of `offered_models()`, as far as config.json and the names of the weights say; none are read.

    Empty: it has no output that could write or fill in.

    Raises:
        CheckpointError: a file is missing or damaged, or transformers.
    """
    folder = find_offered_model(name)
    if _is_own(folder):
        return _read_config(folder / "config.json")[0][0].family
    return _hugging_face(name).describe(model_folder(name))[1]


def model_folder(name: str) -> Path:
    """Where the files are that a checkpoint is opened from; of a Trainer's folder, its newest finished checkpoint.

    Raises:
        CheckpointError: none is finished, or transformers is missing.
    """
    folder = checkpoint_path(name)
    return _hugging_face(name).model_in(folder) if _is_trainers(folder) else folder


def _is_trainers(folder: Path) -> bool:
    return bool(trainer_checkpoints(folder)) and not _is_own(folder)


def trainer_steps(folder: Path) -> tuple[dict[int, Path], dict[int, str]]:
    """In the folder of a Hugging Face Trainer: its finished checkpoints by training step, and what the others lack.

    Raises:
        CheckpointError: transformers is missing.
    """
    return _hugging_face(folder.name).sort_checkpoints(folder) if _is_trainers(folder) else ({}, {})


def file_stamp(name: str) -> tuple[tuple[str, int, int], ...]:
    """Name, size in bytes and time of change in ns of each file that a checkpoint is opened from."""
    with suppress(CheckpointError):
        return stamp_of(model_folder(name))
    return ()


def stamp_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """The same of a folder; a checkpoint of a Trainer goes by its name, too. Empty where it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        stats = {f"{folder.name}/{entry.name}": entry.stat() for entry in entries if _OPENED.fullmatch(entry.name)}
        return tuple((file, stat.st_size, stat.st_mtime_ns) for file, stat in sorted(stats.items()))
    return ()


def load_weights(model: Network, path: Path, folder: Path | None = None) -> None:
    """Fill `model` from a safetensors file with exactly the model's tensor names and shapes; without the checkpoint's
    folder, it is the one that the file stands in.

    Raises:
        CheckpointError: the file cannot be read, or a tensor is missing, unknown, misshapen or not finite.
    """
    try:
        weights = load_file(find_weights(path, folder))
    except (SafetensorError, OSError) as error:
        raise _damaged("is not a valid safetensors file ({error})", path, error=sentence_of(error)) from error
    expected = model.weights()
    if weights.keys() != expected.keys():
        odd = sorted(weights.keys() ^ expected.keys())[0]
        if odd in expected:
            raise _damaged("lacks tensor {odd!r} for the configuration in config.json", path, odd=odd)
        raise _damaged("has an unexpected tensor {odd!r} for the configuration in config.json", path, odd=odd)
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape:
            found, wanted = tuple(tensor.shape), tuple(expected[name].shape)
            raise _damaged(
                "has {name} of shape {found}, but config.json requires {wanted}",
                path,
                name=name,
                found=found,
                wanted=wanted,
            )
        if tensor.dtype not in _DTYPES:
            raise _damaged(
                "has {name} in {dtype}, which is not a 16- to 64-bit float", path, name=name, dtype=tensor.dtype
            )
        if not tensor.isfinite().all():
            raise _damaged("has values in {name} that are not finite numbers", path, name=name)
        expected[name].data.copy_(tensor)


_FILES = ("model.safetensors", "tokenizer.model")
_OPENED = re.compile(
    r".+\.(safetensors|safetensors\.index\.json|model|spm|jinja|txt|tiktoken)|(generation_)?config\.json"
    r"|(vocab|tokenizer|special_tokens|added_tokens|chat_template).*\.json"
)
"""names of files that a model or its tokenizer is made of; what else stands in a folder is read anew each time"""
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_MAX_POSITIONS = 2**16
"""longest table of positions that a configuration may ask for"""

_Description = tuple[TransformerConfig, dict[str, str]]
"""a configuration, and the SHA-256 of each file"""


def _damaged(problem: str, file: Path, /, **facts: Any) -> CheckpointError:
    """An error that says what is wrong with a file of the folder: a text behind its name, and the text's own facts."""
    return CheckpointError(
        "{path} {problem}. Restore the folder (git checkout), or train it again with python -m model.train.",
        path=file,
        problem=sentence(problem, **facts),
    )


def _name_of(folder: Path) -> str:
    """As it opens again: relative to the folder of all checkpoints where it lies in there."""
    inside, root = (Path(os.path.normpath(path.absolute())) for path in (folder, checkpoint_folder()))
    return inside.relative_to(root).as_posix() if root in inside.parents else folder.name


def _is_hugging_face(folder: Path) -> bool:
    """True if the folder holds a model in transformers' format, whose config.json has no hashes, or its Trainer's."""
    if _is_own(folder):
        return False
    if trainer_checkpoints(folder):
        return True
    if not _is_file(folder / "config.json"):
        return False
    beside = ("tokenizer_config.json", "generation_config.json", "model.safetensors.index.json")
    named = _settings_in(folder) & {"model_type", "architectures"}
    return bool(named) or any(_is_file(folder / name) for name in beside)


def _is_own(folder: Path) -> bool:
    """True if the folder holds a checkpoint in this project's format."""
    names = _settings_in(folder)
    return "sha256" in names or ("model" in names and "model_type" not in names)


def _has_begun(folder: Path) -> bool:
    """True if our trainer has begun to write there, and has saved no checkpoint yet."""
    begun = _is_file(folder / "tokenizer.model") and os.path.isdir(folder / "snapshots")
    return begun and not _is_file(folder / "config.json")


def _settings_in(folder: Path) -> set[str]:
    """Names of the settings in its config.json; none where that cannot be read."""
    with suppress(CheckpointError):
        if _is_file(folder / "config.json"):
            return {*read_json_object(folder / "config.json")}
    return set()


def _is_file(path: Path) -> bool:
    """False also where permissions hide the file."""
    try:
        return path.is_file()
    except OSError:
        return False


def _find_matching(folder: Path) -> _Description:
    """The description in config.json that fits the files; while they are being replaced, it contains two.

    Raises:
        CheckpointError: none fits; the message is about the newer one.
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
    """One description, or two while the weights are being replaced."""
    try:
        config = json.loads(read_text(path))
        versions = [config, config["before"]] if "before" in config else [config]
        return [_describe(version) for version in versions]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged("is not a checkpoint's configuration ({error})", path, error=sentence_of(error)) from error


def _write_config(folder: Path, config: Mapping) -> None:
    with atomic_write(folder / "config.json") as path:
        path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _describe(config: Any) -> _Description:
    """Raises ValueError, KeyError or TypeError if values are invalid or differ from those that were saved."""
    values, hashes = config["model"], config["sha256"]
    if set(hashes) - {"config"} != set(_FILES):
        raise Refusal("sha256 must name {names}", names=sorted(_FILES))
    if not all(isinstance(value, str) for value in hashes.values()):
        raise Refusal("a SHA-256 must be a string of 64 hexadecimal digits")
    unknown = set(values) - {field.name for field in fields(TransformerConfig)}
    if unknown:
        raise Refusal("unknown field {value!r}", value=sorted(unknown)[0])
    described = TransformerConfig(**values)
    # Older checkpoints have no hash of the configuration.
    if hashes.get("config", _hash_of(values)) != _hash_of(values):
        raise Refusal('the values under "model" are not those that were saved: their SHA-256 differs')
    return described, hashes


def _hash_of(values: Mapping) -> str:
    """SHA-256 of a configuration's values, independent of the file's formatting."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _check_sizes(path: Path, config: TransformerConfig) -> None:
    """Before memory is allocated: config.json must not ask for a model far larger than the file.

    Counted are only matrices that every network has, so that the file cannot hold fewer numbers; the others together
    have at most three times as many.

    Raises:
        CheckpointError: it does, or the file's header cannot be read.
    """
    try:
        with safe_open(find_weights(path), framework="pt") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError) as error:
        raise _damaged("is not a valid safetensors file ({error})", path, error=sentence_of(error)) from error
    layers = config.n_encoder_layers + config.n_decoder_layers
    of_a_layer = config.d_model * (config.n_heads * config.d_k + config.d_model + config.d_ff)  # W_Q, W_O and W_1
    wanted = config.vocab_size * config.d_model + layers * of_a_layer
    found = sum(math.prod(shape) for shape in shapes)
    if wanted > found or layers > len(shapes) or config.max_len > _MAX_POSITIONS:
        raise _damaged("has {found:,} numbers, far fewer than config.json requires", path, found=found)


def _check_hash(path: Path, expected: str) -> None:
    try:
        if not path.is_file():
            raise _damaged("is missing", path)
        found, size = sha256(path), path.stat().st_size
    except OSError as error:
        raise _damaged("cannot be read ({error})", path, error=sentence_of(error)) from error
    if found != expected:
        problem = sentence(
            "SHA-256 is {found}..., config.json expects {expected}...", found=found[:12], expected=expected[:12]
        )
        raise _damaged("({size:,} bytes) is truncated or altered: its {problem}", path, size=size, problem=problem)


def _read_tokenizer(path: Path, config: TransformerConfig) -> Tokenizer:
    try:
        tokenizer = Tokenizer(read_file(path))
    except (OSError, ValueError) as error:
        raise _damaged("is not a vocabulary of this project ({error})", path, error=sentence_of(error)) from error
    if len(tokenizer) != config.vocab_size:
        raise _damaged(
            "has {pieces} pieces, but config.json says vocab_size {size}",
            path,
            pieces=len(tokenizer),
            size=config.vocab_size,
        )
    return tokenizer
