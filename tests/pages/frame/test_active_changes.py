"""A change stays where it was set while somebody looks elsewhere, is in the link, and can be removed."""

from collections.abc import Callable

import pytest

from model.interventions import AttentionTemperature, HeadGate
from model.interventions.link import decode, encode
from pages.widgets.changes import TEMPERATURES
from tests.pages.conftest import TYPED
from tests.pages.figures import address

pytestmark = pytest.mark.usefixtures("open_feet")

PAGE = "pages/masks.py"
HEAD = TYPED | {"kind": "Encoder self", "layer": "0", "head": "1"}
HERE = {"kind": "encoder_self", "layer": 0, "head": 1}


def active(app) -> list[str]:
    """The lines of the sidebar that name a change."""
    keys = [button.key for button in app.sidebar.button if str(button.key).startswith("remove-")]
    lines = [line.value for line in app.sidebar.caption if line.value.startswith(("τ =", "In "))]
    assert len(keys) == len(lines)
    return lines


def run_with(app) -> tuple:
    """The changes that the page's Python would make the run with."""
    program = next(code.value for code in app.main.get("code") if "interventions=" in code.value)
    line = next(line for line in program.splitlines() if "Request(" in line)
    return eval(
        line[line.index("interventions=") + 14 :].split(", continuation")[0],
        {"AttentionTemperature": AttentionTemperature, "HeadGate": HeadGate},
    )


def test_a_temperature_stays_at_its_head_when_another_is_looked_at_and_is_there_again_on_the_way_back(
    open_app: Callable,
) -> None:
    app = open_app(PAGE, **HEAD)
    assert active(app) == []
    app.select_slider(key="tau").set_value(2.0).run()
    assert active(app) == ["τ = 2 in Encoder self, layer 0, head 1"]
    for key, value in (("head", 3), ("layer", 1)):
        app.select_slider(key=key).set_value(value).run()
        assert app.select_slider(key="tau").value == 1
        assert active(app) == ["τ = 2 in Encoder self, layer 0, head 1"]
        assert run_with(app) == (AttentionTemperature(2.0, **HERE),)
    app.select_slider(key="tau").set_value(0.5).run()
    both, run = active(app), run_with(app)
    assert both == ["τ = 2 in Encoder self, layer 0, head 1", "τ = 0.5 in Encoder self, layer 1, head 3"]
    app.select_slider(key="layer").set_value(0).run()
    app.select_slider(key="head").set_value(1).run()
    assert app.select_slider(key="tau").value == 2
    # In the order of the places, so no line moves, and the run that is known need not be made again.
    assert (active(app), run_with(app)) == (both, run)


def test_it_moves_to_no_other_kind_and_a_layer_keeps_it_for_all_its_heads(open_app: Callable) -> None:
    app = open_app(PAGE, **HEAD, tau="20")
    for kind in ("decoder_self", "cross"):
        app.segmented_control(key="kind").set_value(kind).run()
        assert active(app) == ["τ = 20 in Encoder self, layer 0, head 1"]
        assert run_with(app) == (AttentionTemperature(20.0, **HERE),)
    app.segmented_control(key="kind").set_value("encoder_self").run()
    app.segmented_control(key="scope").set_value("layer").run()
    assert active(app) == ["τ = 20 in Encoder self, layer 0"], "a wider scope takes the temperature along"
    for key, value, tau in (("head", 3, 20), ("layer", 1, 1)):
        app.select_slider(key=key).set_value(value).run()
        assert active(app) == ["τ = 20 in Encoder self, layer 0"]
        assert app.select_slider(key="tau").value == tau


def test_everywhere_stays_everywhere(open_app: Callable) -> None:
    app = open_app(PAGE, **HEAD, tau="2", scope="Layer")
    app.segmented_control(key="scope").set_value("everywhere").run()
    assert run_with(app) == (AttentionTemperature(2.0),)
    app.segmented_control(key="kind").set_value("cross").run()
    assert app.select_slider(key="tau").value == 2
    assert active(app) == ["τ = 2 in every attention"]


def test_the_link_brings_back_each_temperature_at_its_place(open_app: Callable) -> None:
    app = open_app(PAGE, **HEAD, tau="2")
    app.select_slider(key="head").set_value(3).run()
    linked = address(app)
    assert decode(linked[TEMPERATURES]) == (AttentionTemperature(2.0, **HERE),)
    again = open_app(PAGE, **linked | {"head": "3"})  # the browser writes what a slider chooses
    assert active(again) == active(app)
    assert run_with(again) == run_with(app)


@pytest.mark.parametrize(
    "asked", ["[[", '[["AttentionTemperature",{"tau":-1}]]', '[["HeadGate",{"gate":0.0}]]', "x" * 5_000]
)
def test_a_forged_link_changes_nothing(asked: str, open_app: Callable) -> None:
    app = open_app(PAGE, **{TEMPERATURES: asked})
    assert active(app) == []
    assert run_with(app) == ()


def test_one_at_a_head_that_the_model_lacks_is_dropped_with_a_note(open_app: Callable) -> None:
    far = encode((AttentionTemperature(2.0, kind="cross", layer=99, head=0),))
    app = open_app(PAGE, **{TEMPERATURES: far})
    assert active(app) == []
    assert any("no such layer or head" in note.value for note in app.info)


def test_every_change_has_a_button_that_removes_it_alone(open_app: Callable) -> None:
    off = HeadGate(0.0, kind="cross", layer=1, head=2)
    app = open_app(PAGE, **HEAD, tau="2", changes=encode((off,)), kept="1")
    app.select_slider(key="head").set_value(0).run()
    app.select_slider(key="tau").set_value(5.0).run()
    assert len(active(app)) == 3
    assert len(run_with(app)) == 3
    app.button(key="remove-1").click().run()
    assert active(app) == [
        "τ = 5 in Encoder self, layer 0, head 0",
        "In cross-attention, layer 1, head 2, z is set to 0.",
    ]
    app.button(key="remove-1").click().run()
    assert active(app) == ["τ = 5 in Encoder self, layer 0, head 0"]
    app.button(key="remove-0").click().run()
    assert active(app) == []
    assert run_with(app) == ()
    assert not {"tau", TEMPERATURES, "kept"} & set(app.query_params)
    assert app.query_params.get("changes", ["[]"]) in ("[]", ["[]"])


def test_a_lesson_shows_the_model_as_trained_and_gives_the_temperatures_back(open_app: Callable) -> None:
    app = open_app("pages/learn.py", **HEAD, tau="2")
    app.select_slider(key="head").set_value(3).run()
    set_before = active(app)
    app.button(key="lesson-lookup").click().run()
    assert active(app) == []
    app.button(key="own-sentence-learn").click().run()
    assert active(app) == set_before
