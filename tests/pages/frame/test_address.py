"""After any button on any page, the address opened in another session shows the same: text, model, head, token, tab.

So every control is in the address, or says why it is not.
"""

from collections.abc import Callable

import pytest
from streamlit.testing.v1.element_tree import Widget

from pages import Page
from pages.widgets.controls import REASONS
from tests.pages.figures import address
from tests.pages.test_pages import ALL_PAGES, EVERY_PAGE, OF_THEIR_OWN, TWO_PAGES

FIELDS = ("source", "target", "checkpoint", "kind", "layer", "head", "query", "key", "tau", "scope", "step")
DIALOGS = ("bar-", "present-")
NOT_PRESSED = ("-play", "run-many", "measure", "course-", "guess-", "save-", "temperature-", "remove-")
"""work that takes a while, and what shows no view"""
NOT_LINKED = {
    "example": "sets the sentence, and is empty again",
    "side_example": "sets both sentences, and is empty again",
    "fill-": "hides a word of the text, and is empty again",
    "prefix-choice-": "a word to be forced; those that are forced are in the link",
    "which-against-": "the link has it as which_against",
    "guess-": "a guess changes no view",
    "foot-": "what is open below a picture",
    "paper-": "of a file that is saved at once",
    "course-": "of a course that is being made; the finished one has a link of its own",
    "-group": "the link names the tab, which is in one row only",
}
"""keys of widgets that are not drawn by pages/widgets/controls.py, or parts of them, and why the link lacks them"""


def view(app, page: Page) -> dict[str, object]:
    """What is on screen."""
    state = app.session_state
    fields = {name: state[name] for name in (*FIELDS, page.tabs_key, "temperatures") if name in state}
    # A value that nobody has chosen is in the session of the one, and perhaps not yet of the other.
    return {name: value for name, value in fields.items() if value not in (None, (), "")}


def buttons(app, page: Page) -> list[str]:
    """Keys of the page's buttons that can be pressed; the sidebar's, which every page has, are pressed on two."""
    place = app if page.path in TWO_PAGES else app.main
    keys = [str(button.key) for button in place.button if button.key and not button.disabled]
    return [key for key in keys if not key.startswith(DIALOGS) and not any(part in key for part in NOT_PRESSED)]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_the_address_after_a_button_brings_back_the_view(page: Page, open_app: Callable) -> None:
    app = open_app(page.path, source="A dog sleeps.", target="Greedy", layer="1", head="2", tau="2")
    seen: set[str] = set()
    while waiting := [key for key in buttons(app, page) if key not in seen]:
        seen.add(waiting[0])
        before = address(app)
        app.button(key=waiting[0]).click().run()
        if address(app) == before and len(seen) > 1:
            continue
        again = open_app(page.path, **address(app))
        assert view(again, page) == view(app, page), waiting[0]
        if len(seen) > 4:
            break


def unlinked(app) -> list[str]:
    """Keys of the page's widgets that are not in the link, and for which nobody says why."""
    widgets = [one for one in app._tree if isinstance(one, Widget) and hasattr(one.proto, "query_param_key")]
    keys = [str(widget.key) for widget in widgets if not widget.proto.query_param_key]
    reasons = app.session_state[REASONS]
    assert all(" " in reason for reason in reasons.values())
    return [key for key in keys if key not in reasons and not any(part in key for part in NOT_LINKED)]


@pytest.mark.parametrize(
    "page", [page for page in EVERY_PAGE if page.path not in ALL_PAGES], ids=lambda page: page.name
)
def test_every_control_is_in_the_address_or_says_why_not(page: Page, open_app: Callable) -> None:
    """Those of all other pages are asked in every tab and at both ends, in tests/pages/test_extremes.py."""
    assert unlinked(open_app(page.path, source="A dog.")) == []


@pytest.mark.parametrize("page", [*TWO_PAGES, *OF_THEIR_OWN])
def test_a_token_that_a_picture_chooses_is_in_the_address_of_the_page(page: str, open_app: Callable) -> None:
    chosen = {"query": 1, "key": 3}
    app = open_app(page, source="A dog sleeps.", target="Greedy")
    for key, token in chosen.items():
        app.session_state[key] = token
    app.run()
    again = open_app(page, **address(app))
    assert {key: again.session_state[key] for key in chosen} == chosen


@pytest.mark.parametrize("page", TWO_PAGES)
def test_a_text_that_is_typed_forgets_the_token_of_the_link(page: str, open_app: Callable) -> None:
    app = open_app(page, source="A dog sleeps.", target="Greedy", query="1", key="3")
    app.text_area(key="source").set_value("The cat sat on the mat.").run()
    assert not {"query", "key"} & {*address(app)}


def test_a_step_of_an_older_link_is_the_one_it_was(open_app: Callable) -> None:
    """Steps were called as the code calls their sub-layers."""
    chosen = [
        open_app("pages/layer_by_layer.py", source="A dog sleeps.", layers_step=step).selectbox(key="layers_step").value
        for step in ("1 cross_attn", "1 cross-attention", "0 feed_forward")
    ]
    assert chosen[0] == chosen[1] != chosen[2]


@pytest.mark.parametrize(
    "old", [{"kind": "Cross-attention"}, {"row": "2"}, {"kind": "Cross-attention", "temperature-row": "1"}]
)
@pytest.mark.parametrize("numbers", [{}, {"head": "inf"}, {"head": "nan", "layer": "9" * 400}])
def test_the_way_back_to_an_address_from_before_it_was_mended_shows_the_page(
    old: dict[str, str], numbers: dict[str, str], open_app: Callable
) -> None:
    app = open_app("pages/heads_and_layers.py", **old, **numbers)
    if "kind" in old:
        assert app.segmented_control(key="kind").value == "cross"
    app.segmented_control(key="kind").set_value("decoder_self").run()
    for asked in ({}, old | numbers):
        app.query_params.clear()
        app.query_params.update(asked)
        app.run()
        assert app.select_slider(key="head").value == 0
