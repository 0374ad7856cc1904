"""Attention through training: this run with the weights of earlier steps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.softmax import uniform_weights
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import (
    CheckpointError,
    checkpoint_path,
    shown_message,
    shown_name,
)
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.run import Run, force
from model.trace import Array, Attention
from pages.views import Need, Result, view
from pages.views.controls import SWITCH, steps, toggle
from pages.views.model.training.log import log_of
from pages.views.shared import axes, card_of
from viz.forms import Map, Maps, Texts

END = "end"
"""of the slider: the shipped weights"""


@dataclass(frozen=True)
class Moment:
    """The text of the page, read with the weights of one training step."""

    hash: str
    """SHA-256 of these weights"""
    attention: Attention
    """the chosen one"""
    log_probabilities: Array
    """(position,) of the text's tokens"""
    greedy: str | None
    """their own greedy translation; None: the model does not translate"""

    @property
    def loss(self) -> float:
        """Cross-entropy without smoothing, in nats per token."""
        return float(-self.log_probabilities.mean())


def saved_steps(run: Run) -> tuple[int, ...]:
    return snapshot_steps(checkpoint_path(run.opened.name))


def last_step(run: Run) -> int | None:
    log = log_of(card_of(run))
    return int(log["step"].max()) if "step" in log else None


def _moments(run: Run) -> dict[str, str]:
    """Every saved step and the end; without commas, which in a link would separate two values."""
    saved = saved_steps(run)
    return {str(step): str(step) for step in saved} | {END: str(last_step(run) or END)} if saved else {}


SNAPSHOT = steps("After training step", _moments, END, key="snapshot")
EVERY = toggle("List all steps", lambda run: SWITCH if saved_steps(run) else {}, key="all-steps")


@view("Attention through training", code=(open_snapshot,), needs=(Need.LOGITS,))
def snapshots(run: Run, snapshot: str | None = SNAPSHOT, every: bool | None = EVERY) -> Result:
    """The chosen head, and the cross-entropy of the text, with the weights of a training step."""
    if snapshot is None:
        return Result(facts={"saved": False, "name": shown_name(run.opened.name)}, lacks=Need.SNAPSHOTS)
    facts = {"saved": True, "step": None if snapshot == END else int(snapshot), "last": last_step(run), "error": ""}
    try:
        here = _moment(run, snapshot)
        moments = {one: _moment(run, one) for one in _moments(run)} if every else {}
    except CheckpointError as error:
        return Result(facts=facts | {"error": shown_message(error)})
    attention = here.attention
    rows, keys = axes(attention)
    pattern, mask = attention.pattern[run.head], attention.mask[run.head]
    shows = {"pattern": Maps(rows, keys, {"": Map(pattern, mask)})}
    if here.greedy is not None:
        shows["greedy"] = Texts({"Greedy translation with these weights": here.greedy})
    if moments:
        shows["steps"] = _all_steps(moments, _moments(run))
    facts |= {
        "greedy": here.greedy is not None,
        "every": bool(moments),
        "loss": here.loss,
        "vocabulary": run.trace.logits.shape[-1],
        "uniform": float(np.log(run.trace.logits.shape[-1])),
        "hash": here.hash[:12],
        "moved": total_variation(pattern, run.attention.pattern[run.head]).mean(),
        "uneven": total_variation(pattern, uniform_weights(mask)).mean(),
    }
    return Result(shows, facts, {"every_head": attention.pattern, "log_probability": here.log_probabilities})


def _moment(run: Run, snapshot: str) -> Moment:
    """Raises CheckpointError if the snapshot's file is damaged."""
    opened, trace = run.opened, run.trace
    if snapshot != END:
        opened = run.compute(open_snapshot, opened, int(snapshot))
        trace = run.compute(force, opened, trace, trace.interventions)
    translates = Need.CROSS_ATTENTION in opened.features
    greedy = run.compute(_translate, opened, trace.source, trace.interventions) if translates else None
    return Moment(opened.hash, trace.attention(run.kind, run.layer), trace.target_log_probabilities, greedy)


def _translate(opened: Translator, source: str, changes: tuple[Intervention, ...]) -> str:
    (greedy,) = opened.translate((source,), 1, interventions=changes)
    return greedy


def _all_steps(moments: Mapping[str, Moment], labels: Mapping[str, str]) -> pd.DataFrame:
    texts = [moment.greedy for moment in moments.values()]
    table = pd.DataFrame(
        {"step": [f"{int(label):,}" if label.isdecimal() else label for label in labels.values()]}
        | ({"greedy translation": texts} if None not in texts else {})
        | {"nats per token of this text": [moment.loss for moment in moments.values()]}
    )
    table.attrs["floats"] = "%.3f"
    return table
