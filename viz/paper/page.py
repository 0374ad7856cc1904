"""A figure as a file: its width in inches, its title and caption, its format."""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.language import Sentence, sentence_of
from viz.forms import Form, Texts
from viz.paper.look import INK, SMALL, TEXT, load_matplotlib, missing_letters, plain, spelled, text_size, wrapped
from viz.paper.panels import (
    Panel,
    check_parts,
    draw_annotations,
    draw_colour_bars,
    draw_panel,
    legend_entries,
    panels_of,
    place_panels,
    room_for_lines,
    slant_ticks,
    thin_ticks,
    wrap_notes,
)
from viz.paper.traces import CannotDraw

FORMATS = "svg", "pdf", "png"
COLUMNS = {1: 3.25, 2: 6.75}
"""width in inches of a figure that takes one or two columns of a page"""
DPI = 300
"""of a PNG"""
CAPTIONS = "below", "metadata", "none"
EDGE = 0.04
"""inches around everything"""
TALLEST = 9.0
"""inches of height that a page has room for"""


@dataclass(frozen=True)
class Paper:
    """How a figure is saved."""

    format: str = "pdf"
    """one of FORMATS"""
    columns: int = 2
    """1 or 2"""
    caption: str = "below"
    """where the caption stands, one of CAPTIONS; the title stands in the metadata in any case"""

    def __post_init__(self) -> None:
        if self.format not in FORMATS or self.columns not in COLUMNS or self.caption not in CAPTIONS:
            raise ValueError(f"there is no paper such as {self}")

    @property
    def width(self) -> float:
        """In inches."""
        return COLUMNS[self.columns]


def save(picture: Any, paper: Paper, title: str, caption: Sequence[str] = (), origin: str = "") -> bytes:
    """The picture as a file.

    Args:
        picture: a form, a figure from viz.figure, or Texts.
        paper: how it is saved.
        title: what it shows, plain text.
        caption: what it is of, plain text, a line each.
        origin: which run and model it is of, for the metadata, whatever the caption.

    Raises:
        CannotDraw: it holds what Matplotlib cannot draw, or a letter that its font does not have; the message says so.
    """
    figure = draw(picture, paper, title, caption)
    load_matplotlib()
    file = io.BytesIO()
    said = "\n".join(caption) if paper.caption != "none" else ""
    figure.savefig(file, format=paper.format, dpi=DPI, metadata=_metadata(paper.format, title, said, origin))
    return file.getvalue()


def _metadata(file_format: str, title: str, caption: str, origin: str) -> dict[str, Any]:
    maker = "Attention Explorer"
    if file_format == "pdf":
        return {"Title": title, "Subject": caption, "Creator": maker, "Keywords": origin}
    if file_format == "svg":
        return {"Title": title, "Description": caption, "Creator": maker, "Source": origin}
    # A PNG's own texts are Latin-1; Pillow writes others as international text.
    return {"Title": title, "Description": caption, "Software": maker, "Source": origin}


def reason_not_to_draw(picture: Any) -> Sentence | str:
    """Why Matplotlib cannot draw a form, a figure or Texts; empty where it can. Draws nothing."""
    try:
        _check(picture if isinstance(picture, Texts) else _content(picture))
    except CannotDraw as problem:
        return sentence_of(problem)
    return ""


def _content(picture: Any) -> Mapping:
    return (picture.draw() if isinstance(picture, Form) else picture).content


def _check(content: Any) -> None:
    if isinstance(content, Texts):
        texts = [*content.texts, *content.texts.values()]
    else:
        check_parts(content)
        texts = [plain(text) for text in dict.fromkeys(_texts_of(content))]
    if letters := missing_letters(texts):
        raise CannotDraw("the font of these files does not have {letters}", letters=letters[:8])


def _texts_of(part: Any, name: str = "") -> Iterator[str]:
    """What a figure may write: all its texts but those that hovering says, and pictures."""
    if name in ("customdata", "hovertemplate", "source", "hovertext"):
        return
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield from _texts_of(value, key)
    elif isinstance(part, list | tuple) or (isinstance(part, np.ndarray) and part.dtype.kind in "OU"):
        for value in part:
            yield from _texts_of(value)


def draw(picture: Any, paper: Paper, title: str, caption: Sequence[str] = ()) -> Any:
    """The picture as a figure of Matplotlib's, laid out; arguments and errors as of `save`."""
    load_matplotlib()
    from matplotlib.figure import Figure

    content = picture if isinstance(picture, Texts) else _content(picture)
    _check(content)
    figure = Figure(figsize=(paper.width, 4), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=EDGE, h_pad=EDGE, wspace=0.03, hspace=0.04)
    below = list(caption) if paper.caption == "below" else []
    text = _Text(figure, paper.width, title if below else "", below)
    if isinstance(content, Texts):
        _draw_texts(figure, content, text)
    else:
        _draw_figure(figure, content, text)
    return figure


class _Text:
    """Title and caption: bands below the figure that the layout leaves free, and the legend above it."""

    def __init__(self, figure: Any, width: float, title: str, caption: Sequence[str]) -> None:
        self.figure, self.width = figure, width
        room = width - 2 * EDGE
        titles = wrapped(spelled(title), room, TEXT - 0.5, "bold") if title else []
        lines = [line for one in caption for line in wrapped(spelled(one), room, SMALL)]
        self.lines = [(line, TEXT - 0.5, "bold") for line in titles] + [(line, SMALL, "normal") for line in lines]
        self.height = sum(text_size(line, size)[1] for line, size, _ in self.lines) + (2 * EDGE if self.lines else 0)
        self.legend: Any = None

    def fit(self, height: float) -> None:
        """Make the figure `height` inches high, text included."""
        self.figure.set_size_inches(self.width, height)
        self.figure.get_layout_engine().set(rect=(0, self.height / height, 1, 1 - self.height / height))

    def write(self) -> None:
        """Write it, from the upper line of the band below the figure."""
        height = self.figure.get_size_inches()[1]
        y = self.height - EDGE
        for line, size, weight in self.lines:
            look = {"fontsize": size, "fontweight": weight, "color": INK, "va": "top", "ha": "left"}
            self.figure.text(EDGE / self.width, y / height, line, **look)
            y -= text_size(line, size)[1]


def _draw_figure(figure: Any, content: Mapping, text: _Text) -> None:
    panels = panels_of(content)
    if not panels:
        raise CannotDraw("there is nothing in it")
    height = place_panels(figure, panels, text.width)
    for panel in panels:
        draw_panel(panel, text.width)
    square = all(panel.square for panel in panels)
    if square:
        for panel in panels:
            panel.ax.set_aspect("equal", adjustable="box")
    _share_axes(panels)
    draw_annotations(panels)
    draw_colour_bars(figure, panels)
    if entries := legend_entries(panels):
        _draw_legend(figure, entries, text.width)
    height = _fit_labels(figure, panels, text, min(height, TALLEST))
    for _ in range(3):
        figure.draw_without_rendering()
        used = _used_height(figure) + 2 * EDGE + text.height
        if abs(used - height) < 0.02 or not square:
            break
        height = used
        text.fit(height)
    text.write()
    figure.draw_without_rendering()


def _fit_labels(figure: Any, panels: Sequence[Panel], text: _Text, height: float) -> float:
    """Lay the figure out with room for whole labels, where its panels are `height` inches high; the height of all."""
    rows: dict[int, float] = {}
    for panel in panels:
        place = panel.ax.get_subplotspec()
        higher = slant_ticks(panel, 0.8 * text.width / place.get_gridspec().ncols)
        rows[place.rowspan.start] = max(rows.get(place.rowspan.start, 0.0), higher)
    height += 0.5 + sum(rows.values()) + text.height
    text.fit(height)
    figure.draw_without_rendering()
    if higher := max(map(room_for_lines, panels)):
        height = min(height + higher, max(height, TALLEST + text.height))
        text.fit(height)
        figure.draw_without_rendering()
    for panel in panels:
        thin_ticks(panel)
        wrap_notes(panel)
    return height


def _used_height(figure: Any) -> float:
    """Inches from the lowest to the highest thing that is drawn."""
    renderer = figure._get_renderer()
    boxes = [part.get_tightbbox(renderer) for part in (*figure.axes, *figure.legends)]
    boxes = [box for box in boxes if box is not None]
    return (max(box.y1 for box in boxes) - min(box.y0 for box in boxes)) / figure.dpi


def _share_axes(panels: Sequence[Panel]) -> None:
    """Give axes that match each other one range, where they have none of their own."""
    for letter in "xy":
        groups: dict[str, list[Panel]] = {}
        for panel in panels:
            if matched := panel.axis(letter).get("matches"):
                groups.setdefault(matched, []).append(panel)
        for first, group in groups.items():
            everyone = [*(p for p in panels if getattr(p, letter) == first), *group]
            if any(panel.axis(letter).get("range") is not None or panel.images for panel in everyone):
                continue
            limits = [getattr(panel.ax, f"get_{letter}lim")() for panel in everyone]
            for panel in everyone:
                ends = min(min(limit) for limit in limits), max(max(limit) for limit in limits)
                turned = limits[0][0] > limits[0][1]
                getattr(panel.ax, f"set_{letter}lim")(*(reversed(ends) if turned else ends))


def _draw_legend(figure: Any, entries: dict[str, Any], width: float) -> None:
    size, room = TEXT - 0.5, width - 2 * EDGE
    labels = ["\n".join(textwrap.wrap(label, 60)) or " " for label in entries]
    widest = max(text_size(label, size)[0] for label in labels) + 0.42
    columns = max(1, min(len(labels), int(room / widest)))
    place = {"loc": "outside upper left", "ncols": columns, "frameon": False}
    figure.legend(entries.values(), labels, fontsize=size, labelcolor=INK, handlelength=1.8, borderpad=0.2, **place)


def _draw_texts(figure: Any, texts: Texts, text: _Text) -> None:
    """Titles with their texts, one below the other, in the width of the figure."""
    lines: list[tuple[str, float, str]] = []
    for title, words in texts.texts.items():
        lines += [(line, TEXT, "bold") for line in wrapped(plain(title), text.width - 2 * EDGE, TEXT, "bold")]
        lines += [(line, TEXT, "normal") for line in wrapped(words or "(an empty text)", text.width - 2 * EDGE, TEXT)]
        lines.append(("", SMALL, "normal"))
    text.lines = [*lines, *text.lines]
    text.height += sum(text_size(line, size)[1] for line, size, _ in lines) + 2 * EDGE
    figure.set_layout_engine("none")
    figure.set_size_inches(text.width, text.height + EDGE)
    text.write()
