"""Controls read their value from the link, fall back where it is not offered, and can be reset.

The browser writes the link, so tests/browser checks that.
"""

import re
from typing import Any

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest


def page() -> None:
    import pandas as pd
    import streamlit as st

    from pages.views import Offer
    from pages.widgets import controls

    notes: list[str] = []
    last = st.session_state.get("last", 9)
    st.session_state["read"] = {
        "number": controls.number(Offer("Number", None, 3, (0, last)), "number"),
        "slider": controls.slider(Offer("Slider", None, 5, (0, last + 1)), "slider"),
        "choice": controls.choice(Offer("Choice", {0: "zero", last: "last"}), "choice", notes=notes),
        "select": controls.select(Offer("Select", {"a": "a", "b": "b"}, "b"), "select"),
        "steps": controls.steps(Offer("Steps", {0.5: "half", 2.0: "two"}, 2.0), "steps"),
        "several": controls.several(Offer("Several", {i: str(i) for i in range(last + 1)}, [1]), "several"),
        "toggle": controls.toggle(Offer("Toggle", start=False), "toggle"),
        "text": controls.text(Offer("Text", start=""), "text"),
        "unlinked": controls.number(Offer("Unlinked", limits=(0, 9), unlinked="a test of it"), "unlinked"),
    }
    st.session_state["tab"] = controls.tabs(
        {"One": lambda x: ("one", x), "Two": lambda x: ("two", x)}, "part", 5, default="Two"
    )
    controls.table(pd.DataFrame({"n": [1000], "x": [0.12345]}), floats="%.1f")
    st.session_state["notes"] = notes
    st.button("Reset", on_click=controls.reset_controls, args=(["last"],))


def clicked_page() -> None:
    import streamlit as st

    from pages.views import Offer
    from pages.widgets.controls import keep_clicks, number, set_controls

    with keep_clicks():
        number(Offer("Head", limits=(0, 9)), "head")
        st.button("Head 7 in the picture", on_click=set_controls, args=({"head": 7},))


@pytest.mark.parametrize(("later", "head"), [(0.0, 7), (9.0, 0)])
def test_a_click_survives_what_the_browser_sent_before_it_knew_of_it(later, head, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("pages.widgets.controls.monotonic", lambda: clock[0])
    app = AppTest.from_function(clicked_page).run()
    app.button[0].click().run()
    assert app.number_input(key="head").value == 7
    clock[0] += later
    app.number_input(key="head").set_value(0).run()
    assert app.number_input(key="head").value == head


CONTROLS: dict[str, tuple[Any, Any, list[str] | None]] = {
    "number": (3, 9, ["9"]),
    "slider": (5, 7, ["7"]),
    "choice": (0, 9, ["last"]),
    "select": ("b", "a", ["a"]),
    "steps": (2.0, 0.5, ["half"]),
    "several": ([1], [2, 9], ["2", "9"]),
    "toggle": (False, True, ["true"]),
    "text": ("", "x", ["x"]),
    "unlinked": (0, 4, None),
}
"""by key: the value at first, another one, and how a link asks for that"""
FIRST, OTHER = ({key: values[at] for key, values in CONTROLS.items()} for at in (0, 1))
LINK = {key: link for key, (_, _, link) in CONTROLS.items() if link}


def present_page() -> None:
    import pandas as pd

    from model.language import Language, speaking
    from pages.widgets import controls

    frame = pd.DataFrame({"n": [1000], "x": [-0.12345], "share": [0.5], "none": [None]})
    for one in (Language(), Language("xx", decimal=",", group=".", percent=" %")):
        with speaking(one):
            controls.large_table(frame, "%.2f", {"share": "percent"})


def test_a_table_of_present_has_its_numbers_as_the_language_writes_them() -> None:
    app = AppTest.from_function(present_page, default_timeout=60).run()
    cells = [re.findall("<td>(.*?)</td>", html.proto.body) for html in app.get("html")]
    assert cells == [["1,000", "−0.12", "50.0%", ""], ["1.000", "−0,12", "50,0 %", ""]]


def tables_page() -> None:
    import pandas as pd

    from pages.widgets import controls
    from viz.forms import Table

    frame = pd.DataFrame({"n": [12000, -4], "x": [0.5, -0.25], "word": ["a", "b"]})
    controls.table(frame, floats="%.2f")
    controls.explained_table(Table(frame, floats="%.2f"), "t", "numbers", lambda: None)


def test_in_every_table_thousands_are_grouped_and_negative_numbers_have_a_minus_sign() -> None:
    app = AppTest.from_function(tables_page, default_timeout=60).run()
    shown = [convert_arrow_bytes_to_pandas_df(one.proto.arrow_data.styler.display_values) for one in app.dataframe]
    for one in shown:
        assert one.values.tolist() == [["12,000", "0.50", "a"], ["−4", "−0.25", "b"]]
    assert len(shown) == 2


def set_all(app: AppTest) -> AppTest:
    """Each control to its other value."""
    types = {"choice": "segmented_control", "select": "selectbox", "several": "multiselect", "text": "text_input"}
    types |= {"number": "number_input", "unlinked": "number_input", "steps": "select_slider"}
    for key, value in OTHER.items():
        getattr(app, types.get(key, key))(key=key).set_value(value)
    return app.run()


def test_a_control_returns_its_value_and_a_reset_sets_the_default() -> None:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.session_state["read"] == FIRST
    app.session_state["own"] = "forgotten"
    set_all(app)
    assert app.session_state["read"] == OTHER
    app.button[0].click().run()
    assert app.session_state["read"] == FIRST
    assert not app.query_params
    assert "own" not in app.session_state


def test_the_link_sets_every_value() -> None:
    app = AppTest.from_function(page, default_timeout=60)
    app.query_params.update(LINK)
    app.run()
    assert app.session_state["read"] == OTHER | {"unlinked": 0}


def test_what_is_no_longer_offered_falls_back() -> None:
    app = set_all(AppTest.from_function(page, default_timeout=60).run())
    app.session_state["last"] = 5
    app.run()
    assert {key: app.session_state["read"][key] for key in ("number", "slider", "choice", "several")} == {
        "number": 5,
        "slider": 6,
        "choice": 0,
        "several": [2],
    }
    assert app.session_state["notes"] == ["There is no choice 9 here; zero is shown instead."]
    app.button[0].click().run()
    assert app.session_state["last"] == 5


def test_a_link_to_nothing_says_so() -> None:
    app = AppTest.from_function(page, default_timeout=60)
    app.query_params["choice"] = "third"
    app.run()
    assert app.session_state["notes"] == [
        "The link asks for something that does not exist here (choice); zero is shown instead."
    ]


@pytest.mark.parametrize("value", ["99", "-1", "nan", "<b>x</b>", "None"])
def test_a_forged_value_of_any_control_or_tab_falls_back(value: str) -> None:
    app = AppTest.from_function(page, default_timeout=60)
    app.query_params.update(dict.fromkeys([*LINK, "part"], value))
    app.run()
    assert app.session_state["read"] == FIRST | {"text": value}
    assert app.session_state["tab"] == ("two", 5)


def test_only_the_open_tab_runs() -> None:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.session_state["tab"] == ("two", 5)
    other = AppTest.from_function(page, default_timeout=60)
    other.query_params["part"] = "One"
    assert other.run().session_state["tab"] == ("one", 5)
