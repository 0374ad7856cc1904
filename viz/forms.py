"""The forms that most pictures have: maps, bars, strips, curves with points. A form is data; `draw` makes the figure.

Because a picture is data, the same record is drawn on a page, exported as arrays, and read by a test. Names are plain
text, as tokens are; titles are ours and may hold the HTML that Plotly reads. A form grows no parameter for one picture:
such a picture is a figure of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from viz import heatmap as heat
from viz.drawing import Drawing
from viz.figure import (
    GROUPED_BARS,
    INVISIBLE,
    LEGEND_ABOVE,
    StableFigure,
    band,
    bar,
    curve,
    escape,
    figure,
    hline,
    merge,
    panels,
    scatter,
    suffix,
    text,
    vline,
)
from viz.heatmap import cells_height, cells_table, colour_axis, half_bar, map_grid, slanted_room
from viz.labels import say_label
from viz.latex import signed
from viz.theme import FAINT, GUIDE, OKABE_ITO, SIGNED, WEIGHTS, Array, symmetric_range
from viz.tokens import MOST_ROOM, axis_ticks


@dataclass(frozen=True)
class Mark:
    """A line across a picture, or a band from `x` to `to`; `text` stands beside it."""

    x: float | None = None
    y: float | None = None
    to: float | None = None
    text: str = ""
    panel: int = 1
    colour: str = GUIDE
    dash: str = "dot"
    width: float = 1
    at: Mapping[str, Any] = field(default_factory=dict)
    """where the text stands, in Plotly's words"""
    name: str = ""
    """in the legend, instead of a text beside it"""

    def shape(self) -> dict:
        if self.to is not None:
            return band(self.x, self.to, FAINT if self.colour == GUIDE else self.colour, self.panel)
        line = {"color": self.colour, "dash": self.dash, "width": self.width}
        shape = vline(self.x, self.panel, **line) if self.y is None else hline(self.y, self.panel, **line)
        return shape | ({"name": self.name, "showlegend": True} if self.name else {})

    def words(self, log: bool) -> dict:
        if self.y is not None:
            return text(self.text, **{"y": self.y, "yanchor": "bottom", "x": 0.0, "xref": "paper"} | self.at)
        side = {"x": np.log10(self.x) if log else self.x, "xanchor": "left", "xshift": 4, "y": 1, "yanchor": "top"}
        return text(self.text, **side | {"yref": "y domain"} | self.at)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What all forms have."""

    height: int = 360
    marks: Sequence[Mark] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    """what is particular to one picture, in Plotly's words"""
    sets: Mapping[str, Any] = field(default_factory=dict)
    """what a click chooses (a name of `clicked`) -> the control that it sets"""
    chooses: Sequence[Mapping[str, Any]] = ()
    """what a click on each place chooses besides the place, by name"""
    edition: str = ""
    """a picture of another edition has forgotten its last click, so the same place can be clicked again"""
    roomy: ClassVar[bool] = False
    """whether its panels stand below each other on a phone"""

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """What a click on a point of Plotly's chooses, by name."""
        place = point["point_index"]
        return {"place": place} | dict(self.chooses[place] if self.chooses else {})

    def draw(self) -> StableFigure:
        """The figure."""
        raise NotImplementedError

    def arrays(self) -> dict[str, Array]:
        """The numbers that it shows, by name."""
        raise NotImplementedError

    def table(self) -> pd.DataFrame | None:
        """The same as columns of one length; None where they have several lengths."""
        arrays = self.arrays()
        same = len({array.shape for array in arrays.values()}) == 1 and all(a.ndim == 1 for a in arrays.values())
        return pd.DataFrame(arrays) if same else None

    def _marked(self, log: bool = False) -> dict:
        words = [mark.words(log) for mark in self.marks if mark.text]
        return merge({"shapes": [mark.shape() for mark in self.marks]}, {"annotations": words} if words else {})


@dataclass(frozen=True)
class Scale:
    """The colours of maps, and the range that their bar states. Maps with one scale are comparable by eye."""

    low: float
    high: float
    colours: str = SIGNED
    title: str = ""

    @classmethod
    def signed(cls, *arrays: Array, title: str = "") -> "Scale":
        """Centred on 0, as wide as the largest number, which stands below the title if there is one."""
        low, high = symmetric_range(*arrays)
        return cls(low, high, SIGNED, title and f"{title}<br>±{signed(high)}")


WEIGHT = Scale(0, 1, WEIGHTS, "attention<br>weight<br>0 to 1")


@dataclass(frozen=True)
class Map:
    """One of several maps with the same rows."""

    values: Array
    """(row, column)"""
    mask: Array | None = None
    """bool (row, column), True = visible; other cells are hatched. None: all are visible"""
    scale: Scale = WEIGHT
    what: str = "attention weight"
    """what a value is, for the hover text"""
    columns: Sequence[str] | None = None
    """names, where they are not those of the other maps"""

    def panel(self, title: str, axes: Mapping[Scale, str]) -> heat.Map:
        """For `map_grid`; `axes` are the colour axes."""
        mask = np.ones(self.values.shape, bool) if self.mask is None else self.mask
        hover, colours = f"{self.what} <b>%{{z:.7g}}</b>", {"coloraxis": axes[self.scale]}
        return heat.Map(title, self.values, mask, hover, colours, self.columns)


@dataclass(frozen=True)
class Maps(Form):
    """Maps of the same rows and columns beside each other, title -> map; a scale each, or one for all."""

    rows: Sequence[str]
    columns: Sequence[str]
    maps: Mapping[str, Map]
    across: int | None = None
    """how many stand beside each other; None: all"""
    axes: tuple[str, str] = ("query", "key")
    """what rows and columns are"""

    @property
    def roomy(self) -> bool:
        """Several maps need the width."""
        return len(self.maps) > 1

    def clicked(self, point: Mapping[str, Any]) -> dict[str, int]:
        """The row and the column of a cell."""
        row, column, *_ = point["customdata"]
        return {"row": int(row), "column": int(column)}

    def draw(self) -> StableFigure:
        scales = list(dict.fromkeys(one.scale for one in self.maps.values()))
        axes = {scale: f"coloraxis{suffix(number)}" for number, scale in enumerate(scales, start=1)}
        lines = -(-len(self.maps) // (self.across or len(self.maps)))
        widest = max((one.columns or self.columns for one in self.maps.values()), key=len)
        below = 18 + slanted_room(widest, MOST_ROOM)
        height = lines * cells_height(len(self.rows), TALLEST - 180) + 260
        places = [half_bar(0.8), half_bar(0.2)]
        if lines == 1:
            height = min(max(cells_height(len(self.rows), TALLEST) + ABOVE + below, LOWEST), TALLEST_BELOW_CONTROLS)
            places = _halves(height, below)
        traces, layout = map_grid(
            self.rows,
            self.columns,
            [one.panel(title, axes) for title, one in self.maps.items()],
            columns=self.across,
            axes=self.axes,
            **{"horizontal_spacing": 0.03} | ({"vertical_spacing": 0.2} if lines > 1 else {}),
        )
        bars = {
            name: colour_axis(
                scale.colours, scale.low, scale.high, scale.title, **(places[number] if len(scales) > 1 else ALONE)
            )
            for number, (scale, name) in enumerate(axes.items())
        }
        return figure(
            [*traces, *self._points()],
            layout,
            bars,
            self._without_margin() if self.sets else {},
            self._marked(),
            {"height": height, "margin": {"b": below} | ({"r": BESIDE} if scales else {})},
            self.layout,
        )

    def _points(self) -> Iterator[dict]:
        """An invisible point on each cell where a click sets something: Plotly reports clicks on points only."""
        for panel, one in enumerate(self.maps.values() if self.sets else (), start=1):
            rows, columns = escape(self.rows), escape(one.columns or self.columns)
            cells = list(np.ndindex(one.values.shape))
            texts = [
                say_label(f"{one.what} <b>{one.values[c]:.7g}</b>" if one.mask is None or one.mask[c] else "masked")
                for c in cells
            ]
            yield scatter(
                panel=panel,
                x=[columns[column] for _, column in cells],
                y=[rows[row] for row, _ in cells],
                customdata=[[row, column, text] for (row, column), text in zip(cells, texts, strict=True)],
                hover=f"%{{customdata[2]}}<br>{self.axes[0]} %{{y}}<br>{self.axes[1]} %{{x}}",
                **INVISIBLE,
            )

    def _without_margin(self) -> dict:
        """Axes that end with the last cell; points would get a margin around them."""
        count, every = len(self.rows), range(1, len(self.maps) + 1)
        return merge(
            panels("xaxis", every, {"range": [-0.5, len(self.columns) - 0.5]}),
            panels("yaxis", every, {"autorange": False, "range": [count - 0.5, -0.5]}),
        )

    def arrays(self) -> dict[str, Array]:
        masks = [one.mask for one in self.maps.values() if one.mask is not None]
        return {array_name(title): one.values for title, one in self.maps.items()} | (
            {"mask": masks[-1]} if masks else {}
        )

    def table(self) -> pd.DataFrame | None:
        arrays = self.arrays()
        if any(array.shape != (len(self.rows), len(self.columns)) for array in arrays.values()):
            return None
        return cells_table(self.rows, self.columns, arrays)


TALLEST, TALLEST_BELOW_CONTROLS = 520, 430
"""pixels of a picture that is on a screen of 1280 x 720 below the heading and the tabs, and below controls, too"""
ABOVE, LOWEST = 40, 290
"""pixels above a line of maps, for their titles; and of the whole, for the titles of two colour bars"""
BESIDE = 146
"""pixels for the colour bars at the right and their titles"""
ALONE = {"len": 1, "y": 0.5}
"""place of a colour bar that has the whole height"""


def _halves(height: int, below: int) -> list[dict[str, Any]]:
    """Places of two colour bars in the halves of a figure, whose maps alone have no height for two bars and titles.

    `below`: pixels of the figure below the maps.
    """
    maps = height - ABOVE - below
    middles = (1 + (ABOVE - height * part) / maps for part in (0.25, 0.75))
    return [half_bar(y) | {"len": (height / 2 - 16) / maps} for y in middles]


@dataclass(frozen=True)
class Strips(Form):
    """Vectors of one token, one above the other, name -> (d,), in one range of colours."""

    vectors: Mapping[str, Array]
    title: str = "dimension"
    dimension: int | None = None
    """the one to frame"""

    def draw(self) -> StableFigure:
        limits = symmetric_range(*self.vectors.values())
        return heat.vector_strips(self.vectors, self.dimension, limits, self.title, self.height)

    def arrays(self) -> dict[str, Array]:
        return {array_name(name): vector for name, vector in self.vectors.items()}


@dataclass(frozen=True)
class Bars(Form):
    """A bar for each name and series: grouped, or laid over each other."""

    names: Sequence[str] | Array
    """of the places, or the numbers of places on an axis"""
    series: Mapping[str, Array]
    titles: tuple[str, str]
    """of the axes"""
    range: tuple[float, float] | None = None
    """of the values; None: as they are"""
    colours: Sequence[Any] = OKABE_ITO
    """of each series: a colour, or Plotly's marker"""
    mode: str = "group"
    """group or overlay"""
    number: str = ".7g"
    unit: str = ""
    what: str = "position"
    """what a place is, for the hover text"""
    dots: Mapping[str, Array] = field(default_factory=dict)
    """further series, drawn as diamonds"""
    details: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """of a series: a text for each place, for the hover text"""

    def draw(self) -> StableFigure:
        named = not isinstance(self.names, np.ndarray)
        places = np.arange(len(self.names)) if named else self.names
        colours = list(self.colours) * len(self.series)
        traces = [
            bar(
                x=places,
                y=values,
                name=title,
                marker=marker if isinstance(marker, Mapping) else {"color": marker},
                **self._hover(title, named),
                **({"width": places[1] - places[0]} if self.mode == "overlay" else {}),
                **(UNDIMMED if self.sets else {}),
            )
            for (title, values), marker in zip(self.series.items(), colours, strict=False)
        ]
        traces += [
            scatter(x=places, y=values, name=title, mode="markers", marker=DIAMOND, hover=f"{title} <b>%{{y:.5g}}</b>")
            for title, values in self.dots.items()
        ]
        ticks = axis_ticks(self.names) if named else {}
        own = {"range": list(self.range), "zeroline": True} if self.range else {}
        return figure(
            traces,
            GROUPED_BARS if self.mode == "group" else {"barmode": "overlay", "legend": LEGEND_ABOVE},
            {"xaxis": ticks | {"title": self.titles[0]}, "yaxis": {"title": self.titles[1]} | own},
            self._marked(),
            self.layout,
            height=self.height,
        )

    def _hover(self, title: str, named: bool) -> dict:
        texts = [*([escape(self.names)] if named else []), *([self.details[title]] if title in self.details else [])]
        place = f"{self.what} %{{x}}: %{{customdata[0]}}" if named else f"{self.what} %{{x:.5g}}"
        detail = f"<br>%{{customdata[{len(texts) - 1}]}}" if title in self.details else ""
        hover = f"{place}<br>{title} <b>%{{y:{self.number}}}</b>{self.unit}{detail}"
        return {"hover": hover} | ({"customdata": list(zip(*texts, strict=True))} if texts else {})

    def arrays(self) -> dict[str, Array]:
        places = {"place": self.names} if isinstance(self.names, np.ndarray) else {}
        return places | {array_name(title): values for title, values in {**self.series, **self.dots}.items()}

    def table(self) -> pd.DataFrame | None:
        return pd.DataFrame({self.titles[0]: list(self.names)} | self.arrays())


UNDIMMED = {"unselected": {"marker": {"opacity": 1}}}
"""what a click does not choose looks as before; the picture itself shows what is chosen"""
DIAMOND = {"symbol": "diamond", "size": 10, "color": GUIDE, "line": {"width": 1.5, "color": "#FFFFFF"}}


@dataclass(frozen=True)
class Line:
    """A series of points, joined or not."""

    x: Array | Sequence[float]
    y: Array | Sequence[float]
    colour: str = OKABE_ITO[0]
    symbol: str = ""
    """of a point; empty: the line alone"""
    dash: str = "solid"
    """"": the points alone"""
    width: float = 2
    size: float = 8
    names: Sequence[str] | Array | None = None
    """of the points, for the hover text"""
    labelled: bool = False
    """whether these names stand beside the points, on the side where there is room"""
    between: tuple[Array, Array] | None = None
    """lower and upper ends: error bars where there are symbols, else a band"""


@dataclass(frozen=True)
class Lines(Form):
    """Curves and points over two axes of numbers, name -> line."""

    lines: Mapping[str, Line]
    titles: tuple[str, str]
    number: str = ".7g"
    log: str = ""
    """which axes are logarithmic: "", "x", "y" or "xy" """
    ticks: Sequence[float] | Sequence[str] = ()
    """marked on the x axis; names stand at 0, 1, 2 ..."""
    of: str = ""
    """what a named point is, for the hover text"""

    def draw(self) -> StableFigure:
        named = bool(len(self.ticks)) and isinstance(self.ticks[0], str)
        ticks = axis_ticks(self.ticks) if named else {}
        if len(self.ticks) and not named:
            ticks = {"tickvals": list(self.ticks), "ticktext": [f"{value:g}" for value in self.ticks]}
        axes = {
            f"{letter}axis": {"title": title} | ({"type": "log"} if letter in self.log else {})
            for letter, title in zip("xy", self.titles, strict=True)
        }
        return figure(
            [trace for name, line in self.lines.items() for trace in self._traces(name, line)],
            {"xaxis": ticks},
            axes,
            self._marked("x" in self.log),
            self.layout,
            height=self.height,
            legend=LEGEND_ABOVE,
            showlegend=True,
        )

    def _traces(self, name: str, line: Line) -> Iterator[dict]:
        more: dict[str, Any] = {}
        if line.between and not line.symbol:
            edge = {"mode": "lines", "line": {"width": 0}, "x": line.x}
            yield scatter(y=line.between[1], showlegend=False, **edge)
            yield scatter(y=line.between[0], fill="tonexty", fillcolor=FAINT, name=name, **edge)
            return
        if line.between:
            low, high = (np.abs(end - line.y) for end in line.between)
            more["error_y"] = {"type": "data", "symmetric": False, "array": high, "arrayminus": low}
        named = bool(len(self.ticks)) and isinstance(self.ticks[0], str)
        hover = f"{self.of} %{{customdata}}<br>" if line.names is not None else ""
        hover += "" if named else f"{self.titles[0]} %{{x:.5g}}<br>"
        hover += f"{name} <b>%{{y:{self.number}}}</b>"
        if line.names is not None:
            more["customdata"] = escape(map(str, line.names))
        mode = "markers"
        if line.labelled:
            mode, middle = "markers+text", (min(line.x) + max(line.x)) / 2
            sides = ["middle right" if x < middle else "middle left" for x in line.x]
            more |= {"text": more["customdata"], "textposition": sides, "textfont": {"size": 12}}
        hollow = {"line": {"width": 3}} if line.symbol.endswith("open") and line.size > 12 else {}
        marker = {"symbol": line.symbol, "size": line.size, "color": line.colour} | hollow
        if not line.dash:
            yield scatter(x=line.x, y=line.y, name=name, mode=mode, marker=marker, hover=hover, **more)
            return
        look = {"dash": line.dash, "width": line.width, "symbol": line.symbol} | (
            {"marker": marker} if line.symbol else {}
        )
        yield curve(line.x, line.y, name, line.colour, hover=hover, **look, **more)

    def arrays(self) -> dict[str, Array]:
        parts = {name: {"x": line.x, "y": line.y} for name, line in self.lines.items() if not line.between}
        parts |= {
            name: {"x": line.x, "y": line.y, "low": line.between[0], "high": line.between[1]}
            for name, line in self.lines.items()
            if line.between
        }
        return {f"{array_name(n)}_{axis}": np.asarray(v) for n, axes in parts.items() for axis, v in axes.items()}


@dataclass(frozen=True)
class Canvas:
    """A picture of our own, and the controls that a move in it sets."""

    drawing: Drawing
    sets: Mapping[str, Any] = field(default_factory=dict)
    """event -> control, or for an event of several values: name of the value -> control"""
    saves: bool = True
    """whether its script can save it as a file"""


@dataclass(frozen=True)
class Table:
    """A table with explained columns, of which a click on a row sets controls."""

    frame: pd.DataFrame
    floats: str = "%.5g"
    """format of numbers"""
    formats: Mapping[str, str] = field(default_factory=dict)
    """that of single columns, such as "percent" """
    helps: Mapping[str, str] = field(default_factory=dict)
    """what a column holds, by its title"""
    pinned: Sequence[str] = ()
    """columns that stay in view"""
    most_rows: int = 50
    """shown without scrolling"""
    ticked: int | None = None
    """the row that is chosen already"""
    chooses: Sequence[Mapping[str, Any]] = ()
    """what a click on each row chooses, by name"""
    sets: Mapping[str, Any] = field(default_factory=dict)
    """such a name -> the control that it sets"""


@dataclass(frozen=True)
class Texts:
    """Texts side by side as plain text, because they may quote what a person typed; title -> text."""

    texts: Mapping[str, str]
    compared: bool = False
    """whether words are marked that the first one lacks, or that it has and the others do not"""

    @property
    def first(self) -> str:
        """The one with which the others are compared."""
        return next(iter(self.texts.values()))


@dataclass(frozen=True)
class Outcome:
    """What a change does to a text: its words before and after, and two numbers of it with their difference."""

    title: str
    before: str
    after: str
    scores: Mapping[str, float]
    """what each of the two numbers is -> the number"""

    def arrays(self) -> dict[str, Array]:
        """The two numbers, by name."""
        return {array_name(name): np.array(score) for name, score in self.scores.items()}

    def words(self) -> dict[str, str]:
        """The numbers, and the second minus the first, as they are written."""
        first, second = self.scores.values()
        shown = {name: signed(score, ".3f") for name, score in self.scores.items()}
        shown["difference"] = signed(second - first, "+.3f")
        return {name: text.replace("nan", "NaN").replace("+NaN", "NaN") for name, text in shown.items()}


@dataclass(frozen=True)
class Document:
    """Markdown that somebody else wrote, such as a README: drawn apart from our text, with nothing that is fetched."""

    text: str
    file: str = ""
    """the name under which `content` can be saved; empty: there is nothing to save"""
    content: str = ""
    """lines of Python"""

    @classmethod
    def of_code(cls, text: str, language: str) -> "Document":
        """Lines of code, whatever they contain."""
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        return cls(f"{fence}{language}\n{text}\n{fence}")

    @classmethod
    def of_file(cls, text: str, file: str) -> "Document":
        """A file of Python, to read, copy and save."""
        return replace(cls.of_code(text, "python"), file=file, content=text)

    @property
    def calm(self) -> str:
        """The text with headings two levels lower, images as links so that none is fetched, and without the YAML that
        a Hugging Face README begins with. What looks like code but may be none keeps its text, parted."""
        text = re.sub(r"(?s)\A---\n.*?\n---\n", "", self.text)
        pieces = re.split(r"(?ms)(^```.*?^```)", text)
        for i in range(0, len(pieces), 2):
            pieces[i] = re.sub(r"(?m)^(#{1,4} )", r"##\1", pieces[i]).replace("![", "[")
        return "".join(pieces).replace("![", "!\u2060[")


def stretches(flags: Array) -> list[tuple[int, int]]:
    """First and last position of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def array_name(title: str) -> str:
    """A title as the name of an array: its words, without markup, joined by underscores."""
    words = "".join(c if c.isalnum() or c in "τ·√" else " " for c in title.partition(":")[0].replace("<br>", " "))
    return "_".join(words.lower().split())
