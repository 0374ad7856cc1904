"""Your own vectors in Chromium: what is dragged or moved by keys has the numbers of Python, and z stays in the hull."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from model.analysis.heads.own_vectors import attend, read_rows
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from tests.browser.conftest import Visitor

SOURCE = "a dog and a cat"
TYPED = {"own_query": "3 0", "own_keys": "cat 1 0; dog .8 .6; car 0 1; sea -1 0", "own_values": "10 0; 8 2; 1 9; 0 4"}
SHOWN = """node => ({ weights: [...node.weights], scores: [...node.scores], z: [...node.z], place: node.place,
    hull: node.hull })"""


def open_vectors(visitor: Visitor, server: str, **query: str) -> None:
    asked = {"target": "Greedy", "source": SOURCE, "part": "Your own vectors", **query}
    visitor.visit(f"{server}/attention_step_by_step?{urlencode(asked)}")
    visitor.page.locator("div.own_vectors .keys").wait_for()


def shown(visitor: Visitor) -> dict[str, list]:
    """The numbers of the picture; z is in the hull of the values as it is drawn."""
    found = visitor.page.locator("div.own_vectors").evaluate(SHOWN)
    hull = np.array(found["hull"])
    for start, end in zip(hull, np.roll(hull, -1, axis=0), strict=True):
        (across, down), (x, y) = end - start, np.array(found["place"]) - start
        assert across * y - down * x > -1e-6 * np.hypot(across, down)
    return found


def asked(visitor: Visitor) -> dict[str, str]:
    return TYPED | {name: values[-1] for name, values in parse_qs(urlsplit(visitor.page.url).query).items()}


def check_against_python(visitor: Visitor) -> None:
    """What the picture shows is equation 1 on the vectors that the link has."""
    link = asked(visitor)
    rows = [read_rows(link[name], name).values for name in TYPED]
    own, found = attend(*rows, divide=True, tau=float(link.get("tau", 1))), shown(visitor)
    for name, expected in (("scores", own.scores), ("weights", own.weights), ("z", own.z)):
        np.testing.assert_allclose(found[name], expected[0], atol=1e-5, err_msg=name)


def at(visitor: Visitor, across: float, up: float) -> tuple[float, float]:
    """A point of the plane of the keys, -1 to 1 from its middle."""
    box = visitor.page.locator("div.own_vectors .keys").bounding_box()
    return box["x"] + box["width"] * (1 + across) / 2, box["y"] + box["height"] * (1 - up) / 2


def key_at(visitor: Visitor, key: int) -> tuple[float, float]:
    box = visitor.page.locator("div.own_vectors .handle").nth(key).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(visitor: Visitor, start: tuple[float, float], end: tuple[float, float]) -> Iterator[None]:
    """Yields before the button is let go."""
    mouse = visitor.page.mouse
    mouse.move(*start)
    mouse.down()
    mouse.move(*end, steps=4)
    yield
    mouse.up()


def wait_for_link(visitor: Visitor, name: str, value: str) -> None:
    """Until it has another value; the first one is in no link."""
    visitor.page.wait_for_function(
        "([name, value]) => (new URLSearchParams(location.search).get(name) ?? value) !== value", arg=[name, value]
    )
    visitor.settle()


def test_typed_vectors_are_dragged_and_python_has_the_same_numbers(server: str, visitor: Visitor) -> None:
    open_vectors(visitor, server)
    check_against_python(visitor)
    picture = visitor.page.locator("div.own_vectors")
    picture.locator(".keys").evaluate("node => node.scrollIntoView({ block: 'center' })")
    before, runs = shown(visitor), visitor.runs
    for _ in drag(visitor, at(visitor, 0.5, -0.5), at(visitor, -0.3, 0.6)):
        picture.locator(".badge", has_text="moved").wait_for()
        moved = shown(visitor)
        assert moved["weights"] != pytest.approx(before["weights"], abs=1e-2)
        assert visitor.runs == runs, "drawn again in the browser"
    visitor.page.wait_for_function("new URLSearchParams(location.search).has('own_query')")
    visitor.settle()
    picture.locator(".badge", has_text="typed").wait_for()
    check_against_python(visitor)
    assert shown(visitor)["weights"] == pytest.approx(moved["weights"], abs=1e-5)
    for _ in drag(visitor, key_at(visitor, 3), at(visitor, 0.4, -0.7)):
        moved = shown(visitor)
    visitor.page.wait_for_function("new URLSearchParams(location.search).has('own_keys')")
    visitor.settle()
    check_against_python(visitor)
    assert shown(visitor)["scores"] == pytest.approx(moved["scores"], abs=1e-5)
    assert asked(visitor)["own_keys"].startswith("cat 1 0; dog 0.8 0.6; car 0 1; sea ")


def test_the_tab_key_goes_from_the_query_to_the_keys_and_arrow_keys_move_them_and_the_temperature_z(
    server: str, visitor: Visitor
) -> None:
    open_vectors(visitor, server)
    picture = visitor.page.locator("div.own_vectors")
    for stop in range(3):
        link = asked(visitor)
        if stop:
            visitor.page.keyboard.press("Tab")
        else:
            picture.locator(".keys .marks").focus()
        visitor.page.keyboard.press("ArrowLeft")
        visitor.page.keyboard.press("ArrowUp")
        name = "own_keys" if stop else "own_query"
        wait_for_link(visitor, name, link[name])
        check_against_python(visitor)
        assert ("cat 1 0" in asked(visitor)["own_keys"]) == (stop == 0)
    z = shown(visitor)["z"]
    assert picture.locator(".values .marks").get_attribute("aria-label").startswith(f"z = ({z[0]:.3g}; {z[1]:.3g}), ")
    # τ leads z from the mean of the values to the value of the heaviest key.
    slider = picture.get_by_label("Temperature τ, redrawn in the browser")
    values = read_rows(TYPED["own_values"], "").values
    for key, tau in (("End", "20"), ("Home", "0.05")):
        slider.press(key)
        visitor.page.wait_for_function("tau => location.search.includes(`tau=${tau}`)", arg=tau)
        visitor.settle()
        check_against_python(visitor)
        heaviest = values[int(np.argmax(shown(visitor)["weights"]))]
        expected = values.mean(axis=0) if key == "End" else heaviest
        np.testing.assert_allclose(shown(visitor)["z"], expected, atol=0.6)


def test_a_query_of_the_run_is_dragged_and_let_go_on_another_one_and_an_older_link_leads_there(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    """The weights follow without a run, add up to 1, and are the run's own again where the query is let go."""
    older = {"target": "Greedy", "source": SOURCE, "part": "Move the query", "temperature-row": "1"}
    visitor.visit(f"{server}/temperature?{urlencode(older)}")
    visitor.page.wait_for_url("**/attention_step_by_step?**")
    visitor.settle()
    attention = translator.trace(SOURCE, beam_size=1).attention("encoder_self", 0)
    pattern, picture = attention.pattern[0], visitor.page.locator("div.own_vectors")
    picture.wait_for()
    assert shown(visitor)["weights"] == pytest.approx(pattern[1], abs=1e-6)
    picture.locator(".keys").evaluate("node => node.scrollIntoView({ block: 'center' })")
    for _ in drag(visitor, at(visitor, 0, 0), at(visitor, 0.9, 0.8)):
        picture.locator(".badge", has_text="moved").wait_for()
        found = shown(visitor)
        assert sum(found["weights"]) == pytest.approx(1, abs=1e-5)
        assert found["weights"] != pytest.approx(pattern[1], abs=1e-3)
        powers = np.exp(attention.scale * np.array(found["scores"]))
        np.testing.assert_allclose(found["weights"], powers / powers.sum(), atol=1e-6)
        np.testing.assert_allclose(found["z"], np.array(found["weights"]) @ attention.v[0], atol=1e-5)
    picture.get_by_label("The other query").select_option("3")
    slider = picture.get_by_label("From this query to the other one")
    slider.focus()
    visitor.page.keyboard.press("End")
    picture.locator(".badge", has_text="the run").wait_for()
    visitor.page.wait_for_function("(new URLSearchParams(location.search).get('query') ?? '').startsWith('3 ')")
    visitor.settle()
    assert shown(visitor)["weights"] == pytest.approx(pattern[3], abs=1e-6)
    picture.get_by_label("Temperature τ, redrawn in the browser").press("End")
    visitor.page.wait_for_function("location.search.includes('tau=20')")
    visitor.settle()
    change = AttentionTemperature(20, kind="encoder_self", layer=0, head=0)
    hot = translator.trace(SOURCE, beam_size=1, interventions=(change,)).attention("encoder_self", 0)
    assert shown(visitor)["weights"] == pytest.approx(hot.pattern[0][3], abs=1e-6)


def test_every_key_of_a_head_is_in_sight_on_a_small_laptop(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    open_vectors(visitor, server, source=" ".join([SOURCE] * 3), own_from="this head's")
    table = visitor.page.locator("div.own_vectors .frame")
    assert table.evaluate("node => node.scrollHeight - node.clientHeight") <= 0
    assert table.locator("th.label").count() >= 15
