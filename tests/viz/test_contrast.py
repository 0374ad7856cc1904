"""Colours that text is written in can be read on light and on dark: WCAG 2.2, success criterion 1.4.3, level AA."""

import re
import tomllib
from pathlib import Path

import pytest

from viz.latex import DIMMED
from viz.theme import DECODER, ENCODER, KEY, OKABE_ITO, QUERY, VALUE

ROOT = Path(__file__).parents[2]
STYLE = (ROOT / "pages/frame/style.css").read_text("utf-8")
THEME = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
PAPER = {"light": ("#FFFFFF", "#F8F8F7"), "dark": ("#171614", "#21201D")}
"""Streamlit's backgrounds: of the page, and of the sidebar"""
TINT = 0.1
"""how much of the primary colour is behind a chosen option"""


def channels(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def luminance(colour: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_what_the_guideline_says() -> None:
    assert contrast(channels("#FFFFFF"), channels("#000000")) == pytest.approx(21)
    assert contrast(channels("#777777"), channels("#FFFFFF")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colour", [QUERY, KEY, VALUE, DIMMED])
def test_a_formula_s_colours_can_be_read(colour: str) -> None:
    (rule,) = re.findall(rf'\[style\*="{colour}" i\].*?light-dark\((#\w+), (#\w+)\)', STYLE)
    for shade, scheme in zip(rule, PAPER, strict=True):
        assert contrast(channels(shade), channels(PAPER[scheme][0])) >= 4.5, scheme


@pytest.mark.parametrize("scheme", PAPER)
def test_a_chosen_option_can_be_read(scheme: str) -> None:
    primary = channels(THEME[scheme]["primaryColor"])
    for paper in map(channels, PAPER[scheme]):
        behind = [TINT * ours + (1 - TINT) * theirs for ours, theirs in zip(primary, paper, strict=True)]
        assert contrast(primary, paper) >= 4.5
        assert contrast(primary, behind) >= 4.5


@pytest.mark.parametrize("colour", [QUERY, KEY, VALUE])
def test_borders_and_lines_of_queries_keys_and_values_are_seen_on_both_schemes(colour: str) -> None:
    for papers in PAPER.values():
        assert contrast(channels(colour), channels(papers[0])) >= 3


def test_roles_have_different_colours() -> None:
    assert len({QUERY, KEY, VALUE}) == 3
    assert ENCODER != DECODER
    assert len(set(OKABE_ITO)) == 8


def test_the_pages_style_reaches_the_browser() -> None:
    assert "<" not in STYLE, "a style with an opening bracket in it is taken for markup, and all of it left out"
