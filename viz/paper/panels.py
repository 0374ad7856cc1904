"""The panels of a Plotly figure as Matplotlib's axes: where they stand, their ticks, titles, marks, and colour bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from viz.latex import signed
from viz.paper.look import INCHES, INK, LEAST, POINTS, TEXT, plain, power, readable, rgba, text_size, wrapped
from viz.paper.traces import (
    DASHES,
    CannotDraw,
    draw_bars,
    draw_heatmap,
    draw_scatter,
    find_marker,
    number_format,
    write,
)
from viz.theme import FAINT, OKABE_ITO

NARROWEST = {False: 1.55, True: 2.1}
"""inches of a panel beside others, by whether its cells are square and have their tokens' names"""
LABELS, OF_PANEL = 0.3, 0.4
"""shares of the figure's width, and of its part for a panel, that a line of a label beside it may take at most"""
SLANTED, OF_COURSE = 1.8, 0.9
"""inches of a line of a slanted label, and how many of them BETWEEN_ROWS and the figure's height have room for"""
BETWEEN_ROWS = 0.9
"""inches of the slanted labels and the title of each row, where panels stand below each other"""
TICK = TEXT - 0.5
NARROW = 4.0
"""inches of a figure that has no room beside its panels"""
ROW, SQUARE = 0.15, 0.2
"""inches of a named row, and of a square cell at most"""
SLANT = 50
"""degrees of long labels below a panel"""


@dataclass
class Panel:
    """A pair of Plotly's axes, and what is drawn on them."""

    x: str
    """such as "x2" """
    y: str
    layout: Mapping
    """of the whole figure"""
    traces: list[Mapping] = field(default_factory=list)
    names: dict[str, dict[str, int]] = field(default_factory=lambda: {"x": {}, "y": {}})
    """"x" or "y" -> position of each named place"""
    ax: Any = None
    images: list[tuple[Mapping, Any]] = field(default_factory=list)
    """heat maps, and what their colour bars are made of"""

    def axis(self, letter: str) -> Mapping:
        """Properties of its x or y axis."""
        name = self.x if letter == "x" else self.y
        return self.layout.get(f"{letter}axis{name[1:]}", {})

    def domain(self, letter: str) -> tuple[float, float]:
        """Which part of the figure's width or height it takes."""
        axis = self.axis(letter)
        if over := axis.get("overlaying"):
            axis = self.layout.get(f"{letter}axis{over[1:]}", {})
        low, high = axis.get("domain", (0.0, 1.0))
        return float(low), float(high)

    def places(self, letter: str, values: Any) -> np.ndarray:
        """Numbers of places on an axis; a named place has its position."""
        values = list(values) if not isinstance(values, np.ndarray) else values
        if len(values) == 0 or not isinstance(values[0], str):
            return np.asarray(values, float)
        known = self.names[letter]
        for value in values:
            known.setdefault(value, len(known))
        return np.array([known[value] for value in values], float)

    def log(self, letter: str) -> bool:
        """Whether an axis is logarithmic."""
        return self.axis(letter).get("type") == "log"

    @property
    def square(self) -> bool:
        """Whether its cells are: a map of named rows and columns."""
        maps = [trace for trace in self.traces if trace["type"] == "heatmap"]
        named = all(self.names[letter] or len(_texts(self.axis(letter))) > 1 for letter in "xy")
        if not maps or not named or len(maps) < sum(trace["type"] != "scatter" for trace in self.traces):
            return False
        rows, columns = np.shape(maps[0]["z"])
        return 0.4 < rows / columns < 2.5 and not maps[0].get("texttemplate")

    @property
    def least_height(self) -> float:
        """Inches that its named rows need: their labels, or the cells of a map of tokens."""
        rows = len(_texts(self.axis("y"))) or len(self.names["y"])
        if self.square:
            return min(SQUARE * np.shape(next(t["z"] for t in self.traces if t["type"] == "heatmap"))[0], 6.0)
        bars = sum(trace.get("orientation") == "h" for trace in self.traces)
        return max(1, 0.75 * bars) * ROW * rows


def _texts(axis: Mapping) -> Sequence[str]:
    texts = axis.get("ticktext")
    return () if texts is None else texts


def panels_of(content: Mapping) -> list[Panel]:
    """The panels with anything on them, row by row; raises CannotDraw for traces of another kind."""
    panels: dict[tuple[str, str], Panel] = {}
    for trace in content["data"]:
        if trace["type"] not in ("heatmap", "bar", "scatter"):
            raise CannotDraw("it has a trace of kind {kind}", kind=trace["type"])
        if trace.get("mode") == "text" and trace.get("text") is None:
            continue  # places to click
        x, y = trace.get("xaxis") or "x", trace.get("yaxis") or "y"
        panels.setdefault((x, y), Panel(x, y, content["layout"])).traces.append(trace)
    return sorted(panels.values(), key=lambda panel: (-panel.domain("y")[1], panel.domain("x")[0]))


def check_parts(content: Mapping) -> None:
    """Raise CannotDraw, with a sentence's end that says why, where a figure has a part that is not drawn here."""
    panels_of(content)
    for shape in content["layout"].get("shapes") or ():
        if shape.get("type", "line") not in ("line", "rect", "circle"):
            raise CannotDraw("it has a shape of kind {kind}", kind=shape["type"])
    for trace in content["data"]:
        symbols = (trace.get("marker") or {}).get("symbol", ())
        for symbol in {symbols} if isinstance(symbols, str) else {*(() if symbols is None else symbols)}:
            find_marker(symbol)
        if (trace.get("line") or {}).get("dash", "solid") not in ("", *DASHES):
            raise CannotDraw("it has a line dashed as {dash}", dash=trace["line"]["dash"])


def place_panels(figure: Any, panels: Sequence[Panel], width: float) -> float:
    """Give each panel its axes, in as many columns as `width` inches have room for; the height of all, in inches."""
    main = [panel for panel in panels if not panel.axis("y").get("overlaying")]
    lefts = sorted({panel.domain("x")[0] for panel in main})
    tops = sorted({-panel.domain("y")[1] for panel in main})
    columns, per_row = len(lefts), max(1, int(width / NARROWEST[main[0].square]))
    drawn = _drawn_height(panels[0].layout)
    # Where a row of panels is fuller than the first, they share its sides, and are one picture.
    whole = len([panel for panel in main if panel.domain("y")[1] == -tops[0]]) < columns
    if columns > per_row and not whole and len({(p.domain("x")[0], p.domain("y")[1]) for p in main}) == len(main):
        rows = -(-len(main) // per_row)
        grid = figure.add_gridspec(rows, per_row)
        cells = [grid[number // per_row, number % per_row] for number in range(len(main))]
        height = rows * (max(drawn / len(tops), *(panel.least_height for panel in main)) + BETWEEN_ROWS)
        firsts = [number % per_row == 0 for number in range(len(main))]
    else:
        widths = [max(p.domain("x")[1] - p.domain("x")[0] for p in main if p.domain("x")[0] == left) for left in lefts]
        heights = [max(p.domain("y")[1] - p.domain("y")[0] for p in main if p.domain("y")[1] == -top) for top in tops]
        grid = figure.add_gridspec(len(tops), columns, width_ratios=widths, height_ratios=heights)
        cells = [grid[_span(tops, -p.domain("y")[1], -p.domain("y")[0]), _span(lefts, *p.domain("x"))] for p in main]
        shares = {top: max(p.least_height for p in main if p.domain("y")[1] == -top) for top in tops}
        height = max(drawn, *(shares[top] * sum(heights) / part for top, part in zip(tops, heights, strict=True)))
        firsts = [False] * len(main)
    for panel, cell, first in zip(main, cells, firsts, strict=True):
        panel.ax = figure.add_subplot(cell)
        panel.ax.first_of_row = first
    for panel in panels:
        if panel.ax is None:
            below = next((one for one in main if one.y == panel.axis("y")["overlaying"]), None)
            if below is None or panel.log("x") != below.log("x"):
                raise CannotDraw("it has one axis on top of another")
            panel.ax = below.ax.twinx()
    return height


def _span(starts: Sequence[float], low: float, high: float) -> slice:
    inside = [number for number, start in enumerate(starts) if low - 1e-6 <= start < high - 1e-6]
    return slice(inside[0], inside[-1] + 1)


def _drawn_height(layout: Mapping) -> float:
    margin = layout.get("margin", {})
    pixels = layout.get("height", 450) - margin.get("t", 80) - margin.get("b", 60)
    return INCHES * max(pixels, 90)


def draw_panel(panel: Panel, width: float) -> None:
    """Draw traces, axes, shapes and hatching of a panel in a figure that is `width` inches wide."""
    ax, layout = panel.ax, panel.layout
    panel.names = {letter: _categories(panel.axis(letter)) for letter in "xy"}
    if bars := [trace for trace in panel.traces if trace["type"] == "bar"]:
        draw_bars(ax, bars, layout, panel.places)
    before = None
    for number, trace in enumerate(panel.traces):
        if trace["type"] == "heatmap":
            image = draw_heatmap(ax, trace, layout, panel.places)
            if image is not None:
                panel.images.append((trace, image))
        elif trace["type"] == "scatter":
            draw_scatter(ax, trace, layout, panel.places, before, OKABE_ITO[number % len(OKABE_ITO)])
            before = trace
    _draw_frame(ax, bool(panel.images))
    for letter in "xy":
        _draw_axis(panel, letter, width)
    if any(image.get("xref", "").startswith(f"{panel.x} ") for image in layout.get("images") or ()):
        ax.patch.set(hatch="//////", edgecolor="#9A9A9A", facecolor="white", linewidth=0)
    for shape in layout.get("shapes") or ():
        if _belongs(shape, panel):
            _draw_shape(ax, shape, panel)


def _categories(axis: Mapping) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(axis.get("categoryarray") or ()))}


def _draw_frame(ax: Any, is_map: bool) -> None:
    for side, spine in ax.spines.items():
        spine.set(linewidth=0.5, color="#6E6E6E", visible=is_map or side in ("left", "bottom"))
    ax.tick_params(labelsize=TICK, width=0.5, length=2, pad=2, color="#6E6E6E", labelcolor=INK, which="both")
    ax.tick_params(which="minor", length=1)


def _draw_axis(panel: Panel, letter: str, width: float) -> None:
    ax, axis = panel.ax, panel.axis(letter)
    line = getattr(ax, f"{letter}axis")
    if axis.get("visible") is False:
        line.set_visible(False)
        return
    if panel.log(letter):
        getattr(ax, f"set_{letter}scale")("log")
        line.set_major_formatter(lambda value, _: power(value))
        line.set_minor_formatter(lambda _value, _: "")
    else:
        line.set_major_formatter(number_format(axis))
    _set_range(panel, letter)
    _set_ticks(panel, letter, width)
    title = axis.get("title")
    if words := plain((title.get("text") if isinstance(title, Mapping) else title) or ""):
        line.set_label_text(words, fontsize=TEXT, color=INK)
        line.labelpad = 3
    if axis.get("showgrid", letter == "y") and not panel.images:
        ax.grid(True, axis=letter, linewidth=0.4, color=rgba(FAINT)[:3], alpha=0.4, zorder=0)
    ax.set_axisbelow(True)
    if axis.get("side") in ("top", "right"):
        line.set_ticks_position(axis["side"])
        line.set_label_position(axis["side"])
        ax.spines[axis["side"]].set_visible(True)
    if axis.get("showticklabels") is False and not (letter == "y" and getattr(ax, "first_of_row", False)):
        line.set_tick_params(labelleft=False, labelright=False, labelbottom=False, labeltop=False, length=0)


def _set_range(panel: Panel, letter: str) -> None:
    axis, ax = panel.axis(letter), panel.ax
    bounds = getattr(ax, f"set_{letter}lim")
    if (ends := axis.get("range")) is not None and None not in list(ends):
        low, high = (10.0**end for end in ends) if panel.log(letter) else map(float, ends)
        bounds(low, high)
        return
    if axis.get("rangemode") == "tozero" and not panel.log(letter):
        low, high = getattr(ax, f"get_{letter}lim")()
        bounds(min(low, 0), max(high, 0))
    if axis.get("autorange") == "reversed":
        low, high = sorted(getattr(ax, f"get_{letter}lim")())
        bounds(high, low)


def _set_ticks(panel: Panel, letter: str, width: float) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    axis, ax = panel.axis(letter), panel.ax
    line = getattr(ax, f"{letter}axis")
    texts, places = list(_texts(axis)), axis.get("tickvals")
    if places is None and panel.names[letter]:
        texts, places = list(panel.names[letter]), list(panel.names[letter].values())
    if places is None:
        if axis.get("nticks") or not panel.log(letter):
            line.set_major_locator(LogLocator(numticks=6) if panel.log(letter) else MaxNLocator(5))
        return
    places = panel.places(letter, places)
    if not texts:
        form = number_format(axis)
        texts = [power(place) if panel.log(letter) else form(place, None) for place in places]
    low, high = sorted(getattr(ax, f"get_{letter}lim")())
    inside = [(place, plain(text)) for place, text in zip(places, texts, strict=True) if low <= place <= high]
    labels = [_whole(text, place, panel.names[letter]) for place, text in inside]
    if letter == "y":
        most = min(LABELS, OF_PANEL / ax.get_subplotspec().get_gridspec().ncols) * width
        labels = ["\n".join(wrapped(text.replace("\n", " "), most, TICK)) for text in labels]
    line.set_ticks([place for place, _ in inside], labels)
    if letter == "x":
        line.set_minor_locator(NullLocator())


def _whole(text: str, place: float, names: Mapping[str, int]) -> str:
    """The name of this place, where the text is its beginning, cut for a screen."""
    if not text.endswith("…"):
        return text
    found = (plain(name) for name, at in names.items() if at == place)
    return next((name for name in found if name.startswith(text[:-1])), text)


def room_for_lines(panel: Panel) -> float:
    """Inches by which a panel is too low for labels of several lines beside it; for a figure that is laid out."""
    labels = [tick.get_text() for tick in panel.ax.yaxis.get_ticklabels()]
    if not any("\n" in label for label in labels):
        return 0.0
    needed, height = _between(labels), panel.ax.get_window_extent().height / panel.ax.figure.dpi
    apart = _apart(panel.ax, "y", panel.ax.yaxis.get_ticklocs()) if len(labels) > 1 else height
    return max(needed / max(apart, 1e-3) - 1, 0.0) * height


def _between(labels: Sequence[str]) -> float:
    """Inches from the middle of a label to that of the next one, which their lines need."""
    lines = [1 + label.count("\n") for label in labels]
    return 1.05 * text_size("x", TICK)[1] * max((sum(pair) / 2 for pair in pairwise(lines)), default=lines[0])


def slant_ticks(panel: Panel, width: float) -> float:
    """Slant the names below a panel that have no room beside each other; `width`: of the panel, inches, at most.

    Returns:
        inches by which the slanted ones are higher than what a figure has room for.
    """
    line = panel.ax.xaxis
    places, labels = line.get_ticklocs(), [tick.get_text() for tick in line.get_ticklabels()]
    if len(labels) < 2 or len(_texts(panel.axis("x"))) + len(panel.names["x"]) == 0:
        return 0.0
    if max(text_size(text, TICK)[0] for text in labels) <= 0.9 * width / len(labels):
        return 0.0
    labels = ["\n".join(wrapped(text, SLANTED, TICK)) for text in labels]
    line.set_ticks(places, labels)
    above = panel.axis("x").get("side") == "top"
    for label in line.get_ticklabels():
        label.set(rotation=SLANT, ha="left" if above else "right", rotation_mode="anchor")
    widest = max(text_size(text, TICK)[0] for text in labels)
    return max(widest - OF_COURSE, 0.0) * float(np.sin(np.radians(SLANT)))


def thin_ticks(panel: Panel) -> None:
    """Leave out names of places that have no room beside or below a panel; for a figure that is laid out."""
    ax = panel.ax
    room = ax.get_window_extent().width / ax.figure.dpi, ax.get_window_extent().height / ax.figure.dpi
    slant_ticks(panel, room[0])
    for letter, length in zip("xy", room, strict=True):
        line = getattr(ax, f"{letter}axis")
        places, labels = line.get_ticklocs(), [tick.get_text() for tick in line.get_ticklabels()]
        if len(labels) < 2 or len(_texts(panel.axis(letter))) + len(panel.names[letter]) == 0:
            continue
        look = {
            name: getattr(line.get_ticklabels()[0], f"get_{name}")() for name in ("rotation", "ha", "rotation_mode")
        }
        if letter == "x" and not look["rotation"]:
            continue
        every = max(1, int(np.ceil(_between(labels) / max(_apart(ax, letter, places) or length, 1e-3))))
        line.set_ticks(places[::every], labels[::every])
        for label in line.get_ticklabels():
            label.set(**look)


def wrap_notes(panel: Panel) -> None:
    """Break titles and texts that are wider than their panel into lines, and leave out those that are wider than the
    bar they stand in; for a figure that is laid out."""
    for text in panel.ax.texts:
        if bar := getattr(text, "bar", None):
            text.set_visible(text.get_window_extent().width <= bar.get_window_extent().width)
    width = panel.ax.get_window_extent().width / panel.ax.figure.dpi
    for text in (panel.ax.title, panel.ax._left_title, *panel.ax.texts):
        if (
            not hasattr(text, "cell_of")
            and text.get_text()
            and text_size(text.get_text(), text.get_fontsize())[0] > width
        ):
            text.set_text("\n".join(wrapped(text.get_text(), max(width, 0.8), text.get_fontsize())))


def _apart(ax: Any, letter: str, places: np.ndarray) -> float:
    """Inches between the nearest two of these places."""
    across = letter == "x"
    at = ax.transData.transform(
        [(place, ax.get_ylim()[0]) if across else (ax.get_xlim()[0], place) for place in places]
    )
    return float(np.abs(np.diff(np.sort(at[:, 0 if across else 1]))).min()) / ax.figure.dpi


def _belongs(mark: Mapping, panel: Panel) -> bool:
    refs = [str(mark.get(f"{letter}ref", letter)).removesuffix(" domain") for letter in "xy"]
    return all(ref in ("paper", own) for ref, own in zip(refs, (panel.x, panel.y), strict=True)) and refs != [
        "paper",
        "paper",
    ]


def _point(panel: Panel, mark: Mapping, names: tuple[str, str], *, is_text: bool) -> tuple[tuple, tuple]:
    """Where a mark stands, and in which coordinates of Matplotlib's: of the numbers, or of the panel's sides."""
    at, kinds = [], []
    for letter, name in zip("xy", names, strict=True):
        ref, value = str(mark.get(f"{letter}ref", letter)), mark.get(name, 0.0)
        if ref == "paper" or ref.endswith(" domain"):
            low, high = panel.domain(letter)
            value = (float(value) - low) / (high - low) if ref == "paper" else float(value)
            kinds.append("axes fraction")
        else:
            value = float(panel.places(letter, [value])[0])
            value = 10.0**value if is_text and panel.log(letter) else value
            kinds.append("data")
        at.append(value)
    return tuple(at), tuple(kinds)


def _draw_shape(ax: Any, shape: Mapping, panel: Panel) -> None:
    from matplotlib.patches import Ellipse, Rectangle
    from matplotlib.transforms import blended_transform_factory

    (x0, y0), kinds = _point(panel, shape, ("x0", "y0"), is_text=False)
    (x1, y1), _ = _point(panel, shape, ("x1", "y1"), is_text=False)
    transform = blended_transform_factory(*(ax.transData if kind == "data" else ax.transAxes for kind in kinds))
    line, label = shape.get("line") or {}, {"label": plain(shape["name"])} if shape.get("showlegend") else {}
    look = {"transform": transform, "linewidth": POINTS * line.get("width", 2), **label}
    look["linestyle"] = DASHES.get(line.get("dash", "solid"), "--")
    strength = shape.get("opacity", 1.0)
    if shape.get("type", "line") == "line":
        *rgb, alpha = rgba(line.get("color", INK))
        ax.plot([x0, x1], [y0, y1], color=rgb, alpha=alpha * strength, zorder=2.2, scalex=False, scaley=False, **look)
        return
    *rgb, alpha = rgba(shape.get("fillcolor", "rgba(0,0,0,0)"))
    colours = {"facecolor": (*rgb, alpha * strength), "edgecolor": rgba(line.get("color", INK))}
    below = {"zorder": 0.5 if shape.get("layer") == "below" else 3.5, "clip_on": True}
    if shape["type"] == "rect":
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, **colours, **look, **below))
    else:
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        ax.add_patch(Ellipse(middle, abs(x1 - x0), abs(y1 - y0), **colours, **look, **below))


def draw_annotations(panels: Sequence[Panel]) -> None:
    """Write the titles of panels, and the texts beside marks."""
    for note in panels[0].layout.get("annotations") or ():
        words = plain(note.get("text", ""))
        if not words.strip():
            continue
        paper = [note.get(f"{letter}ref") == "paper" for letter in "xy"]
        if all(paper) and (panel := _titled(note, panels)):
            panel.ax.set_title(words, fontsize=TEXT, color=INK, pad=4, loc="left" if note["x"] < 0.01 else "center")
            continue
        panel = next((one for one in panels if _belongs(note, one)), None) or _nearest(note, panels)
        _write_note(panel, note, words)


def _titled(note: Mapping, panels: Sequence[Panel]) -> Panel | None:
    for panel in panels:
        (left, right), (_, top) = panel.domain("x"), panel.domain("y")
        if abs(note.get("y", 0) - top) < 1e-3 and note.get("yanchor") == "bottom" and left <= note["x"] <= right:
            return panel if not panel.ax.get_title() else None
    return None


def _nearest(note: Mapping, panels: Sequence[Panel]) -> Panel:
    def distance(panel: Panel) -> float:
        apart = 0.0
        for letter in "xy":
            if note.get(f"{letter}ref") == "paper":
                low, high = panel.domain(letter)
                apart += max(low - note[letter], note[letter] - high, 0)
        return apart

    return min(panels, key=distance)


def _write_note(panel: Panel, note: Mapping, words: str) -> None:
    at, kinds = _point(panel, note, ("x", "y"), is_text=True)
    font = note.get("font") or {}
    shift = POINTS * note.get("xshift", 0), POINTS * note.get("yshift", 0)
    look: dict[str, Any] = {"fontsize": max(POINTS * font.get("size", 12), LEAST), "color": readable(font.get("color"))}
    across = _anchor(note.get("xanchor", "auto"), at[0], kinds[0], ("left", "center", "right"))
    down = _anchor(note.get("yanchor", "auto"), at[1], kinds[1], ("bottom", "middle", "top"))
    look |= {"ha": across, "va": {"middle": "center"}.get(down, down)}
    if note.get("showarrow", True):
        shift = POINTS * note.get("ax", 0), -POINTS * note.get("ay", -30)
        look |= {"ha": "center", "va": "center"}
        look["arrowprops"] = {"arrowstyle": "-|>", "linewidth": 0.6, "color": readable(note.get("arrowcolor"))}
    write(panel.ax, words, at, shift, kinds, **look)


def _anchor(anchor: str, place: float, kind: str, thirds: tuple[str, str, str]) -> str:
    """Which part of a text stands at its place: where Plotly chooses, that of the third of the panel it lies in."""
    if anchor != "auto":
        return anchor
    first, middle, last = thirds
    return middle if kind == "data" or 1 / 3 < place < 2 / 3 else first if place <= 1 / 3 else last


def draw_colour_bars(figure: Any, panels: Sequence[Panel]) -> None:
    """Draw a bar for each range of colours that the figure states."""
    bars: dict[str, tuple[Mapping, Any, list[Any]]] = {}
    for panel in panels:
        for trace, image in panel.images:
            axis = panel.layout.get(trace["coloraxis"], {}) if "coloraxis" in trace else trace
            stated = axis.get("colorbar") or ("coloraxis" in trace)
            if axis.get("showscale", True) and stated:
                key = trace.get("coloraxis") or f"{panel.x}{panel.y}"
                bars.setdefault(key, (axis.get("colorbar") or {}, image, []))[2].append(panel.ax)
    upright = [look for look, _, _ in bars.values() if look.get("orientation") != "h"]
    # A bar between rows of panels would leave as much room between all of them.
    below_each_other = len(bars) > 1 and len({panel.domain("y")[1] for panel in panels}) > 1
    everywhere = [panel.ax for panel in panels] if len(upright) > 1 or below_each_other else []
    for look, image, own in bars.values():
        narrow = figure.get_size_inches()[0] < NARROW and len(panels) > 1
        lies = narrow or look.get("orientation") == "h"
        axes = everywhere or own
        place = {"location": "top", "aspect": 45, "shrink": 0.7} if lies else {"aspect": 22, "shrink": 0.9}
        bar = figure.colorbar(image, ax=axes, pad=0.03 if lies else 0.02, **place)
        bar.outline.set_linewidth(0.4)
        ticks = look.get("tickvals")
        ticks = np.linspace(*image.get_clim(), 3) if ticks is None else np.asarray(ticks, float)
        texts = look.get("ticktext")
        bar.set_ticks(ticks, labels=[signed(t) for t in ticks] if texts is None else [*map(plain, texts)])
        bar.ax.tick_params(labelsize=TICK, width=0.4, length=2, pad=2, labelcolor=INK)
        title = look.get("title")
        words = plain((title.get("text") if isinstance(title, Mapping) else title) or "").replace("\n", " ")
        bar.set_label(words, fontsize=TICK, color=INK)


def legend_entries(panels: Sequence[Panel]) -> dict[str, Any]:
    """What the legend names: label -> what it looks like; empty where the figure has no legend."""
    layout = panels[0].layout
    drawn = [trace for panel in panels for trace in panel.traces if trace["type"] != "heatmap"]
    named = [trace for trace in drawn if trace.get("name") and trace.get("showlegend") is not False]
    shown = layout.get("showlegend")
    asked = any(trace.get("showlegend") for trace in named) or any(
        s.get("showlegend") for s in layout.get("shapes") or ()
    )
    if shown is False or not (shown or asked or len(named) > 1):
        return {}
    entries: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return entries
