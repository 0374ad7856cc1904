"""How long after an event a picture is painted in a window of Chromium."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.soak.server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ElementHandle, Page

PATIENCE = 120
"""Seconds"""
QUIET = 250
"""Milliseconds without a change of its DOM or canvas, after which a picture counts as finished"""

# `painted` is a promise: milliseconds from the event to the second animation frame after the last change of `root`.
# A canvas that is drawn again changes too, in its size or in how it is called.
ARM = """
(root, [event, quiet, patience]) => {
  let [from, last, timer] = [null, null, null];
  addEventListener(event, (seen) => (from = seen.timeStamp), { capture: true, once: true });
  window.painted = new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error("nothing was painted")), patience);
    const finish = () => { clearTimeout(limit); observer.disconnect(); resolve(last - from); };
    // Around a picture Streamlit marks what is stale, and takes the mark away. It also hides a chart until a frame
    // after it is drawn, which the style sheet undoes.
    const frame = (node) => node === root || node.matches("[data-testid=stElementContainer], .js-plotly-plot");
    // What a canvas contains is for screen readers: a table writes it a fifth of a second after it has painted.
    const unseen = ({ type, target }) => (type === "childList" ? target : target.parentElement)?.closest?.("canvas");
    const inside = (record) => !(record.type === "attributes" && frame(record.target)) && !unseen(record);
    const changed = (records) => {
      if (from === null || !records.some(inside)) return;
      clearTimeout(timer);
      requestAnimationFrame(() => requestAnimationFrame(() => {
        last = performance.now();
        clearTimeout(timer);
        timer = setTimeout(finish, quiet);
      }));
    };
    const observer = new MutationObserver(changed);
    observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    for (const host of root.querySelectorAll("*")) {
      if (host.shadowRoot) observer.observe(host.shadowRoot, { subtree: true, childList: true, attributes: true });
    }
  });
}
"""


@contextmanager
def served(script: Path) -> Iterator[str]:
    """The address of a server, started just now, that runs `script`; it answers already."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "log.txt", script=script) as server:
        yield server.address


def window(browser: "Browser") -> "Page":
    """A window of its own."""
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    return context.new_page()


def at_rest(page: "Page") -> None:
    """Wait until the script has run and nothing is drawn any more."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_function("!document.querySelector('[data-stale=true], [data-testid=stSkeleton]')")


def painted_after(page: "Page", root: "ElementHandle", event: str, act: Callable[[], None], wait: float = 0) -> float:
    """Milliseconds from the `event` that `act` causes to the painted change of `root`.

    Args:
        wait: seconds before `act`. The last measurement ended with a frame: without it each event would find the
            screen's clock at the same place, and what takes a millisecond longer would take a frame longer, or nothing.
    """
    page.evaluate(f"([root, rest]) => ({ARM})(root, rest)", [root, [event, QUIET, 1000 * PATIENCE]])
    time.sleep(wait)
    act()
    return page.evaluate("window.painted")
