"""Heat maps, bars, lines and points of a Plotly figure, drawn with Matplotlib."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, repeat
from typing import Any

import numpy as np

from model.language import Refusal
from viz.paper.look import INK, LEAST, POINTS, TEXT, colour_map, ink_on, plain, readable, rgba, written
from viz.theme import OKABE_ITO, Array

Places = Callable[[str, Any], Array]
"""from "x" or "y" and the values of a trace to numbers: a name has its position"""
DASHES = {
    "solid": "-",
    "dot": ":",
    "dash": "--",
    "dashdot": "-.",
    "longdash": (0, (7, 3)),
    "longdashdot": (0, (7, 3, 1, 3)),
}
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "cross": "P",
    "x": "X",
    "x-thin": "x",
    "star": "*",
    "triangle-up": "^",
    "triangle-down": "v",
    "triangle-left": "<",
    "triangle-right": ">",
    "line-ns": "|",
    "line-ew": "_",
    "hexagon": "h",
    "pentagon": "p",
}
HATCHES = {"/": "/////", "\\": "\\\\\\\\\\", "x": "xxxx", "-": "-----", "|": "|||||", "+": "++++", ".": "....."}
SIDES = {"left": ("right", -4), "right": ("left", 4), "center": ("center", 0)}
LEVELS = {"top": ("bottom", 4), "bottom": ("top", -4), "middle": ("center", 0)}


class CannotDraw(Refusal):
    """A figure holds what cannot be drawn for a paper; the message says what."""


def colours_of(trace: Mapping, layout: Mapping) -> tuple[Any, float, float] | None:
    """Colour scale and range of a heat map; None where it has no colour."""
    axis = layout.get(trace["coloraxis"], {}) if "coloraxis" in trace else trace
    scale, names = axis.get("colorscale", "viridis"), ("cmin", "cmax") if "coloraxis" in trace else ("zmin", "zmax")
    if not isinstance(scale, str) and all(rgba(colour)[3] == 0 for _, colour in scale):
        return None
    z = np.asarray(trace["z"], float)
    seen = z[np.isfinite(z)]
    ends = (seen.min(), seen.max()) if len(seen) else (0.0, 1.0)
    low, high = (axis.get(name) if axis.get(name) is not None else end for name, end in zip(names, ends, strict=True))
    return scale, float(low), float(high)


def draw_heatmap(ax: Any, trace: Mapping, layout: Mapping, places: Places) -> Any:
    """Draw a heat map; returns what a colour bar is made of, None of a map without colours."""
    found = colours_of(trace, layout)
    if found is None:
        return None
    scale, low, high = found
    z = np.ma.masked_invalid(np.asarray(trace["z"], float))
    x = places("x", trace["x"] if trace.get("x") is not None else np.arange(z.shape[1]))
    y = places("y", trace["y"] if trace.get("y") is not None else np.arange(z.shape[0]))
    image = ax.pcolormesh(
        _edges(x), _edges(y), z, cmap=colour_map(scale), vmin=low, vmax=high, rasterized=z.size > 400, linewidth=0
    )
    image.set_alpha(trace.get("opacity"))
    image.set_edgecolor("white" if trace.get("ygap") or trace.get("xgap") else "face")
    if trace.get("ygap") or trace.get("xgap"):
        image.set_linewidth(1.0)
    _write_cells(ax, trace, z, (x, y), image)
    return image


def _edges(centres: Array) -> Array:
    """Of cells around these centres."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate(([2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]))


def _write_cells(ax: Any, trace: Mapping, z: Any, centres: tuple[Array, Array], image: Any) -> None:
    template = trace.get("texttemplate") or ""
    if template not in ("%{text}", "%{z:.2f}"):
        if template:
            raise CannotDraw("it has text in cells of the form {template}", template=template)
        return
    texts = trace["text"] if template == "%{text}" else [[f"{value:.2f}" for value in row] for row in z.filled(np.nan)]
    size = max(POINTS * (trace.get("textfont") or {}).get("size", 11), LEAST)
    for row, column in np.ndindex(z.shape):
        text = plain(texts[row][column])
        if text and not np.ma.getmaskarray(z)[row, column]:
            ink = ink_on(image.cmap(image.norm(z[row, column])))
            at = centres[0][column], centres[1][row]
            ax.text(*at, text, ha="center", va="center", fontsize=size, color=ink, clip_on=True).cell_of = (at, image)


def draw_bars(ax: Any, traces: Sequence[Mapping], layout: Mapping, places: Places) -> None:
    """Draw all bars of a panel: beside each other, stacked, or over each other."""
    mode = layout.get("barmode", "group")
    heights: dict[tuple[float, bool], float] = {}
    for number, (trace, own) in enumerate(zip(traces, cycle(OKABE_ITO), strict=False)):
        lies = trace.get("orientation") == "h"
        at, values = places("y" if lies else "x", trace["y" if lies else "x"]), trace["x" if lies else "y"]
        values = places("x" if lies else "y", values).astype(float)
        step = float(np.min(np.diff(np.unique(at)))) if len(np.unique(at)) > 1 else 1.0
        width = (1 - layout.get("bargap", 0.2)) * step
        if mode == "group":
            width /= len(traces)
            at = at + width * (number - (len(traces) - 1) / 2)
        if trace.get("width") is not None:
            width = trace["width"]
        base = np.asarray(trace["base"] if trace.get("base") is not None else np.zeros(len(at)), float)
        if mode in ("stack", "relative"):
            base = np.array([heights.get((place, value < 0), 0.0) for place, value in zip(at, values, strict=True)])
            heights |= {(p, v < 0): b + v for p, v, b in zip(at, values, base, strict=True)}
        draw = ax.barh if lies else ax.bar
        looks = _bar_looks(trace.get("marker") or {}, trace.get("opacity", 1.0), len(at), own)
        drawn = draw(at, values, width, base, label=plain(trace.get("name", "")), zorder=2)
        for patch, (colour, hatch, edge) in zip(drawn, looks, strict=True):
            patch.set(facecolor=colour, hatch=hatch, edgecolor=edge, linewidth=0.5 if edge != "none" else 0)
        if trace.get("textposition") == "inside":
            _write_in_bars(ax, trace, at, base, drawn)
        else:
            _write_on_bars(ax, trace, at, base + values, lies)


def _bar_looks(marker: Mapping, opacity: float, count: int, own: str) -> list[tuple[Any, str, Any]]:
    colours = _each(marker.get("color", own), count)
    opacities = np.broadcast_to(np.asarray(marker.get("opacity", opacity), float), count)
    hatches = _each((marker.get("pattern") or {}).get("shape", ""), count)
    widths = np.broadcast_to(np.asarray((marker.get("line") or {}).get("width", 0), float), count)
    line = (marker.get("line") or {}).get("color", INK)
    looks = []
    for colour, strength, hatch, width, edge in zip(
        colours, opacities, hatches, widths, _each(line, count), strict=True
    ):
        *rgb, alpha = rgba(colour)
        drawn = rgba(edge) if width else "#FFFFFF" if hatch else "none"
        looks.append(((*rgb, alpha * strength), HATCHES.get(hatch, ""), drawn))
    return looks


def _each(value: Any, count: int) -> list:
    return [value] * count if isinstance(value, str) or value is None else list(value)


def _write_on_bars(ax: Any, trace: Mapping, at: Array, ends: Array, lies: bool) -> None:
    texts = trace.get("text")
    if texts is None:
        return
    for place, end, text in zip(at, ends, _each(texts, len(at)), strict=True):
        where, shift = ((end, place), (3, 0)) if lies else ((place, end), (0, 3))
        anchors = {"ha": "left", "va": "center"} if lies else {"ha": "center", "va": "bottom"}
        write(ax, plain(text), where, shift, **anchors)


def _write_in_bars(ax: Any, trace: Mapping, at: Array, starts: Array, bars: Sequence[Any]) -> None:
    """Texts at the left ends of bars that lie; which of them have room is known once the figure is laid out."""
    for place, start, text, patch in zip(at, starts, _each(trace["text"], len(at)), bars, strict=True):
        if written := write(ax, plain(text), (start, place), (2, 0), ha="left", va="center"):
            written.bar = patch


def write(ax: Any, text: str, at: tuple, shift: tuple[float, float], coordinates: Any = "data", **look: Any) -> Any:
    """Write a text at a place, `shift` points away from it; the layout keeps it inside the figure."""
    if not text.strip():
        return None
    look = {"fontsize": TEXT - 0.5, "color": INK, "annotation_clip": False} | look
    return ax.annotate(text, at, shift, coordinates, "offset points", **look)


def draw_scatter(ax: Any, trace: Mapping, layout: Mapping, places: Places, before: Mapping | None, own: str) -> None:
    """Draw a line, points, texts, or several of these.

    Args:
        ax: the panel.
        trace: what to draw.
        layout: of the figure.
        places: numbers of the trace's places.
        before: the trace before, to which an area is filled.
        own: colour of a trace without one.
    """
    y = places("y", trace["y"]).astype(float)
    x = places("x", trace["x"] if trace.get("x") is not None else np.arange(len(y))).astype(float)
    mode = trace.get("mode", "lines+markers" if len(x) < 20 else "lines")
    line, marker = trace.get("line") or {}, trace.get("marker") or {}
    label = {"label": plain(trace.get("name", ""))} if trace.get("showlegend") is not False else {}
    if fill := trace.get("fill"):
        other = places("y", before["y"]) if fill == "tonexty" and before is not None else np.zeros(len(y))
        shade = rgba(trace.get("fillcolor") or line.get("color", own))
        ax.fill_between(x, other, y, color=shade, linewidth=0, zorder=1, **(label if not line.get("width") else {}))
    if "lines" in mode and line.get("width", 2):
        colour = rgba(line.get("color") or _one(marker.get("color"), own))
        steps = {"drawstyle": "steps-post"} if line.get("shape") == "hv" else {}
        strength = {"alpha": colour[3] * trace.get("opacity", 1.0)}
        look = {
            "linestyle": DASHES[line.get("dash") or "solid"],
            "linewidth": POINTS * line.get("width", 2),
            "color": colour[:3],
        }
        (drawn,) = ax.plot(x, y, zorder=2.5, **look, **strength, **steps, **label)
        label = {}
        if "markers" in mode and isinstance(marker.get("symbol", ""), str):
            shape = marker.get("symbol") or "circle"
            hollow = {"markerfacecolor": "white"} if shape.endswith("-open") else {}
            size = POINTS * float(np.max(marker.get("size", 6)))
            if isinstance(marker.get("size", 6), int | float) and isinstance(marker.get("color", ""), str):
                fill = {} if hollow else {"markerfacecolor": rgba(marker["color"])} if marker.get("color") else {}
                drawn.set(marker=find_marker(shape), markersize=size, markeredgewidth=0.8, **hollow, **fill)
                mode = mode.replace("markers", "")
    if error := trace.get("error_y"):
        low = error.get("arrayminus", error["array"])
        ends = np.abs(np.stack([np.asarray(low, float), np.asarray(error["array"], float)]))
        tint = rgba(line.get("color") or _one(marker.get("color"), own))
        ax.errorbar(x, y, ends, fmt="none", ecolor=tint, elinewidth=0.8, capsize=2, zorder=2.4)
    if "markers" in mode:
        _draw_points(ax, (x, y), marker, layout, trace.get("opacity", 1.0), own, label)
    if "text" in mode and trace.get("text") is not None:
        _write_at_points(ax, (x, y), trace, mode)


def _one(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def find_marker(name: str) -> str:
    """Matplotlib's marker for one of Plotly's symbols; raises CannotDraw if there is none."""
    shape = name.removesuffix("-open").removesuffix("-dot").removesuffix("-open")
    if shape not in MARKERS:
        raise CannotDraw("it has points drawn as {name}", name=name)
    return MARKERS[shape]


def _draw_points(
    ax: Any, at: tuple[Array, Array], marker: Mapping, layout: Mapping, opacity: float, own: str, label: dict
) -> None:
    count = len(at[0])
    colours = _point_colours(marker, layout, count, own)
    sizes = np.broadcast_to(np.asarray(marker.get("size", 6), float), count)
    opacities = np.broadcast_to(np.asarray(marker.get("opacity", opacity), float), count)
    symbols = _each(marker.get("symbol") or "circle", count)
    lines = _each((marker.get("line") or {}).get("color", None), count)
    width = POINTS * float(np.max((marker.get("line") or {}).get("width", 0)))
    for symbol in dict.fromkeys(symbols):
        chosen = [place for place, one in enumerate(symbols) if one == symbol]
        tints = [(*colours[i][:3], colours[i][3] * opacities[i]) for i in chosen]
        hollow, thin = symbol.endswith("-open"), "thin" in symbol or symbol.startswith("line-")
        edges = tints if hollow or thin else [rgba(lines[i]) if lines[i] and width else (0, 0, 0, 0) for i in chosen]
        look = {"facecolors": "none", "edgecolors": edges} if hollow and not thin else {"c": tints, "edgecolors": edges}
        look = {"c": tints} if thin else look
        places = [array[chosen] for array in at]
        area = (POINTS * sizes[chosen]) ** 2
        stroke = max(width, 0.8) if hollow or thin else width
        ax.scatter(*places, s=area, marker=find_marker(symbol), linewidths=stroke, zorder=3, **look, **label)
        label = {}


def _point_colours(marker: Mapping, layout: Mapping, count: int, own: str) -> list[Any]:
    colours = marker.get("color", own)
    values = None if isinstance(colours, str) or colours is None else list(colours)
    if values and not isinstance(values[0], str):
        axis = layout.get(marker["coloraxis"], {}) if "coloraxis" in marker else marker
        numbers = np.asarray(values, float)
        low, high = axis.get("cmin", numbers.min()), axis.get("cmax", numbers.max())
        scale = colour_map(axis.get("colorscale", "viridis"))
        return list(scale((numbers - low) / ((high - low) or 1.0)))
    return [rgba(colour or own) for colour in (values or repeat(colours, count))]


def _write_at_points(ax: Any, at: tuple[Array, Array], trace: Mapping, mode: str) -> None:
    texts, count = trace["text"], len(at[0])
    places = _each(trace.get("textposition", "top center" if "markers" in mode else "middle center"), count)
    font = trace.get("textfont") or {}
    colours = _each(font.get("color"), count)
    size = max(POINTS * float(np.max(font.get("size", 12))), LEAST)
    radii = POINTS / 2 * np.broadcast_to(np.asarray((trace.get("marker") or {}).get("size", 6), float), count)
    for x, y, text, place, colour, radius in zip(*at, _each(texts, count), places, colours, radii, strict=True):
        level, side = place.split()
        (ha, right), (va, up) = SIDES[side], LEVELS[level]
        away = max(1, (radius + 2) / 4) if "markers" in mode else 0
        shift = right * away, up * away
        write(ax, plain(text), (x, y), shift, ha=ha, va=va, color=readable(colour), fontsize=size)


def number_format(axis: Mapping) -> Callable[[float, Any], str]:
    """How an axis writes its numbers."""
    form = axis.get("tickformat") or ""
    if form.endswith("%"):
        return lambda value, _: f"{value:{form}}".replace("-", "−")
    return lambda value, _: written(float(value))
