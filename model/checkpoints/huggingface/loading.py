"""The model of a folder: its class follows from the weights, and transformers fills them in.

It is given tensors and no folder, so it finds no adapter, no pickle and no code there.
"""

import copy
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultimodalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForTextEncoding,
)

from model.checkpoints.files import CheckpointError, quote, read_json_object
from model.checkpoints.huggingface.copies import copies
from model.checkpoints.huggingface.departures import name_weights, run_watched, unread_settings, watch, weights_inside
from model.checkpoints.huggingface.files import (
    QUANTISED,
    adapters,
    check_memory,
    check_settings,
    explained,
    few_of,
    other_weights,
    quantised,
    read_settings,
    read_weights,
    shapes_of,
    weight_files,
    weights_hash,
)
from model.language import Sentence, later, sentence

# The last ones read pictures or sounds as well.
HEADS = (AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForMaskedLM, AutoModelForMultimodalLM)
STACKS = (AutoModel, AutoModelForTextEncoding)
"""layers without a head: of the whole model, or of an encoder alone"""
UNUSABLE = later("{path} cannot be used: {error}.")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class StoredModel:
    """A model as its folder holds it."""

    model: nn.Module
    """in single precision and evaluation mode"""
    hash: str
    """SHA-256 of its weights"""
    notes: tuple[Sentence, ...]
    """what the folder holds and the model does not use, in sentences"""
    unread: Mapping[str, Any]
    """settings of positions, masks, norms and scales that the model never read"""
    left_inside: tuple[Sentence | str, ...]
    """names of weights of parts that are shown without a place there"""


def read_model(folder: Path) -> StoredModel:
    """The model of a folder, after everything about it has been checked.

    Where the weights lack the head that the configuration names, the layers open alone.

    Raises:
        CheckpointError: a file is missing or damaged, the family is unknown, the weights are quantised or not finite,
            or the model is too large.
    """
    settings, files, config, empty = _look_into(folder)
    weights, problems, claimed = read_weights(files), [], set()
    _check_numbers(folder, weights, empty)
    for each in empty:
        own, there = _plain_names(each, each.state_dict()), _plain_names(each, weights)
        if (there - own) & claimed:  # a part of a class before is there, so that class is damaged
            continue
        claimed |= own
        read = watch(watched := copy.deepcopy(config))
        model, info = _fill(folder, type(each), watched, weights)
        problem = _misfit(model, info)
        if not problem:
            # Until then numbers stand in their file: who writes over that changes the open model, or ends the process.
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.data = tensor.data.clone()
            done = run_watched(model, read)
            left = {name: weights[name] for name in sorted(info["unexpected_keys"]) if name in weights}
            inside = weights_inside(left, model, done.ran)
            _read_generation_settings(folder, model)
            others = [name for name in left if name not in inside]
            notes = [*_head_notes(config, model, bool(problems)), *_notes(folder, files, model, others)]
            unread = unread_settings(settings, model, done)
            hashed = weights_hash(folder, files)
            return StoredModel(model.eval(), hashed, tuple(notes), unread, tuple(name_weights(inside)))
        problems.append(problem)
    raise CheckpointError("{folder}: {problem} Copy the whole folder again.", folder=folder, problem=problems[0])


def describe(folder: Path) -> tuple[str, str, int]:
    """By the names and shapes of the weights, whose numbers are not read.

    Returns:
        transformers' class for them; encoder_decoder, decoder or encoder, or nothing where it has no output for tokens;
        bytes of the files of the weights.

    Raises:
        CheckpointError: a file is missing or damaged, the family is unknown, or the model is quantised or too large.
    """
    _, files, _, (model, *_) = _look_into(folder)
    size, kind = sum(path.stat().st_size for path in files), type(model).__name__
    if not model.get_output_embeddings():
        return kind, "", size
    if model.config.is_encoder_decoder:
        return kind, "encoder_decoder", size
    return kind, "decoder" if _writes(model) else "encoder", size


def _look_into(folder: Path) -> tuple[dict[str, Any], list[Path], Any, list[nn.Module]]:
    """What a folder holds, by its settings and the headers of its weights: the settings, the files of the weights, the
    configuration, and models without memory that may fit, the best first."""
    settings = read_settings(folder)
    shapes = shapes_of(files := weight_files(folder, settings))
    check_settings(folder, settings, len(shapes))
    if codes := next((name for name in shapes if name.endswith(QUANTISED)), None):
        raise quantised(folder, sentence("it has {name}", name=codes))
    config = _read_config(folder)
    empty = _empty_models(folder, config, shapes)
    return settings, files, config, _check_size(folder, empty, sum(map(math.prod, shapes.values())))


def _writes(model: nn.Module) -> bool:
    return type(model).__name__.endswith(("CausalLM", "LMHeadModel"))


def _read_config(folder: Path) -> Any:
    """The configuration, without what it says of how to compute: attention is computed here, whatever it names."""
    with explained(UNUSABLE, path=folder / "config.json"):
        with copies(folder) as copy:
            config = AutoConfig.from_pretrained(copy, local_files_only=True, trust_remote_code=False)
        config._attn_implementation, config._experts_implementation = "eager", None  # of configurations inside, too
        return config


def _empty_models(folder: Path, config: Any, names: Mapping[str, Any]) -> list[nn.Module]:
    """A model without memory of each class that may fit the weights, the one that fits them best first.

    The class that the configuration names comes first of all, if it has a head for text or none. Of the others those
    come first that lack least of what they need, and leave least of what there is.
    """
    mappings = [auto._model_mapping for auto in (*HEADS, *STACKS) if type(config) in auto._model_mapping]
    classes = list(dict.fromkeys(mapping[type(config)] for mapping in mappings))
    if not classes:
        raise CheckpointError(
            "{folder}: transformers has no text model for the family {model_type!r}.",
            folder=folder,
            model_type=config.model_type,
        )
    stacks = [auto._model_mapping.get(type(config), None) for auto in STACKS]
    named = _named_class(config)
    other_head = named not in ("", *(each.__name__ for each in classes))
    found, problem = [], None
    for number, each in enumerate(classes):
        try:
            with torch.device("meta"):
                model = each(copy.deepcopy(config), **_options(each, names))
        except Exception as error:
            problem = error
            continue
        preferred = (each in stacks) != other_head, _writes(model) != bool(getattr(config, "is_decoder", False)), number
        found.append((each.__name__ != named, *_compare_names(model, names), *preferred, model))
    if not found:
        raise CheckpointError(
            "{path} describes no model: {problem}.", path=folder / "config.json", problem=quote(problem)
        ) from problem
    return [model for *_, model in sorted(found, key=lambda each: each[:-1])]


def _named_class(config: Any) -> str:
    named = getattr(config, "architectures", None) or [""]
    return named[0] if isinstance(named, list) and isinstance(named[0], str) else ""


def _options(factory: type, names: Mapping[str, Any]) -> dict[str, bool]:
    """No view reads a pooler, which some heads do without, so it may be missing."""
    pools = "add_pooling_layer" in signature(factory.__init__).parameters
    return {"add_pooling_layer": False} if pools and not any("pooler." in name for name in names) else {}


def _compare_names(model: nn.Module, names: Mapping[str, Any]) -> tuple[int, int]:
    """How many tensors the weights lack of the model, and how many of theirs it leaves, by the names alone."""
    tied = (getattr(model, "all_tied_weights_keys", None) or {}).keys()
    wanted, there = _plain_names(model, model.state_dict().keys() - tied), _plain_names(model, names)
    return len(wanted - there), len(there - wanted)


def _plain_names(model: nn.Module, names: Iterable[str]) -> set[str]:
    """Without the stack's name, which a model without a head has not, and with today's names of a norm's weights."""
    today = {"gamma": "weight", "beta": "bias"}
    parts = (name.removeprefix(f"{model.base_model_prefix}.").rpartition(".") for name in names)
    return {f"{module}.{today.get(last, last)}" for module, _, last in parts}


def _check_size(folder: Path, models: Sequence[nn.Module], found: int) -> list[nn.Module]:
    """The models that the file may hold: `found` numbers. Before memory is allocated.

    Raises:
        CheckpointError: there is none, or the weights would not fit the memory.
    """
    sizes = {model: sum(parameter.numel() for parameter in model.parameters()) for model in models}
    fitting = [model for model, wanted in sizes.items() if wanted <= 2 * found + 2**16]
    if not fitting:
        raise CheckpointError(
            "{folder}: the weights hold {found:,} numbers, but the configuration requires {size:,}. Copy the whole "
            "folder again.",
            folder=folder,
            found=found,
            size=sizes[models[0]],
        )
    check_memory(folder, max(sizes[model] for model in fitting))
    return fitting


def _check_numbers(folder: Path, weights: Mapping[str, Tensor], models: Sequence[nn.Module]) -> None:
    """Weights are finite floats; what other versions of a class kept besides, such as a mask, may be anything."""
    ignored = {pattern for model in models for pattern in model._keys_to_ignore_on_load_unexpected or ()}
    parameters = {name for model in models for name in _plain_names(model, dict(model.named_parameters()))}
    for name, tensor in weights.items():
        learned = any(_plain_names(model, [name]) <= parameters for model in models)
        if not learned and any(re.search(pattern, name) for pattern in ignored):
            continue
        if tensor.dtype not in DTYPES and (learned or tensor.is_floating_point()):
            kind = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError(
                "{folder}: {name} is stored as {kind}, not as floats of 16 to 64 bits: the weights are quantised "
                "or damaged. Open the original weights.",
                folder=folder,
                name=name,
                kind=kind,
            )
        if tensor.dtype in DTYPES and not tensor.float().isfinite().all():
            raise CheckpointError(
                "{folder}: the weights have values in {name} that are not finite numbers. Copy the folder "
                "again, or use weights from before they appeared.",
                folder=folder,
                name=name,
            )


def _misfit(model: nn.Module, info: Mapping[str, Any]) -> Sentence | None:
    """What the weights lack of the model; None where they lack nothing."""
    if lacking := sorted(info["missing_keys"]):
        return sentence(
            "the weights lack {count} tensors of {model}, {first} among them; they would be random numbers.",
            count=len(lacking),
            model=type(model).__name__,
            first=lacking[0],
        )
    for name, found, wanted in sorted(info["mismatched_keys"], key=str):
        return sentence(
            "the weights have {name} of shape {found}, but config.json requires {wanted}.",
            name=name,
            found=str(tuple(found)),
            wanted=str(tuple(wanted)),
        )
    return None


def _fill(folder: Path, factory: type, config: Any, weights: Mapping[str, Tensor]) -> tuple[nn.Module, dict[str, Any]]:
    with explained(later("{folder} cannot be opened: {error}."), folder=folder):
        return factory.from_pretrained(
            None,
            config=config,
            state_dict=dict(weights),
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",
            ignore_mismatched_sizes=True,  # which is refused in a sentence of ours
            output_loading_info=True,
            **_options(factory, weights),
        )


def _read_generation_settings(folder: Path, model: nn.Module) -> None:
    """As `from_pretrained` reads them from a folder, which has not read one here."""
    nowhere = dict.fromkeys(("cache_dir", "proxies", "token", "revision"))
    if (path := folder / "generation_config.json").is_file():
        read_json_object(path)
    if not model.can_generate():
        return
    with explained(UNUSABLE, path=path), copies(folder) as copy:
        model.adjust_generation_fn(
            None,
            False,
            None,
            str(copy),
            force_download=False,
            local_files_only=True,
            subfolder="",
            trust_remote_code=False,
            **nowhere,
        )


def _head_notes(config: Any, model: nn.Module, lacks: bool) -> list[Sentence]:
    """Which class is shown in place of the one that config.json names; `lacks`: because its head is not there."""
    shown, named = type(model).__name__, _named_class(config)
    if named in ("", shown):
        return []
    names = {"named": named, "shown": shown}
    if model.get_output_embeddings():
        return [sentence("head: config.json names {named}, which is opened as {shown}.", **names)]
    if lacks:
        return [
            sentence(
                "head: config.json names {named}, which is opened as {shown}: its layers are shown, because the "
                "weights have no head.",
                **names,
            )
        ]
    return [
        sentence(
            "head: config.json names {named}, which is opened as {shown}: its layers are shown, and its head is not "
            "read.",
            **names,
        )
    ]


def _notes(folder: Path, files: Sequence[Path], model: nn.Module, left: Sequence[str]) -> list[Sentence]:
    """What the folder holds and the view does not use; `left`: weights of other heads, layers and towers."""
    shown, notes = type(model).__name__, []
    if left:
        notes.append(
            sentence(
                "weights: the folder also holds {names}, for which {model} has no place: not used here.",
                names=few_of(left),
                model=shown,
            )
        )
    if there := adapters(folder):
        notes.append(
            sentence(
                "adapter: {names} in the folder changes the weights and is not applied: the base model is shown. To "
                "see both, merge them with peft (merge_and_unload) and open what save_pretrained writes.",
                names=few_of(there),
            )
        )
    if others := other_weights(folder, files):
        notes.append(
            sentence("weights: the folder also holds {names}, which the view does not read.", names=few_of(others))
        )
    return notes
