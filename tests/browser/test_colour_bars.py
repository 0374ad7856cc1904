"""Titles of colour bars stand beside their bars, as Plotly draws them on a phone and on a wide screen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plotly.utils import PlotlyJSONEncoder

from model.checkpoints.store import CHECKPOINTS_VARIABLE, load_checkpoint
from model.language import speaking
from model.run import Place, Request, Run
from pages import PAGES
from pages.text import languages
from viz.drawing import plotly_script
from viz.figure import StableFigure
from viz.forms import Form
from viz.stack import stack

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PHONE, WIDE = 358, 1000
"""pixels of a figure on a screen of 390, and of 1366"""
TEXT = "Two dogs run and a cat sleeps in the snow."
DRAW = """async ([text, width]) => {
  const content = JSON.parse(text);
  const place = document.createElement("div");
  place.style.width = `${width}px`;
  document.body.replaceChildren(place);
  await Plotly.newPlot(place, content.data, content.layout, { staticPlot: true });
  const boxes = (kind) => [...place.querySelectorAll(`.infolayer ${kind}`)]
    .map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0);
  const titles = [...place.querySelectorAll(".infolayer .cbtitle text")].map((one) => [one.textContent, one]);
  const bars = boxes(".cbfills"), numbers = boxes(".cbaxis text");
  const found = [];
  for (const [words, title] of titles) {
    const box = title.getBoundingClientRect();
    for (const [what, others] of [["its bar", bars], ["a number", numbers]]) {
      for (const other of others) {
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 2 && down > 4) found.push(`“${words}” lies on ${what} by ${Math.round(down)} pixels`);
      }
    }
  }
  return [titles.length, found];
}"""
"""draws a figure; how many titles of colour bars it has, and what they cover"""


def figures(run: Run) -> Iterator[tuple[str, StableFigure, bool]]:
    """Every figure with a colour bar: its name, and whether its panels stand below each other on a phone."""
    for view in (view for pages in PAGES.values() for page in pages for view in page.views if not view.missing(run)):
        for name, picture in view(run, **({"outcome": None} if view.on_request else {})).shows.items():
            figure = picture.draw() if isinstance(picture, Form) else picture
            if isinstance(figure, StableFigure) and "colorbar" in json.dumps(figure.to_dict(), cls=PlotlyJSONEncoder):
                yield f"{view.page}.{view.name}: {name}", figure, picture.roomy


@pytest.mark.parametrize("code", [*languages()])
def test_no_title_of_a_colour_bar_lies_on_its_bar(
    code: str, saved_checkpoints: Path, browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    opened = load_checkpoint("en-de", "cpu")
    trace = opened.trace(TEXT, "Ein Hund.")
    kind = trace.kinds[0]
    run = Run(opened, Request(TEXT, "Ein Hund."), trace, Place(kind.name, kind.layers[-1], 1), TEXT, 1.0, "everywhere")
    page, seen, covered = browser.new_page(), 0, []
    page.set_content(f"<!DOCTYPE html><html><head>{plotly_script()}</head><body></body></html>")
    with speaking(languages()[code]):
        for name, figure, roomy in figures(run):
            for width in (PHONE, WIDE):
                shown = stack(figure) if roomy and width == PHONE else figure
                titles, found = page.evaluate(DRAW, [json.dumps(shown.to_dict(), cls=PlotlyJSONEncoder), width])
                seen += titles
                covered += [f"{name}, {width} pixels: {line}" for line in found]
    page.close()
    assert seen
    assert not covered, "\n".join(covered)
