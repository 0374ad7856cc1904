"""The app in headless Chromium, served by a process of its own."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages import PAGES
from tests.browser.chromium import ARGUMENTS, NONE_FOUND, chromium_path
from tests.browser.cuts import watch_canvases
from tests.soak.server import ROOT, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, WebSocket

UNOPTIMISED = "--js-flags=--no-opt --no-maglev"
"""The scripts of a page of the app run for a second or two: compiling them better would cost more than it saves."""
VIEWPORT = {"width": 1366, "height": 900}
PATIENCE = 120_000
"""Milliseconds to wait for a condition: a first visit imports PyTorch, perhaps on a busy machine."""


AT_ONCE = """
const animate = Element.prototype.animate;
Element.prototype.animate = function (...args) {
    const animation = animate.apply(this, args);
    animation.finish();
    return animation;
};
"""
"""Animations end as they begin: an expander takes half a second to open, and its buttons move away below a click."""


FOOT = re.compile(
    "checks hold|The picture is the model|Nothing to show yet"
    "|Prüfungen bestanden|Das Bild ist das Modell|Noch nichts zu sehen"
    "|项检验成立|图就是模型|暂无内容"
)
"""what ends a page, in its three languages"""
UP_TO_DATE = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"""
"""Two frames later React has handed on what an act changed, and a run that it asks for has been asked for."""


SLOW = ("test_every_page", "test_app", "test_step_by_step")
"""Files that take longest: they start first, so that two workers end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow files first; the order is otherwise unchanged, and so are other folders' tests."""
    ours = [item for item in items if item.path.parent == Path(__file__).parent]
    ranks = {name: rank for rank, name in enumerate(SLOW)}
    ordered = iter(sorted(ours, key=lambda item: ranks.get(item.path.stem, len(SLOW))))
    items[:] = [next(ordered) if item in ours else item for item in items]


@pytest.fixture(scope="session")
def launch() -> Iterator[Callable[[tuple[str, ...]], "Browser"]]:
    """Starts Chromium with these arguments; without one the test is skipped, or fails with CI=true."""
    from playwright.sync_api import sync_playwright

    found = chromium_path()
    if found is None:
        pytest.fail(NONE_FOUND) if os.environ.get("CI") == "true" else pytest.skip(NONE_FOUND)
    with sync_playwright() as playwright, ExitStack() as stack:

        def start(arguments: tuple[str, ...]) -> "Browser":
            chromium = playwright.chromium.launch(executable_path=found, args=list(arguments))
            stack.callback(chromium.close)
            return chromium

        yield start


@pytest.fixture(scope="session")
def browser(launch: Callable[[tuple[str, ...]], "Browser"]) -> Iterator["Browser"]:
    """The browser for pages of the app."""
    chromium = launch((*ARGUMENTS, UNOPTIMISED))
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="session")
def calculating_browser(launch: Callable[[tuple[str, ...]], "Browser"]) -> "Browser":
    """The browser for pages that run the model themselves, which compiles what they repeat."""
    return launch(ARGUMENTS)


@contextmanager
def serve(checkpoints: Path, log: Path, script: Path = ROOT / "app.py") -> Iterator[str]:
    """The address of a fresh server process."""
    with serving(log, checkpoints, script=script) as server:
        yield server.address


@pytest.fixture(scope="session")
def server(saved_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server that most tests share."""
    with serve(saved_checkpoints, tmp_path_factory.mktemp("server") / "log.txt") as address:
        yield address


@pytest.fixture(scope="session")
def shipped_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the models that everybody gets."""
    with serve(ROOT / "checkpoints", tmp_path_factory.mktemp("shipped") / "log.txt") as address:
        yield address


@pytest.fixture
def cold_server(saved_checkpoints: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a server that nobody has visited."""
    with serve(saved_checkpoints, tmp_path / "log.txt") as address:
        yield address


def heading_of(title: str) -> str:
    """The heading of the page that has this title in the menu."""
    return next(page.heading for pages in PAGES.values() for page in pages if page.title == title)


class Visitor:
    """A browser window that records errors and requests."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.requests: set[str] = set()
        self.errors: list[str] = []
        self._listeners: dict[str, Callable] = {
            "request": lambda request: self.requests.add(request.url),
            "pageerror": lambda error: self.errors.append(f"exception: {error}"),
            "console": self._on_console,
            "websocket": self._on_websocket,
        }
        self.runs = 0
        """How often the page has begun to run."""
        self._asks = False
        for event, note in self._listeners.items():
            page.on(event, note)

    def _on_console(self, message: "ConsoleMessage") -> None:
        # Below the URL of a page, Streamlit's client first asks for these there, and then at the root.
        guess = urlsplit(message.location["url"]).path.endswith(("/_stcore/health", "/_stcore/host-config"))
        if message.type == "error" and not (guess and "404" in message.text):
            self.errors.append(f"{message.text} ({message.location['url']})")

    def _on_websocket(self, websocket: "WebSocket") -> None:
        """Notes when the page asks for a run and when that run begins: until then it still looks settled."""
        self._asks = False
        websocket.on("framesent", self._on_sent)
        websocket.on("framereceived", self._on_received)

    def _on_sent(self, frame: bytes | str) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).HasField("rerun_script"):
            self._asks = True

    def _on_received(self, frame: bytes | str) -> None:
        if isinstance(frame, bytes) and ForwardMsg.FromString(frame).HasField("new_session"):
            self._asks = False
            self.runs += 1

    def visit(self, address: str) -> None:
        self.page.goto(address)
        self.settle()

    def change_scheme(self, scheme: str) -> None:
        """Make the open page light or dark, and wait until all its pictures are drawn again."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.wait_for_function(f"getComputedStyle(document.querySelector('.stApp')).colorScheme === '{scheme}'")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has run to its end and everything is drawn; fails with what the page says instead."""
        from playwright.sync_api import TimeoutError as TooLong

        try:
            self._wait_until_drawn()
        except TooLong as error:
            error.add_note(f"{self.page.url} shows:\n{self.picture()[-3000:]}")
            raise

    @contextmanager
    def rerun(self) -> Iterator[None]:
        """Around an act that makes the page run: afterwards a run that began after the act has ended."""
        self.settle()
        before = self.runs
        yield
        self.wait_until(lambda: self.runs > before, "the page did not run")
        self.settle()

    def wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Until messages of the browser make the condition true: they are read while Playwright waits."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < deadline, otherwise
            self.page.wait_for_timeout(10)

    def _wait_until_drawn(self) -> None:
        foot = self.page.get_by_text(FOOT)
        foot.or_(self.page.locator(".st-key-present-row .way")).first.wait_for(state="attached")
        # What a run sends may make the page ask for the next one.
        settled = False
        while not settled:
            before = self.runs
            self.page.evaluate(UP_TO_DATE)
            self.wait_until(lambda: not self._asks, "the server did not begin the run that the page asked for")
            self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
            self.page.wait_for_function("!document.querySelector('[data-stale=true], [data-testid=stSkeleton]')")
            # A temperature chosen by key is sent half a second later; until its run is here, the map is drawn again.
            self.page.locator(":is(.temperature, .explore).again").wait_for(state="detached")
            # Plotly puts its element into the page first, and the numbers into the element later.
            self.page.wait_for_function(
                "[...document.querySelectorAll('.js-plotly-plot')].every(plot => plot.calcdata)"
            )
            self.page.evaluate(UP_TO_DATE)
            settled = self.runs == before and not self._asks

    def picture(self) -> str:
        """The accessibility tree of the page: its texts and the values of its widgets."""
        return self.page.locator("[data-testid=stApp]").aria_snapshot()

    def leave(self) -> None:
        """Stop recording. There must be no error, and no request to another machine."""
        for event, note in self._listeners.items():
            self.page.remove_listener(event, note)
        assert self.errors == []
        assert self.foreign_requests() == []

    def foreign_requests(self) -> list[str]:
        """Requests to other machines."""
        return sorted(url for url in self.requests if not url.startswith(("http://localhost:", "data:", "blob:")))


def query(visitor: Visitor) -> dict[str, str]:
    """The parameters of the address."""
    return {key: values[-1] for key, values in parse_qs(urlsplit(visitor.page.url).query).items()}


def wait_for_query(visitor: Visitor, wanted: dict[str, str]) -> None:
    """Wait until these are the parameters of the address, which follows the page with a moment's delay."""
    visitor.page.wait_for_function(
        """wanted => JSON.stringify([...new URLSearchParams(location.search)].sort()) === JSON.stringify(wanted)""",
        arg=sorted(map(list, wanted.items())),
    )
    visitor.settle()
    assert query(visitor) == wanted


def wait_for_query_to_have(visitor: Visitor, **wanted: str) -> None:
    """Wait until these are among the parameters of the address, and the page has run with them."""
    visitor.page.wait_for_function(
        """wanted => {
          const query = new URLSearchParams(location.search);
          return Object.entries(wanted).every(([name, value]) => query.get(name) === value);
        }""",
        arg=wanted,
    )
    visitor.settle()


def read_maps(visitor: Visitor, key: str) -> list[np.ndarray]:
    """The numbers of a chart's heat maps as the browser holds them; not a number where a cell has no colour."""
    maps = visitor.page.locator(f"{key} .js-plotly-plot").evaluate(
        """plot => plot._fullData
          .filter(({ type, hovertemplate }) => type === "heatmap" && !hovertemplate?.startsWith("masked"))
          .map(({ z }) => Array.from(z, (row) =>
            Array.from(row, (value) => (Number.isFinite(value) ? value : null))))"""
    )
    return [np.array(each, dtype=float) for each in maps]


def open_window(browser: "Browser", **options: object) -> "Page":
    """The page of a new context, which shares nothing with other contexts."""
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(AT_ONCE)
    watch_canvases(context)
    return context.new_page()


@pytest.fixture
def new_visitor(browser: "Browser") -> Iterator[Callable[..., Visitor]]:
    """Opens new windows, without cache or storage."""
    opened: list[Visitor] = []

    def enter(**options: object) -> Visitor:
        opened.append(Visitor(open_window(browser, **options)))
        return opened[-1]

    yield enter
    for visitor in opened:
        visitor.page.context.close()
    for visitor in opened:
        visitor.leave()


@pytest.fixture(scope="session")
def used_windows() -> Iterator[list["Page"]]:
    """The window that tests hand on: in each new one Chromium compiles Streamlit and Plotly for 3 seconds."""
    pages: list[Page] = []
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def visitor(browser: "Browser", used_windows: list["Page"]) -> Iterator[Visitor]:
    """A window in which other tests may have run. Storage, colour scheme and size are reset between tests."""
    visitor = Visitor(used_windows.pop() if used_windows else open_window(browser))
    page = visitor.page
    try:
        yield visitor
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.goto("about:blank")
        page.emulate_media(media="screen", color_scheme="light")
        page.set_viewport_size(VIEWPORT)
        visitor.leave()
    except BaseException:
        page.context.close()
        raise
    used_windows.append(page)
