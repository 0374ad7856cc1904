"""Attention through training: this run with the weights of earlier steps, of a training that may still go on."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.softmax import uniform_weights
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.snapshots import open_snapshot, snapshot_stamp, snapshot_steps, unfinished_steps
from model.checkpoints.store import CheckpointError, checkpoint_path, shown_message, shown_name
from model.language import Sentence, sentence
from model.run import Run
from model.trace import Array, Trace
from pages.views import Need, Result, view
from pages.views.controls import SWITCH, steps, toggle
from pages.views.model.training.log import log_of
from pages.views.shared import axes, card_of, is_outdated
from viz.forms import Map, Maps, Texts

END = "end"
"""of the slider: the weights that are open"""


@dataclass(frozen=True)
class Moment:
    """What the weights of one training step make of the text of the page; the model itself is not kept."""

    hash: str
    """SHA-256 of these weights"""
    tokens: tuple[int, ...]
    """that were read"""
    patterns: Mapping[tuple[str, int], Array]
    """(kind, layer) -> (heads, query, key)"""
    log_probabilities: Array
    """(position,) of the text's tokens"""

    @property
    def loss(self) -> float:
        """Cross-entropy without smoothing, in nats per token."""
        return float(-self.log_probabilities.mean())

    def is_like(self, other: "Moment") -> bool:
        """Whether both read the same tokens with the same heads."""
        shapes = [{place: pattern.shape for place, pattern in one.patterns.items()} for one in (self, other)]
        return self.tokens == other.tokens and shapes[0] == shapes[1]


def saved_steps(run: Run) -> tuple[int, ...]:
    return snapshot_steps(checkpoint_path(run.opened.name))


def last_step(run: Run) -> int | None:
    log = log_of(card_of(run))
    return int(log["step"].max()) if "step" in log else None


def opened_step(run: Run) -> int | None:
    """After which the open weights were saved; None: nothing says so, or training has gone on since."""
    return run.opened.step if is_outdated(run, card_of(run)) else run.opened.step or last_step(run)


def moments_of(run: Run) -> dict[str, str]:
    """Every saved step and the open weights; without commas, which in a link would separate two values."""
    others = {str(step): str(step) for step in saved_steps(run) if step != run.opened.step}
    if not others:
        return {}
    every = others | {END: str(opened_step(run) or END)}
    # The open checkpoint of a training may not be its last one.
    return every if run.opened.step is None else dict(sorted(every.items(), key=lambda moment: int(moment[1])))


def say_moment(label: str) -> Sentence:
    """One of `moments_of` in a sentence."""
    return sentence("step {step:,}", step=int(label)) if label.isdecimal() else sentence("the current weights")


SNAPSHOT = steps("After training step", moments_of, END, key="snapshot")
EVERY = toggle("List all steps", lambda run: SWITCH if moments_of(run) else {}, key="all-steps")


@view("Attention through training", code=(open_snapshot,), needs=(Need.LOGITS,))
def snapshots(run: Run, snapshot: str | None = SNAPSHOT, every: bool | None = EVERY) -> Result:
    """The chosen head, and the cross-entropy of the text, with the weights of a training step."""
    if snapshot is None:
        return nothing_saved(run)
    facts = {"saved": True, "step": None if snapshot == END else int(snapshot), "last": opened_step(run), "error": ""}
    facts["skipped"] = unfinished(run)
    try:
        here = read_at(run, snapshot)
    except CheckpointError as error:
        return Result(facts=facts | {"error": shown_message(error)})
    moments = read_each(run, moments_of(run), facts["skipped"]) if every else {}
    greedy = _greedy(run, snapshot)
    rows, keys = axes(run.attention)
    pattern, mask = here.patterns[run.kind, run.layer][run.head], run.attention.mask[run.head]
    shows = {"pattern": Maps(rows, keys, {"": Map(pattern, mask)})}
    if greedy is not None:
        shows["greedy"] = Texts({"Greedy translation with these weights": greedy})
    if moments:
        shows["steps"] = _all_steps(run, moments)
    facts |= {
        "greedy": greedy is not None,
        "every": bool(moments),
        "loss": here.loss,
        "vocabulary": run.trace.logits.shape[-1],
        "uniform": float(np.log(run.trace.logits.shape[-1])),
        "hash": here.hash[:12],
        "moved": total_variation(pattern, run.attention.pattern[run.head]).mean(),
        "uneven": total_variation(pattern, uniform_weights(mask)).mean(),
    }
    return Result(
        shows, facts, {"every_head": here.patterns[run.kind, run.layer], "log_probability": here.log_probabilities}
    )


def nothing_saved(run: Run) -> Result:
    """Where there is nothing to compare the open weights with."""
    facts = {"saved": False, "name": shown_name(run.opened.name), "step": run.opened.step, "skipped": unfinished(run)}
    return Result(facts=facts, lacks=None if facts["step"] is not None else Need.SNAPSHOTS)


def unfinished(run: Run) -> list[str]:
    """What is wrong with the checkpoints that are not offered, in sentences."""
    return [shown_message(problem) for problem in unfinished_steps(checkpoint_path(run.opened.name))]


def read_each(run: Run, moments: Iterable[str], skipped: list[str]) -> dict[str, Moment]:
    """Those that can be read; of each of the others, a sentence is added to `skipped`."""
    found = {}
    for one in moments:
        try:
            found[one] = read_at(run, one)
        except CheckpointError as error:
            skipped.append(shown_message(error))
    return found


def read_at(run: Run, snapshot: str) -> Moment:
    """The text of the page, read with the weights of a moment.

    Raises:
        CheckpointError: its file is damaged, or has been deleted.
    """
    if snapshot == END:
        return _look(run.opened, run.trace)
    step = int(snapshot)
    return run.compute(_look_back, run.opened, step, snapshot_stamp(run.opened.name, step), run.trace)


def _look_back(opened: Checkpoint, step: int, _files: tuple, trace: Trace) -> Moment:
    """The same tokens read with the weights of a step, whose files are `_files`."""
    there, now = open_snapshot(opened, step), _look(opened, trace)
    with suppress(ValueError):  # a text or a change that the other model does not take
        then = _look(there, there.rerun(trace, trace.interventions))
        if then.is_like(now):
            return then
    raise CheckpointError(
        "The checkpoint of step {step:,} belongs to a different model from the one that is open: its heads are "
        "different, or it splits the text into different tokens.",
        step=step,
    )


def _look(opened: Checkpoint, trace: Trace) -> Moment:
    patterns = {place: attention.pattern for place, attention in trace.attentions.items()}
    return Moment(opened.hash, (*trace.src_ids, *trace.tgt_ids), patterns, trace.target_log_probabilities)


def _greedy(run: Run, snapshot: str) -> str | None:
    """Their own greedy translation; None: the model does not translate."""
    if Need.CROSS_ATTENTION not in run.opened.features:
        return None
    step = None if snapshot == END else int(snapshot)
    files = () if step is None else snapshot_stamp(run.opened.name, step)
    return run.compute(_translate, run.opened, step, files, run.trace)


def _translate(opened: Checkpoint, step: int | None, _files: tuple, trace: Trace) -> str:
    there = opened if step is None else open_snapshot(opened, step)
    spoken = there.in_languages(*(trace.languages or ()))
    (greedy,) = spoken.translate((trace.source,), 1, interventions=trace.interventions)
    return greedy


def _all_steps(run: Run, moments: Mapping[str, Moment]) -> pd.DataFrame:
    labels, texts = moments_of(run), [_greedy(run, one) for one in moments]
    named = [labels[one] for one in moments]
    table = pd.DataFrame(
        {"step": [f"{int(label):,}" if label.isdecimal() else label for label in named]}
        | ({"greedy translation": texts} if None not in texts else {})
        | {"nats per token of this text": [moment.loss for moment in moments.values()]}
    )
    table.attrs["floats"] = "%.3f"
    return table
