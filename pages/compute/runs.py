"""Opened checkpoints, runs of the model, and their checks: computed once, shared by all sessions."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import freeze_loaded_objects
from model.checkpoints.snapshots import snapshot_steps
from model.checkpoints.store import (
    CheckpointError,
    available_checkpoints,
    checkpoint_path,
    load_checkpoint,
    stored_config,
    study_checkpoints,
)
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.language import later
from model.needs import Need, features_of
from model.proof.checks import Check, prove
from model.run import Continuation as Continuation
from model.run import Request as Request
from model.run import decode, force
from model.trace import Trace
from pages.compute.cache import shared_result

Found = TypeVar("Found")
MOST_NEW_TOKENS = 60
"""that the sidebar asks a language model for"""
NEW_TOKENS = 12
"""that it asks for at first"""
WEIGHTS_READ = 250_000_000
"""for the tokens at first: each reads every weight once, so a large model begins with fewer"""


@shared_result(later("Opening the checkpoint …"))
def open_translator(checkpoint: str, device: str) -> Checkpoint:
    """The checkpoint on its device.

    Raises:
        CheckpointError: it is missing or broken.
    """
    opened = load_checkpoint(checkpoint, device)
    freeze_loaded_objects()
    return opened


MESSAGES = {decode: later("The model is running …"), force: later("The changed model is running …")}
"""on the page while a visitor waits"""


def checkpoint_with(needs: Collection[str], device: str) -> str | None:
    """The first checkpoint in the folder that has all of these features; None: there is none."""
    for name in available_checkpoints():
        with suppress(CheckpointError):
            if set(needs) <= open_translator(name, device).features:
                return name
    return None


def checkpoint_by_config(needs: Collection[str]) -> str | None:
    """The first that has all of these, as far as config.json and the folder say: no weights are read.

    Those of the studies come last. None: there is none.
    """
    for name in (*available_checkpoints(), *study_checkpoints()):
        with suppress(CheckpointError):
            saved = {Need.SNAPSHOTS} if snapshot_steps(checkpoint_path(name)) else set()
            if set(needs) <= features_of(stored_config(name)) | saved:
                return name
    return None


def compute(function: Callable[..., Found], *args: Any) -> Found:
    """What `function` returns, computed once for all sessions, in the queue for model runs."""
    return shared_result(MESSAGES.get(function, later("Computing …")))(function)(*args)


def run(opened: Checkpoint, request: Request) -> Trace:
    """`decode`, once for all sessions."""
    return compute(decode, opened, request)


def rerun(opened: Checkpoint, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    """`force`, once for all sessions."""
    return trace if interventions == trace.interventions else compute(force, opened, trace, interventions)


@shared_result()
def expected_seconds(opened: Checkpoint, tokens: int) -> float:
    """What a run of so many tokens takes, about."""
    return opened.expected_seconds(tokens)


def first_new_tokens(opened: Checkpoint) -> int:
    """How many tokens the sidebar asks a language model for at first."""
    return max(1, min(NEW_TOKENS, WEIGHTS_READ // sum(opened.parameters_by_part().values())))


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


def prepare(checkpoint: str, device: str, request: Request) -> None:
    """Load, run and check in advance, so that the first visitor finds the results in the cache.

    Raises:
        CheckpointError: the checkpoint is missing or broken.
    """
    opened = open_translator(checkpoint, device)
    check(opened, run(opened, request))
