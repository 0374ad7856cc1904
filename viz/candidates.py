"""Candidates for a place in a text, with a bar each: the most probable next tokens, or the nearest neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from model.language import tr
from viz.figure import GROUPED_BARS, NO_GRID, StableFigure, bar, escape, figure
from viz.forms import Form, array_name
from viz.theme import DECODER, GUIDE, Array
from viz.tokens import Verbatim, labels, text_width

PERCENT = {"range": [0, 1.15], "tickvals": [0, 0.25, 0.5, 0.75, 1], "tickformat": ".0%"}
"""Axis of probabilities, with room for the number after a bar."""
HEAD, ROW, EACH = 78, 10, 12
"""pixels: around the rows, and of a row besides its bars, and of each of these"""


@dataclass(frozen=True, kw_only=True)
class Candidates(Form):
    """A row for each candidate, the best on top, with a bar for each series and its number behind it."""

    names: Sequence[str]
    """plain text; the last may stand for all others"""
    series: Mapping[str, Array]
    markers: Sequence[Mapping[str, Any]]
    """of each series, in Plotly's words"""
    chosen: int | None = None
    """the one in bold"""
    title: str = "probability, of the whole vocabulary"
    number: str = ".2%"
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """of a series: what stands behind its bars instead of the numbers"""
    explained: Sequence[str] = ()
    """what hovering calls them, where it says more than the names"""

    def draw(self) -> StableFigure:
        names = escape(self.names)
        more = {"customdata": escape(self.explained)} if self.explained else {}
        # Without a text font for the selection Plotly fails on a click.
        font = {"textfont": {"color": GUIDE}}
        more |= {"selected": font, "unselected": font} if self.sets else {}
        more |= {"textfont": {"size": 10}, "constraintext": "none"} if len(self.series) > 1 else {}
        words = {name: {"text": texts} for name, texts in self.words.items()}
        bars = [
            candidate_bars(names, values, name, marker, self.number, **more, **words.get(name, {}))
            for (name, values), marker in zip(self.series.items(), self.markers, strict=True)
        ]
        return figure(
            bars,
            GROUPED_BARS if len(bars) > 1 else {},
            {"xaxis": PERCENT | {"title": self.title}, "yaxis": candidate_axis(names, self.chosen)},
            {"margin": {"l": 21 + text_width(names)}},
            self.layout,
            height=HEAD + (ROW + EACH * len(bars)) * len(names),
            # A bar may be too short to hit, so its whole row shows the hover text.
            hovermode="y",
        )

    def arrays(self) -> dict[str, Array]:
        return {array_name(name): values for name, values in self.series.items()}


def alternatives(tokens: Sequence[str], probabilities: Array, written: int, vocabulary: int, **form: Any) -> Candidates:
    """The most probable tokens at one position, and all others of the vocabulary together.

    Args:
        tokens: pieces, best first, the one that was written among them.
        probabilities: (token,) of the whole vocabulary.
        written: index of the token that was written.
        vocabulary: number of tokens in the vocabulary.
        **form: of the form, such as `sets`.
    """
    opacity = np.where(np.arange(len(tokens) + 1) == written, 1.0, 0.45)
    marker = {"color": DECODER, "opacity": opacity, "pattern": {"shape": [*[""] * len(tokens), "/"]}}
    return Candidates(
        names=candidate_names(tokens, vocabulary - len(tokens)),
        series={"probability": with_rest(probabilities)},
        markers=[marker],
        chosen=written,
        title="probability",
        **form,
    )


def candidate_bars(
    names: Sequence[str], values: Array, name: str, marker: Mapping, number: str = ".2%", **properties: Any
) -> dict:
    """One horizontal bar for each candidate token, its value written after it.

    Args:
        names: names of the candidates, escaped, best first.
        values: (candidate,) probabilities or their differences.
        name: what the values are.
        marker: colour, and hatching.
        number: format of the text after a bar.
        properties: further properties of the trace.
    """
    defaults = {
        "customdata": names,
        "text": [f"{value:{number}}" for value in values],
        "hover": f"%{{customdata}}<br>{name} <b>%{{x:.6f}}</b>",
    }
    look = {"name": name, "marker": marker, "textposition": "outside", "cliponaxis": False}
    return bar(x=values, y=np.arange(len(names)), orientation="h", **look, **defaults | properties)


def candidate_names(pieces: Sequence[str], others: int) -> list[str]:
    """Names of the listed candidates, and last one name for all other tokens of the vocabulary; plain text."""
    return [*labels(pieces), tr("all {others:,} others", others=others)]


def with_rest(probabilities: Array) -> Array:
    """The probabilities and, last, the sum of all that are not listed."""
    return np.append(probabilities, max(1.0 - float(np.sum(probabilities)), 0.0))


def candidate_axis(names: Sequence[str], emphasised: int | None = None) -> dict:
    """The y axis of candidates, best on top, one of them in bold."""
    texts = [Verbatim(f"<b>{name}</b>") if i == emphasised else name for i, name in enumerate(names)]
    return {"tickvals": np.arange(len(names)), "ticktext": texts, "range": [len(names) - 0.5, -0.5]} | NO_GRID
