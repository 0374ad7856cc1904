"""A figure for a narrow screen: one panel below the other, and fewer labels below each."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from viz.figure import StableFigure
from viz.heatmap import MOST_KEYS, slanted_room
from viz.tokens import MOST_ROOM

BESIDE_BAR = 0.6
"""of the width of a narrow screen, what a colour bar at the right leaves to the panel"""
MOST_TITLE, MOST_ON_PHONE, LEAST_TITLE = 43, 38, 26
"""characters of a title below an axis as wide as its figure, which may be one of two beside the sidebar; the same on a
phone; and below any axis"""

TALLEST = 300
"""pixels of a panel, on a screen that is about as wide"""
TITLE, LEGEND, TICKS, AXIS_TITLE, BAR = 30, 90, 26, 24, 62
"""pixels of a title above a panel, of a legend there, of level tick labels and of an axis title below it, and of a
colour bar in all"""
NEAR = 0.02
"""shares of the figure by which a panel's title may be off its panel"""


def stack(figure: StableFigure) -> StableFigure:
    """The figure with its panels below each other, each as wide as the figure, and the colour bars below them.

    Args:
        figure: of a stated height; any other is returned as it is.
    """
    content = figure.to_dict()
    layout = content["layout"]
    panels = sorted(_panels(content), key=lambda panel: (-panel[1][1]["domain"][1], panel[0][1]["domain"][0]))
    if "height" not in layout or len(panels) < 2:
        return figure
    margin = {"t": 80, "b": 80} | layout.get("margin", {})
    plot = layout["height"] - margin["t"] - margin["b"]
    heights = [min(plot * (y["domain"][1] - y["domain"][0]), TALLEST) for _, (_, y) in panels]
    rooms = [_room(x) for (_, x), _ in panels]
    legends = {name: part for name, part in layout.items() if name.startswith("legend") and "y" in part}
    above = [LEGEND if any(_stands_on(legend, y) for legend in legends.values()) else TITLE for _, (_, y) in panels]
    whole = sum(heights) + sum(rooms[:-1]) + sum(above[1:])
    top, axes, moved = 1.0, {}, []
    for (x, y), height, room, following in zip(panels, heights, rooms, [*above[1:], 0], strict=True):
        domain = [max(top - height / whole, 0.0), top]
        axes[x[0]] = x[1] | {"domain": [0.0, 1.0]}
        axes[y[0]] = _with_labels(y[1]) | {"domain": domain}
        moved.append((x[1]["domain"], y[1], top))
        top = domain[0] - (room + following) / whole
    bars, foot = _bars_below(content, whole, rooms[-1])
    return StableFigure(
        content
        | {
            "data": bars.pop("data"),
            "layout": layout
            | axes
            | bars
            | {
                "height": round(whole + margin["t"] + rooms[-1] + foot),
                "margin": margin | {"r": 10, "b": rooms[-1] + foot},
                "annotations": [_note(note, moved, plot / whole) for note in layout.get("annotations", ())],
            }
            | {name: _legend(legend, moved, plot / whole) for name, legend in legends.items()},
        }
    )


def thin(figure: StableFigure) -> StableFigure:
    """The figure with at most `MOST_KEYS` labels below a panel of its width: on a narrow screen more would overlap.

    A colour bar beside the panel takes a part of that width.
    """
    content = figure.to_dict()
    axes, scales = {}, [axis for name, axis in content["layout"].items() if name.startswith("coloraxis")]
    beside = any(one["colorbar"].get("orientation") != "h" for one in scales if "colorbar" in one)
    most = MOST_KEYS * (BESIDE_BAR if beside else 1)
    for name, axis in content["layout"].items():
        if name.startswith("xaxis") and isinstance(axis.get("ticktext"), list):
            start, end = axis.get("domain", (0, 1))
            step = -(-len(axis["ticktext"]) // max(int(most * (end - start)), 1))
            if step > 1:
                axes[name] = axis | {part: axis[part][::step] for part in ("tickvals", "ticktext")}
    return StableFigure(content | {"layout": content["layout"] | axes}) if axes else figure


def fold_titles(figure: StableFigure, most: int) -> StableFigure:
    """The figure with the title of each horizontal axis in two lines, where its axis is too short for one.

    Args:
        figure: with its language's words.
        most: characters that have room below an axis as wide as the figure.
    """
    content = figure.to_dict()
    axes = {}
    for name, axis in content["layout"].items():
        title = axis.get("title") if name.startswith("xaxis") else None
        start, end = axis.get("domain", (0, 1)) if title else (0, 1)
        if isinstance(title, Mapping) and len(title.get("text") or "") > max(most * (end - start), LEAST_TITLE):
            axes[name] = axis | {"title": title | {"text": _in_two_lines(title["text"])}}
    return StableFigure(content | {"layout": content["layout"] | axes}) if axes else figure


def _in_two_lines(title: str) -> str:
    """Broken at the space nearest to its middle; one that has a line break or no space stays."""
    spaces = [place for place, letter in enumerate(title) if letter == " "] if "<" not in title else []
    middle = min(spaces, key=lambda place: abs(place - len(title) / 2), default=None)
    return title if middle is None else f"{title[:middle]}<br>{title[middle + 1 :]}"


def _stands_on(legend: Mapping[str, Any], axis: Mapping[str, Any]) -> bool:
    """Whether a legend begins where a panel ends; one of all panels stands a little above them."""
    return abs(legend["y"] - axis["domain"][1]) < NEAR


def _legend(legend: Mapping[str, Any], panels: list, share: float) -> dict[str, Any]:
    """A legend; that of a panel moves with it."""
    for _, axis, top in panels:
        if _stands_on(legend, axis):
            return legend | {"y": top}
    return _beyond(legend, share)


def _panels(content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, dict], tuple[str, dict]]]:
    """Names and properties of the axes of each panel with data; an axis over another one has no panel of its own."""
    layout, drawn = content["layout"], {f"xaxis{trace.get('xaxis', 'x')[1:]}" for trace in content["data"]}
    for name, axis in layout.items():
        if name not in drawn or "domain" not in axis:
            continue
        below = f"yaxis{axis.get('anchor', 'y').removeprefix('y')}"
        if "domain" in layout.get(below, {}):
            yield (name, axis), (below, layout[below])


def _room(axis: Mapping[str, Any]) -> int:
    """Pixels that an x axis needs below its panel."""
    names = axis.get("ticktext")
    slanted = isinstance(names, list) and axis.get("tickangle")
    hidden = axis.get("showticklabels") is False
    title = axis.get("title", {}).get("text")
    return (0 if hidden else slanted_room(names, MOST_ROOM) if slanted else TICKS) + (AXIS_TITLE if title else 0)


def _with_labels(axis: Mapping[str, Any]) -> dict[str, Any]:
    """A y axis that says what its rows are, also where the panel at its left did."""
    if axis.get("showticklabels", True):
        return dict(axis)
    return {name: value for name, value in axis.items() if name not in ("showticklabels", "ticks")}


def _note(note: Mapping[str, Any], panels: list, share: float) -> dict[str, Any]:
    """An annotation; the title of a panel moves with it."""
    if note.get("xref") != "paper" or note.get("yref") != "paper":
        return dict(note)
    for across, axis, top in panels:
        if abs(note["y"] - axis["domain"][1]) >= NEAR:
            continue
        if abs(note["x"] - sum(across) / 2) < NEAR:
            return note | {"x": 0.5, "y": top}
        if abs(note["x"] - across[0]) < NEAR and note.get("xanchor") == "left":
            return note | {"x": 0, "y": top}
    return _beyond(note, share)


def _beyond(place: Mapping[str, Any], share: float) -> dict[str, Any]:
    """What stands above or below all panels: as many pixels from them as before."""
    y = place["y"]
    return place | {"y": 1 + (y - 1) * share if y > 1 else y * share if y < 0 else y}


def _bars_below(content: Mapping[str, Any], plot: float, first: int) -> tuple[dict[str, Any], int]:
    """Layout and traces with the colour bars lying below the panels, and the pixels that these take."""
    foot = 0

    def lay(bar: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal foot
        foot += BAR
        title = bar.get("title") or {}
        # A word that is parted at the end of a line is one word again; Chinese has no spaces between words.
        words = re.sub("-<br>(?=[a-zäöüß])|(?<=[一-鿿])<br>(?=[一-鿿])", "", str(title.get("text", "")))
        words = words.replace("<br>", " ")
        place = {"x": 0.5, "xanchor": "center", "y": -(first + foot - BAR) / plot, "yanchor": "top"}
        shape = {"orientation": "h", "len": 0.9, "lenmode": "fraction"}
        return bar | shape | place | {"title": {**title, "text": words, "side": "top"}}

    layout: dict[str, Any] = {
        name: axis | {"colorbar": lay(axis["colorbar"])}
        for name, axis in content["layout"].items()
        if name.startswith("coloraxis") and "colorbar" in axis
    }
    data = [
        trace | {"colorbar": lay(trace["colorbar"])} if "colorbar" in trace and trace.get("showscale", True) else trace
        for trace in content["data"]
    ]
    return layout | {"data": data}, foot
