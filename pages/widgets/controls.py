"""The controls of every page. Each keeps its value when the page is left, puts it in the link, and can be reset.

A value that another sentence or checkpoint no longer offers becomes the nearest number, or the default choice.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.errors import StreamlitAPIException

from model.language import in_this_language, tr
from viz.forms import Table
from viz.labels import say_label, say_table, written
from viz.tokens import as_markdown

if TYPE_CHECKING:  # they need PyTorch, and the menu is drawn before that is there
    from model.run import Run
    from pages.views.controls import Control, Offer

DEFAULTS = "defaults"
"""in the session: the default of each control drawn so far, by key"""
CLICKED, SHOWN = "clicked", "clicks shown at"
"""in the session: value before and after the last click, by key of the control; when its run ended"""
ON_ITS_WAY = 0.5
"""seconds that the browser's message may take"""
OPEN_TAB = "open_tab"
"""in the URL: the tab that a link inside the app opens"""
LONGEST_IN_LINK = 2_000
"""characters: a server refuses a URL of 64 kB, and one character may take nine bytes there"""
REASONS = "not in the link"
"""in the session: why, by key of the controls drawn so far whose value the URL does not hold"""
TOO_LONG = "the text is too long for a link"
TOKEN = ("query", "key")
"""keys of the controls that name the chosen token"""
READ = "read"
"""in the session: the text of the last run"""
UNLINKED = "-unlinked"
"""in the session, behind a text's key: whether it was too long for the link"""
SECONDS_A_STEP = 0.8
"""while steps are played"""
ROW_HEIGHT, PINNED_WIDTH = 35, 120
"""of a table, in pixels"""
LONGEST_LINE = 900
"""characters that a line of text takes"""
LONG_CELL = 40
"""characters from which on a column of texts is wide"""


def register(key: str, default: Any) -> None:
    """Let a reset set st.session_state[key] to `default`."""
    st.session_state.setdefault(DEFAULTS, {})[key] = default


def reset_controls(keep: Sequence[str] = ()) -> None:
    """Set every control of every page to its default, clear the link, and forget the rest of the session but the keys
    to keep."""
    state = st.session_state
    defaults = state.get(DEFAULTS, {})
    for key in [key for key in state if key not in (DEFAULTS, *keep, *defaults)]:
        del state[key]
    # A deleted control would get its value back from the browser.
    state.update(defaults)
    st.query_params.from_dict({})


def set_controls(values: Mapping[str, Any]) -> None:
    """In a callback of a picture: give controls the values that a click chose, by their keys."""
    state = st.session_state
    if "source" in values or ("kind" in values and _side(values["kind"]) != _side(state.get("kind"))):
        _forget_token()
    state[READ] = values.get("source", state.get(READ))
    state[CLICKED] = {key: (state.get(key), value) for key, value in values.items()}
    state[SHOWN] = inf
    state.update(values)


def follow_click(key: str, value: Any) -> None:
    """Before a control is drawn: give it a value that follows from what was clicked."""
    state = st.session_state
    if state.get(key) != value:
        state[CLICKED] = state.get(CLICKED, {}) | {key: (state.get(key), value)}
        state[SHOWN] = inf
        state[key] = value


def keep_token(source: str | None) -> None:
    """Before the controls are drawn: a text that was typed begins with the first choice of a token."""
    state = st.session_state
    if state.get(READ) is not None and source != state[READ]:
        _forget_token()
    state[READ] = source


def note_text(source: str | None) -> None:
    """After the controls of a session's first run: the text whose token is chosen, in the field or in the link."""
    if st.session_state.get(READ) is None:
        st.session_state[READ] = source


def link_token() -> None:
    """At the end of a page: its link names the token also where a picture chose it, and no control of the page."""
    state = st.session_state
    for key in TOKEN:
        chosen, linked = chosen_number(key), _linked_number(key)
        if chosen is not None and key not in state:
            state[key] = chosen  # by the link alone: other pages follow, too
        if chosen != linked:
            # A control that is drawn has written its value itself, and lets nobody else.
            with suppress(StreamlitAPIException):
                if chosen is None:
                    del st.query_params[key]
                else:
                    st.query_params[key] = str(chosen)


def turn_to_kind(before: str) -> None:
    """When another kind of attention was chosen than before: its queries may be tokens of another text."""
    if _side(st.session_state.get("kind")) != _side(before):
        _forget_token()


def chosen_number(key: str) -> int | None:
    """What a control of numbers, which the page may not draw, was set to by a person or by the link; None: to
    nothing."""
    state = st.session_state
    if key in state:
        value = state[key]
        return value if isinstance(value, int) and value != state.get(DEFAULTS, {}).get(key) else None
    return _linked_number(key)


def _linked_number(key: str) -> int | None:
    # In the link of a menu the token follows the number.
    asked = re.match("[0-9]{1,5}(?![0-9])", st.query_params.get(key, ""))
    return int(asked[0]) if asked else None


def _forget_token() -> None:
    """Give the controls that name the token their defaults, which follow the run; and forget what a picture chose."""
    state = st.session_state
    defaults = state.get(DEFAULTS, {})
    for key in TOKEN:
        if key in defaults and key in state:
            state[key] = defaults[key]
        elif key not in defaults:
            state.pop(key, None)
            with suppress(StreamlitAPIException):
                st.query_params.pop(key, None)


def _side(kind: str | None) -> str:
    """Whose tokens the queries of a kind of attention are."""
    return "source" if (kind or "encoder").startswith("encoder") else "target"


def value_of(key: str) -> Any:
    """The present value of a control that the page has drawn, or of a component: its last moves by name."""
    return st.session_state[key]


@contextmanager
def keep_clicks() -> Iterator[None]:
    """Around a run: what a click chose survives when another run follows at once.

    Whoever types right after a click sends all controls as the browser knows them, from before the click.
    """
    state = st.session_state
    if monotonic() - state.get(SHOWN, 0) < ON_ITS_WAY:
        clicked = state.get(CLICKED, {})
        state.update({key: new for key, (old, new) in clicked.items() if state.get(key) == old})
    else:
        state.pop(CLICKED, None)
    try:
        yield
    finally:
        if state.get(SHOWN) == inf:
            state[SHOWN] = monotonic()


def draw(
    run: "Run", control: "Control", place: Any = st, key: str = "", chosen: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """The value of a control of views, which is drawn as `LOOKS` says; None where it offers nothing.

    `key` is that of the session and the link, where the control has none of its own; `chosen` has values that were
    chosen before, on which it may depend.
    """
    key = key or control.key
    if (offer := control.offer(run, chosen)) is None:
        return None
    if control.follows:
        follow_default(key, offer.start)
    if offer.limits and not offer.unlinked:
        say_if_outside(offer, key)
    elif control.look in LABELLED:
        take_label(key, offer, partial(control.named, run, chosen))
    return LOOKS[control.look](offer, key, place)


def number(offer: "Offer", key: str, place: Any = st, **options: Any) -> int:
    """An integer in a box, in `place`, a column or container. The key is that of the session and, unless the offer is
    unlinked, of the URL; the options are those of `st.number_input`."""
    clamp(key, offer.limits)
    found = place.number_input(offer.label, *offer.limits, offer.start, **_linked(offer, key), **options)
    return offer.start if found is None else int(found)


def slider(offer: "Offer", key: str, place: Any = st, **options: Any) -> int:
    """An integer on a slider; arguments as in `number`. Streamlit writes others in English: `steps`."""
    if offer.limits[0] == offer.limits[1]:
        return offer.start  # a slider needs room
    clamp(key, offer.limits)
    return place.slider(offer.label, *offer.limits, offer.start, offer.step, **_linked(offer, key), **options)


def draw_steps(draw: Callable[[], Any], key: str) -> None:
    """Draw a part of the page, which alone runs again and again while the `stepper` of this key in it plays."""
    st.fragment(in_this_language(draw), run_every=SECONDS_A_STEP if st.session_state.get(f"{key}-playing") else None)()


def stepper(offer: "Offer", key: str, place: Any = st) -> int:
    """A step on a slider, and a button that plays the steps one after another; in a part drawn by `draw_steps`.

    Arguments as in `slider`.
    """
    if offer.limits[0] == offer.limits[1]:
        return offer.start
    state, playing = st.session_state, f"{key}-playing"
    # Other reruns come between those of the clock: only when a step has stood long enough does the next one follow.
    if state.get(playing) and monotonic() >= state[f"{key}-due"]:
        state[key] = min(state.get(key, offer.start) + 1, offer.limits[1])
        state[f"{key}-due"] = monotonic() + SECONDS_A_STEP / 2
    left, right = place.columns([1, 4], vertical_alignment="bottom")
    name, icon = (tr("Pause"), ":material/pause:") if state.get(playing) else (tr("Play"), ":material/play_arrow:")
    arguments = {"on_click": _play_or_pause, "args": (offer.limits, key), "width": "stretch"}
    pressed = left.button(name, key=f"{key}-play", icon=icon, **arguments)
    step = slider(offer, key, right)
    if state.get(playing) and step == offer.limits[1]:
        state[playing], pressed = False, True
    if pressed:
        st.rerun()  # of the whole page, since only that starts and stops the clock
    return step


def _play_or_pause(limits: tuple[int, int], key: str) -> None:
    state = st.session_state
    state[f"{key}-playing"] = not state.get(f"{key}-playing")
    state[f"{key}-due"] = monotonic() + SECONDS_A_STEP / 2
    if state[f"{key}-playing"] and state[key] == limits[1]:
        state[key] = limits[0]


def choice(offer: "Offer", key: str, place: Any = st, **options: Any) -> Any:
    """One of a few options side by side; arguments as in `number`, with the options of `st.segmented_control`. `notes`
    is a list that gets a sentence where the URL or the session names something that is not among the options."""
    return _one_of(place.segmented_control, offer, key, default=offer.start, required=True, **options)


def select(
    offer: "Offer", key: str, place: Any = st, *, in_link: bool = False, notes: list[str] | None = None, **options: Any
) -> Any:
    """One of many options in a menu; arguments as in `choice`. `in_link`: the URL holds the start, too."""
    # Streamlit leaves what a menu begins with out of the URL.
    index = None if in_link else list(offer.options).index(offer.start)
    if in_link:
        replace_missing(key, offer, notes)
        state = st.session_state
        if state.get(key) is None and (key in state or st.query_params.get(key) not in offer.options.values()):
            state[key] = offer.start
    return _one_of(place.selectbox, offer, key, index=index, notes=notes, **options)


def steps(offer: "Offer", key: str, place: Any = st, **options: Any) -> Any:
    """One of the options on a slider; arguments as in `choice`."""
    return _one_of(place.select_slider, offer, key, value=offer.start, **options)


def several(offer: "Offer", key: str, place: Any = st) -> list[Any]:
    """Some of the options; those that are no longer offered are dropped. Arguments as in `choice`."""
    if key in st.session_state:
        st.session_state[key] = [value for value in st.session_state[key] if value in offer.options]
    labels, most = offer.options.__getitem__, offer.most or None
    return place.multiselect(
        offer.label, list(offer.options), offer.start, labels, max_selections=most, **_linked(offer, key)
    )


def toggle(offer: "Offer", key: str, place: Any = st, **options: Any) -> bool:
    """A switch, initially off."""
    return place.toggle(offer.label, wrap=True, **_linked(offer, key), **options)


def text(offer: "Offer", key: str, place: Any = st, max_chars: int = LONGEST_LINE) -> str:
    """A line of text; the last example stands in an empty field."""
    example = tr("such as {example}", example=offer.examples[-1]) if offer.examples else None
    options = {"max_chars": max_chars, "placeholder": example}
    return place.text_input(offer.label, offer.start, **_linked(offer, key), **options) or ""


def pictured(key: str, default: str) -> str:
    """A text that pictures set: it stands in the session and in the link, and nowhere on the page."""
    register(key, default)
    text = st.session_state.setdefault(key, st.query_params.get(key, default))
    if text == default:
        st.query_params.pop(key, "")
    else:
        st.query_params[key] = text
    return text


def is_on(key: str) -> bool:
    """Whether something that no widget shows is switched on; it stands in the session and in the link as "true"."""
    return pictured(key, "") == "true"


def text_area(
    offer: "Offer", key: str, placeholder: str, button: str, beside: Callable[[], Any] | None = None, height: int = 100
) -> str:
    """A text of several lines, as typed, and a button; it is in the link as long as it is short enough for one.

    The browser sends the text when the field is left, so a press of the button needs no answer; Enter sends it too.
    What `beside` draws stands in the button's row.
    """
    state, unlinked = st.session_state, f"{key}{UNLINKED}"
    fits = len(state.get(key) or "") <= LONGEST_IN_LINK
    if fits and state.get(unlinked):
        # Only a value that is set here is written to the URL again.
        state[key] = state[key]
    state[unlinked] = not fits
    linked = _linked(replace(offer, unlinked="" if fits else TOO_LONG), key)
    typed = st.text_area(offer.label, offer.start, height=height, placeholder=placeholder, **linked) or ""
    with st.container(key="sentence-row", horizontal=True, gap="small") if beside else nullcontext():
        st.button(button, key=f"{key}-send", type="primary", icon=":material/keyboard_return:")
        if beside:
            beside()
    return typed


def texts_not_in_link() -> list[str]:
    """The keys of the texts that are too long for a link."""
    state = st.session_state
    marks = [key for key in state if isinstance(key, str) and key.endswith(UNLINKED)]
    texts = {key.removesuffix(UNLINKED): state.get(key.removesuffix(UNLINKED)) or "" for key in marks}
    return [key for key, typed in texts.items() if len(typed) > LONGEST_IN_LINK]


def tabs(views: Mapping[str, Callable[..., Any]], key: str, *args: Any, default: str | None = None) -> Any:
    """One tab per view, by its English title; only the open tab's function runs, with `args`. Returns what it returned.

    The key is that of the session and of the URL; at first the tab `default` is open, or else the first one.
    """
    views, default = {tr(title): show for title, show in views.items()}, default and tr(default)
    if "d_k" in (older := st.query_params.get(key, "")):  # as titles of tabs once wrote it
        st.query_params[key] = older.replace("d_k", "dₖ")
    register(key, default or next(iter(views)))
    if (asked := st.query_params.get(OPEN_TAB)) is not None:
        del st.query_params[OPEN_TAB]
        if asked in views:
            st.session_state[key] = asked
    for tab, show in zip(
        st.tabs(list(views), default=default, key=key, bind="query-params"), views.values(), strict=True
    ):
        if tab.open:
            with tab:
                return show(*args)
    return None


def box(label: str, key: str, show: Callable[..., Any], *args: Any, icon: str | None = None) -> None:
    """A box that is initially closed; only an open box's function runs."""
    with st.expander(label, key=key, icon=icon, on_change="rerun") as opened:
        if opened.open:
            show(*args)


def fold(parts: Mapping[str, tuple[str, Callable[[], Any]]], key: str, label: str) -> None:
    """One line of names; what is chosen in it opens below, and only that is drawn.

    Each part has its label, which may begin with a symbol, and what draws it; the line has a label for screen readers.
    """
    labels = {name: text for name, (text, _) in parts.items()}
    options = {"format_func": labels.__getitem__, "selection_mode": "multi", "label_visibility": "collapsed"}
    for name in st.pills(label, list(parts), key=key, **options):
        parts[name][1]()


def close_in_fold(key: str, name: str) -> None:
    """Before the page runs again: the part of this name is closed in a fold."""
    st.session_state[key] = [one for one in st.session_state.get(key) or () if one != name]


def table(frame: pd.DataFrame, *, floats: str = "%.3g", height: int | str = "content") -> None:
    """A table of plain text and numbers, whole unless `height` is given in pixels.

    Its columns of integers get thousands separators, those of floats a format as in `written`.
    """
    st.dataframe(_styled(frame, _forms(frame, floats)), hide_index=True, height=height, placeholder="")


def _forms(frame: pd.DataFrame, floats: str) -> dict[Any, str]:
    return dict.fromkeys(frame.select_dtypes("float"), floats) | dict.fromkeys(frame.select_dtypes("integer"), ",")


def _styled(frame: pd.DataFrame, forms: Mapping[str, str]) -> pd.DataFrame | Styler:
    """The table in the language of this run, with its numbers, if it has any, as the language writes them.

    Streamlit's own formats know the browser's language alone. The numbers stay below what is written: the browser
    sorts by them, and saves them.
    """
    said = say_table(frame)
    writers = _writers(frame, said, forms)
    return said.style.format(writers, na_rep="") if writers else said


def _writers(frame: pd.DataFrame, said: pd.DataFrame, forms: Mapping[Any, str]) -> dict[Any, Callable[[float], str]]:
    """What writes the cells of the columns that have a form, by their names in the language of this run."""
    return {shown: partial(written, form=forms[name]) for name, shown in zip(frame, said, strict=True) if name in forms}


def large_table(frame: pd.DataFrame, floats: str, formats: Mapping[str, str] = MappingProxyType({})) -> None:
    """A table of plain text and numbers for a screen that is seen from afar; single columns may have other formats."""
    said = say_table(frame).astype(object)
    for name, write in _writers(frame, said, _forms(frame, floats) | dict(formats)).items():
        said[name] = said[name].map(write)
    st.html(said.where(said.notna(), "").to_html(index=False, border=0, classes="present-table"))


def explained_table(table: Table, key: str, alt: str, on_select: Callable[[], None]) -> None:
    """A table with explained columns; where its rows choose something, a click ticks one.

    `on_select` is called when a row is ticked, before the page runs again; `alt` is for screen readers.
    """
    config, forms = {}, _forms(table.frame, table.floats) | dict(table.formats)
    for name, values in table.frame.items():
        pinned = {"pinned": True, "width": PINNED_WIDTH} if name in table.pinned else {}
        wide = {"width": "large"} if name not in forms and values.map(str).str.len().max() > LONG_CELL else {}
        config[say_label(name)] = st.column_config.Column(help=say_label(table.helps.get(name)), **wide | pinned)
    options: dict[str, Any] = {}
    if table.sets:
        options = {"key": key, "on_select": on_select, "selection_mode": "single-row"}
    if table.ticked is not None:
        # However it was chosen, its row is ticked. All three keys: without one, Streamlit sees a click in each run.
        st.session_state[key] = {"selection": {"rows": [table.ticked], "columns": [], "cells": []}}
        options["selection_mode"] = "single-row-required"
    height = "content" if len(table.frame) <= table.most_rows else ROW_HEIGHT * (table.most_rows + 1)
    shown = {"hide_index": True, "height": height, "column_config": config, "alt": alt, "placeholder": ""}
    st.dataframe(_styled(table.frame, forms), **shown, **options)


def former_default(key: str, otherwise: Any = None) -> Any:
    """What a control had as its default when it was last drawn."""
    return st.session_state.get(DEFAULTS, {}).get(key, otherwise)


def follow_default(key: str, default: Any) -> None:
    """Before its control is drawn: a value that still is the former default becomes the new one."""
    former = former_default(key, default)
    if former != default and st.session_state.get(key) == former:
        st.session_state[key] = default


def clamp(key: str, limits: tuple[float, float]) -> None:
    """Before its control is drawn: a number outside the limits becomes the nearest one.

    A menu whose options have changed may hold the text of an old one, which `replace_missing` replaces.
    """
    if isinstance(value := st.session_state.get(key), int | float):
        st.session_state[key] = min(max(value, limits[0]), limits[1])


def say_if_outside(offer: "Offer", key: str) -> None:
    """Before its control is drawn: a note where the link asks for a number that it does not offer."""
    asked = st.query_params.get(key)
    if key in st.session_state or asked is None:
        return
    try:
        offered = offer.limits[0] <= type(offer.start)(asked) <= offer.limits[1]
    except ValueError:
        offered = False
    if not offered:
        text = tr(
            "The link asks for a number that “{label}” does not offer; {default:g} is shown instead.",
            label=offer.label,
            default=offer.start,
        )
        st.info(text, icon=":material/info:")


def take_label(key: str, offer: "Offer", named: Callable[[str], list[Any]]) -> None:
    """Before its control is drawn: choose what a link names by the labels of another language than the offer's.

    `named` finds the value that has a label in any language, in a list; an empty one: there is none.
    """
    asked = st.query_params.get_all(key)
    if key in st.session_state or set(asked) <= set(offer.options.values()):
        return
    if values := [value for label in asked for value in named(label) if value in offer.options]:
        st.session_state[key] = values if offer.most else values[0]


def replace_missing(key: str, offer: "Offer", notes: list[str] | None = None) -> None:
    """Before its control is drawn: a value that is not among the options becomes the start; `notes` gets a sentence on
    it."""
    notes = [] if notes is None else notes
    state, asked, shown = st.session_state, st.query_params.get(key), offer.options[offer.start]
    if key not in state and asked is not None and asked not in offer.options.values():
        text = tr(
            "The link asks for something that does not exist here ({control}); {shown} is shown instead.",
            control=key,
            shown=shown,
        )
        notes.append(text)
    elif state.get(key) is not None and state[key] not in offer.options:
        text = tr(
            "There is no {control} {value} here; {shown} is shown instead.", control=key, value=state[key], shown=shown
        )
        notes.append(text)
        state[key] = offer.start


def _one_of(draw: Callable[..., Any], offer: "Offer", key: str, notes: list[str] | None = None, **options: Any) -> Any:
    replace_missing(key, offer, notes)
    labels = offer.options.__getitem__
    found = draw(offer.label, list(offer.options), format_func=labels, **_linked(offer, key), **options)
    return offer.start if found is None else found


def _linked(offer: "Offer", key: str) -> dict[str, Any]:
    """What ties a widget to the session and, unless the offer is unlinked, to the URL; a reset gives it its start."""
    register(key, offer.start)
    reasons = st.session_state.setdefault(REASONS, {})
    kept = {"key": key, "help": offer.help, "persist_state": "session"}
    if offer.unlinked:
        reasons[key] = offer.unlinked
        return kept
    reasons.pop(key, None)
    return kept | {"bind": "query-params"}


def _noted(draw: Callable[..., Any]) -> Callable[["Offer", str, Any], Any]:
    """The same, but a number that is no longer offered becomes the last one, and the page says where a link asks for
    what is not offered."""

    def draw_noted(offer: "Offer", key: str, place: Any) -> Any:
        if list(offer.options) == list(range(len(offer.options))):
            clamp(key, (0, len(offer.options) - 1))
        linked, notes = key not in st.session_state, []
        value = draw(offer, key, place, notes=notes)
        for note in notes if linked else ():
            st.info(as_markdown(note.replace(key, offer.label.lower(), 1)), icon=":material/info:")
        return value

    return draw_noted


LOOKS: Mapping[str, Callable[["Offer", str, Any], Any]] = {
    "menu": _noted(select),
    "choice": choice,
    "steps": _noted(steps),
    "number": partial(number, width=240),
    "slider": slider,
    "player": stepper,
    "toggle": partial(toggle, width="content"),
    "several": several,
    "text": text,
    "pictured": lambda offer, key, _: pictured(key, offer.start),
    "run": lambda offer, *_: offer.start,  # without the widgets that make one
}
"""how each kind of control is drawn"""
LABELLED = ("menu", "choice", "steps", "several")
"""looks of controls whose value the link names by its label"""
