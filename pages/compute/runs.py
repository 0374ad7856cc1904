"""Opened checkpoints, runs of the model, and their checks: computed once, shared by all sessions."""

from dataclasses import dataclass

from model.checkpoints.chat import read_turns
from model.checkpoints.devices import freeze_loaded_objects
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.generation.sampling import Sampling
from model.interventions import Intervention
from model.proof.checks import Check, prove
from model.trace import Prompt, Trace, Turn
from pages.compute.cache import shared_result

MOST_NEW_TOKENS = 60
"""that the sidebar asks a language model for"""
NEW_TOKENS = 12
"""that it asks for at first"""
WEIGHTS_READ = 250_000_000
"""for the tokens at first: each reads every weight once, so a large model begins with fewer"""


@dataclass(frozen=True)
class Continuation:
    """What a language model writes after the text."""

    max_new_tokens: int
    sampling: Sampling | None = None
    """None: the most probable token each time"""
    seed: int = 0


@dataclass(frozen=True)
class Request:
    """Everything that a run depends on besides the weights."""

    source: str
    target: str | None = None
    """None: the model decodes its own"""
    beam_size: int = 4
    interventions: tuple[Intervention, ...] = ()
    continuation: Continuation | None = None
    """None: nothing is written after the text; only a language model writes"""
    chat: str | None = None
    """of a chat: the turns before `source`, the user's message, as `read_turns` reads them; None: it is a text"""

    @property
    def prompt(self) -> Prompt:
        """What the model is given.

        Raises:
            ValueError: the earlier turns do not begin with a role.
        """
        return self.source if self.chat is None else (*read_turns(self.chat), Turn("user", self.source.strip()))


@shared_result("Opening the checkpoint …")
def open_translator(checkpoint: str, device: str) -> Translator:
    """The checkpoint on its device.

    Raises:
        CheckpointError: it is missing or broken.
    """
    translator = load_checkpoint(checkpoint, device)
    freeze_loaded_objects()
    return translator


@shared_result("The model is running …")
def run(translator: Translator, request: Request) -> Trace:
    """Decode and trace.

    Raises:
        ValueError: the text is blank or too long, or a chat is refused; the message says what to do.
    """
    written = vars(request.continuation) if request.continuation else {}
    return translator.trace(request.prompt, request.target, request.beam_size, request.interventions, **written)


def rerun(translator: Translator, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    """The same source and target tokens under other interventions.

    Raises:
        ValueError: an intervention does not fit the model.
    """
    return trace if interventions == trace.interventions else _rerun(translator, trace, interventions)


@shared_result()
def expected_seconds(translator: Translator, tokens: int) -> float:
    """What a run of so many tokens takes, about."""
    return translator.expected_seconds(tokens)


def first_new_tokens(translator: Translator) -> int:
    """How many tokens the sidebar asks a language model for at first."""
    return max(1, min(NEW_TOKENS, WEIGHTS_READ // sum(translator.parameters_by_part().values())))


@shared_result("The changed model is running …")
def _rerun(translator: Translator, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    return translator.rerun(trace, interventions)


@shared_result()
def translate(
    translator: Translator, sentences: tuple[str, ...], beam_size: int, interventions: tuple[Intervention, ...]
) -> list[str]:
    """The translation of each sentence."""
    return translator.translate(sentences, beam_size, interventions=interventions)


@shared_result("Checking the picture against the model …")
def check(translator: Translator, trace: Trace) -> tuple[Check, ...]:
    """The checks of the proof strip for one trace."""
    return prove(translator, trace)


def prepare(checkpoint: str, device: str, request: Request) -> None:
    """Load, run and check in advance, so that the first visitor finds the results in the cache.

    Raises:
        CheckpointError: the checkpoint is missing or broken.
    """
    translator = open_translator(checkpoint, device)
    check(translator, run(translator, request))
