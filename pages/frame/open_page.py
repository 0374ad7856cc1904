"""What every page begins with: `run = open_page(__file__)`."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.distributions import entropy
from model.checkpoints.checkpoint import LONG_TRACE_TOKENS, TRACE_TOKENS
from model.checkpoints.snapshots import newest_step
from model.checkpoints.store import DEFAULT_CHECKPOINT, file_stamp, shown_name
from model.checkpoints.translator import Translator
from model.checkpoints.typed_text import list_changes
from model.language import in_a_row, in_this_language, later, listed, tr, tr_error
from model.needs import Need
from model.proof.steps import MATRICES, states_in_words, verify_attention
from model.run import Place, Request, Run
from model.trace import KIND_TITLES, Trace
from pages import PAGES, Page, first_page_for, page_of
from pages.compute import runs
from pages.compute.cache import on_cpu
from pages.compute.queue import answer_move
from pages.compute.runs import checkpoint_by_config, checkpoint_with, compute, expected_seconds, has_changed, open_again
from pages.compute.trace_file import named_trace_file, tokens_of
from pages.frame.address.menu import route, runs_as_page
from pages.frame.bar.bar import note_tokens, show_bar
from pages.frame.course.course import overview_title, show_course
from pages.frame.questions.guess_first import guess_first
from pages.frame.questions.opened_station import current_station
from pages.frame.sidebar.opened_model import CHECKPOINT, VISIT, opened_checkpoint, opened_device
from pages.frame.sidebar.sidebar import Inputs, current_inputs
from pages.frame.sidebar.tour import show_tour
from pages.views import Control, Offer
from pages.widgets.controls import chosen_number, toggle
from pages.widgets.glossary import define
from pages.widgets.notices import say_departures, say_unfamiliar
from pages.widgets.page_links import linked_pages
from viz.html import word_diff
from viz.tokens import as_markdown

WATCH_SECONDS = 5.0
"""from one look at the files of a running training to the next"""
_line: ContextVar[DeltaGenerator | None] = ContextVar("line", default=None)
"""the place below the heading, for the answer"""


def open_page(file: str) -> Run:
    """Draw the frame and the header of the page in `file`, and run the model on what was typed.

    If there is nothing to show (blank text, text too long, a broken checkpoint), a sentence says what to do, and the
    page ends there.
    """
    if runs_as_page() and not linked_pages.get():
        route()
    answer_move()
    inputs = current_inputs(file)
    _note_visit(Path(file).stem)
    show_bar(page_of(file), inputs.translator, inputs.request, inputs.place)
    _show_header(file, inputs.translator)
    for note in inputs.notes:
        st.info(as_markdown(note), icon=":material/info:")
    if inputs.translator is None:
        _stop(inputs.problem)
    say_departures(inputs.translator)
    _offer_changed_files(inputs.translator)
    _check_needs(page_of(file), inputs.translator)
    typed = inputs.request
    try:
        translator, request = _fit_request(inputs.translator, typed)
        trace = runs.run(translator, request)
    except ValueError as error:
        _stop(tr_error(error))
    if not trace.attentions:
        _stop(
            " ".join(
                [
                    tr("Only this model's attention weights can be read, and only from Python."),
                    *map(tr, trace.notes[:1]),
                ]
            )
        )
    note_tokens(trace, inputs.place.kind)
    if Need.MATRICES in page_of(file).needs:
        _check_steps(translator, trace, inputs.place)
    if trace.device != translator.device:
        st.info(
            tr("{device} had too little memory left: this page was computed on the CPU.", device=translator.device),
            icon=":material/memory:",
        )
        translator = on_cpu(translator)
    opened = named_trace_file()
    if opened and tokens_of(trace) == opened.tokens:
        st.info(as_markdown(tr(opened.agreement)), icon=":material/draft:")
    _say_changes(inputs)
    if inputs.tau != 1:
        _show_effect(inputs, runs.run(translator, replace(request, interventions=inputs.kept)), trace)
    chosen = chosen_number("query"), chosen_number("key")
    run = Run(translator, request, trace, inputs.place, typed.source, inputs.tau, inputs.scope, *chosen, compute)
    show_answer(run, page_of(file))
    say_unfamiliar(run)
    guess_first(run, Path(file).stem)
    return run


def _note_visit(name: str) -> None:
    """Note that a page is open; from the second time on, what explains its pictures is folded."""
    here, _, seen = st.session_state.get(VISIT, ("", True, frozenset()))
    if name != here:
        st.session_state[VISIT] = name, name not in seen, seen | {name}


def is_first_visit() -> bool:
    """Whether the open page was not open before in this session."""
    return st.session_state.get(VISIT, ("", True))[1]


def show_answer(run: Run, page: Page, chosen: Mapping[Control, Any] = MappingProxyType({})) -> None:
    """Answer the question of the heading in one line, with the numbers of this run.

    An answer that depends on controls waits for their values; a page without one has it in its first view.
    """
    view, line = page.answer, _line.get()
    if view is None or line is None or not {*view.controls.values()} <= {*chosen}:
        return
    values = {name: chosen[control] for name, control in view.controls.items()}
    line.markdown(view(run, **values).blocks[0].text)


def _check_needs(page: Page, translator: Translator) -> None:
    """End the page where the model lacks what the page is about, with a button that opens a checkpoint that has it."""
    missing = [need for need in page.needs if need not in translator.features]
    if not missing:
        return
    first = first_page_for(translator.features)
    suitable = checkpoint_with(page.needs, translator.device)
    with st.container(border=True):
        name = shown_name(translator.name)
        st.text(
            tr("This page needs {parts}, which the checkpoint {name} does not have.", parts=listed(missing), name=name)
        )
        if suitable:
            st.button(
                tr("Open the checkpoint {name}", name=as_markdown(shown_name(suitable))),
                key="open_suitable",
                on_click=st.session_state.update,
                args=({CHECKPOINT: suitable},),
            )
        if first and linked_pages.get():
            label = tr("With {name}: {page}", name=as_markdown(name), page=tr(first.title))
            st.page_link(linked_pages.get()[first.path], label=label, icon=first.icon)
    st.stop()


def _check_steps(translator: Translator, trace: Trace, place: Place) -> None:
    """End a page of matrices where, on this run, they do not give what the chosen attention computed.

    This project's own models compute what their pages say; of others it was found, on another text.
    """
    if Need.OWN_LAYERS in translator.features:
        return
    steps = verify_attention(translator, trace, place.kind, place.layer)
    if failing := [step for step in steps if step.name in MATRICES and not step.read]:
        _stop(
            tr(
                "On this run the matrices of {kind}, layer {layer}, do not reproduce what the model computed. "
                "{states}. Differences are relative to the largest number of the matrix. Other layers, or a shorter "
                "text, may follow the equations; the attention weights on the other pages are the model's own.",
                kind=tr(KIND_TITLES[place.kind]),
                layer=place.layer,
                states=states_in_words(failing),
            )
        )


def _fit_request(translator: Translator, typed: Request) -> tuple[Translator, Request]:
    """The request whose texts fit one run of the model, and the model for a run as long as that.

    Raises:
        ValueError: a chat is refused; it is never cut.
    """
    if typed.chat is not None:
        return _with_length(translator, translator.tokenizer.apply_chat_template(typed.prompt)), typed
    translator = _with_length(translator, typed.source)
    reads = later("source") if Need.CROSS_ATTENTION in translator.features else later("text")
    request = replace(typed, source=fit_text(translator, reads, typed.source))
    if typed.target is not None:
        request = replace(request, target=fit_text(translator, later("target"), typed.target))
    return translator, request


def fit_text(translator: Translator, name: str, text: str) -> str:
    """What the model reads of the text, its beginning where one run holds no more.

    Where that is not what was typed, the page says so, calling the text `name`.
    """
    fitting, whole = translator.truncate(text), translator.prepare(text)
    if changes := list_changes(text, whole):
        text = tr("The model does not read the {name} exactly as typed.", name=tr(name))
        st.caption(f":material/space_bar: {text} {' '.join(map(tr, changes))}")
    if fitting != whole:
        st.info(
            tr(
                "The {name} has {count:,} characters; one run of the model holds {most:,} tokens. This page shows its "
                "beginning, {shown:,} characters, up to the end of a sentence where there is one.",
                name=tr(name),
                count=len(text),
                most=translator.token_limit,
                shown=len(fitting),
            ),
            icon=":material/content_cut:",
        )
    return fitting


def _with_length(translator: Translator, text: str) -> Translator:
    """The model, for runs as long as the person asked for: a switch offers it where a text is too long for one."""
    most = min(LONG_TRACE_TOKENS, translator.config.max_len)
    if translator.most_tokens < TRACE_TOKENS or most <= TRACE_TOKENS or translator.fits(text):
        return translator
    seconds = expected_seconds(translator, most)
    label = tr(
        "Read up to {most:,} tokens: about {seconds:.0f} s, and as long again for each page that shows all layers",
        most=most,
        seconds=seconds,
    )
    return replace(translator, most_tokens=most) if toggle(Offer(label, start=False), "long_text") else translator


def _show_effect(inputs: Inputs, before: Trace, after: Trace) -> None:
    """Beside the slider: the chosen head and what the model writes, without and with the temperature."""
    place = inputs.place
    patterns = (trace.attention(place.kind, place.layer).pattern[place.head] for trace in (before, after))
    spread = [float(entropy(pattern).mean()) for pattern in patterns]
    with inputs.effect:
        explained = tr("Mean entropy of this head's rows, τ = 1 → {tau:g}.", tau=inputs.tau)
        writes = Need.LOGITS in inputs.translator.features
        parts = {"head": place.head, "before": spread[0], "after": spread[1]}
        said = [tr("Head {head}: **{before:.2f} → {after:.2f} bits**.", **parts), tr("The model writes:")]
        st.caption(in_a_row(*(said if writes else said[:1])), help=in_a_row(explained, define("entropy")))
        if writes:
            st.html(word_diff(before.translation, after.translation))


def _say_changes(inputs: Inputs) -> None:
    """One line beside the title if the model is changed; the style sheet places it where it pushes nothing away."""
    with st.container(key="at-work"):
        if count := len(inputs.request.interventions):
            writes = inputs.request.target is None and inputs.translator and Need.LOGITS in inputs.translator.features
            icon = ":material/science:" if inputs.tau == 1 else ":material/thermostat:"
            st.caption(f"{icon} {_changes_in_words(inputs, count, writes)}")


def _changes_in_words(inputs: Inputs, count: int, writes: bool) -> str:
    """How the model was changed, and what it did then."""
    facts = {"tau": inputs.tau, "place": inputs.place.in_words(inputs.scope), "count": count, "more": count - 1}
    if count == 1:
        changes = tr("1 change in the model") if inputs.tau == 1 else tr("τ = {tau:g} in {place}", **facts)
        if writes:
            return tr("{changes}: the model ran again with it, and wrote its text again.", changes=changes)
        return tr("{changes}: the model ran again with it.", changes=changes)
    if inputs.tau == 1:
        changes = tr("{count} changes in the model", **facts)
    else:
        changes = tr("τ = {tau:g} in {place}, and {more} more", **facts)
    if writes:
        return tr("{changes}: the model ran again with them, and wrote its text again.", changes=changes)
    return tr("{changes}: the model ran again with them.", changes=changes)


def _show_header(file: str, translator: Translator | None) -> None:
    page = page_of(file)
    _link_ways(page, translator)
    course = overview_title() if page.path.endswith("learn.py") and current_station() is None else ""
    if course:
        st.set_page_config(page_title=f"{course} · Attention Explorer")
    heading = as_markdown(course) or tr(page.heading)
    st.title(_named(heading, translator), anchor=False, help=None if course else tr(page.look_for))
    if page.answer:
        with st.container(key="answer"):
            _line.set(st.empty())
    elif not page.question and not course:
        st.markdown(tr(page.look_for))
    if not show_course(file):
        show_tour(page.path)


def _named(heading: str, translator: Translator | None) -> str:
    """The heading, with the name of a model that is not the one of this project's first screen, and its step."""
    if translator is None or translator.name == DEFAULT_CHECKPOINT:
        return heading
    name = as_markdown(shown_name(translator.name))
    if translator.step is not None:
        name = tr("{name}, step {step:,}", name=name, step=translator.step)
    return f"{heading} :small[:gray[{name}]]"


def _link_ways(page: Page, translator: Translator | None) -> None:
    """Above the pages of Explore: links to all of them; a click opens a model that can do it, as the help says."""
    ways, entries = PAGES["Explore"], linked_pages.get()
    if page not in ways or not entries or st.context.is_embedded:
        return
    with st.container(key="switch", horizontal=True, gap=None):
        for one in ways:
            can = translator is not None and {*one.needs} <= translator.features
            other = None if can else checkpoint_by_config(one.needs)
            explained = tr("Opens the model {name}", name=as_markdown(shown_name(other))) if other else None
            st.page_link(entries[one.path], label=tr(one.title), icon=one.icon, help=explained)


def _offer_changed_files(translator: Translator) -> None:
    """A line where the model's files are no longer those that were opened, with a button that opens them; while a
    training writes there, the line comes by itself."""
    opened = opened_checkpoint(), opened_device()
    every = WATCH_SECONDS if newest_step(opened[0]) is not None else None
    st.fragment(in_this_language(_say_changed_files), run_every=every)(*opened, translator.step)


def _say_changed_files(checkpoint: str, device: str, opened_step: int | None) -> None:
    if not has_changed(checkpoint, device):
        return
    name, step = as_markdown(shown_name(checkpoint)), newest_step(checkpoint)
    said = tr("The files of {name} have changed since it was opened. The model is shown as it was.", name=name)
    label: str | None = tr("Open them")
    if not file_stamp(checkpoint):
        said = tr("The files of {name} have been deleted since it was opened. The model is shown as it was.", name=name)
        label = None
    elif step not in (None, opened_step):
        said = tr(
            "The newest checkpoint of {name} is now step {step:,}. The model is shown as it was opened.",
            name=name,
            step=step,
        )
        label = tr("Open step {step:,}", step=step)
    with st.container(key="changed-files", horizontal=True, vertical_alignment="center"):
        st.warning(said, icon=":material/difference:")
        if label and st.button(label, key="open-again"):
            open_again(checkpoint, device)
            st.rerun()  # of the whole page


def _stop(sentence: str) -> None:
    """Say what is wrong, as plain text: it may quote what a person typed."""
    with st.container(border=True):
        st.markdown(tr("**Nothing to show yet**"))
        st.text(sentence)
    st.stop()
