"""An induction head forms: a small model, measured and opened at each saved step."""

from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.heads.induction import (
    CHANCE,
    LENGTH,
    SEQUENCES,
    TESTED,
    Repetition,
    induction_scores,
    measure_repetition,
    repeat_random_tokens,
    text_pieces,
)
from model.background import induction
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import checkpoint_path, load_checkpoint, shown_message
from model.run import Run
from pages.views import Result, view
from pages.views.controls import steps
from pages.views.model.training.snapshots import END
from pages.views.shared import axes
from viz.forms import Line, Lines, Map, Maps, Mark, Table
from viz.theme import OKABE_ITO

SHOWN_SEED = 2
"""of the random tokens in the picture; 0 and 1 are those of the measures"""
FIRST_HALF, SECOND_HALF, FOUND, BEFORE = OKABE_ITO[3], OKABE_ITO[5], OKABE_ITO[0], OKABE_ITO[2]


def _read_forming() -> induction.Forming | None:
    return induction.read_forming(checkpoint_path(induction.CHECKPOINT))


def _forming_steps(_: Run) -> dict[str, str]:
    """The steps after which the small model was saved, and the end."""
    try:
        measured = _read_forming()
    except ValueError:
        return {}
    saved = snapshot_steps(checkpoint_path(induction.CHECKPOINT))
    return {str(step): str(step) for step in saved} | {END: str(measured.steps[-1])} if measured else {}


FORMING = steps("After training step", _forming_steps, END, key="forming")


@view("An induction head forms", code=(measure_repetition, induction_scores, repeat_random_tokens))
def forming(run: Run, formed: str | None = FORMING) -> Result:
    """Losses and heads of a small model on repeated random tokens over its training; its weights after one step."""
    try:
        measured = _read_forming()
        if measured is None or formed is None:
            return Result(facts={"problem": "", "measured": None})
        opened = run.compute(load_checkpoint, induction.CHECKPOINT, run.opened.device)
        if formed != END:
            opened = run.compute(open_snapshot, opened, int(formed))
        now = run.compute(measure_repetition, opened)
    except ValueError as error:
        return Result(facts={"problem": shown_message(error)})
    step = int(measured.steps[-1] if formed == END else formed)
    layer, head = measured.heads[measured.induction]
    text = opened.tokenizer.decode(repeat_random_tokens(opened.tokenizer, 1, LENGTH, SHOWN_SEED)[0].tolist())
    trace = opened.trace(text)
    attentions = [trace.attention(induction.KIND, one) for one in range(opened.config.n_decoder_layers)]
    maps = {
        f"head {which} of layer {one}": Map(attentions[one].pattern[which], attentions[one].mask[which])
        for one, which in (measured.heads[number] for number in (*measured.formed, measured.previous))
    }
    link = {"checkpoint": induction.CHECKPOINT, "source": text, "layer": layer, "head": head}
    facts = {
        "problem": "",
        "measured": measured,
        "step": step,
        "now": now,
        "link": urlencode(link),
        "symbols": (symbols := len(text_pieces(opened.tokenizer))),
        "guess": np.log(symbols),
        "tested": TESTED,
        "scored": (SEQUENCES, LENGTH, CHANCE),
    }
    rows, keys = axes(attentions[layer])
    shows = {"losses": _forming_losses(measured, step), "scores": _forming_scores(measured, step)}
    return Result(shows | {"maps": Maps(rows, keys, maps), "table": _repetition_table(now)}, facts)


def _forming_marks(measured: induction.Forming, step: int) -> list[Mark]:
    """The moment, and the step whose weights are opened."""
    moment = measured.steps[measured.moment]
    return [Mark(x=moment, text="forms"), Mark(x=step, colour=OKABE_ITO[1], dash="solid")]


def _forming_losses(measured: induction.Forming, step: int) -> Lines:
    first, second = measured.losses
    lines = {
        "first half, random tokens": Line(measured.steps, first, FIRST_HALF, "circle-open"),
        "second half, the same tokens": Line(measured.steps, second, SECOND_HALF, "circle"),
    }
    titles = ("training step", "nats per token")
    marks = _forming_marks(measured, step)
    return Lines(lines, titles, ".3f", height=320, marks=marks, layout={"yaxis": {"rangemode": "tozero"}})


def _forming_scores(measured: induction.Forming, step: int) -> Lines:
    looks_back, others = measured.previous, np.delete(measured.prefix_matching, measured.formed, axis=1)
    places = [f"head {head} of layer {layer}" for layer, head in measured.heads]
    lines = {
        f"prefix matching, {places[one]}": Line(measured.steps, measured.prefix_matching[:, one], colour, "circle")
        for one, colour in zip(measured.formed, (FOUND, *OKABE_ITO[4:]), strict=False)
    } | {
        f"previous token, {places[looks_back]}": Line(
            measured.steps, measured.previous_token[:, looks_back], BEFORE, "diamond"
        ),
        "prefix matching, the highest of the other heads": Line(
            measured.steps, others.max(axis=1, initial=0), FIRST_HALF, "circle-open", dash="dot"
        ),
    }
    titles = ("training step", "mean attention weight")
    marks = _forming_marks(measured, step)
    return Lines(lines, titles, ".3f", height=320, marks=marks, layout={"yaxis": {"range": [0, 1.02]}})


def _repetition_table(now: Repetition) -> Table:
    """Each head with these weights: its scores, and what switching it off costs."""
    layers, heads = zip(*now.heads, strict=True)
    table = pd.DataFrame({"layer": layers, "head": heads, "prefix matching": now.prefix_matching})
    table["previous token"], table["loss without it"] = now.previous_token, now.without
    return Table(table.assign(change=now.without - now.second), floats="%.3f")
