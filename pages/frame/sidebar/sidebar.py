"""The sidebar, the same on every page: what to translate, where to look, and the attention temperature.

app.py draws it, so its controls keep their values from page to page; each is also in the URL.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from model.checkpoints.devices import available_devices
from model.checkpoints.store import DEFAULT_CHECKPOINT, first_checkpoint, given_models, shown_name
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature, Intervention
from model.language import in_a_row, later, tr
from model.needs import Need
from model.run import LANGUAGES, Place
from model.trace import KIND_TITLES
from pages import Page, first_page_for, page_of
from pages.compute import runs
from pages.compute.trace_file import link_to, named_trace_file, target_of
from pages.frame.address.here import show_here
from pages.frame.address.language import LANG, translate_labels
from pages.frame.address.menu import HOME, pages_by_path
from pages.frame.address.url import drop_non_finite_numbers, follow_moved_tab, rename_parameters, short_title
from pages.frame.course.course import COURSE, DRAFT
from pages.frame.questions.opened_station import notice_own_sentence, reset, take_place
from pages.frame.sidebar import opened_model
from pages.frame.sidebar.examples import example_menu
from pages.frame.sidebar.local_models import show_local_models
from pages.frame.sidebar.tour import TOUR, track_progress
from pages.views.controls import TAU, Offer
from pages.views.examples import examples_of
from pages.widgets import changes, controls
from pages.widgets.glossary import define
from pages.widgets.page_links import linked_pages, links
from viz.tokens import as_markdown, visible

FIRST_SENTENCE = "The animal didn't cross the street because it was too tired."
TARGETS = {"beam": later("Beam 4"), "greedy": later("Greedy"), "typed": later("Typed")}
SHORT_KINDS = {name: short_title(title) for name, title in KIND_TITLES.items()}
SCOPES = {"head": later("Head"), "layer": later("Layer"), "everywhere": later("Everywhere")}
KIND_HELP = later(
    "Which tokens look at which. Self-attention: at tokens of the same text, in the decoder only at earlier ones. "
    "Cross-attention: from the target at the source."
)
MOST_NOTES = 3
"""of what could not be read of a model: often the same in each layer"""
IGNORED = later("This page does not depend on it, unless a temperature τ acts there.")
KEPT_AT_RESET = (TOUR, COURSE, DRAFT, LANG)
"""keys of the session"""
BEGAN = "began"
"""in the session, of an app with the file of a trace: whether its run was asked for"""
SEE = "see"
"""URL parameter of links inside the app: a head, encoder_self.1.0, or one of its cells, encoder_self.1.0.9.2"""


@dataclass(frozen=True)
class Inputs:
    """What the sidebar asks for."""

    translator: Translator | None
    """None if the checkpoint could not be opened; `problem` says why"""
    problem: str
    notes: tuple[str, ...]
    """what the URL asked for and could not be shown"""
    request: runs.Request
    """of the texts as typed"""
    place: Place
    tau: float
    scope: str
    kept: tuple[Intervention, ...]
    """temperatures at other places, and changes of What if that are kept on; `request` has them, too"""
    effect: DeltaGenerator
    """below the temperature: room for what it changes"""


_current: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextmanager
def shared_inputs(address: str) -> Iterator[None]:
    """Draw the sidebar; the page that runs inside the block reads it with `current_inputs`.

    `address` is the last part of the page's URL's path; it is empty for the home page.
    """
    with controls.keep_clicks():
        inputs = _sidebar(page_of(address) if address else HOME, address)
        opened = inputs.translator.hash if inputs.translator else ""
        track_progress(opened, inputs.request.source, inputs.place, inputs.tau)
        token, linked = _current.set(inputs), linked_pages.set(pages_by_path())
        try:
            yield
        finally:
            _current.reset(token)
            linked_pages.reset(linked)


def current_inputs(file: str) -> Inputs:
    """What the sidebar asks for; a page that runs without app.py, from `file`, draws a sidebar of its own."""
    return _current.get() or _sidebar(page_of(file), Path(file).stem)


def _sidebar(page: Page, address: str) -> Inputs:
    follow_moved_tab(page)
    rename_parameters()
    translate_labels()
    notes = drop_non_finite_numbers()
    _go_to_trace_file(page)
    opened_model.name_in_address()
    controls.keep_token(st.session_state.get("source"))
    _go_to_linked_place()
    opened_model.take_form(page)
    if page.path.endswith("learn.py"):
        take_place()
    else:
        notice_own_sentence()
    with st.sidebar:
        texts, where, look, model = (st.container() for _ in range(4))
        with model, st.container(key="model-row", horizontal=True, gap="small"):
            checkpoint, translator, problem = _choose_model(notes)
            st.button(tr("Reset"), key="reset", on_click=reset, args=(KEPT_AT_RESET,))
        if checkpoint != DEFAULT_CHECKPOINT:
            st.set_page_config(page_title=f"{tr(page.title)} · {shown_name(checkpoint)} · Attention Explorer")
        opened_model.take_text(translator, checkpoint)
        with texts:
            languages = _languages(translator, notes)
            translator = translator and translator.in_languages(*languages)
            request = replace(_texts(translator, checkpoint, notes), **dict(zip(LANGUAGES, languages, strict=False)))
        controls.note_text(st.session_state.get("source"))
        notes += opened_model.what_is_said(page)
        with where:
            place = _place(translator, page, address, _ignored(page), notes)
        changes.stay_where_set(place)
        with look:
            tau, scope = _temperature(notes)
            effect = st.container(key="effect")
    here = None if tau == 1 else AttentionTemperature(tau, **place.address(scope))
    elsewhere = changes.temperatures_elsewhere(translator, place, scope, tau, notes)
    others = changes.kept_changes(translator, editing=page.path.endswith("what_if.py"))
    temperatures = elsewhere if here is None else changes.in_order_of_places((here, *elsewhere))
    request, kept = replace(request, interventions=(*temperatures, *others)), (*elsewhere, *others)
    with look:
        changes.show_active(request.interventions, here, translator and translator.model)
    return Inputs(translator, problem, tuple(notes), request, place, tau, scope, kept, effect)


def _languages(translator: Translator | None, notes: list[str]) -> tuple[str, ...]:
    """Of a translator of many languages, the two that are chosen, first the tokenizer's own; else none."""
    if not (translator and translator.languages):
        return ()
    codes = {code: code for code in translator.languages}
    labels = tr("Source language"), tr("Target language")
    explained = tr("The language of the text, as one of the tokenizer's own codes."), tr("What the model writes.")
    for key, own in zip(LANGUAGES, translator.chosen_languages, strict=True):
        controls.follow_default(key, own)
    places = st.columns(2, vertical_alignment="bottom")
    rows = zip(places, labels, LANGUAGES, translator.chosen_languages, explained, strict=True)
    return tuple(
        controls.select(Offer(label, codes, own, help=about), key, place, notes=notes)
        for place, label, key, own, about in rows
    )


def _first_text(translator: Translator | None, checkpoint: str) -> str:
    """What stands in the field at first: a sentence; for a language model the beginning of one, with which it goes on.

    After a whole sentence a language model may write its end token, and nothing else.
    """
    if translator is None or Need.LANGUAGE_MODEL not in translator.features:
        return FIRST_SENTENCE
    begun = (text for text in examples_of(checkpoint).menu if text[-1].isalnum())
    return next(begun, FIRST_SENTENCE.rpartition(" ")[0])


def _texts(translator: Translator | None, checkpoint: str, notes: list[str]) -> runs.Request:
    """What the model reads, and what it should write."""
    own = translator is None or Need.OWN_LAYERS in translator.features
    first_text = _first_text(translator, checkpoint)
    controls.follow_default("source", first_text)

    def examples() -> None:
        notes.extend(filter(None, [example_menu(checkpoint)]))

    if translator and Need.LANGUAGE_MODEL in translator.features:
        typing, below = st.container(), st.container()
        with below:
            chat = _chat() if translator.tokenizer.chats else None
        message = chat is not None
        with typing:
            label = tr("Message") if message else tr("Text, English") if own else tr("Text")
            explained = (
                tr("What the model reads and answers. Enter or the button sends it; Shift+Enter begins a new line.")
                if message
                else tr(
                    "What the model reads and continues. Enter or the button sends it; Shift+Enter begins a new line."
                )
            )
            text = controls.text_area(
                Offer(label, start=first_text, help=explained),
                "source",
                tr("Type what the user says") if message else tr("Type the beginning of a text"),
                tr("Send") if message else tr("Continue"),
                beside=examples,
            )
            # An answer is what a chat is about; elsewhere what is written is an end to the text.
            first = runs.NEW_TOKENS if message else runs.first_new_tokens(translator)
            explained = tr("The model writes at most this many tokens after the text, each time the most probable one.")
            if first < runs.NEW_TOKENS:
                more = tr(
                    "A model this large begins with {first}, because each token reads all its weights.", first=first
                )
                explained = f"{explained} {more}"
            controls.follow_default("new_tokens", first)
            limits = 0, runs.MOST_NEW_TOKENS
            n = controls.number(Offer(tr("New tokens"), None, first, limits, help=explained), "new_tokens")
        return runs.Request(text, continuation=runs.Continuation(n) if n else None, chat=chat)
    if translator and Need.MASKED_MODEL in translator.features:
        mask, fills = translator.tokenizer.mask_token, Need.LOGITS in translator.features
        fills = fills and bool(mask)
        explained = [tr("What the model reads.")]
        if fills:
            explained.append(tr("It guesses what is behind each {mask}.", mask=as_markdown(mask)))
        if translator.tokenizer.separator is not None:
            separator = as_markdown(translator.tokenizer.separator_token)
            explained.append(tr("Two sentences: write {separator} between them.", separator=separator))
        explained.append(tr("Enter or the button sends it."))
        text = controls.text_area(
            Offer(tr("Text, English") if own else tr("Text"), start=first_text, help=in_a_row(*explained)),
            "source",
            tr("Type a text, with {mask} in place of a word", mask=mask) if fills else tr("Type a text"),
            tr("Fill in") if fills else tr("Read"),
            beside=examples,
        )
        return runs.Request(text)
    if translator and "cross-attention" not in translator.features:
        offer = Offer(tr("Text"), start=first_text, help=tr("What the model reads."))
        return runs.Request(controls.text_area(offer, "source", tr("Type a text"), tr("Read"), examples))
    explained = tr("What the model reads and translates. Enter or the button sends it.")
    source = controls.text_area(
        Offer(tr("Source sentence, English") if own else tr("Source text"), start=first_text, help=explained),
        "source",
        tr("Type an English sentence") if own else tr("Type a text"),
        tr("Translate") if own else tr("Run it"),
        beside=examples,
    )
    target, typed = _target(notes, own)
    return runs.Request(source, typed, 1 if target == "greedy" else 4)


def _chat() -> str | None:
    """The earlier turns of a chat as plain text; None where the text is no message of a chat."""
    explained = tr(
        "The model reads the text as a user's message, in the form of the chats it was trained on: its "
        "tokenizer's chat template."
    )
    if not controls.toggle(Offer(tr("Chat template"), start=False, help=explained), "chat"):
        return None
    asked = st.session_state.get("turns", st.query_params.get("turns"))
    with st.expander(tr("Earlier turns"), icon=":material/forum:", expanded=bool(asked)):
        explained = tr(
            "Each turn begins on a new line with its role: System:, User: or Assistant:. Further lines belong "
            "to it. Most templates want the system message first, if there is one, then user and assistant in "
            "turn; the message above comes last."
        )
        return controls.text_area(
            Offer(tr("What was said before"), start="", help=explained),
            "turns",
            "System: You are a pirate.\nUser: Hello!\nAssistant: Ahoy!",
            tr("Use them"),
            height=200,
        )


def _go_to_linked_place() -> None:
    """Before the controls are drawn: go, once, to the head, and perhaps its cell, that a link inside the app names."""
    kind, *numbers = st.query_params.pop(SEE, "").split(".")
    if kind in KIND_TITLES and all(re.fullmatch("[0-9]{1,4}", one) for one in numbers):
        st.session_state["kind"] = kind
        st.session_state.update(zip(("layer", "head", "query", "key"), map(int, numbers), strict=False))


def _go_to_trace_file(page: Page) -> None:
    """On a first visit by no link: ask for the run in the file that the app was started with."""
    state, file = st.session_state, named_trace_file()
    if file is None or BEGAN in state:
        return
    state[BEGAN] = True
    if not st.query_params:
        link = link_to(file) | {"target": tr(TARGETS[target_of(file)])}
        features = runs.open_translator(file.checkpoint, available_devices()[0]).features
        if not set(page.needs) <= features and (other := first_page_for(features)):
            st.switch_page(other.path, query_params=link)
        st.query_params.update(link)
        # As after `drop_non_finite_numbers`: only another run takes the controls' values from these.
        st.rerun()


def _show_notes(translator: Translator | None) -> None:
    """What of the checkpoint is not on screen, as plain text: names in it come from the files."""
    notes = translator.notes if translator else ()
    for note in notes[:MOST_NOTES]:
        st.caption(as_markdown(visible(tr(note))))
    if len(notes) > MOST_NOTES:
        st.caption(tr("And {count} more: see “Verification”.", count=len(notes) - MOST_NOTES))


def _target(notes: list[str], own: bool) -> tuple[str, str | None]:
    label, options = tr("Target, German") if own else tr("Target"), {name: tr(one) for name, one in TARGETS.items()}
    offer = Offer(label, options, help=define("beam", "typed target"))
    target = controls.choice(offer, "target", notes=notes, on_change=_offer_own_translation)
    if target != "typed":
        return target, None
    offer = Offer(tr("Your own translation") if own else tr("Your own target"), start="", help=define("typed target"))
    return target, controls.text_area(
        offer, "typed", tr("Type a German sentence") if own else tr("Type a text"), tr("Use it")
    )


def _offer_own_translation() -> None:
    """A person who wants to type a target starts from the model's own translation."""
    state = st.session_state
    if state["target"] == "typed" and not state.get("typed"):
        # The page itself reports what is wrong with the source or the checkpoint.
        with suppress(ValueError):
            translator = runs.open_translator(opened_model.opened_checkpoint(), opened_model.opened_device())
            if translator.languages:
                translator = translator.in_languages(*map(state.get, LANGUAGES))
            state["typed"] = runs.run(translator, runs.Request(translator.truncate(state["source"]))).translation


def _choose_model(notes: list[str]) -> tuple[str, Translator | None, str]:
    """The name of the opened model, behind which the others are; returns it, the model, and what is wrong with it."""
    name = as_markdown(shown_name(opened_model.opened_checkpoint()))
    with st.popover(tr("Model: {name}", name=name), icon=":material/model_training:", width="stretch"):
        checkpoint, device = _checkpoint_and_device(notes)
        show_local_models()
        translator, problem = opened_model.open_or_say(checkpoint, device)
        _show_notes(translator)
        links(model_card=tr("Model card"), verification=tr("Verification"))
    return checkpoint, translator, problem


def _checkpoint_and_device(notes: list[str]) -> tuple[str, str]:
    first = first_checkpoint()
    checkpoints = opened_model.offered_checkpoints(opened_model.CHECKPOINT) or {first: first}
    devices = available_devices()
    trained = tr("Which trained model runs. They differ in size and in the text they were trained on: see Model card.")
    # A link without a name is opened elsewhere with the model of that place.
    named = first in given_models()
    offer = Offer(tr("Checkpoint"), checkpoints, first, help=trained)
    checkpoint = controls.select(offer, opened_model.CHECKPOINT, in_link=named, notes=notes)
    if about := examples_of(checkpoint).about:
        st.caption(as_markdown(tr(about)))
    if len(devices) > 1:
        where = tr("The processor that computes; the numbers differ only by rounding.")
        offer = Offer(tr("Runs on"), dict(zip(devices, devices, strict=True)), help=where)
        return checkpoint, controls.select(offer, "device", notes=notes)
    st.caption(tr("Runs on: {device}", device=devices[0]))
    return checkpoint, devices[0]


def _place(
    translator: Translator | None, page: Page, address: str, ignored: tuple[str, ...], notes: list[str]
) -> Place:
    kinds = {kind.name: kind for kind in translator.kinds} if translator else {}

    def control(draw: Callable, offer: Offer, key: str, place: Any = st, **more: Any) -> Any:
        off = key in ignored
        if len(offer.options) == 1:
            # What cannot be chosen is a text; a value that another model had, or that a link asks for, is replaced.
            (value,) = offer.options
            controls.replace_missing(key, offer, notes)
            st.session_state[key] = value
            # Where a control of the run before is bound to the parameter, Streamlit itself takes it out of the link.
            with suppress(StreamlitAPIException):
                st.query_params.pop(key, "")
            only = tr("{value}, the only one", value=offer.options[value])
            place.caption(f"{offer.label}  \n{only}")
            return value
        offer = replace(offer, help=tr(IGNORED)) if off else offer
        return draw(offer, key, place, notes=notes, disabled=off, **more)

    titles = {name: tr(SHORT_KINDS[name]) for name in kinds or SHORT_KINDS}
    before, first = st.session_state.get("kind"), page.first_kind if page.first_kind in titles else next(iter(titles))
    controls.follow_default("kind", first)
    controls.turn_to_kind(before)
    turn = {"on_change": controls.turn_to_kind, "args": (st.session_state.get("kind"),)}
    name = control(controls.choice, Offer(tr("Attention"), titles, first, help=tr(KIND_HELP)), "kind", **turn)
    layers, heads = (kinds[name].layers, kinds[name].heads) if kinds else ((0,), 1)
    begins = dict(zip(("layer", "head"), (translator and runs.first_head(translator)) or (layers[0], 0), strict=True))
    if all(st.session_state.get(key) == controls.former_default(key) for key in begins):
        for key, first in begins.items():
            controls.follow_default(key, first)
    left, right = st.columns(2)
    explained = tr("Layer 0 is next to the input. Shift with ↑ or ↓ also moves it.")
    offer = Offer(tr("Layer"), {i: str(i) for i in layers}, begins["layer"], help=explained)
    layer = control(controls.steps, offer, "layer", left)
    explained = tr("Each head of a layer has matrices, and so weights, of its own. Shift with ← or → also moves it.")
    offer = Offer(tr("Head"), {i: str(i) for i in range(heads)}, begins["head"], help=explained)
    head = control(controls.steps, offer, "head", right)
    place = Place(name, layer, head)
    features = translator.features if translator else None
    tabs = page.tabs_key, tr(page.first_tab or next((view.tab or view.title for view in page.views), ""))
    show_here(tuple(kinds.values()), place, (tr(page.section), address), tabs, "layer" in ignored, features)
    return place


def _ignored(page: Page) -> tuple[str, ...]:
    """Keys of the controls that change nothing on the page; the place counts where a temperature acts on some."""
    state, asked = st.session_state, st.query_params
    tau = state.get("tau", 1.0 if "tau" not in asked else None)
    everywhere = state.get("scope") == "everywhere" or asked.get("scope") == tr(SCOPES["everywhere"])
    return () if (tau != 1 and not everywhere) or state.get(changes.TEMPERATURES) else page.ignores


def _temperature(notes: list[str]) -> tuple[float, str]:
    explained = in_a_row(define("temperature"), tr("The model runs again with it."))
    offer = replace(TAU.offer(None, {}), label=tr("Temperature τ"), help=explained)
    controls.take_label(TAU.key, offer, partial(TAU.named, None, {}))
    tau = controls.steps(offer, TAU.key, notes=notes)
    explained = tr("Only the chosen head, all heads of its layer, or every attention of the model.")
    scopes = Offer(tr("Temperature acts on"), {name: tr(label) for name, label in SCOPES.items()}, help=explained)
    return tau, controls.choice(scopes, "scope", notes=notes, label_visibility="collapsed")
