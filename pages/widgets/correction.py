"""Training, tab "Fine-tune on a correction": a copy of the translator learns another translation, and forgets it again.

The tab is not a view, because the copy has a state of its own: a view is a function of a run, and the same choices show
other numbers after more steps.
"""

from functools import partial

import numpy as np
import streamlit as st

from model import correction as corrections
from model.analysis.runs.revisions import ranked_heads
from model.checkpoints.store import shown_name
from model.checkpoints.translator import Translator
from model.language import in_this_language, tr, tr_error
from model.needs import Need
from model.run import Run
from model.trace import KIND_TITLES
from pages.compute.on_request import clicked, compute_with_progress
from pages.compute.queue import in_turns, wait_for_turn
from pages.compute.trainings import HEARTBEAT_SECONDS, KEPT_SECONDS, MOST_CORRECTIONS, Trainings, all_trainings
from pages.views import Offer
from pages.views.part_pictures import head_maps
from pages.widgets import controls
from pages.widgets.chart import chart
from pages.widgets.explain import say
from pages.widgets.page_links import offer_checkpoint
from pages.widgets.waiting_line import find_or_wait, leave
from viz.forms import Bars, Line, Lines
from viz.theme import OKABE_ITO
from viz.tokens import as_markdown, labels

ID, TEXT = "correction", "corrected"
"""of the link and the session: which copy this page shows, and what was typed"""
OF = "corrected-of"
"""in the session: model and sentence to which the typed text belongs"""
SECONDS = 20.0
"""of steps at one press"""
BEGIN = "correction-begin"
"""in the session: the copy has been asked for and has not taken a step yet"""


def show_correction(run: Run) -> None:
    """The copy that the link names; else what starts one."""
    if not corrections.can_learn(run.opened):
        say("correction", "Other families")
        offer_checkpoint(Need.CROSS_ATTENTION, Need.OWN_LAYERS)
        return
    needed = {
        "most": MOST_CORRECTIONS,
        "seconds": KEPT_SECONDS,
        "megabytes": corrections.bytes_of_copy(run.opened) / 1e6,
    }
    weights = sum(run.opened.parameters_by_part().values())
    say("correction", "The task", **needed, weights=weights, limit=corrections.MOST_BYTES / 1e6, steps_for=SECONDS)
    trainings = all_trainings(MOST_CORRECTIONS)
    with trainings.shown(controls.pictured(ID, "")):
        _show_or_offer(run, trainings)


def _show_or_offer(run: Run, trainings: Trainings) -> None:
    name, correction = find_or_wait(trainings, "correction", ID)
    if correction is None:
        if not name:
            _offer_start(run, trainings)
    elif correction.opened.hash != run.opened.hash:
        say("correction", "Another model", model=shown_name(correction.opened.name))
        st.button(tr("End it"), key="correction-end", icon=":material/stop:", on_click=leave, args=(trainings, ID))
    else:
        st.fragment(in_this_language(partial(trainings.find, name)), run_every=HEARTBEAT_SECONDS)()
        _act(trainings, correction)
        _show(run, correction)


def _offer_start(run: Run, trainings: Trainings) -> None:
    source = run.trace.source
    written = run.compute(_translate, run.opened, source)
    state, shown = st.session_state, (run.opened.hash, source)
    if state.get(OF, shown) != shown:
        state[TEXT] = written  # what was typed is the translation of another sentence
    state[OF] = shown
    offer = Offer(tr("Correct the translation of “{source}”", source=as_markdown(source)), start=written)
    typed = controls.text_area(offer, TEXT, tr("How should it read?"), tr("Teach it to a copy"))
    if not state.get(f"{TEXT}-send"):
        _show_losses(run)
        return
    try:
        with wait_for_turn():
            corrections.read_correction(run.opened, source, typed)
    except ValueError as error:
        st.warning(tr_error(error), icon=":material/edit:")
        return
    controls.set_controls(
        {ID: trainings.enter(partial(corrections.Correction, run.opened, source, typed)), BEGIN: True}
    )
    st.rerun()


def _show_losses(run: Run) -> None:
    """The loss of each token of this run's translation, in nats."""
    losses = {"the model": -run.trace.target_log_probabilities}
    names = labels(run.trace.next_tokens)
    worst = int(losses["the model"].argmax())
    say("correction", "Before", token=names[worst], worst=losses["the model"][worst])
    bars = Bars(names, losses, ("target token", "loss, nats"), number=".4f", height=280)
    chart(bars.draw(), "correction-before", alt=tr("Loss of each token of the translation"))


def _translate(opened: Translator, source: str) -> str:
    return opened.translate([source], beam_size=1)[0]


def _act(trainings: Trainings, correction: corrections.Correction) -> None:
    """Buttons, and what they do: steps, each in a turn of its own, undo, end."""
    with st.container(horizontal=True, vertical_alignment="center"):
        steps = clicked(tr("Take steps for {seconds:g} seconds", seconds=SECONDS), "correction-steps")
        undo = clicked(tr("Undo, bit for bit"), "correction-undo", ":material/undo:", disabled=not correction.step)
        st.button(tr("End it"), key="correction-end", icon=":material/stop:", on_click=leave, args=(trainings, ID))
        explained = tr("Off: the steps end as soon as it writes the correction.")
        past = controls.toggle(Offer(tr("Go on after it has learned"), start=False, help=explained), "correction-past")
    if st.session_state.pop(BEGIN, False) or steps:
        bar = st.progress(0.0, tr("The copy is learning …"))
        for used in in_turns(correction.go_on(SECONDS, past)):
            bar.progress(min(used / SECONDS, 1.0), tr("The copy is learning: step {step}", step=correction.step))
        st.rerun()  # the button to undo follows the steps
    elif undo:
        with wait_for_turn():
            correction.undo()
        st.rerun()


def _show(run: Run, correction: corrections.Correction) -> None:
    """What the copy writes, which heads have moved, and what it costs elsewhere."""
    with wait_for_turn():
        before, after = corrections.with_own_hash(correction.opened), correction.now()
    moved = run.compute(corrections.measure_moves, before, after, correction.source, tuple(correction.wanted))
    written = run.compute(_translate, before, correction.source)
    say(
        "correction",
        "Now",
        source=correction.source,
        written=written,
        wanted=correction.text,
        text=moved.text,
        step=correction.step,
        learned=correction.learned,
        nats=(correction.losses or [np.nan])[:1] + correction.losses[-1:],
        hashes=(before.hash, after.hash),
        same=before.hash == after.hash,
        megabytes=correction.bytes / 1e6,
    )
    if correction.step:
        _show_heads(run, moved)
        steps = np.arange(len(correction.losses))
        line = {"the correction": Line(steps, np.array(correction.losses), OKABE_ITO[4], "circle")}
        titles = ("steps of the optimizer", "nats per token")
        chart(Lines(line, titles, ".4f", height=280).draw(), "correction-loss", alt=tr("Loss of the correction"))
    _show_held_out(before, after)


def _show_heads(run: Run, moved: corrections.Moved) -> None:
    ranked = [ranked_heads(places)[0] for places in (moved.weights, moved.attention)]
    say("correction", "Heads", most=[(KIND_TITLES[kind].lower(), *rest) for kind, *rest in ranked])
    parts = (
        ("weights", "relative difference of its weights", tr("How far the weights of each head have moved")),
        ("attention", "total variation of its attention", tr("How far the attention of each head has moved")),
    )
    for column, (name, what, alt) in zip(st.columns(2), parts, strict=True):
        places = getattr(moved, name)
        values = {kind.name: np.stack([places[kind.name, layer] for layer in kind.layers]) for kind in run.trace.kinds}
        with column:
            chart(head_maps(run, values, what, number=".3g").draw(), f"correction-{name}", alt=alt)


def _show_held_out(before: Translator, after: Translator) -> None:
    pairs = corrections.held_out_pairs(before.name)
    if not pairs:
        say("correction", "No held-out sentences")
        return
    ours = _score(before, pairs)
    theirs = _score(after, pairs)
    changed = [
        (source, target, one, other)
        for (source, target), one, other in zip(pairs, ours.texts, theirs.texts, strict=True)
        if one != other
    ]
    say(
        "correction",
        "Held-out sentences",
        bleu=(ours.bleu, theirs.bleu),
        signature=ours.signature,
        texts=len(pairs),
        changed=changed,
        same=before.hash == after.hash,
    )


def _score(opened: Translator, pairs: list[tuple[str, str]]) -> corrections.HeldOut:
    """Known by the hash of the weights, for all sessions: the untouched model is measured once."""
    return compute_with_progress("held-out", (opened,), partial(corrections.score_held_out, opened, pairs))
