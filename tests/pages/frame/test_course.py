"""A teacher's course is its link: what was put together comes back whole, and a damaged link is a sentence."""

import base64
import json
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.frame.course.course import COURSE, LONGEST_CODE, STEP, Course, Step, decode, encode, step_at, step_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
STEPS = st.builds(
    Step,
    st.sampled_from(["translate", "masks", "temperature"]),
    st.dictionaries(st.sampled_from(["source", "layer", "head"]), TEXTS),
    TEXTS,
    TEXTS,
)
TWO = Course("Softmax", (Step("temperature", {"source": "a dog"}, "Move τ.", "Why?"), Step("masks", {}, "", "")))


def pack(value: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode().rstrip("=")


@given(TEXTS, st.lists(STEPS, min_size=1, max_size=5))
def test_a_course_comes_back_from_its_link(title: str, steps: list[Step]) -> None:
    course = Course(title, tuple(steps))
    assert decode(encode(course)) == course


@pytest.mark.parametrize(
    "code",
    [
        "",
        "no course",
        "é",
        "eJ",
        encode(TWO)[:-4],
        "A" * (LONGEST_CODE + 1),
        pack([]),
        pack(["title", []]),
        pack(["title", [["no page", {}, "", ""]]]),
        pack(["title", [["masks", {}, "", 3]]]),
        pack(["title", [["masks", {COURSE: "another"}, "", ""]]]),
        pack(["title", [["masks", {}, "x" * 10_000, ""]]]),
        pack(["title", [["masks", {}, "", ""]] * 31]),
        pack(["x" * 10_000_000, []]),
    ],
)
def test_a_damaged_link_is_a_sentence(code: str) -> None:
    with pytest.raises(ValueError, match="link's"):
        decode(code)


@pytest.mark.parametrize(
    ("address", "page", "inputs"),
    [
        ("http://localhost:8501/masks?source=A+dog&layer=2", "masks", {"source": "A dog", "layer": "2"}),
        ("https://example.org/explorer/masks/", "masks", {}),
        ("masks?layer=1", "masks", {"layer": "1"}),
        ("http://localhost:8501/?source=%C3%A9", "translate", {"source": "é"}),
        (f"masks?layer=1&{COURSE}=x&{STEP}=2&embed=true", "masks", {"layer": "1"}),
    ],
)
def test_a_pasted_address_is_a_step(address: str, page: str, inputs: dict[str, str]) -> None:
    assert step_at(address) == Step(page, inputs)


@pytest.mark.parametrize("address", ["", "  ", "http://localhost/nowhere", "https://[x", "javascript:alert(1)"])
def test_a_pasted_text_that_is_no_view_is_a_sentence(address: str) -> None:
    with pytest.raises(ValueError, match="Copy it with Share"):
        step_at(address)


def strip(app, name: str = "course") -> dict | None:
    """What the course's component shows, or another."""
    found = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.component_name == name]
    return found[0] if found else None


def test_a_step_shows_its_task_above_the_page_that_the_teacher_saw(open_app: Callable) -> None:
    app = open_app("pages/temperature.py", **{COURSE: encode(TWO), STEP: "1", "source": "a dog"})
    shown = strip(app)
    assert (shown["title"], shown["number"], shown["here"]) == ("Softmax", 0, True)
    assert [(step["view"], step["do"], step["ask"]) for step in shown["steps"]] == [
        ("Softmax and temperature", "Move τ.", "Why?"),
        ("Masks", "", ""),
    ]
    assert app.text_area(key="source").value == "a dog"
    assert all(step["link"].split("?")[0] in ("temperature", "masks") for step in shown["steps"])


def test_the_list_of_steps_is_on_learn_and_becomes_a_draft(open_app: Callable) -> None:
    app = open_app("pages/learn.py", **{COURSE: encode(TWO)})
    assert strip(app)["number"] is None
    assert app.title[0].value == "Softmax"
    assert not [button for button in app.button if (button.key or "").startswith("lesson-")]
    next(button for button in app.button if button.label.startswith("Change this course")).click().run()
    assert strip(app) is None
    assert app.text_input(key="course_title").value == "Softmax"
    app.text_input(key="course-do-1").set_value("Look.").run()
    app.button(key="course-Earlier-1").click().run()
    app.button(key="course-remove-0").click().run()
    link = strip(app, "share")["address"]
    assert decode(link.split("course=")[1]) == Course("Softmax", (Step("masks", {}, "Look.", ""),))


def test_views_are_added_where_they_are_seen(open_app: Callable) -> None:
    app = open_app("pages/masks.py", source="a dog", layer="1")
    app.button(key="bar-share").click().run()
    app.button(key="course-add-view").click().run()
    (step,) = app.session_state["course-draft"].values()
    assert step.page == "masks"
    assert step.inputs["source"] == "a dog"
    assert step_of("masks", step.inputs | {COURSE: "x"}) == step


def test_a_damaged_course_leaves_the_page_as_it_is(open_app: Callable) -> None:
    app = open_app("pages/masks.py", **{COURSE: "<script>", STEP: "nan"})
    assert any("damaged" in warning.value for warning in app.warning)
    assert strip(app) is None
