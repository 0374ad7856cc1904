"""Reading back what a page or a view shows: its words, its figures and its tabs."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

from pages.views import Result
from tests.pages.conftest import ROOT
from viz.forms import Form

SHOWN = ["body", "label", "help", "options", "placeholder", "text", "caption"]
"""fields of an element that a visitor reads"""


def figure(app: Any, key: str) -> dict[str, Any]:
    """The figure of a page's chart with this key, as it goes to the browser, or of what a view shows by this name."""
    if isinstance(app, Result):
        shown = app.shows[key]
        return (shown.draw() if isinstance(shown, Form) else shown).content
    found = [chart.proto for chart in app.get("plotly_chart") if chart.proto.id.endswith(f"-{key}")]
    assert len(found) == 1, f"{len(found)} charts have the key {key!r}"
    return json.loads(found[0].spec)


def maps(app: Any, key: str) -> list[np.ndarray]:
    """The numbers of each heat map of a chart, without those that only explain masked cells."""
    drawn = (one for one in figure(app, key)["data"] if one["type"] == "heatmap")
    return [numbers(one["z"]).astype(float) for one in drawn if "masked" not in one.get("hovertemplate", "")]


def lines(app: Any, key: str) -> list[np.ndarray]:
    """The heights of each line, or of each row of bars, of a chart."""
    return [numbers(one["y"]).astype(float) for one in figure(app, key)["data"]]


def ends(app: Any, key: str) -> list[np.ndarray]:
    """The two numbers of each name of a chart of dumbbells, before and after, without the lines that join them."""
    return [numbers(one["y"]).astype(float) for one in figure(app, key)["data"] if one["mode"] == "markers"]


def open_alone(page: str, **state: Any) -> AppTest:
    """A page as a script of its own, without the frame of the app, in a session that holds this."""
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=120)
    for key, value in state.items():
        app.session_state[key] = value
    app.run()
    return app


def canvases(app: Any, name: str = "") -> list[bytes]:
    """The payloads of our own pictures, of all or of those of this name."""
    found = (one.proto for one in app.get("bidi_component"))
    return [one.bytes for one in found if one.bytes and name in ("", one.component_name)]


def address(app: Any) -> dict[str, str]:
    """The parameters of the URL."""
    return {name: text if isinstance(text, str) else text[-1] for name, text in app.query_params.items()}


def words(app: Any) -> str:
    """All text on the page that is not in a chart or a control."""
    return " ".join(element.value for kind in (app.markdown, app.caption, app.info, app.text) for element in kind)


def said(app: Any) -> str:
    """All plain text and notes on the page."""
    return " ".join(element.value for kind in (app.text, app.info) for element in kind)


def warned(app: Any) -> str:
    """What the page warns of."""
    return " ".join(warning.value for warning in app.warning)


def holds(app: Any) -> int:
    """How many checks of the proof strip passed."""
    return sum("✓ holds" in element.value for element in app.markdown)


def seen(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """What a map shows of values: nothing where a query may not attend to a key."""
    return np.where(mask, values, np.nan)


def tabs_of(app: Any) -> tuple[str | None, list[str | None]]:
    """The query parameter of the page's tabs, and their labels; (None, [None]) where it has none."""
    containers = app.get("tab_container")
    if not containers:
        return None, [None]
    return containers[0].proto.tab_container.query_param_key, [tab.label for tab in app.tabs]


def numbers(values: Any) -> np.ndarray:
    """An array of a figure: a list, in which NaN is None, or Plotly's base64 of a numpy array."""
    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = values.get("shape")
        return flat.reshape([int(n) for n in str(shape).split(",")]) if shape else flat
    array = np.array(values)
    gaps = array.dtype == object and all(value is None or isinstance(value, int | float) for value in array.flat)
    return array.astype(float) if gaps else array


PRINTED = r"((?:\d[\d.,]* · )?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d[\d.,]*(?<![.,]))"
"""a number as the English pages print it: 3.3 · 10¹⁸, 10⁻⁹, 1,234.5"""
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read_number(text: str) -> float:
    """The number that `PRINTED` found; with a minus sign, too."""
    if raised := re.fullmatch(r"(?:(−?[\d.]+) · )?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text):
        text = f"{raised[1] or 1}e{raised[2].translate(_RAISED)}"
    return float(text.replace(",", "").replace("−", "-"))


def visible_texts(app: Any) -> Iterator[str]:
    """What a visitor reads on the page but for code, formulas and pictures: texts, labels, options, tooltips."""
    nodes = [app._tree]
    while nodes:
        node = nodes.pop()
        nodes += getattr(node, "children", {}).values()
        if isinstance(proto := getattr(node, "proto", None), Message) and proto.DESCRIPTOR.name not in ("Code", "Html"):
            content = MessageToDict(proto)
            if content.get("elementType") != "LATEX":
                yield from _texts_in(content)
            if proto.DESCRIPTOR.name == "Dataframe":
                yield from _texts_of_table(proto)


def _texts_of_table(proto: Message) -> Iterator[str]:
    frame = pa.ipc.open_stream(proto.arrow_data.data).read_pandas()
    yield from map(str, frame.columns)
    yield from (cell for name in frame for cell in frame[name] if isinstance(cell, str))


def _texts_in(content: Any, name: str = "") -> Iterator[str]:
    if isinstance(content, dict):
        for key, part in content.items():
            yield from _texts_in(part, key)
    elif isinstance(content, list):
        for part in content:
            yield from _texts_in(part, name)
    elif isinstance(content, str) and name in SHOWN:
        yield content
