"""Type and colours on white paper: text that can be read, in a font that every file brings along."""

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from functools import cache, lru_cache
from typing import Any

import numpy as np
import plotly.colors

from model.language import printed

FONT = "DejaVu Sans"
"""comes with Matplotlib, so that files look the same from every machine"""
TEXT, SMALL, LEAST = 7.5, 6.5, 6.0
"""sizes of type in points: of titles and axes, of the caption, and of anything"""
POINTS = 0.625
"""points for a pixel of the page: its labels have 12 pixels"""
INCHES = 0.0078
"""inches of height for a pixel of the page"""
INK = "#1F1F1F"
LEAST_CONTRAST = 4.5
"""of text (WCAG 1.4.3)"""

_RAISED = str.maketrans("0123456789+−-nT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿᵀ")
_LOWERED = str.maketrans("0123456789+-aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_RGB = re.compile(r"rgba?\(([^)]*)\)")
Colour = tuple[float, float, float, float]


@cache
def load_matplotlib() -> Any:
    """Matplotlib, imported when the first figure is saved: it takes most of a second, and most visits need none.

    Text is text, even with dollar signs in it. A PDF has its fonts as TrueType, an SVG as outlines.
    """
    import matplotlib

    matplotlib.rcParams.update(
        {
            "text.parse_math": False,
            "axes.unicode_minus": False,
            "pdf.fonttype": 42,
            "svg.fonttype": "path",
            "font.family": FONT,
            "hatch.linewidth": 0.4,
        }
    )
    return matplotlib


def plain(text: Any) -> str:
    """Text of a Plotly figure without the HTML that Plotly reads."""
    words = str(text)
    if "<" not in words and "&" not in words:
        return words
    words = re.sub(r"<br ?/?>", "\n", words)
    words = re.sub(r"<sup>(.*?)</sup>", lambda found: found[1].translate(_RAISED), words)
    words = re.sub(r"<sub>(.*?)</sub>", lambda found: _lowered(found[1]), words)
    return html.unescape(re.sub(r"</?(b|i|em|strong|span|sup|sub)\b[^>]*>", "", words))


def _lowered(text: str) -> str:
    """As a subscript where there are letters for all of it, as in dₖ; else after an underscore, as in d_model."""
    return text.translate(_LOWERED) if all(ord(letter) in _LOWERED for letter in text) else f"_{text}"


def power(number: float) -> str:
    """A number of a logarithmic axis: 0.01, 100, 10⁶."""
    exponent = round(np.log10(number)) if number > 0 else 0
    if number > 0 and np.isclose(number, 10.0**exponent) and not -3 < exponent < 5:
        return f"10{str(exponent).translate(_RAISED)}"
    return written(number)


def written(number: float) -> str:
    """A number of an axis, with the true minus sign."""
    return printed(f"{number:,.5g}").replace("-", "−") if abs(number) < 1e5 else f"{number:,.0f}".replace("-", "−")


def missing_letters(texts: Iterable[str]) -> str:
    """The letters that the font of the files does not have."""
    known = _letters()
    return "".join(dict.fromkeys(c for text in texts for c in text if c != "\n" and ord(c) not in known))


@cache
def _letters() -> Set[int]:
    """The code points of letters that the font has."""
    load_matplotlib()
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont(FONT)).get_charmap().keys()


def spelled(text: str) -> str:
    """The text, with the code points of letters that the font does not have."""
    lacking = missing_letters([text])
    return "".join(f"U+{ord(c):04X}" if c in lacking else c for c in text)


@lru_cache(4096)
def text_size(text: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Width and height in inches of the widest line of a text of `size` points, and of a line."""
    load_matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight=weight)
    measured = [text_to_path.get_text_width_height_descent(line or " ", font, False) for line in text.split("\n")]
    return max(width for width, *_ in measured) / 72, 1.25 * size / 72


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """The lines of a text that is `width` inches wide at most; a word that is too long is cut."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in _pieces(paragraph, width, size, weight):
            longer = f"{line} {word}" if line else word
            if line and text_size(longer, size, weight)[0] > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def _pieces(paragraph: str, width: float, size: float, weight: str) -> Iterable[str]:
    for word in paragraph.split():
        while len(word) > 1 and text_size(word, size, weight)[0] > width:
            shorter = range(2, len(word))
            fits = 1 + bisect_right(shorter, width, key=lambda n: text_size(word[:n], size, weight)[0])
            yield word[:fits]
            word = word[fits:]
        yield word


def rgba(colour: Any) -> Colour:
    """Red, green, blue and opacity, 0 to 1, of a colour as Plotly takes it."""
    from matplotlib.colors import to_rgba

    if found := _RGB.fullmatch(str(colour)):
        parts = [float(part) for part in found[1].split(",")]
        return (*(part / 255 for part in parts[:3]), parts[3] if len(parts) > 3 else 1.0)
    return to_rgba(colour)


def over_white(colour: Colour) -> Colour:
    """What a colour looks like on paper."""
    *parts, opacity = colour
    return (*(opacity * part + 1 - opacity for part in parts), 1.0)


def luminance(colour: Sequence[float]) -> float:
    """Relative luminance (WCAG 2), 0 to 1."""
    parts = np.asarray(colour[:3], float)
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """Contrast of two colours (WCAG 2), 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(colour: Any) -> Colour:
    """The colour, as much darker as text on white needs."""
    shade = over_white(rgba(colour or INK))
    while contrast(shade, (1, 1, 1)) < LEAST_CONTRAST:
        shade = (*(0.93 * part for part in shade[:3]), 1.0)
    return shade


def ink_on(colour: Colour) -> str:
    """Black or white, whichever is easier to read on this colour."""
    return "#000000" if luminance(over_white(colour)) > 0.179 else "#FFFFFF"


def colour_map(scale: Any) -> Any:
    """A colour scale of Plotly's, by its name or as a list, for Matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    anchors = plotly.colors.get_colorscale(scale) if isinstance(scale, str) else scale
    return LinearSegmentedColormap.from_list("scale", [(float(at), rgba(colour)) for at, colour in anchors])
