"""The static pages: from opening one to its first picture, to the model, to twelve tokens and to a redrawn run."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from model.checkpoints.store import checkpoint_path
from pages.site.build import build
from tests.bench.browser import window
from tests.bench.table import Row
from tests.browser.chromium import chromium, hosted
from tests.browser.engine import Engine
from tests.soak.server import megabytes_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
MOST_MEGABYTES = 350
SENTENCE = "The girl likes the dog because it is friendly."
"""12 tokens"""
THROTTLE = 4
LINE = 10e6 / 8
"""bytes a second"""
PRODUCT = """() => {
    const n = 384;
    const [a, b, c] = [1.5, 0.5, 0].map((value) => new Float32Array(n * n).fill(value));
    const multiply = () => {
        const began = performance.now();
        for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) {
            let sum = 0;
            for (let k = 0; k < n; k += 1) sum += a[i * n + k] * b[j * n + k];
            c[i * n + j] = sum;
        }
        return performance.now() - began;
    };
    return Math.min(multiply(), multiply(), multiply());
}"""
MARKS = "() => Object.fromEntries(performance.getEntriesByType('mark').map(({ name, startTime }) => [name, startTime]))"
BEAM = """(text) => {
    const source = [...tokenizer.encode(text), modules.tokenizer.EOS];
    const began = performance.now();
    modules.decoding.finish(modules.decoding.beamSearch(model, source));
    return performance.now() - began;
}"""
GREEDY = """(text) => {
    const prompt = [modules.tokenizer.BOS, ...tokenizer.encode(text)];
    const began = performance.now();
    const { tokens } = modules.decoding.finish(modules.decoding.greedy(model, prompt, { most: 12 }));
    return (performance.now() - began) * 12 / tokens.length;
}"""
BEGINNING = "The king and the queen lived in a house by the"
"""that goes on for twelve tokens or nearly so"""
LANGUAGE_MODEL = "everyday-lm"
MOVE = """async (place) => {
    const slider = document.getElementById("softmax-picture").shadowRoot.querySelector("input");
    const before = performance.getEntriesByName("run-drawn").length;
    const [began, gaps] = [performance.now(), []];
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
    slider.dispatchEvent(new Event("change"));
    const frame = () => new Promise(requestAnimationFrame);
    let last = await frame();
    for (let settled = 0; settled < 3;) {
        const now = await frame();
        gaps.push(now - last);
        last = now;
        settled += performance.getEntriesByName("run-drawn").length > before;
    }
    return { milliseconds: performance.now() - began, gap: Math.max(...gaps) };
}"""


def static_page(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """The pages of this checkpoint and of a language model, by turns, each in a new window in each round.

    Then either model in the page's own thread.
    """
    files = {"translator": "index.html", "language model": "continue.html"}
    opened: dict[str, list[dict[str, float]]] = {whose: [] for whose in files}
    with TemporaryDirectory() as name, chromium() as browser:
        build(Path(name), [checkpoint, LANGUAGE_MODEL], app="")
        with hosted(Path(name)) as address:
            for _ in range(rounds):
                for whose, file in files.items():
                    opened[whose].append(_open(browser, address, file))
        for what, key in (
            ("from opening to the first picture, 10 Mbit/s; aim 1 s", "first"),
            ("from the last byte to the model; aim 1 s", "ready"),
            ("from the slider to the redrawn run; aim 0.7 s", "redrawn"),
            ("longest gap between frames meanwhile; aim 50 ms", "gap"),
        ):
            for whose, found in opened.items():
                products = [each["product"] for each in found]
                yield _row(f"{whose}: {what}", [each[key] for each in found], products)
        for whose, found in opened.items():
            megabytes, empty = (statistics.median(each[key] for each in found) for key in ("megabytes", "empty"))
            what, beside = f"{whose}: memory of the page's process", f"an empty page's {empty:.0f} MB"
            yield Row(what, f"{megabytes:.0f} MB", beside, megabytes, MOST_MEGABYTES, unit="MB")
        yield from _in_the_page(browser, {checkpoint: (BEAM, SENTENCE), LANGUAGE_MODEL: (GREEDY, BEGINNING)}, rounds)


def _first_picture(browser: "Browser", address: str) -> float:
    """Milliseconds over a line of 10 Mbit/s, without compression."""
    page = window(browser)
    line = {"offline": False, "latency": 20, "downloadThroughput": LINE, "uploadThroughput": LINE}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", line)
    page.goto(address, wait_until="commit")
    marks = _marks(page, "first-picture")
    page.context.close()
    return marks["first-picture"]


def _empty_page(browser: "Browser", address: str) -> float:
    """Megabytes of the process that shows a page with nothing in it: most of them are the browser's own program."""
    page = window(browser)
    page.route("**/empty.html", lambda route: route.fulfill(content_type="text/html", body="<!DOCTYPE html>"))
    page.goto(f"{address}empty.html")
    page.wait_for_timeout(1000)
    megabytes = _megabytes(browser)
    page.context.close()
    return megabytes


def _marks(page: "Page", last: str) -> dict[str, float]:
    """The page's marks as soon as the last is among them."""
    while last not in (marks := page.evaluate(MARKS)):
        page.wait_for_timeout(50)
    return marks


def _open(browser: "Browser", address: str, file: str) -> dict[str, float]:
    empty = _empty_page(browser, address)
    first = _first_picture(browser, address + file)
    page = window(browser)
    page.goto(address + file)
    marks = _marks(page, "model-ready")
    page.wait_for_timeout(1000)
    page.locator("#softmax-picture").evaluate("(node) => node.scrollIntoView()")
    page.get_by_role("slider", name="Temperature", exact=True).wait_for()
    page.wait_for_timeout(500)
    moved = page.evaluate(MOVE, 0.5)
    found = {
        "first": first,
        "ready": marks["model-ready"] - marks["last-byte"],
        "redrawn": moved["milliseconds"],
        "gap": moved["gap"],
        "megabytes": _megabytes(browser),
        "empty": empty,
        "product": page.evaluate(PRODUCT),
    }
    page.context.close()
    return found


def _in_the_page(browser: "Browser", asked: Mapping[str, tuple[str, str]], rounds: int) -> Iterator[Row]:
    """Twelve tokens of each checkpoint; `asked`: the script that writes them, and its text."""
    engines = {name: Engine.open(browser, checkpoint_path(name)) for name in asked}
    for name, question in asked.items():
        for _ in range(3):  # the browser compiles what it repeats
            engines[name].evaluate(*question)
    for rate in (1, THROTTLE):
        pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
        for engine in engines.values():
            engine.throttle(rate)
        for _ in range(rounds):
            for name, question in asked.items():
                pairs[name].append((engines[name].evaluate(*question), engines[name].evaluate(PRODUCT)))
        speed = "; aim 0.2 s" if rate == 1 else f", {rate} × slower; aim 1.5 s"
        for name, taken in pairs.items():
            how = "beam 4" if asked[name][0] is BEAM else "greedily"
            yield _row(f"{name}: twelve tokens, {how}{speed}", *map(list, zip(*taken, strict=True)))
    for engine in engines.values():
        engine.close()


def _row(what: str, taken: Sequence[float], products: Sequence[float]) -> Row:
    ratio = statistics.median(taken) / statistics.median(products)
    return Row(what, _in_words(taken), f"product {_in_words(products)}", ratio)


def _in_words(taken: Sequence[float]) -> str:
    return f"{statistics.median(taken):.0f} ms ({min(taken):.0f}-{max(taken):.0f})"


def _megabytes(browser: "Browser") -> float:
    """Resident memory of the largest process that draws a page."""
    processes: list[dict[str, Any]] = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(megabytes_of(each["id"]) for each in processes if each["type"] == "renderer")
