"""Colours that text is written in can be read on light and on dark: WCAG 2.2, success criterion 1.4.3, level AA."""

import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from viz.latex import DIMMED
from viz.paper.look import contrast, luminance, rgba
from viz.theme import DECODER, ENCODER, KEY, OKABE_ITO, QUERY, VALUE, colour_scales

ROOT = Path(__file__).parents[2]
STYLE = (ROOT / "pages/frame/style/style.css").read_text("utf-8")
THEME = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
PAPER = {"light": ("#FFFFFF", "#F8F8F7"), "dark": ("#171614", "#21201D")}
"""Streamlit's backgrounds: of the page, and of the sidebar"""
TINT = 0.1
"""how much of the primary colour is behind a chosen option"""


def test_contrast_is_what_the_guideline_says() -> None:
    assert contrast(rgba("#FFFFFF"), rgba("#000000")) == pytest.approx(21)
    assert contrast(rgba("#777777"), rgba("#FFFFFF")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colour", [QUERY, KEY, VALUE, DIMMED])
def test_a_formula_s_colours_can_be_read(colour: str) -> None:
    (rule,) = re.findall(rf'\[style\*="{colour}" i\].*?light-dark\((#\w+), (#\w+)\)', STYLE)
    for shade, scheme in zip(rule, PAPER, strict=True):
        assert contrast(rgba(shade), rgba(PAPER[scheme][0])) >= 4.5, scheme


@pytest.mark.parametrize("scheme", PAPER)
def test_a_chosen_option_can_be_read(scheme: str) -> None:
    primary = rgba(THEME[scheme]["primaryColor"])
    for paper in map(rgba, PAPER[scheme]):
        behind = [TINT * ours + (1 - TINT) * theirs for ours, theirs in zip(primary, paper, strict=True)]
        assert contrast(primary, paper) >= 4.5
        assert contrast(primary, behind) >= 4.5


@pytest.mark.parametrize("colour", [QUERY, KEY, VALUE])
def test_borders_and_lines_of_queries_keys_and_values_are_seen_on_both_schemes(colour: str) -> None:
    for papers in PAPER.values():
        assert contrast(rgba(colour), rgba(papers[0])) >= 3


def test_roles_have_different_colours() -> None:
    assert len({QUERY, KEY, VALUE}) == 3
    assert ENCODER != DECODER
    assert len(set(OKABE_ITO)) == 8


@pytest.mark.parametrize("name", ["style", "narrow", "present"])
def test_the_pages_style_reaches_the_browser(name: str) -> None:
    sheet = (ROOT / f"pages/frame/style/{name}.css").read_text("utf-8")
    assert "<" not in sheet, "a style with an opening bracket in it is taken for markup, and all of it left out"


SCRIPTS = ROOT / "viz/canvas/js"
INK = {"light": "#31333F", "dark": "#FAFAFA"}
"""Streamlit's colour of text"""
BEHIND = {"light": (*PAPER["light"], "#F0F2F6"), "dark": (*PAPER["dark"], "#262730")}
"""what text in a picture of our own stands on"""
NO_TEXT = ("disabled", ".again", " svg", "canvas")
"""in selectors of what has no text, or cannot be used as long as it is pale"""


def faded(ink: list[float], paper: list[float], share: float) -> list[float]:
    return [share * ours + (1 - share) * theirs for ours, theirs in zip(ink, paper, strict=True)]


def shares_on_canvases() -> dict[str, float]:
    """Where a script writes text on a canvas -> how opaque it does so at least."""
    shares = {}
    for file in sorted(SCRIPTS.rglob("*.js")):
        now = 1.0
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if re.match(r"(function |  \w+\([^;]*\) \{$)", line):
                now = 1.0
            if set_to := re.search(r"globalAlpha = (.*);", line):
                now = min(map(float, re.findall(r"(?<![\w.])[01](?:\.\d+)?(?![\w.])", set_to[1])), default=1.0)
            if "fillText(" in line:
                shares[f"{file.name}:{number}"] = now
    return shares


def shares_in_styles() -> dict[str, float]:
    """Selector of a picture's style -> how opaque it makes its text."""
    return {
        f"{file.name} {selector.strip()}": float(share[1])
        for file in sorted(SCRIPTS.rglob("*.css"))
        for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", file.read_text("utf-8"))
        if (share := re.search(r"(?<!-)opacity: ([\d.]+)", body)) and not any(one in selector for one in NO_TEXT)
    }


@pytest.mark.parametrize("scheme", PAPER)
def test_pale_text_in_our_own_pictures_can_be_read(scheme: str) -> None:
    shares = shares_on_canvases() | shares_in_styles()
    assert len(shares) > 50
    for place, share in shares.items():
        for paper in map(rgba, BEHIND[scheme]):
            assert contrast(faded(rgba(INK[scheme]), paper, share), paper) >= 4.5, place


@pytest.mark.parametrize("scheme", PAPER)
def test_coloured_text_in_our_own_pictures_can_be_read(scheme: str) -> None:
    """A property that two shades are given to is the colour of text; a token is tinted by the weight on it."""
    style = (SCRIPTS / "explore/explore.css").read_text("utf-8")
    shades = re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", style)
    assert [name for name, *_ in shades] == ["query", "key", "value"]
    paper, ink = (rgba(one[scheme]) for one in ({"light": "#FFFFFF", "dark": "#171614"}, INK))
    for name, *pair in shades:
        assert contrast(rgba(pair[scheme == "dark"]), paper) >= 4.5, name
    most = float(re.search(r"Math\.round\((\d+) \* weight\)", (SCRIPTS / "explore/explore_chips.js").read_text())[1])
    key = rgba({name: pair for name, *pair in shades}["key"][scheme == "dark"])
    assert contrast(ink, faded(key, faded(ink, paper, 0.07), most / 100)) >= 4.5


@pytest.mark.parametrize("scale", colour_scales())
def test_a_number_in_a_cell_can_be_read_on_every_colour(scale: str) -> None:
    rule = re.search(r"> ([\d.]+) \? \"(#\w+)\" : \"(#\w+)\"", (SCRIPTS / "shared/colours.js").read_text("utf-8"))
    for one, other in itertools.pairwise(colour_scales()[scale]):
        for share in np.linspace(0, 1, 12):
            colour = [(share * a + (1 - share) * b) / 255 for a, b in zip(one, other, strict=True)]
            ink = rule[2] if luminance(colour) > float(rule[1]) else rule[3]
            assert contrast(colour, rgba(ink)) >= 4.5
