"""From a transformers model and tokenizer, or a folder, to an opened checkpoint.

A folder is found (files.py), checked and filled into a model (`read_model`, loading.py), and its tokenizer read
(files.py). The model is then probed and gets its hook points (`HookedModel`, network.py) and the tokenizer the face of
ours (`Vocabulary`, vocabulary.py). Last, both are tried together, and what does not follow is left out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path

from torch import nn

from model.cancel import cancellable
from model.checkpoints.checkpoint import parameters_hash
from model.checkpoints.devices import pick_device
from model.checkpoints.files import CheckpointError, quote, training_step
from model.checkpoints.huggingface.cache import cached_folders, describe_cached
from model.checkpoints.huggingface.departures import name_settings, say_departures
from model.checkpoints.huggingface.files import download, find_folder, read_tokenizer
from model.checkpoints.huggingface.loading import describe, read_model
from model.checkpoints.huggingface.network import HookedModel, Unreadable
from model.checkpoints.huggingface.opened import (
    HookedCheckpoint,
    HookedLanguageModel,
    HookedMaskedModel,
    HookedTranslator,
)
from model.checkpoints.huggingface.probe import probe_ids
from model.checkpoints.huggingface.reader import HookedReader
from model.checkpoints.huggingface.steps import obeyed_settings
from model.checkpoints.huggingface.trainer import model_in, sort_checkpoints, tokenizer_folders
from model.checkpoints.huggingface.vocabulary import Vocabulary, WrongTokenizer, check_tokenizer
from model.checkpoints.pooling import read_pooling
from model.language import sentence, sentence_of, series
from model.trace import CHAIN_TOLERANCE, Tokens, Trace, relative_error
from model.tracer import build_trace

__all__ = [
    "cached_folders",
    "describe",
    "describe_cached",
    "download",
    "find_folder",
    "model_in",
    "open_folder",
    "open_model",
    "sort_checkpoints",
]

TEXT, IDS = "A dog runs.", "0 1 2"
"""what a model reads when it is opened, without a tokenizer the latter"""


def open_model(
    model: nn.Module | str | Path, tokenizer: object | None = None, name: str = "", hash: str = ""
) -> HookedCheckpoint:
    """Read a transformers model through this project's hook points, so that all views and interventions work on it.

    The model is put in evaluation mode and from now on computes attention through this project.

    Args:
        model: a transformers model in single or double precision, or the path of a folder that `save_pretrained` wrote.
        tokenizer: the model's own; None: texts are token ids, "5 17 42". Of a folder it is read from there.
        name: for screen and exports; None: the model's class.
        hash: SHA-256 of the weights; None: it is computed.

    Raises:
        ValueError: the attention cannot be read, the tokenizer belongs to another model, or a file is missing.
    """
    if isinstance(model, str | Path):
        return open_folder(find_folder(str(model)), name or str(model), "cpu")
    vocabulary = model.config.get_text_config().vocab_size
    if tokenizer is not None:
        check_tokenizer(tokenizer, vocabulary)
    hooked = HookedModel(model)
    if any(part.startswith(("vision", "audio")) for part in model.config.sub_configs):
        hooked.notes.insert(
            0, sentence("input: this model also reads pictures or sounds; here it reads only text, with its own head.")
        )
    if settings := getattr(model, "generation_config", None):
        model.generation_config = obeyed_settings(settings)
    opened = {
        ("encoder",): HookedMaskedModel,
        ("decoder",): HookedLanguageModel,
        ("encoder", "decoder"): HookedTranslator,
    }[tuple(hooked.stacks)]
    sha256 = hash or parameters_hash(model)
    types = list(hooked.stacks) == ["encoder"] and hooked.embeddings["encoder"].types is not None
    words = Vocabulary(
        tokenizer, vocabulary, types and "token_type_ids" in signature(model.forward).parameters, hooked.begins
    )
    hooked.languages = words.languages
    hooked.separator, hooked.pad, hooked.ends = words.separator, words.pad, hooked.find_ends(words.end)
    hooked.check_start()
    if words.chat_problem:
        hooked.notes.append(sentence("chat template: {problem} It is not used.", problem=words.chat_problem))
    found = opened(name or type(model).__name__, sha256, hooked, words)
    _try(found)
    return found


def _try(opened: HookedCheckpoint) -> None:
    """Read one run, and a text, so that a model whose parts do not fit together is refused when it is opened.

    Nothing is shown of a step whose numbers do not follow.

    Raises:
        Unreadable: its run does not give a Trace.
    """
    texts = zip(opened.model.stacks, probe_ids(opened.model.model), strict=True)
    stacks = {name: _as_tokens(ids) for name, ids in texts}
    last = list(stacks)[-1]
    try:
        trace = build_trace(
            opened.model, opened.tokenizer, ("", ""), stacks, {last: stacks[last]}, make_reader=HookedReader
        )
    except (ValueError, LookupError, RuntimeError, TypeError) as error:
        raise Unreadable("its run cannot be read: {error}.", error=quote(error)) from error
    _leave_out_unverified(opened.model, trace)
    text, readable = TEXT if opened.tokenizer.reads_text else IDS, False
    with suppress(ValueError):  # a sentence that a visitor sees as well
        readable = opened.fits(text) and bool(opened.tokenizer.read(text))
    if readable:
        if not isinstance(opened, HookedMaskedModel):
            opened.generate(text, max_new_tokens=2)
        opened.trace(text, text if isinstance(opened, HookedTranslator) else None)


def _leave_out_unverified(model: HookedModel, trace: Trace) -> None:
    """Forget the matrices that do not give a run's queries, keys, values or output, and note by how much they fail."""
    for place, attention in trace.attentions.items():
        path, points = model.attentions()[place]
        steps = ("q", "k", "v", "out") if attention.projections is not None else ()
        errors = {name: max(relative_error(*step) for step in attention.recompute(name)) for name in steps}
        if failing := {name: error for name, error in errors.items() if not error <= CHAIN_TOLERANCE}:
            model.leave_out(points, failing)
            by = [sentence("{name} by {error:.2g}", name=name, error=error) for name, error in failing.items()]
            model.notes.append(
                sentence(
                    "{path}: what the matrices give differs from the model's own numbers ({by}, relative to the "
                    "largest number); what the model does there could not be read.",
                    path=path,
                    by=series(by),
                )
            )


def _as_tokens(ids: Sequence[int]) -> Tokens:
    n = len(ids)
    return Tokens("", tuple(ids), tuple(map(str, ids)), (False,) * n, ((0, 0),) * n, tuple(range(n)))


def open_folder(folder: Path, name: str, device: str) -> HookedCheckpoint:
    """Open the model and the tokenizer of a folder; of a Trainer's, its newest finished checkpoint.

    Raises:
        CheckpointError: a file is missing or damaged, the model is too large, or its attention cannot be read.
    """
    device = pick_device(device)
    try:
        folder = model_in(folder)
        stored, tokenizers = read_model(folder), map(read_tokenizer, tokenizer_folders(folder))
        tokenizer = next((found for found in tokenizers if found is not None), None)
        with cancellable(None):  # what a check raises says nothing about the folder
            opened = open_model(stored.model.to(device), tokenizer, name, stored.hash)
    except CheckpointError:
        raise
    except (Unreadable, WrongTokenizer) as error:
        raise CheckpointError("{name}: {error}", name=name, error=sentence_of(error)) from error
    except BaseException as error:
        # Foreign files can make transformers raise anything; tokenizers, written in Rust, panics.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CheckpointError(
            "{name} cannot be opened: {kind}, {error}.", name=name, kind=type(error).__name__, error=quote(error)
        ) from error
    opened.model.unused = stored.notes
    opened.model.pooling = read_pooling(folder)
    opened.model.notes += stored.notes
    opened.model.departures = say_departures(name_settings(stored.unread, opened.model), stored.left_inside)
    return replace(opened, step=training_step(folder))
