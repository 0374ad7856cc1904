"""Side by side: the choice of the right side, another head, another sentence or another checkpoint."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.checkpoints.store import CheckpointError, shown_message
from model.checkpoints.translator import Translator
from model.language import later, tr
from model.run import Place, Run
from pages.compute.runs import open_translator, run
from pages.frame.open_page import fit_text
from pages.frame.sidebar.opened_model import offered_checkpoints
from pages.frame.sidebar.sidebar import FIRST_SENTENCE
from pages.text import names_in
from pages.views import Control, Offer
from pages.views.experiment.side_by_side import RIGHT
from pages.widgets.controls import choice, select, text_area, toggle
from pages.widgets.notices import say_departures, say_unfamiliar
from viz.tokens import as_markdown

MODES = {"heads": later("Heads"), "sentences": later("Sentences"), "checkpoints": later("Checkpoints")}
PAIRS = {
    later("One word decides what “it” is"): (FIRST_SENTENCE, FIRST_SENTENCE.replace("tired", "wide")),
    later("Subject and object swapped"): ("The dog chased the cat.", "The cat chased the dog."),
    later("A negation"): ("I have seen the dog.", "I have not seen the dog."),
    later("The same word twice"): ("He sat on the bank of the river.", "He went to the bank in the city."),
    later("Singular and plural"): ("The child is playing in the garden.", "The children are playing in the garden."),
}
"""what differs -> the two sentences"""
NUMBERS = {"layer": later("Layer, right"), "head": later("Head, right")}
FIRST = {"same": later("Same"), "next": later("Next one")}
NEAREST = names_in("nearest")
SENTENCE = "side_sentence"


def choose_right(left: Run) -> dict[Control, Run]:
    """The right side; if it is not available, say why, and take the left one."""
    notes: list[str] = []
    modes = Offer(tr("Compare two"), {one: tr(label) for one, label in MODES.items()})
    mode = choice(modes, "side_mode", notes=notes, label_visibility="collapsed")
    _say(notes)
    try:
        return {RIGHT: {"heads": _head, "sentences": _sentence, "checkpoints": _checkpoint}[mode](left)}
    except ValueError as error:
        st.text(tr("{reason} For now both sides show the sidebar's selection.", reason=shown_message(error)))
        return {RIGHT: left}


def _head(left: Run) -> Run:
    notes: list[str] = []
    options = {"same": tr("Same kind")} | {kind.name: tr(kind.title) for kind in left.opened.kinds}
    with st.container(horizontal=True):
        chosen = select(Offer(tr("Attention, right"), options), "side_kind", width=250, notes=notes)
        kind = left.kind if chosen == "same" else chosen
        layers, heads = _layers_and_heads(left.opened, kind)
        layer = _number("layer", "side_layer", "same", (layers, left.layer), notes)
        head = _number("head", "side_head", "next", (heads, (left.head + 1) % len(heads)), notes)
    _say(notes)
    return replace(left, place=Place(kind, layer, head))


def _sentence(left: Run) -> Run:
    first = next(iter(PAIRS.values()))[1]
    sentence = text_area(
        Offer(tr("Sentence, right"), start=first), SENTENCE, tr("Type another English sentence"), tr("Run it")
    )
    st.selectbox(
        tr("Pairs of sentences"),
        list(PAIRS),
        index=None,
        key="side_example",
        format_func=lambda name: f"{tr(name)}: {' | '.join(PAIRS[name])}",
        placeholder=tr("… or take a pair, for both sides"),
        label_visibility="collapsed",
        on_change=_take_pair,
    )
    source = fit_text(left.opened, "right sentence", sentence)
    request = replace(left.request, source=source, target=None)
    right = replace(left, request=request, trace=run(left.opened, request), source=sentence)
    if source != left.request.source:
        say_unfamiliar(right)
    return right


def _take_pair() -> None:
    state = st.session_state
    if name := state["side_example"]:
        state["source"], state[SENTENCE] = PAIRS[name]
        state["side_example"] = None


def _checkpoint(left: Run) -> Run:
    offered = offered_checkpoints("side_checkpoint")
    others = {name: shown for name, shown in offered.items() if name != left.opened.name and _has_kinds(name, left)}
    if not others:
        st.info(
            tr(
                "There is no other checkpoint with these kinds of attention, so both sides show the sidebar's. "
                "Train one with python -m model.train."
            )
        )
        return left
    notes: list[str] = []
    with st.container(horizontal=True):
        name = select(Offer(tr("Checkpoint, right"), others), "side_checkpoint", width=250, notes=notes)
        translator = open_translator(name, left.opened.device)
        layers, heads = _layers_and_heads(translator, left.kind)
        layer = _number("layer", "side_other_layer", "same", (layers, left.layer), notes)
        head = _number("head", "side_other_head", "same", (heads, left.head), notes)
    _say(notes)
    explained = tr("Both models read the same target, so that their decoders can be compared word by word.")
    forced = toggle(Offer(tr("The left output on both sides"), start=False, help=explained), "side_forced")
    say_departures(translator)
    target = left.trace.written if forced or left.request.target is not None else None
    languages = left.opened.chosen_languages
    if languages is None or not {*languages} <= {*translator.languages}:
        languages = None, None
    translator = translator.in_languages(*languages)
    request = replace(left.request, target=target, source_language=languages[0], target_language=languages[1])
    place = Place(left.kind, layer, head)
    right = replace(left, checkpoint=translator, request=request, trace=run(translator, request), place=place)
    say_unfamiliar(right)
    return right


def _has_kinds(checkpoint: str, left: Run) -> bool:
    """Whether the checkpoint is of the same family; one that cannot be opened is offered, and opening says why."""
    try:
        other = open_translator(checkpoint, left.opened.device)
    except CheckpointError:
        return True
    return {kind.name for kind in other.kinds} == {kind.name for kind in left.opened.kinds}


def _layers_and_heads(translator: Translator, name: str) -> tuple[Sequence[int], Sequence[int]]:
    """Numbers of the layers that have the kind of attention called `name`, and of the heads in each."""
    kind = next(kind for kind in translator.kinds if kind.name == name)
    return kind.layers, range(kind.heads)


def _number(what: str, key: str, first: str, numbers: tuple[Sequence[int], int], notes: list[str]) -> int:
    """A layer or a head, as `what` says. `numbers` are those that there are, and what `first` means: the left's own, or
    the one after it. `notes` gets a sentence where a number that was asked for is not there."""
    offered, meant = numbers
    options = {first: tr(FIRST[first])} | {i: str(i) for i in offered}
    chosen = choice(Offer(tr(NUMBERS[what]), options), key, notes=notes)
    if chosen != first:
        return int(chosen)
    nearest = min(offered, key=lambda number: abs(number - meant))
    if nearest != meant:
        notes.append(tr(NEAREST[what], wanted=meant, nearest=nearest))
    return nearest


def _say(notes: list[str]) -> None:
    for note in notes:
        st.info(as_markdown(note.replace("side_", "right ")), icon=":material/info:")
