"""The static page: what it weighs, what it asks for, and that it says and draws what Python computes."""

import base64
import dataclasses
import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from model import interventions
from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature, HeadGate, SublayerOff
from model.interventions.link import decode, encode
from model.language import ENGLISH
from model.network.config import PRESETS
from pages.site.__main__ import describe
from pages.site.build import MORE, build
from pages.site.tasks import CONTINUE, CROSS, TRANSLATE, first_place, what_cannot_be_run
from pages.text import languages
from tests.browser.chromium import hosted
from viz.site.scripts import SITE
from viz.tokens import labels

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).parents[2]
ENGINE = (SITE / "js/interventions.js").read_text("utf-8")
APP = "https://app.example/"
PATIENCE = 60_000
"""Milliseconds to wait for a condition, perhaps on a busy machine."""
TYPED = "The girl likes the dog because it is friendly."
PICTURES = (
    "model",
    "positions",
    "projections",
    "scores",
    "division",
    "mask",
    "softmax",
    "values",
    "output",
    "heads",
    "lines",
    "part",
    "move",
    "map",
)
DRAWN = """(id) => {
    const root = document.getElementById(`${id}-picture`).shadowRoot;
    const canvases = [...(root?.querySelectorAll("canvas") ?? [])];
    return canvases.some((canvas) => canvas.width && new Set(canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data).size > 4);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both pages in both forms, with the weights that they ship."""
    folder = tmp_path_factory.mktemp("site")
    build(folder, [str(ROOT / "checkpoints/en-de"), str(ROOT / "checkpoints/everyday-lm")], APP)
    return folder


def test_what_was_built_is_listed_with_its_sizes(site: Path) -> None:
    lines = describe(site).splitlines()
    listed = {name: float(size) for size, _, name in (line.split() for line in lines[:-2])}
    assert listed == {path.name: pytest.approx(path.stat().st_size / 1e6, abs=0.06) for path in site.iterdir()}
    assert f"--directory {site}" in lines[-1]


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with hosted(site) as address:
        yield address


@pytest.fixture(scope="module")
def english() -> Translator:
    return load_checkpoint(str(ROOT / "checkpoints/en-de"), "cpu")


class Reader:
    """Somebody with the page open; notes what it asks for and what it says to the console."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.requests: list[str] = []
        self.lines: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.lines.append(message.text))
        page.on("pageerror", lambda error: self.lines.append(str(error)))

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Polls: the page's policy forbids the eval of Playwright's own waiting."""
        deadline = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < deadline:
            if value := condition():
                return value
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{what}; the page says {self.page.inner_text('header')!r}, {self.lines}")

    def wait_until_live(self) -> None:
        self.until(lambda: self.page.evaluate("document.body.dataset.live !== undefined"), "the model did not come")

    @property
    def translation(self) -> str:
        return self.page.get_by_role("status", name="Translation", exact=True).inner_text()

    @property
    def changed(self) -> str:
        return self.page.get_by_role("group", name="What the changed model writes").inner_text()

    def translate(self, text: str) -> str:
        before = self.translation
        box = self.page.get_by_role("textbox", name="English sentence", exact=True)
        box.fill(text)
        box.press("Enter")
        return self.until(lambda: self.translation != before and self.translation, "no translation came")

    def until_drawn(self, name: str) -> None:
        self.page.evaluate("(id) => document.getElementById(`${id}-picture`).scrollIntoView()", name)
        self.until(lambda: self.page.evaluate(DRAWN, name), f"{name} was not drawn")


@pytest.fixture
def open_page(calculating_browser: "Browser") -> Iterator[Callable[..., Reader]]:
    """Opens the page in a new window; the last argument is a script that runs before it."""
    contexts = []

    def enter(url: str, before: str = "", route: Callable | None = None, **options: Any) -> Reader:
        context = calculating_browser.new_context(**{"viewport": {"width": 1024, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        if before:
            context.add_init_script(before)
        reader = Reader(context.new_page())
        if route:
            reader.page.route("**/*.safetensors", route)
        reader.page.goto(url)
        return reader

    yield enter
    for context in contexts:
        context.close()


PAGES = {one.code: "index.html" if one is ENGLISH else f"index.{one.code}.html" for one in languages().values()}
"""language -> its page that translates"""
WRITING = {code: name.replace("index", "continue") for code, name in PAGES.items()}
"""... and its page that continues a text"""
KEPT = {"add", "norm", "attention", "explorer", "embedding", "softmax", "concat", "png", "svg", "log", "mask", "masked",
        "model", "out", "scaled", "scores", "weights"}  # fmt: skip
"""words that stay: names, terms that another language keeps, and symbols of equations"""
WRITTEN = """
window.written = new Set();
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
    written.add(String(text));
    return fillText.call(this, text, ...more);
};"""
"""notes what pictures write"""
SEEN = """() => {
    const found = new Set(written);
    const walk = (root) => {
        for (const node of root.querySelectorAll("*")) {
            if (node.matches("script, style, bdi, [lang]:not(html), [lang]:not(html) *")) continue;
            for (const name of ["aria-label", "title", "placeholder"]) found.add(node.getAttribute(name));
            for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) found.add(child.data.trim());
            if (node.shadowRoot) walk(node.shadowRoot);
        }
    };
    walk(document);
    return [...found].filter(Boolean);
}"""
"""every text on the page, also for screen readers, but what is marked as of another language"""


def recordings_of(html: str) -> list[str]:
    """What the first picture needs, and the rest."""
    names = ("recording", "recorded-head")
    return [re.search(rf'type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)[1] for name in names]


def words_of(html: str) -> str:
    """What Python says to the page's script."""
    return re.search(r'id="words">(.*?)</script>', html)[1]


def words_in(text: str) -> set[str]:
    return set(re.findall("[a-zäöüß]{2,}", text.casefold()))


@pytest.mark.parametrize("name", [*PAGES.values(), *WRITING.values()])
def test_the_page_keeps_to_its_budgets(site: Path, name: str) -> None:
    html = (site / name).read_text("utf-8")
    first, others = recordings_of(html)
    assert len(gzip.compress(html.replace(first, "").replace(others, "").encode())) <= 100_000
    # The language model's matrices are half as large again.
    assert len(first.encode()) + len(others.encode()) <= (500_000 if name in PAGES.values() else 650_000)
    # At 10 Mbit/s, uncompressed, the first picture has what it needs after less than half a second.
    before = html[: html.index('id="recorded-head"')]
    assert len(before.encode()) <= 500_000
    checkpoint = "en-de" if name in PAGES.values() else "everyday-lm"
    (file,) = (file for file in json.loads(words_of(html))["files"] if file["name"].endswith(".safetensors"))
    assert (site / file["name"]).read_bytes() == (ROOT / "checkpoints" / checkpoint / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", PAGES.values())
def test_the_file_alone_has_the_model_in_small_scripts(site: Path, name: str) -> None:
    """One of megabytes keeps WebKit busy for longer."""
    alone = (site / name.replace("index", "attention-explorer")).read_text("utf-8")
    scripts = re.findall("<script[^>]*>(.*?)</script>", alone, re.DOTALL)
    assert max(map(len, scripts)) < 500_000
    for file in ("model.safetensors", "tokenizer.model"):
        parts = re.findall(rf'<script type="text/plain" class="{file}">(.*?)</script>', alone)
        assert max(map(len, parts)) <= 200_000
        assert b"".join(map(base64.b64decode, parts)) == (ROOT / "checkpoints/en-de" / file).read_bytes()


def test_a_page_on_a_disk_names_the_file_that_has_the_model_inside(
    site: Path, open_page: Callable[..., Reader]
) -> None:
    reader = open_page((site / PAGES["de"]).as_uri())
    said = reader.until(lambda: reader.page.inner_text("#note"), "nothing was said")
    assert "attention-explorer.de.html" in said
    assert set(reader.page.locator(".picture-note").all_text_contents()) == {said}, "a picture still waits"
    reader.page.get_by_role("textbox").first.fill(TYPED)
    reader.page.get_by_role("textbox").first.press("Enter")
    assert reader.page.inner_text("#note") == said


def test_each_language_has_its_page_and_leads_to_the_others(site: Path) -> None:
    for code, name in PAGES.items():
        html = (site / name).read_text("utf-8")
        assert f'<html lang="{code}">' in html
        alternates = dict(re.findall(r'<link rel="alternate" hreflang="([^"]+)" href="([^"]+)">', html))
        assert alternates == PAGES | {"x-default": PAGES["en"]}
        vocabulary = languages()[code].number("8,000")
        assert vocabulary in re.search(r'<section class="step" id="tokens".*?</section>', html, re.DOTALL)[0]
        alone = (site / name.replace("index", "attention-explorer")).read_text("utf-8")
        assert f'<html lang="{code}">' in alone
        assert "hreflang" not in alone


def test_no_english_is_left_on_the_page_of_another_language(address: str, open_page: Callable[..., Reader]) -> None:
    seen = {}
    for code, name in PAGES.items():
        reader = open_page(address + name, before=WRITTEN, route=lambda route: route.abort())
        for picture in PICTURES:
            reader.until_drawn(picture)
        seen[code] = set(reader.page.evaluate(SEEN))
        run = json.loads(recordings_of(reader.page.content())[0])
    pieces = [piece for pieces in run["tokens"].values() for piece in pieces]
    pieces += [piece for row in run["candidates"] for piece, _ in row]
    typed = words_in(" ".join([run["text"], run["written"], *pieces]))
    assert len(seen["en"]) > 300
    for code in PAGES.keys() - {"en"}:
        left = {text for text in seen[code] & seen["en"] if words_in(text) - typed - KEPT}
        # Names of tokens that a picture has cut off are no words.
        assert {text for text in left if not text.endswith("…")} == set(), code


def test_another_language_shows_the_same_sentence_and_step(
    address: str, english: Translator, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(f"{address}?source={quote(TYPED)}&see=encoder_self.0.3#softmax")
    reader.wait_until_live()
    expected = english.translate([TYPED])[0]
    reader.until(lambda: reader.translation == expected, f"not {expected}")
    reader.page.get_by_role("link", name="Deutsch", exact=True).click()
    reader.until(lambda: reader.page.evaluate("document.body.dataset.live !== undefined"), "the model did not come")
    assert reader.page.evaluate("document.documentElement.lang") == "de"
    translation = reader.page.get_by_role("status", name="Übersetzung", exact=True)
    reader.until(lambda: translation.inner_text() == expected, f"not {expected}")
    here = urlsplit(reader.page.url)
    assert (here.path, here.fragment) == ("/index.de.html", "softmax")
    assert parse_qs(here.query)["see"] == ["encoder_self.0.3"]
    assert "Schicht 0, Kopf 3" in reader.page.inner_text("#softmax .head-name")
    link = reader.page.get_by_role("link", name="In der vollen App öffnen").get_attribute("href")
    assert parse_qs(urlsplit(link).query)["lang"] == ["de"]


def test_punctuation_as_a_token_has_the_quotation_marks_of_the_language(
    address: str, english: Translator, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(f"{address}{PAGES['de']}?source=Hello.&see=decoder_self.0.0")
    reader.wait_until_live()
    assert english.translate(["Hello."])[0].endswith(".")
    reader.until(lambda: "„.“ → </s>" in reader.page.inner_text("#heads li"), "no row of the full stop")


def test_only_the_page_s_own_scripts_may_run_and_the_file_may_ask_no_one(site: Path) -> None:
    for file in site.glob("*.html"):
        html = file.read_text("utf-8")
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
        scripts = re.search(r"script-src ([^;]*)", policy)[1]
        assert "unsafe" not in scripts
        assert "http" not in policy
        assert "default-src 'none'" in policy
        assert ("connect-src" in policy) == (not file.name.startswith("attention-explorer"))


def test_the_recorded_run_is_drawn_without_the_model(address: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address, route=lambda route: route.abort())
    for name in PICTURES:
        reader.until_drawn(name)
    assert reader.translation
    assert reader.until(lambda: reader.page.inner_text("#note"), "nothing says why").count("connection")
    # What is typed now is not lost: the address has it, and to reload the page is what the note says.
    box = reader.page.get_by_role("textbox", name="English sentence", exact=True)
    box.fill(TYPED)
    box.press("Enter")
    assert "reload" in reader.page.inner_text("#note")
    assert box.input_value() == TYPED
    assert parse_qs(urlsplit(reader.page.url).query)["source"] == [TYPED]


@pytest.mark.parametrize("name", ["tokens-picture", "head-list", "parts"])
def test_a_row_of_buttons_is_one_stop_of_the_tab_key_and_arrows_go_along_it(
    name: str, address: str, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address, route=lambda route: route.abort())
    buttons = reader.page.locator(f"#{name} button")
    reader.page.locator(f"#{name}").scroll_into_view_if_needed()
    buttons.nth(2).wait_for()
    stops = "buttons => buttons.map((each, at) => (each.tabIndex === 0 ? at : -1)).filter((at) => at >= 0)"
    (stop,) = buttons.evaluate_all(stops)
    buttons.nth(stop).press("Home")
    assert buttons.evaluate_all(stops) == [0]
    reader.page.keyboard.press("ArrowRight")
    assert buttons.evaluate_all(stops) == [1]
    assert buttons.nth(1).evaluate("button => button.getRootNode().activeElement === button")


def test_a_picture_off_the_screen_frees_its_pixels_and_comes_back_as_it_was(
    address: str, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address, route=lambda route: route.abort())
    reader.until_drawn("softmax")
    picture = reader.page.locator("#softmax-picture")
    slider = picture.get_by_role("slider", name="Temperature", exact=True)
    slider.evaluate("node => { node.value = 0.5; node.dispatchEvent(new Event('input')); }")
    height, moved = picture.evaluate("node => node.offsetHeight"), slider.input_value()
    reader.until_drawn("model")
    areas = "nodes => nodes.filter((node) => node.style.height).map(({ width, height }) => width * height)"
    canvases = picture.locator("canvas")
    assert canvases.evaluate_all(areas)
    reader.until(lambda: not any(canvases.evaluate_all(areas)), "pixels are held")
    assert picture.evaluate("node => node.offsetHeight") == height
    reader.until_drawn("softmax")
    reader.until(lambda: all(canvases.evaluate_all(areas)), "it is not drawn again")
    assert slider.input_value() == moved


def test_a_step_stays_at_the_top_while_pictures_above_it_grow(address: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(f"{address}#values", route=lambda route: route.abort())
    for name in ("softmax", "values"):
        reader.until(lambda name=name: reader.page.evaluate(DRAWN, name), f"{name} was not drawn")
    least = reader.page.locator("#softmax-picture").evaluate("node => parseFloat(getComputedStyle(node).minHeight)")
    assert reader.page.locator("#softmax-picture").evaluate("node => node.offsetHeight") > 2 * least
    top = "() => document.getElementById('values').getBoundingClientRect().top"
    margin = reader.page.locator("#values").evaluate("node => parseFloat(getComputedStyle(node).scrollMarginTop)")
    reader.until(lambda: abs(reader.page.evaluate(top) - margin) < 1, "the step was pushed away")
    assert urlsplit(reader.page.url).fragment == "values"
    # One may go on from there, and is not held.
    reader.page.mouse.wheel(0, -300)
    reader.until(lambda: reader.page.evaluate(top) > 250, "the page cannot be scrolled")


def test_a_picture_on_the_screen_is_drawn_before_those_near_it(address: str, open_page: Callable[..., Reader]) -> None:
    before = """window.drawn = [];
        const { attachShadow } = Element.prototype;
        Element.prototype.attachShadow = function (options) {
            drawn.push(this.id);
            return attachShadow.call(this, options);
        };"""
    reader = open_page(f"{address}#softmax", before=before, route=lambda route: route.abort())
    reader.until(lambda: "mask-picture" in reader.page.evaluate("drawn"), "the picture above was not drawn")
    drawn = reader.page.evaluate("drawn")
    assert drawn[0] == "softmax-picture"
    # Nothing on the way is drawn.
    assert "tokens-picture" not in drawn


def test_paper_has_every_picture(address: str, open_page: Callable[..., Reader]) -> None:
    before = """matchMedia("print").addEventListener("change", ({ matches }) => {
        const hasPixels = ({ shadowRoot }) => [...(shadowRoot?.querySelectorAll("canvas") ?? [])].some(
            ({ style, width }) => style.height && width);
        if (matches) window.onPaper = [...document.querySelectorAll(".picture")].filter(hasPixels).map(({ id }) => id);
    });"""
    reader = open_page(address, before=before, route=lambda route: route.abort())
    reader.until_drawn("positions")
    reader.page.pdf()
    drawn = set(reader.until(lambda: reader.page.evaluate("window.onPaper"), "nothing was printed"))
    assert {f"{name}-picture" for name in PICTURES} <= drawn
    # What is not on the screen lets its pixels go again.
    widths = "nodes => nodes.filter((node) => node.style.height).map(({ width }) => width)"
    canvases = reader.page.locator("#map-picture canvas")
    reader.until(lambda: not any(canvases.evaluate_all(widths)), "pixels are held")


def test_a_sentence_of_one_s_own(address: str, english: Translator, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address)
    reader.wait_until_live()
    asked = len(reader.requests)
    assert all(url.startswith((address, "blob:", "data:")) for url in reader.requests)
    assert reader.translate(TYPED) == english.translate([TYPED])[0]
    for name in (*PICTURES, "tokens", "beam"):
        reader.page.evaluate("(id) => document.getElementById(`${id}-picture`).scrollIntoView()", name)
        reader.until(
            lambda name=name: reader.page.evaluate(f"Boolean(document.getElementById('{name}-picture').shadowRoot)"),
            name,
        )
    tokens = reader.page.get_by_role("list", name="Tokens", exact=True).get_by_role("button")
    assert tokens.count() == len(english.tokenizer.encode(TYPED)) + 1
    assert reader.page.get_by_role("list", name="Heads", exact=True).get_by_role("button").count() == 8
    claims = reader.page.locator("[data-claim]")
    reader.until(lambda: all("✓ holds" in text for text in claims.all_inner_texts()), "a claim does not hold")
    assert claims.count() == 5
    later = [url for url in reader.requests[asked:] if not url.startswith(("blob:", "data:"))]
    assert (later, reader.lines) == ([], [])


def test_the_file_alone_does_the_same_without_any_request(
    site: Path, english: Translator, open_page: Callable[..., Reader]
) -> None:
    reader = open_page((site / "attention-explorer.html").as_uri())
    reader.wait_until_live()
    assert reader.translate(TYPED) == english.translate([TYPED])[0]
    kind, layer, head = CROSS
    reader.page.get_by_role("button", name="Switch this head off").click()
    off = HeadGate(0.0, kind=kind, layer=layer, head=head)
    expected = english.translate([TYPED], interventions=(off,))[0]
    reader.until(lambda: reader.changed.removesuffix(" (as before)") == expected, f"not {expected}")
    reader.until_drawn("softmax")
    slider = reader.page.get_by_role("slider", name="Temperature", exact=True)
    slider.evaluate(
        "node => { node.value = 1.3; node.dispatchEvent(new Event('input')); node.dispatchEvent(new Event('change')); }"
    )
    tau = AttentionTemperature(20.0, kind=kind, layer=layer, head=head)
    expected = english.translate([TYPED], interventions=(off, tau))[0]
    reader.until(lambda: reader.changed.removesuffix(" (as before)") == expected, f"not {expected}")
    # The link to the app holds the same sentence, head and changes.
    link = parse_qs(
        urlsplit(reader.page.get_by_role("link", name="Open this in the full app").get_attribute("href")).query
    )
    assert link["source"] == [TYPED]
    assert link["see"] == [f"{kind}.{layer}.{head}"]
    assert decode(link["changes"][0]) == (off, tau)
    assert [url for url in reader.requests if not url.startswith(("file:", "blob:", "data:"))] == []
    assert reader.lines == []


def test_a_box_of_the_whole_model_is_switched_off_in_the_picture(
    address: str, english: Translator, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(f"{address}?source={quote(TYPED)}")
    reader.wait_until_live()
    reader.until(lambda: reader.translation == english.translate([TYPED])[0], "the sentence was not translated")
    picture = reader.page.locator("#model-picture")
    trace = english.trace(TYPED)

    def score() -> str:
        return picture.locator("p.score").inner_text()

    def in_nats(number: float) -> str:
        return f"{number:.3f}".replace("-", "−")

    reader.until(lambda: in_nats(trace.log_probability) in score(), f"not {trace.log_probability}")
    for _ in range(3):  # output matrix, add & norm, feed-forward
        picture.get_by_role("button", name="One box back").click()
    assert picture.locator("h3").inner_text() == "Feed-forward"
    last = english.model.config.n_decoder_layers - 1
    (box,) = (each for each in model_boxes(english, trace) if each.name == f"decoder.{last}.feed_forward")
    assert f"{float(f'{box.multiply_adds:.3g}') / 1e6:g}M multiply-adds" in picture.locator(".panel").inner_text()
    picture.get_by_role("button", name="Off: Runs the model without what this box adds").click()
    off = SublayerOff("decoder", last, "feed_forward")
    after = english.rerun(trace, (off,)).log_probability
    reader.until(lambda: f"→ {in_nats(after)}" in score(), f"not {after}")
    assert decode(parse_qs(urlsplit(reader.page.url).query)["changes"][0]) == (off,)
    expected = english.translate([TYPED], interventions=(off,))[0]
    reader.until(lambda: reader.changed.removesuffix(" (as before)") == expected, f"not {expected}")
    picture.get_by_role("button", name="All on").click()
    reader.until(lambda: "→" not in score(), "it stayed off")
    assert "changes" not in parse_qs(urlsplit(reader.page.url).query)


def test_without_an_address_of_the_app_only_one_s_own_computer_leads_to_it(
    english: Translator, tmp_path: Path, open_page: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pages.site.build.load_checkpoint", lambda *_: english)
    build(tmp_path, [str(ROOT / "checkpoints/en-de")], app="")
    for name in PAGES.values():
        html = (tmp_path / name).read_text("utf-8")
        assert "make run" in re.search(r"<footer>(.*?)</footer>", html, re.DOTALL)[1]

    def link(url: str) -> "Locator":
        reader = open_page(url)
        reader.until(lambda: reader.page.evaluate("window.started"), "the page did not start")
        return reader.page.get_by_role("link", name="Open this in the full app")

    with hosted(tmp_path) as address:
        here = urlsplit(link(address).get_attribute("href"))
        assert (here.hostname, parse_qs(here.query)["source"]) == ("localhost", [TRANSLATE.sentence])
    # From a disk, as from a stranger's server, nobody knows where an app runs.
    assert link((tmp_path / "attention-explorer.html").as_uri()).count() == 0


def test_every_change_of_the_engine_can_be_made_in_the_page(address: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address, route=lambda route: route.abort())
    page = reader.page
    reader.until_drawn("softmax")
    slider = page.get_by_role("slider", name="Temperature", exact=True)
    slider.evaluate("node => { node.value = 1.3; node.dispatchEvent(new Event('input')); }")
    slider.dispatch_event("change")
    page.get_by_label("Attention", exact=True).select_option("encoder_self")
    reader.until_drawn("map")
    page.locator("#map-picture canvas").last.click(position={"x": 150, "y": 110})
    for name in MORE:
        page.get_by_label("Change", exact=True).select_option(name)
        page.get_by_role("button", name="Make this change").click()
    assert page.inner_text("#cell").startswith("0 I "), "the first query was not chosen"
    made = decode(parse_qs(urlsplit(page.url).query)["changes"][0])
    assert len(made) == len(MORE) + 1
    public = {name for name in interventions.__all__ if dataclasses.is_dataclass(getattr(interventions, name))}
    changes = {name for name in public if hasattr(getattr(interventions, name), "edits")}
    missing = set(re.findall(r"^  (\w+):", re.search(r"MISSING = \{(.*?)\n\}", ENGINE, re.DOTALL)[1], re.MULTILINE))
    assert {type(change).__name__ for change in made} == changes - missing


@pytest.mark.parametrize("name", [*PAGES.values(), *WRITING.values()])
def test_the_page_names_every_change_that_it_has_not(site: Path, name: str) -> None:
    missing = re.search(r"MISSING = \{(.*?)\n\}", ENGINE, re.DOTALL)[1]
    footer = re.search(r"<footer>(.*?)</footer>", (site / name).read_text("utf-8"), re.DOTALL)[1]
    names = re.findall(r'^  "?(\w+)', missing, re.MULTILINE)
    assert names
    assert [each for each in names if each not in footer] == []


def test_a_link_of_the_app_opens_here(address: str, english: Translator, open_page: Callable[..., Reader]) -> None:
    changes = (HeadGate(0.0, kind="cross", layer=1),)
    query = f"?source={quote(TYPED)}&see=encoder_self.0.3&changes={quote(encode(changes))}#softmax"
    reader = open_page(address + query)
    reader.wait_until_live()
    expected = english.translate([TYPED], interventions=changes)[0]
    reader.until(lambda: reader.changed.removesuffix(" (as before)") == expected, f"not {expected}")
    assert reader.translation == english.translate([TYPED])[0]
    assert "Encoder self-attention, layer 0, head 3" in reader.page.inner_text("#softmax .head-name")
    assert "current" in reader.page.locator("#softmax").get_attribute("class").split()


@pytest.mark.parametrize("changes", ["[[", '[["Nothing",{}]]', '[["HeadGate",{"gate":7}]]'])
def test_a_damaged_link_is_answered_with_a_sentence(
    address: str, open_page: Callable[..., Reader], changes: str
) -> None:
    reader = open_page(f"{address}?changes={quote(changes)}")
    reader.wait_until_live()
    assert len(reader.until(lambda: reader.page.inner_text("#note"), "nothing was said").split()) > 3
    assert reader.translate(TYPED)


def test_the_story_is_walked_by_buttons_and_by_keys(address: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address, route=lambda route: route.abort())
    steps = reader.page.locator("section.step").evaluate_all("nodes => nodes.map(({ id }) => id)")
    assert 8 <= len(steps[1:]) <= 10
    for name in steps[1:]:
        reader.page.get_by_role("button", name="Next", exact=True).click()
        reader.until(lambda name=name: urlsplit(reader.page.url).fragment == name, f"{name} was not reached")
    reader.page.keyboard.press("ArrowLeft")
    reader.until(lambda: urlsplit(reader.page.url).fragment == steps[-2], "the arrow did not lead back")
    arrived = "(id) => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 50"
    reader.until(lambda: reader.page.evaluate(arrived, steps[-2]), "the step did not come to the top")
    reader.page.mouse.wheel(0, 1)
    # Scrolled by a key or by the bar at the side, the story goes on from there.
    for name in (steps[5], steps[-2]):
        reader.page.evaluate("(id) => document.getElementById(id).scrollIntoView({ behavior: 'instant' })", name)
        reader.until(lambda name=name: urlsplit(reader.page.url).fragment == name, f"{name} is not the step on screen")
    reader.page.get_by_role("button", name="Present", exact=True).click()
    shown = reader.page.locator("section.step").evaluate_all(
        "nodes => nodes.filter(n => n.offsetHeight).map(({ id }) => id)"
    )
    assert shown == [steps[-2]]


@pytest.mark.parametrize("page", [PAGES["en"], WRITING["de"]])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it_on_a_phone_too(
    address: str, open_page: Callable[..., Reader], scheme: str, page: str
) -> None:
    reader = open_page(address + page, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    reader.wait_until_live()
    reader.until_drawn("heads")
    assert reader.page.evaluate("document.documentElement.scrollWidth") == 390
    found = Axe().run(reader.page).response["violations"]
    assert {each["id"]: [node["html"][:120] for node in each["nodes"]] for each in found} == {}


@pytest.mark.parametrize(("width", "height"), [(320, 568), (360, 640)])
def test_a_small_phone_shows_more_of_the_picture_than_of_what_stands_over_it(
    address: str, open_page: Callable[..., Reader], width: int, height: int
) -> None:
    """In German, whose words are longer."""
    viewport = {"width": width, "height": height}
    reader = open_page(address + PAGES["de"], viewport=viewport, route=lambda route: route.abort())
    reader.until_drawn("model")
    reader.until_drawn("heads")
    assert reader.page.evaluate("document.documentElement.scrollWidth") == width
    over = sum(reader.page.locator(name).first.bounding_box()["height"] for name in ("nav", "#model-picture .panel"))
    assert over < 0.4 * height


def test_a_browser_that_cannot_run_it_says_so_and_keeps_the_translation(
    address: str, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address, java_script_enabled=False)
    assert "too old" in reader.page.inner_text("header")
    assert reader.translation
    without = "delete window.IntersectionObserver;"
    reader = open_page(address, before=without)
    assert "too old" in reader.until(lambda: reader.page.inner_text("#note"), "nothing was said")
    assert reader.translation


def test_a_damaged_model_is_not_run(address: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address, route=lambda route: route.fulfill(body=b"0" * 1000))
    assert "damaged" in reader.until(lambda: reader.page.inner_text("#note"), "nothing was said")
    reader.until_drawn("heads")


def test_a_full_browser_runs_the_model_and_says_that_it_cannot_keep_it(
    address: str, open_page: Callable[..., Reader]
) -> None:
    full = "Cache.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'));"
    reader = open_page(address, before=full)
    reader.wait_until_live()
    assert "no room" in reader.page.inner_text("#note")


def test_too_little_memory_leaves_the_recorded_run(address: str, open_page: Callable[..., Reader]) -> None:
    small = """const { Uint8Array: Whole } = window;
        window.Uint8Array = new Proxy(Whole, { construct(target, [size, ...more]) {
            if (size > 1e7) throw new RangeError("Array buffer allocation failed");
            return Reflect.construct(target, [size, ...more]);
        } });"""
    reader = open_page(address, before=small)
    assert "memory" in reader.until(lambda: reader.page.inner_text("#note"), "nothing was said")
    reader.until_drawn("heads")


def test_where_megabytes_cost_money_the_page_asks_first_and_what_is_typed_waits(
    address: str, english: Translator, open_page: Callable[..., Reader]
) -> None:
    metered = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } });"
    reader = open_page(address, before=metered)
    reader.until_drawn("heads")
    waiting = reader.page.locator("#beam .picture-note")
    reader.page.locator("#beam").scroll_into_view_if_needed()
    reader.until(waiting.is_visible, "the beam needs the model")
    assert not [url for url in reader.requests if url.endswith(".safetensors")]
    box = reader.page.get_by_role("textbox", name="English sentence", exact=True)
    box.fill(TYPED)
    box.press("Enter")
    reader.page.get_by_role("button", name=re.compile("Load the model")).click()
    expected = english.translate([TYPED])[0]
    reader.until(lambda: reader.translation == expected, f"not {expected}")
    reader.page.locator("#beam").scroll_into_view_if_needed()
    reader.until(lambda: reader.page.evaluate("Boolean(document.getElementById('beam-picture').shadowRoot)"), "no tree")


@pytest.mark.parametrize("page", [PAGES["en"], WRITING["en"]])
def test_a_second_visit_needs_no_network(address: str, page: str, open_page: Callable[..., Reader]) -> None:
    reader = open_page(address + page)
    reader.wait_until_live()
    reader.page.evaluate("() => navigator.serviceWorker.ready.then(() => 1)")
    reader.page.reload()
    reader.wait_until_live()
    reader.page.context.set_offline(True)
    reader.page.reload()
    reader.wait_until_live()
    before = reader.page.inner_text("#written")
    box = reader.page.get_by_role("textbox").first
    box.fill(TYPED)
    box.press("Enter")
    reader.until(lambda: reader.page.inner_text("#written") not in ("", before), "nothing was written")


def test_a_smaller_translator_gets_a_page_too(saved_checkpoints: Path, tmp_path: Path) -> None:
    build(tmp_path, [str(saved_checkpoints / "en-de")], APP)
    words = json.loads(words_of((tmp_path / "index.html").read_text("utf-8")))
    assert words["place"]["layer"] < words["config"]["n_decoder_layers"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("positions", "alibi"), ("positions", "learned"), ("norm_function", "batch_norm"), ("activation", "geglu")),
        *(("qk_norm", True), ("window", 8), ("tie_embeddings", False), ("residual", False), ("d_ff", 962)),
    ],
)
def test_what_the_engine_cannot_run_is_refused_by_name(field: str, value: object, writer: LanguageModel) -> None:
    assert list(what_cannot_be_run(writer.model.config)) == []
    (problem,) = what_cannot_be_run(dataclasses.replace(writer.model.config, **{field: value}))
    assert field in problem
    assert str(value) in problem


def test_every_preset_of_the_trainer_for_a_language_model_can_be_run() -> None:
    presets = [config for config in PRESETS.values() if config.family == "decoder"]
    assert len(presets) > 1
    assert [list(what_cannot_be_run(config)) for config in presets] == [[]] * len(presets)


def test_other_networks_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="everyday-mlm"):
        build(tmp_path, [str(ROOT / "checkpoints/everyday-mlm")], APP)
    with pytest.raises(ValueError, match="one checkpoint of each"):
        build(tmp_path, [str(ROOT / "checkpoints" / name) for name in ("everyday-lm", "everyday-lm-2017")], APP)
    assert not list(tmp_path.iterdir())


# --- the page that continues a text --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer() -> LanguageModel:
    return load_checkpoint(str(ROOT / "checkpoints/everyday-lm"), "cpu")


PROMPT = "Yesterday we went to the"
WRITING_PICTURES = tuple(name for name in PICTURES if name != "positions")


def written(reader: Reader) -> str:
    return reader.page.locator("#written").inner_text()


def until_written(reader: Reader, expected: str) -> None:
    reader.until(lambda: written(reader) == expected, f"not {expected!r} but {written(reader)!r}")


def continue_text(reader: Reader, text: str, expected: str) -> None:
    box = reader.page.get_by_role("textbox", name="Beginning of an English text", exact=True)
    box.fill(text)
    box.press("Enter")
    until_written(reader, expected)


def set_slider(reader: Reader, name: str, value: float) -> None:
    """Moves a slider of the next token."""
    move = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }"
    reader.page.locator(f"#{name}").evaluate(move, value)


def test_a_text_of_one_s_own_is_continued_as_python_does(
    address: str, writer: LanguageModel, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address + WRITING["en"])
    reader.wait_until_live()
    asked = len(reader.requests)
    expected = writer.continue_text([PROMPT], temperature=0)[0]
    continue_text(reader, PROMPT, expected)
    for name in (*WRITING_PICTURES, "tokens"):
        reader.page.evaluate("(id) => document.getElementById(`${id}-picture`).scrollIntoView()", name)
        drawn = f"Boolean(document.getElementById('{name}-picture').shadowRoot)"
        reader.until(lambda drawn=drawn: reader.page.evaluate(drawn), name)
    tokens = reader.page.get_by_role("list", name="Tokens", exact=True).get_by_role("button")
    reader.until(lambda: tokens.count() == len(writer.tokenizer.encode(expected)) + 1, "not all tokens are there")
    claims = reader.page.locator("[data-claim]")
    reader.until(lambda: all("✓ holds" in text for text in claims.all_inner_texts()), "a claim does not hold")
    later = [url for url in reader.requests[asked:] if not url.startswith(("blob:", "data:"))]
    assert (later, reader.lines) == ([], [])


def test_a_seed_draws_in_the_page_what_it_draws_in_python(
    address: str, writer: LanguageModel, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address + WRITING["en"])
    reader.wait_until_live()
    for name, value in (("temperature", 1.2), ("topK", 60), ("topP", 0.9), ("seed", 7)):
        set_slider(reader, name, value)
    expected = writer.continue_text([PROMPT], temperature=1.2, top_k=60, top_p=0.9, seed=7)[0]
    assert expected != writer.continue_text([PROMPT], temperature=0)[0]
    continue_text(reader, PROMPT, expected)


def test_the_candidates_are_those_of_python_and_the_text_goes_on_with_one(
    address: str, writer: LanguageModel, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address + WRITING["en"])
    reader.wait_until_live()
    continue_text(reader, PROMPT, writer.continue_text([PROMPT], temperature=0)[0])
    trace = writer.trace(PROMPT)
    likeliest = trace.candidates[len(trace.tgt_ids) - 1]
    buttons = reader.page.get_by_role("list", name="What may come next").get_by_role("button")
    names = [labels([one.token])[0] for one in likeliest[:4]]
    reader.until(lambda: [text.split()[0] for text in buttons.all_inner_texts()[:4]] == names, f"not {names}")
    for text, one in zip(buttons.all_inner_texts(), likeliest[:4], strict=False):
        assert float(text.split()[1].rstrip("%")) == pytest.approx(100 * one.probability, abs=0.051)
    # The second one is taken: the text ends with it, and goes on from there.
    longer = writer.tokenizer.decode([*trace.tgt_ids, likeliest[1].id])
    buttons.nth(1).click()
    until_written(reader, longer)
    reader.page.get_by_role("button", name="Keep writing").click()
    ended = writer.continue_text([longer], temperature=0)[0]
    until_written(reader, ended)
    # What the model has ended it does not go on with, and the page says so.
    reader.page.get_by_role("button", name="One more token").click()
    reader.until(lambda: "ends the text here" in reader.page.inner_text("#note"), "the page does not say why")
    assert written(reader) == ended


def test_a_changed_language_model_writes_what_python_writes(
    address: str, writer: LanguageModel, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(f"{address}{WRITING['en']}?source={quote(PROMPT)}&see=decoder_self.2.5")
    reader.wait_until_live()
    until_written(reader, writer.continue_text([PROMPT], temperature=0)[0])
    reader.page.get_by_role("button", name="Switch this head off").click()
    off = HeadGate(0.0, kind="decoder_self", layer=2, head=5)
    expected = writer.continue_text([PROMPT], temperature=0, interventions=(off,))[0]
    reader.until(lambda: reader.changed.removesuffix(" (as before)") == expected, f"not {expected}")
    link = reader.page.get_by_role("link", name="Open this in the full app").get_attribute("href")
    query = parse_qs(urlsplit(link).query)
    assert query["checkpoint"] == ["everyday-lm"]
    assert query["source"] == [PROMPT]
    assert decode(query["changes"][0]) == (off,)


def test_the_page_begins_on_the_head_that_the_measurements_single_out(site: Path, writer: LanguageModel) -> None:
    words = json.loads(words_of((site / WRITING["en"]).read_text("utf-8")))
    assert tuple(words["place"].values()) == first_place(writer)
    assert words["place"]["layer"] > 0


def test_either_page_leads_to_the_other_in_its_language_and_form(site: Path) -> None:
    for code in PAGES:
        for one, other in ((PAGES, WRITING), (WRITING, PAGES)):
            html = (site / one[code]).read_text("utf-8")
            assert f'href="{other[code]}"' in html[html.index('id="tasks"') :]
    alone = (site / "attention-explorer.html").read_text("utf-8")
    assert 'href="attention-explorer-continue.html"' in alone


def test_no_english_is_left_on_the_page_of_another_language_that_continues_a_text(
    address: str, open_page: Callable[..., Reader]
) -> None:
    seen = {}
    for code, name in WRITING.items():
        reader = open_page(address + name, before=WRITTEN)
        reader.wait_until_live()
        for picture in WRITING_PICTURES:
            reader.until_drawn(picture)
        seen[code] = set(reader.page.evaluate(SEEN))
        run = json.loads(recordings_of(reader.page.content())[0])
    pieces = [piece for pieces in run["tokens"].values() for piece in pieces]
    pieces += [piece for row in run["candidates"] for piece, _ in row]
    pieces += reader.page.locator("#candidates button").all_inner_texts()
    typed = words_in(" ".join([run["text"], run["written"], *pieces]))
    for code in WRITING.keys() - {"en"}:
        left = {text for text in seen[code] & seen["en"] if words_in(text) - typed - KEPT - {"pre", "top"}}
        assert {text for text in left if not text.endswith("…")} == set(), code


def test_any_language_model_of_ours_gets_a_page(tmp_path: Path, open_page: Callable[..., Reader]) -> None:
    """One with added positions and norms after each sub-layer shows them in a step of the story."""
    name = str(ROOT / "checkpoints/everyday-lm-2017")
    build(tmp_path, [name], APP)
    expected = load_checkpoint(name, "cpu").continue_text([CONTINUE.sentence], temperature=0)[0]
    with hosted(tmp_path) as address:
        reader = open_page(address)
        reader.wait_until_live()
        reader.until_drawn("positions")
        assert written(reader) == expected
        assert reader.lines == []


def test_a_text_without_room_for_a_token_is_answered_with_a_sentence(
    address: str, open_page: Callable[..., Reader]
) -> None:
    reader = open_page(address + WRITING["en"])
    reader.wait_until_live()
    box = reader.page.get_by_role("textbox", name="Beginning of an English text", exact=True)
    for words, says in ((300, "up to 256 can be read"), (255, "no room for another token")):
        box.fill("a " * words)
        box.press("Enter")
        reader.until(lambda says=says: says in reader.page.inner_text("#note"), f"the page does not say {says}")
        assert written(reader) == "My grandmother told me that she was a doctor."
    assert reader.lines == []


@pytest.mark.parametrize("typed", ["🎉 中文", "<img src=x onerror=alert(1)>", "\u202eabc", "**bold** $x$"])
def test_any_text_is_continued_as_text(address: str, open_page: Callable[..., Reader], typed: str) -> None:
    reader = open_page(address + WRITING["en"])
    reader.wait_until_live()
    box = reader.page.get_by_role("textbox", name="Beginning of an English text", exact=True)
    box.fill(typed)
    box.press("Enter")
    reader.until(
        lambda: "grandmother" not in written(reader) and written(reader).startswith(typed[:2]), "not continued"
    )
    reader.until_drawn("heads")
    assert reader.page.locator("#written img").count() == 0
    assert reader.lines == []
