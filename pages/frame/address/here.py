"""What the browser does around every page: keys for layer and head, grey pages in the menu, text that was not run."""

from collections.abc import Collection, Sequence

import streamlit as st

from model.language import language, listed, tr
from model.needs import Need
from model.run import Place
from model.trace import Kind
from pages import EVERY
from pages.compute.runs import checkpoint_by_config
from pages.frame.address.menu import HOME
from pages.views import OPEN_SECTION, section_key
from pages.widgets.canvas import component
from pages.widgets.chart import HERE, is_dark, is_narrow
from pages.widgets.controls import OPEN_TAB, set_controls

ENTRIES = ("kind", "layer", "head", "step", "lesson", "station")
"""parameters of the URL of which a new value is an entry of the browser's history, beside the tab's"""
TEXTS = "source", "typed", "turns"
"""keys of the fields of text"""


def show_here(
    kinds: Sequence[Kind],
    place: Place,
    page: tuple[str, str],
    tabs: tuple[str, str],
    off: bool,
    features: Collection[Need] | None = None,
) -> None:
    """Let Shift with an arrow key choose a layer or head, and a click on a word its row; mark pages of the menu, and
    texts that were not run.

    `kinds` are the model's, none if it could not be opened. `page` has its section, and the last part of its address,
    by which the browser's history knows whose run this is; `tabs` the key of its open tab, and the tab that is open
    without it. `off`: the page does not depend on the place. Pages that need other `features` than these are grey in
    the menu.
    """
    columns = [{"name": kind.name, "layers": kind.layers, "heads": kind.heads} for kind in kinds]
    data = {"kinds": columns, "place": vars(place), "section": page[0], "page": page[1], "off": off or not kinds}
    data["entries"] = [*ENTRIES, tabs[0]]
    data["tab"] = asked if (asked := st.query_params.get(OPEN_TAB, "")) != tabs[1] else ""
    # A link inside the app leads to a section once; the address does not keep it.
    data["leads"] = section_key(asked) if (asked := st.query_params.pop(OPEN_SECTION, "")) else ""
    data["at"] = st.query_params.to_dict()
    data["lacks"] = {} if features is None else lacking(features)
    data["texts"] = {key: st.session_state[key] or "" for key in TEXTS if key in st.session_state}
    # A run that changes nothing else reaches the component, too.
    data["run"] = st.session_state["run"] = st.session_state.get("run", 0) + 1
    data["narrow"], data["dark"], data["lang"] = is_narrow(), is_dark(), language().code
    told = {f"on_{what}_change": lambda: None for what in ("narrow", "dark")}
    component("here")(key=HERE, data=data, height=1, on_move_change=_move, **told)


def lacking(features: Collection[Need]) -> dict[str, str]:
    """The last part of a page's address -> what it needs and a model with these features does not have.

    A page of Explore that opens a model of its own lacks nothing.
    """
    missing = {page: [need for need in page.needs if need not in features] for page in EVERY}
    return {
        "" if page == HOME else page.name: tr("Needs {parts}, which this model does not have", parts=listed(needs))
        for page, needs in missing.items()
        if needs and (page.section != "Explore" or checkpoint_by_config(page.needs) is None)
    }


def _move() -> None:
    """Before the page runs again; the controls replace what this model lacks."""
    if place := st.session_state[HERE].get("move"):
        numbers = {name: int(place[name]) for name in ("layer", "head", "query") if name in place}
        set_controls({"kind": str(place["kind"]), **numbers})
