"""A page made of views, in Streamlit: controls, text, pictures, tables, the code, the export, and the proof.

The only file that knows both Streamlit and views; pages/widgets/controls.py draws each kind of control.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain, groupby, repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import pandas as pd
import streamlit as st

from model.language import listed, tr
from model.needs import Need
from model.run import Run
from pages import Page, next_page, page_of
from pages.compute.cache import cached, put
from pages.compute.on_request import clicked
from pages.compute.queue import in_turns, model_queue
from pages.frame.bar.bar import offer_export
from pages.frame.course.course import COURSE
from pages.frame.open_page import is_first_visit, open_page, show_answer
from pages.frame.present_row import place_present_row, show_present_row
from pages.views import OUTCOME, Control, OnRequest, Result, View, call, section_key
from pages.views.attention.attention_step_by_step import STEP
from pages.views.words import Block, cited_sections, pictures
from pages.widgets import controls
from pages.widgets.canvas import draw
from pages.widgets.chart import chart, clicked_point
from pages.widgets.cite import draw_citations
from pages.widgets.controls import set_controls, tabs
from pages.widgets.explain import breakable, draw_code
from pages.widgets.export import Part, Picture, export
from pages.widgets.glossary import define
from pages.widgets.page_links import OPENS, ask_for_page, link_asked_page, link_with, links, offer_checkpoint
from pages.widgets.present import presents, screen_factor
from pages.widgets.proof_strip import proof
from viz.figure import StableFigure, enlarge
from viz.forms import Canvas, Document, Form, Outcome, Table, Texts
from viz.html import word_diff
from viz.labels import say_label
from viz.tokens import Verbatim, as_markdown

MOST_ROWS = 20
"""of a table that is drawn whole; a longer one scrolls"""
Chosen = dict[Control | OnRequest, Any]
"""values of controls, and results of work on request, of which the page has drawn the widget"""
Widgets = Mapping[str, Callable[[Run], Any]]
"""title -> what draws a tab that is written by hand"""
Builder = Callable[[Run], Mapping[Control, Any]]
"""draws widgets of a tab, and returns the controls that they set"""
LONG, LOW = 160, 240
"""characters from which on a text scrolls, and pixels of its box"""
PRESENT_TEXT = "present-text"
"""key of what Present shows in large letters"""
FILE = 640
"""pixels of the box in which a file of code scrolls"""
UNPLACED = ("player", "pictured")
"""looks of controls that stand in no column"""
MOST_COLUMNS = 3
"""of controls; more of them flow from line to line"""


def show_page(
    file: str,
    top: Callable[[Run], Mapping[Control, Any] | Run | None] | None = None,
    widgets: Widgets = MappingProxyType({}),
    code: Sequence[Callable] = (),
    builders: Mapping[str, Builder] = MappingProxyType({}),
) -> None:
    """Draw the page in `file`: its header, its views as tabs or one below the other, and the foot of each.

    Args:
        file: the page's `__file__`.
        top: draws what stands above all and is no view: widgets that build something. Returns the controls that it has
            set, or the run that the page is about instead.
        widgets: its tabs that are written by hand; they come last.
        code: what computes what is no view.
        builders: what draws the widgets of a tab that build something, by its title.
    """
    run, page = open_page(file), page_of(file)
    views = page.views
    row = place_present_row() if presents() else None
    with st.container(key="present-top") if row else nullcontext():
        made = (top and top(run)) or {}
    run, chosen = (made, {}) if isinstance(made, Run) else (run, dict(made))
    if top:
        show_answer(run, page, chosen)
    offered = [view for view in views if not view.missing(run)]
    together: dict[str, list[View]] = {}
    for view in offered:
        together.setdefault(view.tab or view.title, []).append(view)
    stands_alone = page.stacked or len(together) + len(widgets) == 1
    if row:
        with row:
            show_present_row(page, [] if stands_alone else [*together, *widgets])
    if stands_alone:
        _draw_tab(run, offered, chosen, code, builders)
    else:
        titles = {title: partial(_draw_tab, run, some, chosen, (), builders) for title, some in together.items()}
        titles |= {title: partial(_draw_widgets, run, show, chosen, code) for title, show in widgets.items()}
        tabs(titles, page.tabs_key, default=page.first_tab or None)
    for view in views if not presents() else ():
        # What only another run has belongs to another scheme of positions, say, and is no gap of this model.
        if missing := [need for need in view.missing(run) if isinstance(need, Need)]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(
                    tr(
                        "The tab “{tab}” needs {parts}, which this model does not have.",
                        tab=tr(view.title),
                        parts=listed(missing),
                    )
                )
                needs = [need for need in view.needs if isinstance(need, Need)]
                offer_checkpoint(*page.needs, *needs, tab={page.tabs_key: tr(view.tab or view.title)}, of=view.title)
    controls.link_token()
    show_next(run, page)


def show_next(run: Run, page: Page) -> None:
    """At the end of a page, a link to the one that follows in the menu; a course has an order of its own."""
    following = next_page(page, run.opened.features)
    if following and COURSE not in st.session_state and not presents():
        name, question = tr(following.title), tr(following.heading)
        if name == question:
            label = tr("Next in the menu: {question}", question=question)
        else:
            label = tr("Next in the menu: {page}. {question}", page=name, question=question)
        links(**{following.name: label})


def _draw_tab(
    run: Run, views: Sequence[View], chosen: Chosen, code: Sequence[Callable], builders: Mapping[str, Builder]
) -> None:
    """Draw a tab, or a page without any: its views, in frames if the tab is theirs together, and their foot.

    `chosen` has what the page has drawn already; the other arguments are those of `show_page`.
    """
    draw = partial(_draw_with_foot, run, views, chosen, code, builders)
    if len(views) == 1:
        _draw_alive(views[0], draw)
    else:
        draw()


def _draw_with_foot(
    run: Run, views: Sequence[View], chosen: Chosen, code: Sequence[Callable], builders: Mapping[str, Builder]
) -> None:
    above, chosen, drawn = chosen, dict(chosen), []
    if presents() and not views[0].tab:
        with _missing_file_said():
            any(_Drawn(run, view, chosen, build=builders.get(view.title)).present() for view in views)
        _show_late_answer(run, views[0], above, chosen)
        return
    # Views in frames are read one after the other: Present shows all of them, in large letters.
    with st.container(key=PRESENT_TEXT) if presents() else nullcontext():
        for view in views:
            below = view.tab or len(views) > 1
            with st.container(border=bool(view.tab), key=section_key(view.title)) if below else nullcontext():
                if view.tab:
                    st.markdown(f"### {tr(view.title)}" if presents() else f"**{tr(view.title)}**")
                elif len(views) > 1 and view.title != page_of(view.page).title:
                    st.header(tr(view.title), anchor=False)
                with _missing_file_said():
                    drawn.append(_Drawn(run, view, chosen, build=builders.get(view.title)).draw())
    _show_late_answer(run, views[0], above, chosen)
    if presents():
        return
    _draw_foot(run, drawn, "-".join(["foot", *(f"{view.page}-{view.name}" for view in views[:1])]), chosen, code)


def _show_late_answer(run: Run, view: View, above: Chosen, chosen: Chosen) -> None:
    """Answer the page's question where that waited for controls of this tab, which stand below it."""
    page = page_of(view.page)
    if page.answer and not {*page.answer.controls.values()} <= {*above}:
        show_answer(run, page, chosen)


def _draw_widgets(run: Run, show: Callable[[Run], Any], chosen: Chosen, code: Sequence[Callable]) -> None:
    show(run)
    _draw_foot(run, [], "foot-widgets", chosen, code)


def _draw_foot(run: Run, drawn: Sequence["_Drawn"], key: str, chosen: Chosen, code: Sequence[Callable] = ()) -> None:
    """Draw one line at the end of a page or a tab: the proof, the code and the export, which open below it."""
    shown = next((one.result.drawn for one in drawn if one.result.drawn), run)
    said, draw = proof(shown, *(value for value in chosen.values() if isinstance(value, Run)))
    parts = {"checks": (said, draw)}
    code = dict.fromkeys([*(item for one in drawn for item in one.view.code_of(run, chosen)), *code])
    if code:
        parts["code"] = f":material/code: {tr('Code')}", partial(draw_code, *code)
    exports = [one for one in drawn if one.can_be_exported]
    if exports:
        page = page_of(exports[0].view.page)
        is_part = not page.stacked and {one.view for one in exports} < set(page.views)
        others = partial(_parts_of_all_tabs, run, exports) if is_part else None

        def draw_export() -> None:
            export([one.exported() for one in exports], others)

        parts["export"] = f":material/download: {tr('Export')}", draw_export
        offer_export(draw_export, partial(controls.close_in_fold, key, "export"))
    views = [one.view for one in drawn]
    title = ": ".join(dict.fromkeys([page_of(views[0].page).title, views[0].title])) if views else "Long text"
    sections = dict.fromkeys(section for one in drawn for section in cited_sections(one.result.blocks))
    parts["cite"] = f":material/format_quote: {tr('Cite')}", partial(draw_citations, shown.trace, title, [*sections])
    controls.fold(parts, key, tr("About this picture"))


def _parts_of_all_tabs(run: Run, drawn: Sequence["_Drawn"]) -> list[Part]:
    """What is drawn, and the views of the other tabs as they open first, without work on request."""
    known = {one.view: one for one in drawn}
    parts = []
    for view in page_of(drawn[0].view.page).views:
        if view not in known and not view.missing(run):
            with suppress(FileNotFoundError):
                known[view] = _Drawn(run, view, {}).compute()
        if view in known:
            parts.append(known[view].exported())
    return parts


def show_view(run: Run, view: View, only: str = "", chosen: Mapping[Control, Any] = MappingProxyType({})) -> None:
    """Draw one view alone, as a station of a lesson does: all of it, or `only` the picture of this name, without the
    text.

    `chosen` has the values of controls that are not drawn.
    """
    with _missing_file_said():
        _draw_alive(view, lambda: _Drawn(run, view, dict(chosen), only).draw())


def present_view(run: Run, view: View, only: str = "", chosen: Mapping[Control, Any] = MappingProxyType({})) -> None:
    """The same view on a whole screen; arguments as of `show_view`."""
    with _missing_file_said():
        _Drawn(run, view, dict(chosen), only).present()


@contextmanager
def _missing_file_said() -> Iterator[None]:
    """Where a view reads a file that is gone, of the app or of the opened model, a sentence stands in its place."""
    try:
        yield
    except FileNotFoundError as error:
        name = "/".join(Path(str(error.filename or error)).parts[-3:])
        st.error(
            tr(
                "A file is missing: {name}. Restore it; if it came with the app, install the app again.",
                name=as_markdown(name),
            ),
            icon=":material/folder_off:",
        )


def _draw_alive(view: View, draw: Callable[[], Any]) -> None:
    """Draw a view; one with a player runs again without the rest of the page while its steps are played."""
    played = [view.key(name) for name, control in view.controls.items() if control.look == "player"]
    if played:
        controls.draw_steps(draw, played[0])
    else:
        draw()


class _Drawn:
    """A view on its page."""

    def __init__(self, run: Run, view: View, chosen: Chosen, only: str = "", build: Builder | None = None) -> None:
        self.run, self.view, self.chosen, self.only, self.build = run, view, chosen, only, build
        self.values: dict[str, Any] = {}
        self.result = Result()
        self.contents: dict[str, Any] = {}

    def draw(self) -> "_Drawn":
        """Controls first, as their values decide what there is to say; the text may give them a later place."""
        asked = self.view.on_request is not None
        draws = asked or bool(self.view.offers(self.run, self.chosen))
        before = st.container(key=f"words-{self.view.page}-{self.view.name}") if draws else nullcontext()
        place, between, asks = (st.container() if needed else nullcontext() for needed in (draws, asked, asked))
        self._choose_and_call(place, asks)
        blocks = self.result.blocks
        if self.only:
            blocks = [Block("shows", items=(one,)) for one in pictures(blocks) if one[0] == self.only]
        kinds = [block.kind for block in blocks]
        first = kinds.index("controls") if "controls" in kinds else 0
        second = kinds.index("request") if "request" in kinds else first
        with before:
            self._draw_blocks(blocks[:first])
        with between:
            self._draw_blocks(blocks[first:second])
        self._draw_blocks(blocks[second:])
        return self

    def present(self) -> bool:
        """Draw the formula of a step and the first picture, as large as the screen, below a line of tokens where one
        stands above it; a view without a picture is drawn in large letters. Returns whether there is a picture."""
        self._choose_and_call(st.container(key="present-controls"), st.container())
        shown = [
            one
            for one in pictures(self.result.blocks)
            if isinstance(self.result.shows[one[0]], Canvas | Form | StableFigure) and self.only in ("", one[0])
        ]
        if not shown:
            with st.container(key=PRESENT_TEXT):
                self._draw_blocks(self.result.blocks)
            return False
        if STEP in self.chosen:
            formulas = [block for block in self.result.blocks if block.kind == "formula"]
            with st.container(key="present-words"):
                # The first is that of the first step; the second frames what the others compute.
                self._draw_blocks(formulas[:1] if self.chosen[STEP] == STEP.start else formulas[1:2])
        first = self.result.shows[shown[0][0]]
        if isinstance(first, Canvas) and first.drawing.component == "chips" and shown[1:]:
            # A line of tokens alone leaves a screen empty.
            (name, alt, _), *shown = shown
            with st.container(key="present-line"):
                self._draw_one(name, self._key(name), alt)
        name, alt, _ = shown[0]
        with st.container(key="present-stage"):
            self._draw_one(name, self._key(name), alt)
        return True

    def _choose_and_call(self, place: Any, asks: Any) -> None:
        """Draw the controls in `place`, the button of work on request in `asks`, and call the view."""
        with place:
            self.chosen |= self.build(self.run) if self.build else {}
            offers = self.view.offers(self.run, self.chosen)
            self._draw_controls(sum(self.view.controls[name].look not in UNPLACED for name in offers))
        with asks:
            if request := self.view.on_request:
                if request not in self.chosen:
                    self.chosen[request] = _on_request(self.run, self.view, self.values)
                self.values[OUTCOME] = self.chosen[request]
            elif self.view.reads:
                case = call(self.view.reads.case, self.run, self.values)
                self.values[OUTCOME] = None if case is None else cached(self.view.reads.key, *case)
        self.result = self.view(self.run, **self.values)
        self.contents = {name: _content(picture) for name, picture in self.result.shows.items()}

    @property
    def can_be_exported(self) -> bool:
        """Whether there are numbers, or pictures that are ours."""
        return bool(self.result.numbers) or any(not isinstance(one, Document) for one in self.result.shows.values())

    def compute(self) -> "_Drawn":
        """The view as it opens first, computed and not drawn."""
        self.result = self.view(self.run, **({OUTCOME: None} if self.view.on_request else {}))
        self.contents = {name: _content(picture) for name, picture in self.result.shows.items()}
        return self

    def exported(self) -> Part:
        """What is drawn, as pictures, tables and arrays, and the Python that draws it again."""
        page, headline = page_of(self.view.page), ""
        if page.answer and self.view in page.views[:1] and {*page.answer.controls} <= {*self.result.values}:
            chosen = {name: self.result.values[name] for name in page.answer.controls}
            headline = page.answer(self.run, **chosen).blocks[0].text.replace("**", "").replace("\\", "")
        drawable = [
            Picture(title, self._key(name), self.contents[name], headline, self.view.reads_head)
            for name, _, title in pictures(self.result.blocks)
            if self.contents[name] is not None
        ]
        return Part(self.result, tuple(drawable))

    def _draw_controls(self, count: int) -> None:
        # What was chosen may let more controls be offered than there are at first.
        places = chain(st.columns(count), repeat(st)) if 1 < count <= MOST_COLUMNS else repeat(st)
        if count > MOST_COLUMNS:
            key = f"controls-{self.view.page}-{self.view.name}"
            places = repeat(st.container(key=key, horizontal=True, vertical_alignment="bottom", gap="small"))
        for name, control in self.view.controls.items():
            if control not in self.chosen:
                placed = control.look not in UNPLACED and control.offer(self.run, self.values)
                place, key = next(places) if placed else st, self.view.key(name)
                self.chosen[control] = controls.draw(self.run, control, place, key, self.values)
            self.values[name] = self.chosen[control]

    def _draw_blocks(self, blocks: list[Block]) -> None:
        for block in _joined(blocks):
            getattr(self, f"_{block.kind}")(block)

    def _text(self, block: Block) -> None:
        st.markdown(block.text, help=define(*block.terms) if block.terms else None)

    def _caption(self, block: Block) -> None:
        st.caption(block.text, help=define(*block.terms) if block.terms else None)

    def _note(self, block: Block) -> None:
        st.info(block.text, icon=":material/info:")

    def _formula(self, block: Block) -> None:
        aligned = r"\begin{aligned}" in block.text or r"\begin{gathered}" in block.text
        st.latex(block.text if aligned else breakable(block.text))

    def _plain(self, block: Block) -> None:
        st.text(block.text)

    def _rule(self, _: Block) -> None:
        st.divider()

    def _controls(self, _: Block) -> None:
        """They are there already."""

    _request = _controls

    def _button(self, block: Block) -> None:
        own = {self.view.key(name): control for name, control in self.view.controls.items()}
        values = {key: self._read(own[key], text) if key in own else text for key, text in block.items[0].items()}
        st.button(block.text, key="set-" + "-".join(values), type="primary", on_click=set_controls, args=(values,))

    def _read(self, control: Control, text: str) -> Any:
        """The value that a button's text names; a control that this run does not offer may be one of the next run's."""
        offer = control.offer(self.run, self.values)
        return offer.read(text) if offer else control.take(text)

    def _link(self, block: Block) -> None:
        name, _, query = block.items[0].partition("?")
        if "checkpoint" in (chosen := dict(parse_qsl(query))):
            # The menu of checkpoints would keep its own value in this visit.
            st.link_button(block.text, block.items[0], icon=":material/open_in_new:")
        else:
            link_with(block.text, name, **chosen)

    def _closed(self, block: Block) -> None:
        with st.expander(block.text):
            self._draw_blocks(list(block.items))

    def _box(self, block: Block) -> None:
        with st.container(border=True):
            self._draw_blocks(list(block.items))

    def _explained(self, block: Block) -> None:
        with st.expander(tr("Explanation"), icon=":material/menu_book:", expanded=is_first_visit()):
            self._draw_blocks(list(block.items))

    def _offer(self, block: Block) -> None:
        with st.container(border=True):
            self._draw_blocks(list(block.items))
            offer_checkpoint(self.result.lacks)

    def _shows(self, block: Block) -> None:
        places = st.columns(len(block.items)) if len(block.items) > 1 else [nullcontext()]
        for place, (name, alt, _) in zip(places, block.items, strict=True):
            with place:
                self._draw_one(name, self._key(name), alt)

    def _draw_one(self, name: str, key: str, alt: str) -> None:
        match picture := self.result.shows[name]:
            case Canvas():
                self._draw_canvas(picture, key)
            case Texts():
                _draw_texts(picture)
            case Outcome():
                _draw_outcome(picture)
            case Document():
                _draw_document(picture, key)
            case pd.DataFrame() if presents():
                controls.large_table(picture, picture.attrs.get("floats", "%.5g"))
            case Table() if presents():
                controls.large_table(picture.frame, picture.floats, picture.formats)
            case pd.DataFrame():
                height = "content" if len(picture) <= MOST_ROWS else "auto"
                controls.table(picture, floats=picture.attrs.get("floats", "%.5g"), height=height)
            case Table():
                controls.explained_table(picture, key, alt, partial(_take_row, self.view, key, picture))
            case _:
                roomy = isinstance(picture, Form | StableFigure) and picture.roomy
                clicks = isinstance(picture, Form) and bool(picture.sets)
                on_click = partial(_take_click, self.view, key, picture) if clicks else "ignore"
                content = enlarge(self.contents[name], screen_factor()) if presents() else self.contents[name]
                chart(content, key=key, alt=alt, roomy=roomy, on_select=on_click)

    def _draw_canvas(self, picture: Canvas, key: str) -> None:
        link_asked_page()
        moves = {f"on_{event}_change": partial(_take, self.view, key, event, picture) for event in picture.sets}
        draw(picture.drawing, key, **moves)

    def _key(self, name: str) -> str:
        key, picture = name if name == self.view.page else f"{self.view.page}-{name}", self.result.shows[name]
        return f"{key}-{picture.edition}" if isinstance(picture, Form) and picture.edition else key


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """The same blocks, where paragraphs and captions that follow one another are one text: each element takes Streamlit
    and the browser about a millisecond at every run. Captions in it are quotations, as pages/text writes them."""
    for is_words, found in groupby(blocks, lambda block: block.kind in ("text", "caption") and not block.terms):
        some = [*found]
        if is_words and len(some) > 1:
            yield Block("text", "\n\n".join(map(_in_one_text, some)))
        else:
            yield from some


def _in_one_text(block: Block) -> str:
    return re.sub("^", "> ", block.text, flags=re.MULTILINE) if block.kind == "caption" else block.text


def _take(view: View, key: str, event: str, picture: Canvas) -> None:
    """Before the page runs again: set a control to what a move in a picture of our own chose.

    Streamlit keeps such a function longer than its run: it must not hold the model.
    """
    value, control = controls.value_of(key).get(event), picture.sets[event]
    if value is not None:
        several = control if isinstance(control, Mapping) else {}
        chosen = {one: value[name] for name, one in several.items() if name in value}
        _set(view, chosen if several else {control: value})
        if several:
            ask_for_page(value.get(OPENS))


def _take_row(view: View, key: str, table: Table) -> None:
    """The same for a click on a row of a table."""
    rows = controls.value_of(key)["selection"]["rows"]
    if rows and rows[0] < len(table.chooses):
        _set(view, {control: table.chooses[rows[0]][name] for name, control in table.sets.items()})


def _take_click(view: View, key: str, picture: Form) -> None:
    """The same for a click on a point of a chart."""
    if point := clicked_point(key):
        events = picture.clicked(point)
        _set(view, {control: events[event] for event, control in picture.sets.items() if event in events})


def _set(view: View, values: Mapping[Control, Any]) -> None:
    keys = {control: view.key(name) for name, control in view.controls.items()}
    set_controls({control.key or keys[control]: control.take(value) for control, value in values.items()})


def _draw_texts(texts: Texts) -> None:
    """Beside each other; long ones scroll."""
    height = LOW if max(map(len, texts.texts.values())) > LONG else "stretch"
    for column, (title, text) in zip(st.columns(len(texts.texts)), texts.texts.items(), strict=True):
        with column.container(border=True, height=height):
            st.caption(as_markdown(title) if isinstance(title, Verbatim) else say_label(title))
            if texts.compared:
                st.html(word_diff(texts.first, text))
            else:
                st.text(text or tr("(an empty text)"))


def _draw_document(document: Document, key: str) -> None:
    """Its text; of a file the lines, to copy, and a button that saves them."""
    if not document.file:
        with st.container(key=f"document-{key}"):  # whose quotations are no captions
            st.markdown(document.calm)
        return
    save = {"icon": ":material/download:", "on_click": "ignore", "key": f"save-{key}"}
    label = tr("Save {file}", file=as_markdown(document.file))
    st.download_button(label, document.content.encode(), document.file, mime="text/x-python", **save)
    st.code(document.content, language="python", height=FILE)


def _draw_outcome(outcome: Outcome) -> None:
    """A text with what changed in it, and its numbers."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{say_label(outcome.title)}**")
        st.html(word_diff(outcome.before, outcome.after))
        with st.container(horizontal=True):
            for name, text in outcome.words().items():
                st.metric(say_label(name), say_label(text), width="content")


def _content(picture: Any) -> Any:
    """A Plotly figure, a Drawing or Texts, which can be saved; None for what cannot."""
    match picture:
        case Form():
            return picture.draw()
        case Canvas():
            return picture.drawing if picture.saves else None
        case Outcome() | Document() | Table() | pd.DataFrame():
            return None
    return picture


def _on_request(run: Run, view: View, values: Mapping[str, Any]) -> Any:
    """The result of work that the button has started, or that needs none; None before."""
    request = view.on_request
    case, drawn = call(request.case, run, values), None
    if case is None:
        return None
    case = (request.key, *case)
    outcome = cached(*case)
    at_once = request.at_once is not None and call(request.at_once, run, values)
    start = outcome is None if at_once else clicked(tr(request.label), request.key, request.icon)
    place = st.empty()
    if not start:
        return outcome
    with model_queue().exclusive(request.alone) if request.alone else nullcontext(True) as free:
        if not free:
            place.info(
                tr("Another visitor is measuring on this machine. Try again in a few seconds."), icon=":material/timer:"
            )
            return outcome
        bar = place.progress(0.0, tr("The model is running …"))
        for share, outcome in in_turns(call(request.work, run, values)):  # noqa: B007 - the last one is the result
            if share != drawn:  # drawing it takes time, and some work is timed
                bar.progress(drawn := share, f"{share:.0%}")
        put(outcome, *case)
        place.empty()
        if any(one.reads is request for one in page_of(view.page).views):
            st.rerun()  # what is above shows it, too
    return outcome
