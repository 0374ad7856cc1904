"""Plotly figures that stay plain dicts, with Plotly's property names, on their way to the browser.

Plotly's own classes validate each property and copy all of them twice, several milliseconds a figure while a reader
waits. They do so here only where somebody reads a figure in Python; the tests let them do it for every page.
"""

import io
import math
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, lru_cache, partial
from typing import Any
from zlib import crc32

import numpy as np
import plotly.graph_objects as go
from _plotly_utils.utils import to_typed_array_spec
from plotly.colors import get_colorscale
from plotly.subplots import make_subplots

from model.language import ENGLISH, language
from viz.labels import say_figure, say_label, set_symbols
from viz.theme import AXIS_OF_MAPS, GUIDE, LOOK, SIGNED, SIGNED_ON_DARK
from viz.tokens import Verbatim, as_plotly

LEGEND_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
GROUPED_BARS = {"barmode": "group", "legend": LEGEND_ABOVE}
NO_GRID = {"showgrid": False, "zeroline": False}
TITLE_LEFT = {"x": 0, "xanchor": "left", "font": {"size": 14}}
"""Style of panel titles that start at the figure's left edge."""
SCREEN = {"x": 1000, "y": 520}
"""pixels of a figure that fills a screen"""
OF_RAISED = 25
"""pixels of a text with exponents or indices, which Plotly may write in 0.65 of them: 16 on a screen seen from afar"""
_RAISED = re.compile("<su[bp]>")
LABEL_ROOM = 22
"""pixels of a label on it, across the line of text"""
INVISIBLE = {"mode": "text", "marker": {"maxdisplayed": 1}, "showlegend": False}
"""Properties of points laid over the cells of a heat map: Plotly reports clicks on points only. `maxdisplayed` keeps
it from adding an SVG element for each of them."""


class StableFigure(go.Figure):
    """A figure without a template, so that two figures with the same content are equal to Plotly.

    Streamlit hands each chart to Plotly more than once: before and after its width is known, and again on each run of
    the page. Plotly skips an equal figure; but a template, as which Streamlit passes its theme, never compares equal,
    nor do arrays without a `datarevision`. Automatic ranges and margins also cost a second pass;
    viz.special.heads_and_layers.head_map avoids both. Colours that depend on the theme are in pages/frame/style.css.

    Raises:
        ValueError: when first read, not when drawn: Plotly has no such property, or not such a value of it.
    """

    def __init__(self, content: dict) -> None:
        self._content = content

    @property
    def content(self) -> dict:
        """Its traces and its layout, as plain dicts with Plotly's names."""
        return self._content

    @property
    def roomy(self) -> bool:
        """Whether it has panels beside each other; on a phone they stand below each other."""
        return self._content["layout"].get("xaxis2", {}).get("domain", (0, 1))[0] > 0

    def __getattr__(self, name: str) -> Any:
        # Called for what Plotly's constructor sets, as long as it has not run.
        if "_validate" in vars(self):
            raise AttributeError(name)
        super().__init__(self._content)
        return getattr(self, name)

    def to_dict(self) -> dict:
        """As Plotly's own, less the template that it gives every figure."""
        if "_validate" not in vars(self):
            return _encode(self._content)
        content = super().to_dict()
        content["layout"].pop("template", None)
        return content


def enlarge(figure: StableFigure, by: float = 1) -> StableFigure:
    """The figure for a screen that is seen from afar: it fills its place, with no text smaller than 16 pixels x `by`.

    Args:
        figure: for a page.
        by: how much larger the screen is than one of 1280 x 720 pixels.
    """
    least = 16 * by
    content = _with_larger_text(figure.to_dict(), by)
    layout = {name: part for name, part in content["layout"].items() if name not in ("height", "width")}
    # Larger labels need more room.
    margin = layout.get("margin", {}) | {"autoexpand": True}
    font = layout.get("font", {})
    axes = {name: _with_fewer_ticks(name, part, by) for name, part in layout.items() if name[1:5] == "axis"}
    return StableFigure(
        content
        | {"layout": layout | axes | {"font": font | {"size": max(font.get("size", least), least)}, "margin": margin}}
    )


def _with_fewer_ticks(name: str, axis: Mapping[str, Any], by: float) -> dict[str, Any]:
    """An axis whose labels have room beside each other on that screen."""
    low, high = axis.get("domain", (0, 1))
    step = 1
    if isinstance(axis.get("tickvals"), list):
        step = max(math.ceil(len(axis["tickvals"]) * LABEL_ROOM / ((high - low) * SCREEN[name[0]])), 1)
    thinned = {part: axis[part][::step] for part in ("tickvals", "ticktext") if isinstance(axis.get(part), list)}
    raised = axis.get("type") == "log" or any(_RAISED.search(str(text)) for text in axis.get("ticktext") or ())
    font = axis.get("tickfont", {})
    least = {"tickfont": font | {"size": max(font.get("size", 0), OF_RAISED * by)}} if raised else {}
    return {**axis, **thinned, **least, "automargin": True}


def _with_larger_text(value: Any, by: float, name: str = "") -> Any:
    if isinstance(value, Mapping):
        parts = {key: _with_larger_text(part, by, key) for key, part in value.items()}
        if isinstance(parts.get("text"), str) and _RAISED.search(parts["text"]):
            parts["font"] = {"size": OF_RAISED * by} | parts.get("font", {})
            parts["font"]["size"] = max(parts["font"]["size"], OF_RAISED * by)
        if name == "uniformtext":  # a text that would have to be smaller is left out
            return parts | {"minsize": 16 * by}
        return parts | {"size": max(parts.get("size") or 0, 16 * by)} if name.endswith("font") else parts
    return [_with_larger_text(part, by) for part in value] if isinstance(value, list) else value


def _encode(value: Any, name: str = "") -> Any:
    """A copy of dicts and lists, with arrays and the names of colour scales as Plotly sends them."""
    if isinstance(value, Mapping):
        return {name: _encode(part, name) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [part if isinstance(part, str) else _encode(part) for part in value]
    if name == "colorscale":
        return _scale(value)
    if isinstance(value, np.ndarray):
        # Plotly compares lists, but draws again for another array of the same numbers.
        return to_typed_array_spec(value) if value.ndim > 1 else value.tolist()
    return set_symbols(value) if name in ("name", "text") and isinstance(value, str) else value


_scale = cache(get_colorscale)


def figure(traces: Iterable[Mapping], *layouts: Mapping, **layout: Any) -> StableFigure:
    """The traces with the common look and the given layout.

    Args:
        traces: each one from `bar`, `scatter` or `heatmap`.
        layouts: layouts, such as the axes that `grid` returns. Dicts in dicts are merged, lists of shapes, annotations
            and images are joined; of two values the later one wins.
        layout: the same as keywords, merged last.
    """
    traces = list(traces)
    own = merge({"xaxis": {}, "yaxis": {}}, *layouts, layout)
    of_maps = {
        trace.get(f"{letter}axis", letter).replace(letter, f"{letter}axis")
        for trace in traces
        for letter in "xy"
        if trace["type"] == "heatmap"
    }
    looks = {name: LOOK.get(name.rstrip("0123456789"), {}) for name in own}
    looks |= {name: looks[name] | AXIS_OF_MAPS for name in of_maps}
    whole = merge(LOOK["layout"], {name: look for name, look in looks.items() if look}, own)
    if (spoken := language()) is not ENGLISH:
        traces, whole = say_figure(traces, whole | {"separators": spoken.decimal + spoken.group})
    return StableFigure({"data": traces, "layout": whole | {"datarevision": _checksum(traces)}})


def darken(figure: StableFigure) -> StableFigure:
    """The figure for a dark page, where the middle of the scale of signed numbers is as dark as the page."""
    return StableFigure(_darken_scales(figure.content))


def _darken_scales(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _darken_scales(part, name) for name, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [_darken_scales(part) for part in value]
    # By its name, or as Plotly sends it.
    if name == "colorscale" and value in (SIGNED, _scale(SIGNED)):
        last = len(SIGNED_ON_DARK) - 1
        return [[place / last, f"rgb{colour}"] for place, colour in enumerate(SIGNED_ON_DARK)]
    return value


def selectable(figure: StableFigure) -> StableFigure:
    """The figure with the modes that Streamlit gives a chart whose points can be clicked, so that it finds them set.

    It sets them after the chart is drawn, and another mode for clicks makes Plotly draw it again.
    """
    layout = {"hovermode": "closest", "dragmode": "pan", "clickmode": "event+select"} | figure._content["layout"]
    return StableFigure(figure._content | {"layout": layout})


def _trace(kind: str, *, panel: int = 1, hover: str = "", **properties: Any) -> dict:
    """A trace in `panel` (counted from 1, row by row); `hover` is its hover text without Plotly's name box."""
    trace = {"type": kind, "xaxis": f"x{suffix(panel)}", "yaxis": f"y{suffix(panel)}"} | properties
    said = Verbatim(say_label(hover) + "<extra></extra>")
    return trace | ({"hovertemplate": said} if hover else {"hoverinfo": "skip"})


bar, scatter, heatmap = partial(_trace, "bar"), partial(_trace, "scatter"), partial(_trace, "heatmap")


def curve(
    x: Sequence, y: Sequence, name: str, colour: str, *, dash: str = "solid", symbol: str = "", **properties: Any
) -> dict:
    """A line, 2 pixels wide unless `width` says otherwise; with a `symbol` also a marker at each point."""
    line = {"color": colour, "dash": dash, "width": properties.pop("width", 2)}
    markers = {"mode": "lines+markers", "marker": {"symbol": symbol, "size": 8}} if symbol else {"mode": "lines"}
    return scatter(x=x, y=y, name=name, line=line, **markers | properties)


def grid(
    rows: int,
    columns: int = 1,
    titles: Sequence[str] = (),
    title_style: Mapping | None = None,
    *,
    xaxis: Mapping | None = None,
    yaxis: Mapping | None = None,
    **spacing: Any,
) -> dict:
    """The layout of panels in rows and columns: their axes, and their titles as annotations.

    Args:
        rows: number of rows.
        columns: number of columns.
        titles: one for each panel, row by row; HTML as Plotly takes it.
        title_style: properties of all titles.
        xaxis: properties of every x axis.
        yaxis: properties of every y axis.
        spacing: shared_xaxes, shared_yaxes, horizontal_spacing, vertical_spacing, row_heights, column_widths.
    """
    if titles:
        spacing = {"vertical_spacing": 0.5 / rows} | spacing
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in spacing.items()}
    axes = _axes(rows, columns, **frozen)
    panels = range(1, rows * columns + 1)
    every = {f"xaxis{suffix(n)}": xaxis or {} for n in panels} | {f"yaxis{suffix(n)}": yaxis or {} for n in panels}
    named = [_panel_title(title, axes, n) | (title_style or {}) for n, title in enumerate(titles, start=1) if title]
    return merge(axes, every, {"annotations": named} if named else {})


@lru_cache(maxsize=128)
def _axes(rows: int, columns: int, **spacing: Any) -> dict:
    """The axes of plotly.subplots.make_subplots."""
    arguments = {name: list(value) if isinstance(value, tuple) else value for name, value in spacing.items()}
    return {
        name: value
        for name, value in make_subplots(rows, columns, **arguments).to_dict()["layout"].items()
        if name != "template"
    }


def _panel_title(title: str, axes: Mapping, panel: int) -> dict:
    across, down = axes[f"xaxis{suffix(panel)}"]["domain"], axes[f"yaxis{suffix(panel)}"]["domain"]
    place = {"x": sum(across) / 2, "xref": "paper", "xanchor": "center", "y": down[1], "yref": "paper"}
    return text(title, yanchor="bottom", font={"size": 16}, **place)


def panels(kind: str, numbers: Iterable[int], properties: Mapping) -> dict:
    """The same properties for the axes of some panels: `kind` is "xaxis" or "yaxis"."""
    return {f"{kind}{suffix(number)}": properties for number in numbers}


def suffix(panel: int) -> str:
    """What Plotly writes after the names of the axes of a panel: nothing for the first, then 2, 3 ..."""
    return str(panel) if panel > 1 else ""


def vline(x: float, panel: int = 1, **line: Any) -> dict:
    """A shape: a vertical line from the bottom to the top of a panel, thin and dotted unless `line` says otherwise."""
    ends = {"x0": x, "x1": x, "xref": f"x{suffix(panel)}", "y0": 0, "y1": 1, "yref": f"y{suffix(panel)} domain"}
    return {"type": "line", "line": {"color": GUIDE, "width": 1, "dash": "dot"} | line, **ends}


def hline(y: float, panel: int = 1, **line: Any) -> dict:
    """A shape: a horizontal line from the left to the right of a panel."""
    ends = {"x0": 0, "x1": 1, "xref": f"x{suffix(panel)} domain", "y0": y, "y1": y, "yref": f"y{suffix(panel)}"}
    return {"type": "line", "line": {"color": GUIDE, "width": 1, "dash": "dot"} | line, **ends}


def band(x0: float, x1: float, fill: str, panel: int = 1) -> dict:
    """A shape: a coloured band behind a panel, from `x0` to `x1` and from bottom to top."""
    return vline(x0, panel) | {"type": "rect", "x1": x1, "fillcolor": fill, "line": {"width": 0}, "layer": "below"}


def frame(
    columns: tuple[float, float], rows: tuple[float, float], colour: str, width: float = 2, panel: int = 1
) -> dict:
    """A shape: a frame around cells of a heat map, from the first to the last of `columns` and of `rows`."""
    ends = {"x0": columns[0] - 0.5, "x1": columns[1] + 0.5, "y0": rows[0] - 0.5, "y1": rows[1] + 0.5}
    refs = {"xref": f"x{suffix(panel)}", "yref": f"y{suffix(panel)}"}
    return {"type": "rect", "line": {"color": colour, "width": width}, **ends, **refs}


def text(words: str, **place: Any) -> dict:
    """An annotation without an arrow. On a logarithmic axis it stands at the logarithm of its value."""
    return {"text": words, "showarrow": False, **place}


def escape(names: Iterable[str]) -> list[str]:
    """Plain texts as Plotly shows them as they are."""
    return [as_plotly(name) for name in names]


def merge(*parts: Mapping) -> dict:
    """A new dict of all parts: dicts in dicts are merged, lists joined, and an axis title may be its text."""
    whole: dict = {}
    for part in parts:
        for name, value in part.items():
            if name == "title" and isinstance(value, str):
                value = {"text": value}
            present = whole.get(name)
            if isinstance(value, Mapping):
                whole[name] = merge(present if isinstance(present, Mapping) else {}, value)
            elif name in ("annotations", "shapes", "images"):
                whole[name] = [*(present or ()), *deepcopy(value)]
            else:
                whole[name] = value
    return whole


def _checksum(traces: list[dict]) -> int:
    """A number that differs where the content differs: with the same one Plotly leaves the old picture as it is."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.fast = True  # Otherwise the bytes depend on which equal objects are one object.
    pickler.dump(traces)
    return crc32(buffer.getbuffer())
