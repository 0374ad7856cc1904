"""Every control of every page at both of its ends, for one token, twenty and a hundred, at two temperatures; each is in
the address, or says why not; and no markup that was typed, or that a checkpoint holds, acts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pages import page_of
from tests.injection import TRANSLATOR, TYPED, tokens_as_text
from tests.pages.figures import holds, tabs_of
from tests.pages.frame.test_address import unlinked
from tests.pages.test_injection import acting
from tests.pages.test_pages import ALL_PAGES

pytestmark = pytest.mark.usefixtures("open_feet")

SENTENCES = (
    ("<b>z20</b>", "Cross-attention", "Everywhere"),
    (tokens_as_text(10), "Encoder self-attention", "Head"),
    (tokens_as_text(56), "Decoder self-attention", "Layer"),
)
"""one token, twenty and a hundred, all of them markup, each with a kind of attention and what a temperature changes"""
KINDS = {
    "Cross-attention": "cross",
    "Encoder self-attention": "encoder_self",
    "Decoder self-attention": "decoder_self",
}


def ends(app: Any, last: bool) -> Iterator[tuple[Any, Any]]:
    """Each control of the page itself, and the first or the last value that it offers."""
    for control in (*app.main.slider, *app.main.number_input):
        yield control, control.max if last else control.min
    for control in (*app.main.select_slider, *app.main.selectbox, *app.main.radio, *app.main.button_group):
        if control.options and not (control.key or "").endswith("-what"):  # the last one draws all tabs (test_export)
            yield control, chosen(control, control.options[-1 if last else 0])
    for control in (*app.main.toggle, *app.main.checkbox):
        yield control, last


def chosen(control: Any, option: str) -> Any:
    """What an option that is shown stands for: set_value takes the value, where a name is shown for it."""
    if control.type not in ("button_group", "select_slider", "selectbox", "radio"):
        return option
    named = getattr(control.format_func, "__self__", ())
    return next(
        (
            value
            for value in (range(len(named)) if isinstance(named, list | tuple) else named)
            if control.format_func(value) == option
        ),
        option,
    )


def move_everything(app: Any, last: bool, times: int) -> None:
    """To its end, one run for all; up to so many where the first shows other controls, or other ends of them."""
    moved: dict[str, Any] = {}
    for _ in range(times):
        waiting = [(one, value) for one, value in ends(app, last) if not one.disabled and value is not None]
        if moved == (moved := {one.id: value for one, value in waiting}):
            return
        for control, value in waiting:
            control.set_value(value)
        app.run()


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_survives_its_controls_at_an_end_in_every_tab_and_no_markup_acts(
    page: str, open_hostile: Callable
) -> None:
    """Every tab at one end and every page at both, with every sentence, by a link with a temperature; in one of its
    tabs also without it and with another sentence afterwards.

    tests/pages/test_views.py has every view at both ends of each control.
    """
    number, key, tabs = 0, None, [None]
    while number < max(len(tabs), len(SENTENCES)):
        (source, kind, scope), (next_source, next_kind, _) = (SENTENCES[(number + i) % 3] for i in range(2))
        target = {"target": "Typed", "typed": f"{TYPED} {tokens_as_text(8)}"} if number % 2 else {"target": "Greedy"}
        query = {"checkpoint": TRANSLATOR, "source": source, "kind": kind, "layer": "1", "head": "3"} | target
        tab = {key: tabs[number % len(tabs)]} if key else {}
        app = open_hostile(page, **query, tau="0.05", scope=scope, side_sentence=TYPED, **tab)
        if not number:
            key, tabs = tabs_of(app)
            tabs.sort(key=lambda one: one != page_of(page).first_tab)
        assert any("τ = 0.05" in caption.value for caption in app.caption), tab
        assert (unlinked(app), acting(app)) == ([], []), tab
        thorough = number == ALL_PAGES.index(page) % 3
        move_everything(app, last=number % 2 == 0, times=1 + thorough)
        assert holds(app) == 3, tab
        assert (unlinked(app), acting(app)) == ([], []), tab
        number += 1
        if not thorough:
            continue
        app.select_slider(key="tau").set_value(1)
        app.text_area(key="source").set_value(next_source)
        if not app.segmented_control(key="kind").disabled:
            app.segmented_control(key="kind").set_value(KINDS[next_kind])
        app.run()
        assert holds(app) == 3, tab
    # The browser names an option by its label: right after a new sentence it sends one of the sentence before.
    for control in (*app.main.selectbox, *app.main.radio):
        control.options.append("an option of the sentence before")
        control.set_value(control.options[-1])
    app.run()
    assert holds(app) == 3
