"""The file of a trace that the app was started with: its run, computed again on its checkpoint, and compared."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from model.analysis.runs.trace_differences import TOLERANCE, compare
from model.checkpoints.chat import write_turns
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import available_devices
from model.checkpoints.store import CheckpointError, checkpoint_with_hash, shown_name
from model.interventions.link import encode
from model.language import Refusal, Sentence, sentence, sentence_of
from model.needs import Need
from model.run import LANGUAGES
from model.trace import Trace
from pages.compute.runs import MOST_NEW_TOKENS, Continuation, Request, open_translator, run

TRACE_VARIABLE = "ATTENTION_EXPLORER_TRACE"
"""path of the file that the person who started the app named"""


@dataclass(frozen=True)
class TraceFile:
    """How to see the run of a file in the app."""

    checkpoint: str
    request: Request
    """which the model answers with the tokens of the file"""
    tokens: tuple
    """what tells the run from others: see `tokens_of`"""
    agreement: Sentence
    """how closely the file and the model's run agree, in a sentence"""


def tokens_of(trace: Trace) -> tuple:
    """Weights, tokens and changes of a run: runs that share them have the same numbers."""
    rows = tuple(stream.tokens.ids for stream in trace.streams.values())
    return trace.checkpoint_hash, rows, trace.next_ids, trace.interventions


def named_trace_file() -> TraceFile | None:
    """The file that the app was started with, if it was."""
    path = os.environ.get(TRACE_VARIABLE)
    return open_trace_file(path) if path else None


@cache
def open_trace_file(path: str) -> TraceFile:
    """Read the file, run the model on the same tokens, and compare.

    Raises:
        ValueError: the file is not a trace, its checkpoint is not here, or the app cannot ask for its run.
        OSError: it cannot be read.
    """
    wanted, name = Trace.load(path), Path(path).name
    try:
        checkpoint = checkpoint_with_hash(wanted.checkpoint, wanted.checkpoint_hash)
    except CheckpointError as error:
        raise Refusal(
            "{name}: {error} The pages run the model again, so the file alone is not enough; viz.notebook shows it "
            "without the model (docs/notebook.md).",
            name=name,
            error=sentence_of(error),
        ) from error
    encode(wanted.interventions)  # the list of changes must fit into the app's links
    opened = open_translator(checkpoint, available_devices()[0]).in_languages(*(wanted.languages or ()))
    for request in _requests(wanted, opened):
        found = run(opened, request)
        if tokens_of(found) == tokens_of(wanted):
            return TraceFile(checkpoint, request, tokens_of(found), _agreement(name, wanted, found))
    raise Refusal(
        "{name}: the app cannot ask {checkpoint} for this run: the model cuts its text into different tokens.",
        name=name,
        checkpoint=checkpoint,
    )


def file_of(opened: Checkpoint, request: Request) -> bytes:
    """What `trace.save()` writes of a run, for `--trace`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        run(opened, request).save(path)
        return path.read_bytes()


def _requests(trace: Trace, opened: Checkpoint) -> Iterator[Request]:
    """What the sidebar can ask for that may give the tokens of the trace."""
    source, changes = trace.source, trace.interventions
    if Need.LANGUAGE_MODEL in opened.features:
        tokens = trace.streams["decoder"].tokens
        new = len(trace.next_ids) - (tokens.prompt_length or len(trace.next_ids))
        for count in range(max(new - 1, 1), min(new + 1, MOST_NEW_TOKENS) + 1):
            written = Continuation(count)
            if tokens.turns:
                *earlier, message = tokens.turns
                chat = write_turns(earlier)
                yield Request(message.text, interventions=changes, continuation=written, chat=chat)
            yield Request(source, interventions=changes, continuation=written)
        yield Request(tokens.text, interventions=changes, continuation=Continuation(0))
        return
    languages = trace.languages or (None, None)
    asked = Request(source, interventions=changes, source_language=languages[0], target_language=languages[1])
    yield asked
    if Need.CROSS_ATTENTION in opened.features:
        yield replace(asked, beam_size=1)
        yield replace(asked, target=trace.translation)


def _agreement(name: str, wanted: Trace, found: Trace) -> Sentence:
    differences, count = compare(wanted, found), len(wanted.named_arrays() | found.named_arrays())
    facts = {"name": name, "device": found.device, "count": count}
    if not differences:
        return sentence(
            "This is the run in {name}, recomputed on {device}: all {count} arrays are equal, bit for bit.", **facts
        )
    worst = max(differences, key=lambda each: each.relative)
    compared = sentence(
        "This is the run in {name}, recomputed on {device}: {other} of {count} arrays differ from the file's, most "
        "of all {worst}, by {relative:.2g} of its largest number.",
        **facts,
        other=len(differences),
        worst=worst.name,
        relative=worst.relative,
    )
    if worst.relative > TOLERANCE:
        return compared
    return sentence("{compared} float32 rounding explains this.", compared=compared)


def target_of(file: TraceFile) -> str:
    """The sidebar's control: beam, greedy or typed."""
    request = file.request
    return "typed" if request.target is not None else "greedy" if request.beam_size == 1 else "beam"


def link_to(file: TraceFile) -> dict[str, str]:
    """The URL's parameters that ask for the run, besides the target."""
    request = file.request
    link = {"checkpoint": shown_name(file.checkpoint), "source": request.source}
    link |= {name: code for name in LANGUAGES if (code := getattr(request, name))}
    if request.continuation:
        link["new_tokens"] = str(request.continuation.max_new_tokens)
    if request.target is not None:
        link["typed"] = request.target
    if request.chat is not None:
        link |= {"chat": "true"} | ({"turns": request.chat} if request.chat else {})
    if request.interventions:
        link |= {"kept": "1", "changes": encode(request.interventions)}
    return link
