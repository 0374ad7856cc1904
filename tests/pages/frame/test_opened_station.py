"""A station's sentence takes the place of the person's own, which comes back whole; examples change the text alone."""

from collections.abc import Callable
from typing import Any

import pytest

from pages.lessons import lessons

PAGE = "pages/learn.py"
LOOKUP = next(lesson for lesson in lessons() if lesson.slug == "lookup")
OWN = {"source": "A small dog runs.", "kind": "cross", "layer": 1, "head": 2, "tau": 2.0, "target": "greedy"}
LINK = {"source": OWN["source"], "kind": "Cross-attention", "layer": "1", "head": "2", "tau": "2", "target": "Greedy"}
BACK = "own-sentence-learn"


def values(app: Any) -> dict[str, Any]:
    return {key: app.session_state[key] for key in OWN}


def offered(app: Any, key: str = BACK) -> bool:
    return any(button.key == key for button in app.button)


def press(app: Any, *keys: str) -> None:
    for key in keys:
        app.button(key=key).click().run()


def test_the_persons_sentence_head_and_temperature_come_back_after_any_stations(open_shipped: Callable) -> None:
    app = open_shipped(PAGE, **LINK)
    assert not offered(app)
    for further in ([], ["station-next", "station-next"]):
        press(app, "lesson-lookup", *further)
        assert values(app) != OWN
        press(app, BACK)
        assert values(app) == OWN
        assert "station" not in app.query_params
        assert not offered(app)
    press(app, "lesson-lookup")
    app.text_area(key="source").set_value("Try this.").run()
    press(app, "station-next", "lessons", "lesson-scores", BACK)
    assert values(app) == OWN, "what is tried at a station is not the person's own"
    press(app, "lesson-lookup", "lessons")
    assert offered(app)
    app.text_area(key="source").set_value("Another sentence.").run()
    press(app, "lesson-scores", BACK)
    assert app.session_state["source"] == "Another sentence.", "what is typed after a lesson is"


def test_the_model_comes_back_too_and_any_page_offers_it(open_shipped: Callable) -> None:
    app = open_shipped("pages/masks.py", source="Two dogs run.", checkpoint="multi30k-tiny")
    app.switch_page(PAGE).run()
    app.button(key="lesson-lookup").click().run()
    assert app.session_state["checkpoint"] == "en-de"
    app.switch_page("pages/masks.py").run()
    app.button(key="own-sentence-sidebar").click().run()
    assert (app.session_state["source"], app.session_state["checkpoint"]) == ("Two dogs run.", "multi30k-tiny")
    assert not offered(app, "own-sentence-sidebar")


def test_a_sentence_typed_elsewhere_is_kept_when_the_station_takes_its_place_again(
    open_shipped: Callable,
) -> None:
    app = open_shipped(PAGE, **LINK)
    app.button(key="lesson-lookup").click().run()
    app.switch_page("pages/masks.py").run()
    app.text_area(key="source").set_value("Typed on Masks.").run()
    app.switch_page(PAGE).run()
    assert app.session_state["source"] == LOOKUP.stations[0].source
    app.button(key=BACK).click().run()
    assert app.session_state["source"] == "Typed on Masks."


def test_somebody_who_opens_a_station_by_its_link_has_no_sentence_to_go_back_to(open_shipped: Callable) -> None:
    app = open_shipped(PAGE, lesson="lookup", station="mixture")
    assert app.session_state["source"] == LOOKUP.stations[0].source
    assert not offered(app)


@pytest.mark.parametrize("page", ["pages/masks.py", "pages/temperature.py"])
def test_an_example_changes_the_sentence_alone_and_offers_its_head(page: str, open_shipped: Callable) -> None:
    app = open_shipped(page, **{**LINK, "tau": "1"})
    before = values(app)
    sentence = "I have not seen the dog."
    assert not offered(app, "example-head")
    app.selectbox(key="example").set_value(sentence).run()
    assert values(app) == before | {"source": sentence}
    app.button(key="example-head").click().run()
    assert values(app) == before | {"source": sentence, "kind": "cross", "layer": 2, "head": 1}
    assert not offered(app, "example-head")
    app.text_area(key="source").set_value("Something else.").run()
    assert not offered(app, "example-head")


def test_a_pair_for_both_sides_changes_no_head(open_shipped: Callable) -> None:
    app = open_shipped("pages/side_by_side.py", **{**LINK, "tau": "1"}, side_mode="Sentences")
    before = values(app)
    app.selectbox(key="side_example").set_value("The same word twice").run()
    assert app.text_area(key="side_sentence").value == "He went to the bank in the city."
    assert values(app) == before | {"source": "He sat on the bank of the river."}
