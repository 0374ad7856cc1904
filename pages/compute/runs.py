"""Opened checkpoints, runs of the model, and their checks: computed once, shared by all sessions."""

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from model.analysis.heads.many_sentences import most_telling_head
from model.checkpoints import store
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import freeze_loaded_objects
from model.checkpoints.snapshots import snapshot_steps
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.language import later
from model.needs import FAMILIES, Need, features_of
from model.proof.checks import Check, prove
from model.run import Continuation as Continuation
from model.run import Request as Request
from model.run import decode, force
from model.trace import Trace
from pages.compute.cache import forget, forget_model, kept_if_offered, shared_result

Found = TypeVar("Found")
MOST_NEW_TOKENS = 60
"""that the sidebar asks a language model for"""
NEW_TOKENS = 12
"""that it asks for at first"""
WEIGHTS_READ = 250_000_000
"""for the tokens at first: each reads every weight once, so a large model begins with fewer"""


def open_translator(checkpoint: str, device: str) -> Checkpoint:
    """The checkpoint on its device, as its files were when it was opened.

    Raises:
        CheckpointError: it is missing or broken.
    """
    return _open(checkpoint, device)[0]


@shared_result(later("Opening the checkpoint …"))
def _open(checkpoint: str, device: str) -> tuple[Checkpoint, tuple]:
    """With the stamp of the files from before they were read."""
    stamp = store.file_stamp(checkpoint)
    opened = store.load_checkpoint(checkpoint, device)
    freeze_loaded_objects()
    return kept_if_offered(opened, stamp)


def has_changed(checkpoint: str, device: str) -> bool:
    """Whether somebody has written over the files of an open checkpoint since."""
    return _open(checkpoint, device)[1] != store.file_stamp(checkpoint)


def open_again(checkpoint: str, device: str) -> None:
    """Let the next run of every session read the files anew."""
    before = _open(checkpoint, device)[0]
    forget(_open, checkpoint, device)
    forget_model(before)


MESSAGES = {decode: later("The model is running …"), force: later("The changed model is running …")}
"""on the page while a visitor waits"""


def checkpoint_with(needs: Collection[str], device: str) -> str | None:
    """The first checkpoint that has all of these features, of those that the app was started with before ours; None:
    there is none."""
    for name in (*store.offered_models(), *store.available_checkpoints()):
        with suppress(store.CheckpointError):
            if set(needs) <= open_translator(name, device).features:
                return name
    return None


def checkpoint_by_config(needs: Collection[str]) -> str | None:
    """The first that has all of these, as far as the files say before their weights are read.

    Those that the app was started with come first, those of the studies last. None: there is none.
    """
    for names in (store.offered_models, store.available_checkpoints, store.study_checkpoints):
        for name in names():
            if set(needs) <= _features(name, store.file_stamp(name)):
                return name
    return None


@shared_result()
def _features(name: str, _files: tuple) -> frozenset[Need]:
    """Of a checkpoint with these files, as far as they say; of an offered model, whose output names its family, no part
    of its layers. None where it cannot be opened."""
    with suppress(store.CheckpointError):
        saved = {Need.SNAPSHOTS} if snapshot_steps(store.checkpoint_path(name)) else set()
        if name in store.offered_models():
            family = store.offered_family(name)
            return frozenset(FAMILIES[family] | {Need.LOGITS} | saved) if family else frozenset()
        return features_of(store.stored_config(name)) | saved
    return frozenset()


def models_on_this_machine() -> list[Any]:
    """Those of the local Hugging Face cache that can be opened, each a `CachedModel`; none where transformers lacks."""
    with suppress(store.CheckpointError):
        return list(filter(None, (_describe(name, str(folder))[0] for name, folder in store.models_on_this_machine())))
    return []


@shared_result(later("Looking for models on this machine …"))
def _describe(name: str, folder: str) -> tuple[Any]:
    """Of a snapshot, whose files do not change."""
    return (store.describe_model(name, Path(folder)),)


def compute(function: Callable[..., Found], *args: Any) -> Found:
    """What `function` returns, computed once for all sessions, in the queue for model runs."""
    return shared_result(MESSAGES.get(function, later("Computing …")))(function)(*args)


def run(opened: Checkpoint, request: Request) -> Trace:
    """`decode`, once for all sessions."""
    return compute(decode, opened, request)


@shared_result()
def expected_seconds(opened: Checkpoint, tokens: int) -> float:
    """What a run of so many tokens takes, about."""
    return opened.expected_seconds(tokens)


def first_new_tokens(opened: Checkpoint) -> int:
    """How many tokens the sidebar asks a language model for at first."""
    return max(1, min(NEW_TOKENS, WEIGHTS_READ // sum(opened.parameters_by_part().values())))


@shared_result()
def first_head(opened: Checkpoint) -> tuple[int, ...]:
    """Layer and head on which the sidebar begins; empty: on the first.

    A model with one kind of attention begins on its most telling head. With several kinds, a head of one says nothing
    about the same layer and head of another.
    """
    found = most_telling_head(opened) if len(opened.kinds) == 1 else None
    return found[1:] if found else ()


@shared_result()
def translate(
    translator: Translator, sentences: tuple[str, ...], beam_size: int, interventions: tuple[Intervention, ...]
) -> list[str]:
    """The translation of each sentence."""
    return translator.translate(sentences, beam_size, interventions=interventions)


@shared_result(later("Checking the picture against the model …"))
def check(opened: Checkpoint, trace: Trace) -> tuple[Check, ...]:
    """The checks of the proof strip for one trace."""
    return prove(opened, trace)


def prepare(checkpoint: str, device: str, text: str) -> None:
    """Load, run and check in advance, so that the first visitor finds the results in the cache.

    Raises:
        ValueError: the checkpoint is missing or broken, or does not read the text.
    """
    opened = open_translator(checkpoint, device)
    writes = Need.LANGUAGE_MODEL in opened.features
    continuation = Continuation(first_new_tokens(opened)) if writes else None
    check(opened, run(opened, Request(opened.truncate(text), continuation=continuation)))
