"""What makes a page one for everybody: tab order, names, the focus that is seen, contrast, room on 390 pixels."""

import re
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

PHONE = {"width": 390, "height": 844}
WIDTHS = ((1920, 1024, 768, 390), (1280, 984, 640, 390))
"""of windows, in turns from page to page: each page is drawn on a phone, and at three of the other widths"""
OUTSIDE = """() => {
  const main = document.querySelector("[data-testid=stMain]"), found = [];
  if (main.scrollWidth > main.clientWidth || document.documentElement.scrollWidth > innerWidth)
    found.push(`the page scrolls sideways: ${main.scrollWidth}`);
  const above = (node) => node.parentElement ?? node.getRootNode().host;
  const skipped = ".modebar-container, .hoverlayer, defs, [aria-hidden=true]";
  for (const figure of main.querySelectorAll(".js-plotly-plot, .stBidiComponent")) {
    const box = figure.getBoundingClientRect();
    if (box.height < 40) continue;
    const place = figure.closest("[class*=st-key-]")?.className.match(/st-key-[\\w-]+/)?.[0];
    if (box.left < -1 || box.right > innerWidth + 1) found.push(`${place} ends at ${Math.round(box.right)}`);
    for (const node of everything(figure)) {
      if (!/^(text|canvas|button|span|p|td|label|input)$/i.test(node.tagName)) continue;
      const own = node.getBoundingClientRect();
      if (!own.width || !own.height) continue;
      if (own.left >= box.left - 1 && own.right <= box.right + 1 && own.bottom <= box.bottom + 2) continue;
      if (node.closest(skipped) || getComputedStyle(node).visibility === "hidden") continue;
      let around = above(node);
      const passes = (each) => each instanceof SVGElement || getComputedStyle(each).overflowX === "visible";
      while (around && around !== figure && passes(around)) around = above(around);
      const frame = around && around !== figure && getComputedStyle(around).overflowX;
      const scrolls = frame && (/auto|scroll/.test(frame) || !(node instanceof SVGElement));
      if (!scrolls) found.push(`${place}: ${node.textContent.trim().slice(0, 40)}`);
    }
  }
  return found;
}"""
"""What is cut: a page that scrolls sideways, a figure beyond the window, a text of a figure outside its box."""
MOST_STOPS = 250
FOCUSED = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  const around = (from, by) => [from, ...[...from.children].slice(0, 3), ...by];
  const ancestors = (of) => Array.from({ length: 3 }, () => (of = of?.parentElement)).filter(Boolean);
  const looks = (of) => around(of, ancestors(of)).map((each) => {
    const style = getComputedStyle(each);
    const { boxShadow, borderColor, backgroundColor, stroke, strokeWidth } = style;
    const outline = style.outlineStyle !== "none" && style.outline;
    return [outline, boxShadow, borderColor, backgroundColor, stroke, strokeWidth];
  }).join();
  const before = window.stopBefore;
  const seen = before ? looks(before.node) !== before.looks : null;
  window.stopBefore = window.focused = null;
  // At its end the page hands the focus to the browser, or starts again from its beginning.
  if (!node || node === document.body || node === window.firstStop) return { over: true, seen };
  window.firstStop ??= node;
  window.focused = node;
  window.stopBefore = { node, looks: looks(node) };
  const host = (of) => (of.getRootNode().host ? host(of.getRootNode().host) : of);
  const main = host(node).closest("[data-testid=stMain]");
  const { left, top, bottom } = node.getBoundingClientRect();
  const own = node.getRootNode() instanceof ShadowRoot;
  const part = host(node).closest("[data-testid^=st]")?.dataset.testid;
  return { seen, own, part, inMain: Boolean(main), left, top: top + (main?.scrollTop ?? 0),
    bottom: bottom + (main?.scrollTop ?? 0), html: node.outerHTML.slice(0, 120) };
}"""
STREAMLITS = {
    "stMain": "the page's scroller takes the focus itself",
    "stDataFrameResizable": "its canvas and scroller; the table in them has its names",
    "stMarkdownContainer": "a formula that is wider than its place scrolls by the arrow keys",
}
"""Elements of Streamlit's own that have no name or no ring, and are left as they are."""
PLACED = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  return [...main.querySelectorAll(".stPlotlyChart, .stBidiComponent")].map((each) => {
    const frame = each.closest("[class*=st-key-roomy-]") ?? each;
    const { left, right, top, height } = frame.getBoundingClientRect();
    return { left, right, top: top + main.scrollTop, height, wide: main.scrollWidth };
  }).filter(({ height }) => height > 150);
}"""


def stops(visitor: Visitor, start: str) -> list[dict[str, Any]]:
    """Press Tab from `start` to the end: where the focus was, how it is called, whether it was seen."""
    # The bar stays where it is while the page scrolls: from the top of the page it is above everything.
    visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    visitor.page.locator(start).focus()
    protocol = visitor.page.context.new_cdp_session(visitor.page)
    found: list[dict[str, Any]] = []
    for _ in range(MOST_STOPS):
        visitor.page.keyboard.press("Tab")
        stop = visitor.page.evaluate(FOCUSED)
        if found:
            found[-1]["seen"] = stop["seen"]
        if stop.get("over"):
            return found
        found.append(stop | {"name": name_of(protocol)})
    pytest.fail(f"after {MOST_STOPS} stops the Tab key has not left the page: {found[-1]}")


def name_of(protocol: "CDPSession") -> str:
    """Of the focused element, as Chromium tells it to a screen reader."""
    element = protocol.send("Runtime.evaluate", {"expression": "window.focused"})["result"]["objectId"]
    tree = protocol.send("Accessibility.getPartialAXTree", {"objectId": element, "fetchRelatives": False})
    return tree["nodes"][0].get("name", {}).get("value", "")


def check_order(found: list[dict[str, Any]]) -> None:
    """Down the page, or up into the next column: never back."""
    inside = [stop for stop in found if stop["inMain"] and stop["part"] not in STREAMLITS]
    for before, after in pairwise(inside):
        assert after["bottom"] > before["top"] or after["left"] > before["left"], (before, after)


def complaints(visitor: Visitor, **options: object) -> list[str]:
    """What axe-core finds serious, or worse."""
    page = visitor.page
    # Plotly's thousands of lines and cells have no text but their labels, and take most of the time.
    context, options = {"exclude": [".js-plotly-plot svg"]}, {"resultTypes": ["violations"], **options}
    # The Tab key opened tooltips: one that fades has less contrast than when it is read.
    page.evaluate("document.activeElement?.blur()")
    page.wait_for_function("!document.querySelector('[role=tooltip], [data-testid=stTooltipContent]')")
    # A focus may choose something; what is drawn anew is paler until then.
    visitor.settle()
    found = Axe().run(page, context, options).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def check_keyboard(visitor: Visitor, start: str) -> None:
    found = stops(visitor, start)
    assert [stop for stop in found if not stop["name"] and stop["part"] not in STREAMLITS] == []
    assert [stop for stop in found if stop["own"] and not stop["seen"]] == []
    check_order(found)


def check_charts_have_names(visitor: Visitor) -> None:
    charts = visitor.page.get_by_test_id("stMain").locator(".stPlotlyChart:visible")
    named = visitor.page.get_by_test_id("stMain").get_by_role("figure", name=re.compile("...")).and_(charts)
    assert named.count() == charts.count()


def check_widths(visitor: Visitor, turn: int) -> None:
    """At none of the widths of this turn is anything of a figure outside its box, or the page wider than the window."""
    from playwright.sync_api import TimeoutError as TooLong

    for width in WIDTHS[turn % 2]:
        visitor.page.set_viewport_size({"width": width, "height": PHONE["height"]})
        visitor.settle()
        # Pictures are drawn again a moment after the window has changed.
        with suppress(TooLong):
            visitor.page.wait_for_function(f"!({OUTSIDE})().length", timeout=15_000, polling=300)
        outside = visitor.page.evaluate(OUTSIDE)
        assert outside == [], (width, outside)


def check_phone(visitor: Visitor) -> None:
    """Nothing scrolls sideways but a picture in its frame, and the first picture is near the top."""
    # Pictures are drawn again a moment after the window has changed.
    visitor.page.wait_for_function(f"document.querySelector('[data-testid=stMain]').scrollWidth <= {PHONE['width']}")
    placed = visitor.page.evaluate(PLACED)
    for picture in placed:
        assert 0 <= picture["left"] < picture["right"] <= PHONE["width"] >= picture["wide"], picture
        assert picture["right"] - picture["left"] > 280, picture
    # Text, lists, a table, and curves of a log that the tests' checkpoint has not.
    if not visitor.page.url.endswith(
        ("/glossary", "/learn", "/paper", "/often_told_wrong", "/since_2017", "/training")
    ):
        assert placed[0]["top"] < 3 * PHONE["height"]
