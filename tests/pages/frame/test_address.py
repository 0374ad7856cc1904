"""After any button on any page, the address opened in another session shows the same: text, model, head, token, tab."""

from collections.abc import Callable

import pytest

from pages import PAGES, Page
from tests.pages.test_pages import TWO_PAGES

ALL_PAGES = [page for pages in PAGES.values() for page in pages]
FIELDS = ("source", "target", "checkpoint", "kind", "layer", "head", "query", "key", "tau", "scope", "step")
DIALOGS = ("bar-", "present-")
NOT_PRESSED = ("-play", "run-many", "measure", "course-", "guess-", "save-", "temperature-", "remove-")
"""work that takes a while, and what shows no view"""


def address(app) -> dict[str, str]:
    """The parameters of the URL."""
    parameters = app.query_params
    return {name: text if isinstance(text, str) else text[-1] for name, text in parameters.items()}


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


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_the_address_after_a_button_brings_back_the_view(page: Page, open_app: Callable) -> None:
    app = open_app(page.path, source="A dog sleeps.", target="Greedy", layer="1", head="2", tau="2")
    seen: set[str] = set()
    while waiting := [key for key in buttons(app, page) if key not in seen]:
        seen.add(waiting[0])
        before = address(app)
        app.button(key=waiting[0]).click().run()
        assert not app.exception, waiting[0]
        if address(app) == before and len(seen) > 1:
            continue
        again = open_app(page.path, **address(app))
        assert view(again, page) == view(app, page), waiting[0]
        if len(seen) > 8:
            break
