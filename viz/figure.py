"""A Plotly figure as plain dicts until it is whole; then Plotly checks it, once.

Methods are called as Plotly's own are, and do the same. Its own check and look up each property again at every call:
5 ms of a processor for a call, and a picture has ten, while a slider waits.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, Self
from zlib import crc32

import numpy as np
from plotly.subplots import make_subplots

from viz.theme import BESIDE_MAPS, LOOK, OwnLook


class Draft:
    """Traces and layout so far.

    Args:
        axes: the layout of several axes, from `grid`; None: one axis each.
        columns: how many axes stand beside each other.
    """

    def __init__(self, axes: Mapping | None = None, columns: int = 1) -> None:
        self.traces: list[dict] = []
        self.layout: dict[str, Any] = dict(axes or {"xaxis": {}, "yaxis": {}})
        self.columns = columns
        self.several = axes is not None

    def figure(self) -> OwnLook:
        """All of it as a figure.

        Raises:
            ValueError: Plotly does not know a property, or not such a value of it.
        """
        layout, maps = _over(LOOK["layout"], self.layout), self._axes_of_maps()
        for name, part in self.layout.items():
            if look := LOOK.get(name.rstrip("0123456789")):
                layout[name] = _over({**look, **(BESIDE_MAPS if name in maps else {})}, part)
        layout["datarevision"] = _checksum(self.traces)
        return OwnLook({"data": self.traces, "layout": layout})

    def _axes_of_maps(self) -> set[str]:
        maps = [trace for trace in self.traces if trace["type"] == "heatmap"]
        return {
            trace.get(f"{letter}axis", letter).replace(letter, f"{letter}axis") for trace in maps for letter in "xy"
        }

    def add_trace(self, trace: Mapping, row: int | None = None, col: int | None = None) -> Self:
        place = {}
        if row is not None:
            number = self._number(row, col)
            place = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        self.traces.append({**trace, **place})
        return self

    def add_bar(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self.add_trace({"type": "bar", **props}, row, col)

    def add_scatter(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self.add_trace({"type": "scatter", **props}, row, col)

    def add_heatmap(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self.add_trace({"type": "heatmap", **props}, row, col)

    def update_layout(self, *more: Mapping, **props: Any) -> Self:
        for each in (*more, props):
            _merge(self.layout, each)
        return self

    def update_xaxes(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self._update_axes("xaxis", row, col, props)

    def update_yaxes(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self._update_axes("yaxis", row, col, props)

    def update_annotations(self, **props: Any) -> Self:
        """All that there are, titles of axes among them."""
        for annotation in self.layout.get("annotations", []):
            _merge(annotation, props)
        return self

    def add_annotation(self, **props: Any) -> Self:
        return self._add("annotations", props, None, None)

    def add_shape(self, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self._add("shapes", props, row, col)

    def add_layout_image(self, image: Mapping, row: int | None = None, col: int | None = None) -> Self:
        return self._add("images", image, row, col)

    def add_vline(self, x: float, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        """From the foot of the axes to their head: of all of them, or of those in `row` and `col`."""
        return self._add_across({"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, **props}, "y", row, col)

    def add_hline(self, y: float, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self._add_across({"type": "line", "x0": 0, "x1": 1, "y0": y, "y1": y, **props}, "x", row, col)

    def add_vrect(self, x0: float, x1: float, row: int | None = None, col: int | None = None, **props: Any) -> Self:
        return self._add_across({"type": "rect", "x0": x0, "x1": x1, "y0": 0, "y1": 1, **props}, "y", row, col)

    def _add_across(self, shape: Mapping, whole: str, row: int | None, col: int | None) -> Self:
        for number in self._numbers("xaxis", row, col):
            ends = {f"{letter}ref": f"{letter}{number}" + " domain" * (letter == whole) for letter in "xy"}
            self._add("shapes", {**shape, **ends}, None, None)
        return self

    def _add(self, kind: str, props: Mapping, row: int | None, col: int | None) -> Self:
        """To the shapes, annotations or images; those with a row stand in its axes, in their units or their domain."""
        refs = {}
        if row is not None:
            for letter in "xy":
                domain = " domain" if str(props.get(f"{letter}ref", "")).endswith("domain") else ""
                refs[f"{letter}ref"] = f"{letter}{self._number(row, col)}{domain}"
        self.layout.setdefault(kind, []).append(_over(props, refs))
        return self

    def _update_axes(self, kind: str, row: int | None, col: int | None, props: Mapping) -> Self:
        for number in self._numbers(kind, row, col):
            _merge(self.layout[f"{kind}{number}"], props)
        return self

    def _numbers(self, kind: str, row: int | None, col: int | None) -> Iterator[str]:
        """What stands behind the names of the axes in `row` and `col`, each of which may be None, any: "", "2" ..."""
        count = sum(name.startswith(kind) for name in self.layout) if self.several else 1
        for index in range(count):
            if row in (None, index // self.columns + 1) and col in (None, index % self.columns + 1):
                yield _suffix(index)

    def _number(self, row: int, col: int | None) -> str:
        return _suffix((row - 1) * self.columns + (col or 1) - 1)


def grid(rows: int, columns: int, titles: tuple[str, ...] | list[str] = (), **room: Any) -> Draft:
    """Axes in rows and columns, laid out by plotly.subplots.make_subplots.

    Args:
        rows: how many.
        columns: how many.
        titles: one above each, first row first; HTML as Plotly takes it.
        room: shared_xaxes, shared_yaxes, horizontal_spacing, vertical_spacing, row_heights and column_widths.
    """
    if titles:
        room = {"vertical_spacing": 0.5 / rows} | room
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in room.items()}
    draft = Draft(deepcopy(_axes(rows, columns, **frozen)), columns)
    for index, title in enumerate(titles):
        if title:
            draft.add_annotation(**_title(title, draft.layout, _suffix(index)))
    return draft


@lru_cache(maxsize=128)
def _axes(rows: int, columns: int, **room: Any) -> dict:
    """The layout of nothing but axes: the same for the same numbers."""
    asked = {name: list(value) if isinstance(value, tuple) else value for name, value in room.items()}
    layout = make_subplots(rows, columns, **asked).to_dict()["layout"]
    layout.pop("template", None)
    return layout


def _title(text: str, layout: Mapping, number: str) -> dict:
    across, down = layout[f"xaxis{number}"]["domain"], layout[f"yaxis{number}"]["domain"]
    place = {"x": sum(across) / 2, "xref": "paper", "xanchor": "center"}
    place |= {"y": down[1], "yref": "paper", "yanchor": "bottom"}
    return {"text": text, "font": {"size": 16}, "showarrow": False, **place}


def _suffix(index: int) -> str:
    return str(index + 1) if index else ""


def _over(look: Mapping, props: Mapping) -> dict:
    """`props`, and of `look` what they leave open: a copy."""
    whole: dict = {}
    _merge(whole, look)
    _merge(whole, props)
    return whole


def _checksum(part: Any, so_far: int = 0) -> int:
    """Another number for other contents: with the same one Plotly would leave the old picture where it is."""
    if hasattr(part, "__array__") or isinstance(part, range):
        array = np.asarray(part)
        if not array.dtype.hasobject:
            return crc32(array.tobytes(), crc32(f"{array.dtype}{array.shape}".encode(), so_far))
        # An array of objects holds their addresses, which say nothing.
        part = array.tolist()
    if isinstance(part, Mapping):
        part = list(part.items())
    if not isinstance(part, list | tuple):
        return crc32(repr(part).encode(), so_far)
    so_far = crc32(f"[{len(part)}".encode(), so_far)
    for each in part:
        so_far = crc32(b",", _checksum(each, so_far))
    return so_far


def _merge(into: dict, props: Mapping) -> None:
    """As Plotly updates: dicts in dicts are merged too, font_size is the font's size, and a title may be its text.

    No dict of `props` becomes part of `into`.
    """
    for name, value in props.items():
        part, _, rest = name.partition("_")
        if name == "title" and isinstance(value, str):
            value = {"text": value}
        if rest and isinstance(into.get(part), dict):
            _merge(into[part], {rest: value})
        elif isinstance(value, Mapping):
            if not isinstance(into.get(name), dict):
                into[name] = {}
            _merge(into[name], value)
        else:
            into[name] = value
