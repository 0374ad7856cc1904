"""Training, tab "Train it in front of you": the letters task from random weights, with pause and changes.

The tab is not a view, because a training run has its own state: a view is a function of a run, and the same choices
show other numbers a second later.
"""

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from model.language import in_this_language, tr
from model.live_training import HEADS, TEXT, LiveTraining, TrainedModel, first_trace
from model.run import Run
from model.trace import Trace
from pages.compute.on_request import clicked
from pages.compute.queue import in_turns, wait_for_turn
from pages.compute.runs import compute
from pages.compute.trainings import HEARTBEAT_SECONDS, KEPT_SECONDS, MOST_LETTERS, Trainings, all_trainings
from pages.views import Offer
from pages.views.attention.heads_and_layers import heads as all_heads
from pages.widgets import controls
from pages.widgets.canvas import draw
from pages.widgets.chart import chart
from pages.widgets.explain import say
from pages.widgets.waiting_line import find_or_wait, leave
from viz.forms import Line, Lines
from viz.theme import OKABE_ITO

ID = "live-training"
"""of the link and the session: which training this page shows"""
SLICE_SECONDS, PAUSE_SECONDS = 2.0, 0.3
"""of training before the pictures are drawn again, and between two slices"""
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
MOST_SEED = 99
RUNNING = "it changes a training that is running, and is not the visitor's own"


def show_live_training(_: Run) -> None:
    """The training that the link names; else what starts one."""
    say("live_training", "The task", most=MOST_LETTERS, seconds=KEPT_SECONDS)
    trainings = all_trainings(MOST_LETTERS)
    with trainings.shown(controls.pictured(ID, "")):
        name, training = find_or_wait(trainings, "live_training", ID)
    if training is None:
        if not name:
            _offer_start(trainings)
        return
    left, right = st.columns(2)
    with left:
        offer = Offer(tr("Train"), start=False, help=tr("Off is a pause: nothing is lost."))
        playing = controls.toggle(offer, "live-playing")
    with right:
        st.button(tr("End it"), key="live-end", icon=":material/stop:", on_click=leave, args=(trainings, ID))
    every = PAUSE_SECONDS if playing and not training.finished else HEARTBEAT_SECONDS
    st.fragment(in_this_language(partial(_show_now, trainings, name, playing)), run_every=every)()


def _offer_start(trainings: Trainings) -> None:
    left, right = st.columns(2)
    seed = controls.number(Offer(tr("Seed"), limits=(0, MOST_SEED)), "live-seed", left)
    heads = controls.choice(Offer(tr("Heads"), {count: str(count) for count in HEADS}, 4), "live-heads", right)
    if clicked(tr("Train from random weights"), "live-start"):
        name = trainings.enter(partial(LiveTraining, seed, heads))
        of_model = {"live-rate": 1.0, "live-cut": heads, "live-mask": True, "live-scale": True}
        controls.set_controls({ID: name, "live-playing": True} | of_model)
        st.rerun()
    say("live_training", "At first", text=TEXT)
    _draw_heads(compute(first_trace, seed, heads))


def _draw_heads(trace: Trace) -> None:
    """The weights of all heads, each kind of attention below the other."""
    draw(all_heads(Run.of(None, trace, "cross"), kinds=True).shows["mosaic"].drawing, "live-mosaic")


def _show_now(trainings: Trainings, name: str, playing: bool) -> None:
    """Take steps if it plays, then draw. Runs again and again while the page is open."""
    training = trainings.find(name)
    if training is None:
        st.rerun()  # of the whole page, which says that it is gone
    with trainings.shown(name):
        _show(name, training, playing)


def _show(name: str, training: LiveTraining, playing: bool) -> None:
    """Take its steps each in a turn of its own; then draw."""
    if not training.finished:
        _change(name, training)
    for _ in in_turns(training.go_on(SLICE_SECONDS)) if playing else ():
        pass
    with wait_for_turn():
        trace, written, log = training.trace(), training.written(), training.log
    last = None if log.empty else log.iloc[-1]
    say(
        "live_training",
        "Now",
        step=training.step,
        most=training.most_steps,
        finished=training.finished,
        problem=training.problem,
        text=TEXT,
        written=written,
        nats=-trace.target_log_probabilities.mean(),
        exact=None if last is None else last["dev_exact"],
        loss=None if last is None else last["dev_loss"],
        options=training.options,
        changed=training.changed,
        model=training.model,
    )
    if last is not None:
        left, right = st.columns(2)
        with left:
            chart(
                _curve(log, {"train_loss": "training", "dev_loss": "development"}, "nats per token"),
                "live-loss",
                alt="Loss so far",
            )
        with right:
            chart(
                _curve(log, {"dev_exact": "without a mistake"}, "share of 200 texts"),
                "live-exact",
                alt="Exact matches so far",
            )
    _draw_heads(trace)


def _change(name: str, training: LiveTraining) -> None:
    """Take over what this visitor changes; what another page with the same training has changed stays."""
    chosen, state = _choose(training), st.session_state
    before, drawn = state.get(f"{ID}-drawn", ("", chosen))
    if before == name and chosen != drawn:
        training.change(chosen)
    state[f"{ID}-drawn"] = name, chosen


def _choose(training: LiveTraining) -> TrainedModel:
    """What is changed from the next step on."""
    model = training.model
    offers = {
        "live-rate": Offer(tr("Learning rate"), {rate: f"× {rate:g}" for rate in RATES}, model.rate),
        "live-cut": Offer(tr("Heads"), {count: str(count) for count in HEADS}, model.heads),
        "live-mask": Offer(tr("Mask"), {True: tr("causal"), False: tr("none")}, model.masked),
        "live-scale": Offer(tr("Scores divided"), {True: tr("by √dₖ"), False: tr("not at all")}, model.scaled),
    }
    rate, count, masked, scaled = (
        controls.select(replace(offer, unlinked=RUNNING), key, place)
        for (key, offer), place in zip(offers.items(), st.columns(4), strict=True)
    )
    return replace(model, rate=rate, heads=count, masked=masked, scaled=scaled)


def _curve(log: pd.DataFrame, columns: dict[str, str], unit: str) -> object:
    colours = dict(zip(columns, (OKABE_ITO[0], OKABE_ITO[5]), strict=False))
    steps = log["step"].to_numpy(float)
    lines = {
        name: Line(steps, log[column].to_numpy(float), colours[column], "circle") for column, name in columns.items()
    }
    layout = {"yaxis": {"rangemode": "tozero"}}
    return Lines(lines, ("training step", unit), ".4g", height=280, layout=layout).draw()
