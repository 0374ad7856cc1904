"""A person's session without a browser: Streamlit's own messages over a websocket, as its front end sends them."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Button_pb2 import Button
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

from tests.pages.figures import numbers

WIDGETS = ("text_area", "text_input", "slider", "button_group", "radio", "selectbox", "checkbox", "button")
FINISHED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
PATIENCE = 300
"""seconds that an answer may take"""


class Session:
    """One websocket; each change waits for the page that follows."""

    def __init__(self, port: int, cookie: str = "", **query: str) -> None:
        address = f"ws://localhost:{port}/_stcore/stream"
        self.cookie = cookie
        self._open = ExitStack()
        self.socket = self._open.enter_context(
            # No bound on what waits to be read: a session that leaves without reading must see the server's goodbye.
            connect(
                address,
                subprotocols=["streamlit"],
                additional_headers={"Cookie": cookie} if cookie else None,
                max_size=None,
                max_queue=None,
                ping_interval=None,
                open_timeout=60,
            )
        )
        self.query = query
        """what the address bar says after the question mark: kept up to date with bound widgets, and by the server"""
        self.states: dict[str, WidgetState] = {}
        self.elements: dict[tuple[int, ...], Element] = {}
        self.script_hash = ""
        self.pages: dict[str, str] = {}
        """path of each page -> its hash"""
        self.waited: list[str] = []
        """what spinners said"""
        self.fragments: list[str] = []
        """parts of the page that the front end asks for again and again"""

    def close(self) -> None:
        self._open.close()

    def open(self) -> float:
        """Load the page; seconds until it was whole."""
        return self._rerun()

    def change(self, values: Mapping[str, Any]) -> float:
        """Give widgets, by their keys, new values; seconds until the page was whole."""
        self.ask(values)
        return self._answer()

    def go(self, path: str) -> float:
        """Open another page of the menu; seconds until it was whole."""
        self.script_hash = self.pages.get(path, self.pages[""])
        return self._rerun()

    def redraw(self) -> float:
        """Ask once more for the part of the page that changes by itself; seconds until it was whole."""
        self._send(self.fragments[-1])
        return self._answer(keep=True)

    def texts(self) -> list[str]:
        """What the page says."""
        return [element.markdown.body for element in self._of("markdown")]

    def value(self, key: str) -> str:
        """The text in the field with this key."""
        return self._widget(key).value

    def options(self, key: str) -> list[Any]:
        """The values that a widget with this key takes; none if the page does not have it."""
        try:
            widget = self._widget(key)
        except KeyError:
            return []
        offered = [getattr(option, "content", option) for option in widget.options]
        return offered or list(np.arange(widget.min, widget.max + 1))

    def ask(self, values: Mapping[str, Any]) -> None:
        """`change` without waiting for the page."""
        pressed = []
        for key, value in values.items():
            widget = self._widget(key)
            self.states[widget.id] = _state(widget, value)
            if isinstance(widget, Button):
                pressed.append(widget.id)
            elif widget.query_param_key:
                self.query[widget.query_param_key] = value
        self._send()
        for button in pressed:
            del self.states[button]

    def figure(self, key: str) -> dict[str, Any]:
        """The figure of the chart with this key."""
        (found,) = [
            element.plotly_chart for element in self._of("plotly_chart") if element.plotly_chart.id.endswith(f"-{key}")
        ]
        return json.loads(found.spec)

    def bars(self, key: str) -> np.ndarray:
        return numbers(self.figure(key)["data"][0]["y"])

    def cells(self, key: str) -> np.ndarray:
        return numbers(self.figure(key)["data"][0]["z"])

    def html(self) -> list[str]:
        return [element.html.body for element in self._of("html")]

    def problems(self) -> list[str]:
        """Exceptions that the page shows."""
        return [f"{e.exception.type}: {e.exception.message}" for e in self._of("exception")]

    def _of(self, kind: str) -> list[Element]:
        return [element for element in self.elements.values() if element.WhichOneof("type") == kind]

    def has(self, key: str) -> bool:
        """Whether the page has this widget."""
        with suppress(KeyError):
            return bool(self._widget(key).id)
        return False

    def _widget(self, key: str) -> Any:
        for element in self.elements.values():
            kind = element.WhichOneof("type")
            if kind in WIDGETS and getattr(element, kind).id.endswith(f"-{key}"):
                return getattr(element, kind)
        raise KeyError(f"no widget {key!r} on the page")

    def _rerun(self) -> float:
        self._send()
        return self._answer()

    def _send(self, fragment: str = "") -> None:
        message = BackMsg()
        message.rerun_script.fragment_id, message.rerun_script.is_auto_rerun = fragment, bool(fragment)
        message.rerun_script.query_string = urlencode(self.query)
        message.rerun_script.page_script_hash = self.script_hash
        message.rerun_script.widget_states.widgets.extend(self.states.values())
        self.asked = time.monotonic()
        self.socket.send(message.SerializeToString())

    def _answer(self, keep: bool = False) -> float:
        """Read until the page is whole.

        Args:
            keep: whether only a part of the page is drawn, beside which the others stay.
        """
        started = False
        while True:
            message = ForwardMsg.FromString(self.socket.recv(PATIENCE))
            kind = message.WhichOneof("type")
            if kind == "new_session":
                if started or not keep:
                    self.elements, self.fragments = {}, []
                started = True
                self.script_hash = message.new_session.page_script_hash
            elif kind == "navigation":
                self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
                self.script_hash = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = dict(parse_qsl(message.page_info_changed.query_string))
            elif kind == "delta":
                self._draw(message)
            elif kind == "auto_rerun" and message.auto_rerun.fragment_id not in self.fragments:
                self.fragments.append(message.auto_rerun.fragment_id)
            elif kind == "script_finished" and started and message.script_finished in FINISHED:
                return time.monotonic() - self.asked

    def _draw(self, message: ForwardMsg) -> None:
        delta, path = message.delta, tuple(message.metadata.delta_path)
        if delta.WhichOneof("type") == "new_element":
            self.elements[path] = delta.new_element
            kind = delta.new_element.WhichOneof("type")
            widget = getattr(delta.new_element, kind) if kind in WIDGETS else None
            if getattr(widget, "set_value", False):
                self.states[widget.id] = _state(widget)
        elif delta.WhichOneof("type") == "new_transient":
            self.waited += [element.spinner.text for element in delta.new_transient.elements]


def _state(widget: Any, value: Any = None) -> WidgetState:
    """The widget's value as the front end writes it: `value`, or what the server has set."""
    state, name, given = WidgetState(id=widget.id), type(widget).__name__, value is not None
    if name in ("TextArea", "TextInput"):
        state.string_value = value if given else widget.value
    elif name in ("Radio", "Selectbox"):
        state.string_value = value if given else widget.raw_value
    elif name == "ButtonGroup" or (name == "Slider" and widget.options):
        kept = widget.raw_value if name == "Slider" else widget.raw_values
        state.string_array_value.data[:] = [value] if given else kept
    elif name == "Slider":
        state.double_array_value.data[:] = [value] if given else widget.value
    elif name == "Checkbox":
        state.bool_value = value if given else widget.value
    elif name == "Button":
        state.trigger_value = True
    else:
        raise TypeError(f"no way to set a {name}")
    return state
