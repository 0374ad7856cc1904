"""The three first steps: ticked off by doing them, not by what links and resets do."""

from collections.abc import Callable

from model.interventions import HeadGate
from model.interventions.link import decode


def ticked(app) -> int:
    """How many steps are done."""
    links = [link.proto.label for link in app.get("page_link")]
    buttons = [button.label for button in app.button]
    return sum(text.endswith("✓") for text in [*links, *buttons, *(element.value for element in app.markdown)])


def test_a_step_is_ticked_off_when_it_has_been_done(open_app: Callable) -> None:
    app = open_app(layer="1", tau="2")
    assert ticked(app) == 0
    app.text_area(key="source").set_value("").run()
    assert ticked(app) == 0, "an emptied field is no sentence"
    app.text_area(key="source").set_value("a dog").run()
    assert ticked(app) == 1
    app.select_slider(key="head").set_value(2).run()
    assert ticked(app) == 2, "the temperature stays at the head where it was set, so the slider moved by itself"
    app.select_slider(key="tau").set_value(0.5).run()
    assert ticked(app) == 3
    app.button(key="tour-close").click().run()
    assert ticked(app) == 0
    assert not [button for button in app.button if button.key == "tour-close"]


def test_another_model_is_no_sentence_and_no_head(open_family: Callable) -> None:
    app = open_family(checkpoint="unscaled", kind="Cross")
    app.selectbox(key="checkpoint").set_value("lm").run()
    assert ticked(app) == 0


def test_somebody_who_follows_a_link_to_a_view_sees_no_tour(open_app: Callable) -> None:
    assert any(button.key == "tour-close" for button in open_app().button)
    assert not any(button.key == "tour-close" for button in open_app("pages/temperature.py").button)


def test_an_example_is_a_sentence_and_no_head_and_a_reset_is_neither(open_app: Callable) -> None:
    app = open_app()
    app.selectbox(key="example").set_value("Please turn the light off.").run()
    assert app.text_area(key="source").value == "Please turn the light off."
    assert ticked(app) == 1
    next(button for button in app.button if button.label == "Reset").click().run()
    assert ticked(app) == 1
    assert app.select_slider(key="head").value == 0


def test_a_link_inside_the_app_goes_to_a_head_and_its_cell(open_app: Callable) -> None:
    app = open_app("pages/attention_step_by_step.py")
    app.query_params["see"] = "cross.1.2.1.0"
    app.run()
    assert app.segmented_control(key="kind").value == "cross"
    assert (app.select_slider(key="layer").value, app.select_slider(key="head").value) == (1, 2)
    assert (app.selectbox(key="query").value, app.selectbox(key="key").value) == (1, 0)
    for forged in ("cross", "x.1.2", "cross.99.99.9999.9999", "cross.-1.2", "cross.1.2.3.4.5.6", "cross.\u0661.2"):
        app.query_params["see"] = forged
        app.run()
        assert "see" not in app.query_params


def test_what_a_link_adds_is_in_the_list_once_besides_the_others(open_app: Callable) -> None:
    gates = tuple(HeadGate(0.0, "cross", 1, head) for head in (2, 3))
    app = open_app("pages/what_if.py")
    for _ in range(2):
        app.query_params["add"] = "gate:0:zero@cross.1.2"
        app.run()
    app.query_params["add"] = "gate:0:zero@cross.1.3"
    app.run()
    assert decode(app.query_params["changes"]) == gates
    app.query_params["add"] = "nonsense"
    app.run()
    assert "add" not in app.query_params
    assert any("unknown change" in text.value for text in app.text)


def test_a_reset_forgets_the_step_the_cell_and_the_changes(open_app: Callable) -> None:
    app = open_app("pages/attention_step_by_step.py", step="4", cell="1-0-3-2", layer="1")
    assert (app.slider(key="step").value, app.selectbox(key="query").value) == (4, 1)
    next(button for button in app.button if button.label == "Reset").click().run()
    first = open_app("pages/attention_step_by_step.py").selectbox(key="query").value
    assert (app.slider(key="step").value, app.selectbox(key="query").value) == (1, first)
    assert not app.query_params
