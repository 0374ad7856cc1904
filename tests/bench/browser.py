"""A Streamlit server and Chromium, and how long after an event a picture is painted."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ElementHandle, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
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
    """The address of a Streamlit server that runs `script`; it answers already."""
    with started(script) as (address, server):
        wait_until_healthy(address, server)
        yield address


@contextmanager
def started(script: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """A server process that was started just now, and where it will answer."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            yield f"http://localhost:{port}", server
        finally:
            server.terminate()
            server.wait(20)


def wait_until_healthy(address: str, server: subprocess.Popen) -> None:
    """Raises RuntimeError: the server ended, or did not answer in time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health"):
                return
        except URLError:
            time.sleep(0.01)
    raise RuntimeError(f"the server at {address} did not start")


def chromium_path() -> str | None:
    """CHROMIUM, or the first that is on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Chromium without a screen.

    Raises:
        RuntimeError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise RuntimeError(f"needs a browser: none of {', '.join(CHROMIUM)} is on the path, and CHROMIUM names none")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


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
