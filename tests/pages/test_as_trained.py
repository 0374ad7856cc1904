"""What a page calls "as trained" has no temperature and no change at work; where one is, the page names it."""

import re
from collections.abc import Callable

import pytest

from model.interventions import HeadGate
from model.interventions.link import encode
from tests.pages.figures import words

SOURCE = "a dog and a cat"
OFF = {"changes": encode((HeadGate(0.0, kind="encoder_self", layer=0, head=0),)), "kept": "1"}
TEMPERATURE, CHANGES = "the sidebar's temperature", "the changes of “What if”"
STATES = {
    "as it comes": ({}, []),
    "tau 0.3": ({"tau": "0.3", "scope": "Everywhere"}, [TEMPERATURE]),
    "a head off on every page": (OFF, [CHANGES]),
    "both": ({"tau": "3"} | OFF, [TEMPERATURE, CHANGES]),
}
SINGLE = "tau 0.3", "a head off on every page"
PLACES = {
    "three_families": {"families_part": "A causal encoder", "target": "Greedy"},
    "what_if": {"target": "Greedy"},
    "often_told_wrong": {},
}


@pytest.mark.parametrize(
    ("page", "state"),
    [(page, state) for number, page in enumerate(PLACES) for state in ("as it comes", "both", SINGLE[number % 2])],
)
@pytest.mark.usefixtures("fresh_caches")
def test_a_page_says_which_model_its_numbers_are_of(page: str, state: str, open_app: Callable) -> None:
    query, acting = STATES[state]
    if page == "what_if":
        # This page runs without its list, and then with it.
        acting = [each for each in acting if each == TEMPERATURE]
        query = {name: value for name, value in query.items() if name not in OFF}
    app = open_app(f"pages/{page}.py", source=SOURCE, **PLACES[page], **query)
    if page == "often_told_wrong":
        app.button(key="claim-untrained").click().run()
    shown = words(app)
    if acting:
        assert f"with {' and '.join(acting)}" in shown
        assert not re.search(r"\bas trained", shown)
    else:
        assert re.search(r"\bas trained", shown)


@pytest.mark.parametrize("state", ["as it comes", "tau 0.3"])
def test_the_run_beside_windows_is_named_as_it_is(state: str, open_family: Callable) -> None:
    query, acting = STATES[state]
    page = "pages/efficient_attention.py"
    app = open_family(page, checkpoint="lm", source="Two dogs run.", efficient="Sinks", **query)
    assert f"log p of the same text, {f'with {acting[0]}' if acting else 'as trained'}:" in words(app)
