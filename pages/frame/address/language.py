"""The language of a run: as the link or the switch says, else as the browser prefers; and the switch."""

import re
from collections.abc import Mapping
from functools import cache

import streamlit as st

from model.language import language, speak, tr
from pages import EVERY
from pages.frame.address.url import TEXTS
from pages.text import best_language, languages
from pages.widgets.controls import DEFAULTS

LANG = "lang"
"""in the session and in the link: the code of the language, where one was chosen"""
SWITCH = "language-switch"
"""key of the switch"""


def find_language() -> None:
    """First of all in a run: say its language; the link keeps one that was chosen."""
    state, asked = st.session_state, st.query_params.get(LANG)
    chosen = next((code for code in (state.get(LANG), asked) if code in languages()), None)
    if chosen:
        state[LANG] = chosen
    if chosen and chosen != asked:
        st.query_params[LANG] = chosen
    elif asked and not chosen:
        del st.query_params[LANG]
    # A browser says "de-AT,de;q=0.9,en;q=0.8", the best first.
    accepted = re.split("[,;]", st.context.headers.get("Accept-Language", ""))
    speak(best_language(chosen, st.context.locale, *accepted))


def translate_labels() -> None:
    """Before the controls are drawn: a link holds the labels of what was chosen, in the language of whoever made it."""
    labels = _labels(language().code)
    # A control that is there already has its value.
    new = {key: text for key, text in st.query_params.items() if key not in TEXTS and key not in st.session_state}
    # A choice with numbers in it is no label of its own; a token's name begins with its position.
    if changed := {key: labels[text] for key, text in new.items() if labels.get(text, text) != text}:
        st.query_params.update(changed)
        # Streamlit keeps the URL's first values beside the parameters; only another run forgets them.
        st.rerun()


def show_switch() -> None:
    """A menu of the languages, where there are several."""
    if len(languages()) > 1:
        names = {code: one.name for code, one in languages().items()}
        label, explained = language().code.upper(), tr("Language")
        st.menu_button(label, list(names), key=SWITCH, format_func=names.get, help=explained, on_click=_turn)


def _turn() -> None:
    """Before the page runs again: the language, and the choices of all controls, which the browser knows by labels."""
    state, _former = st.session_state, language()
    state[LANG] = state[SWITCH]
    speak(languages()[state[LANG]])
    labels = _labels(language().code)
    tabs = {page.tabs_key for page in EVERY}
    for key in [key for key in state.get(DEFAULTS, {}) if key in state]:
        # What the session knows of tabs is the title of the open one.
        state[key] = labels.get(state[key], state[key]) if key in tabs else state[key]


@cache
def _labels(code: str) -> Mapping[str, str]:
    """Any label, in any language -> the same in this one; what is a label of this one stays."""
    known = {one.code: {**one.labels, **one.strings} for one in languages().values()}
    own = known[code]
    found = {english: own.get(english, english) for english in {key for one in known.values() for key in one}}
    for one in known.values():
        found |= {label: own.get(english, english) for english, label in one.items() if label not in found}
    return found | {label: label for label in own.values()}
