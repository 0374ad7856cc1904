"""Around every page, in Chromium: pages that the model lacks, text that was not run, links to tabs."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT
from model.checkpoints.translator import Translator
from pages import PAGES, Page
from pages.frame.address.here import lacking
from tests.browser.conftest import Visitor, query, serve
from tests.pages.widgets.test_export import TABS

if TYPE_CHECKING:
    from playwright.sync_api import WebSocketRoute

ALL = [page for pages in PAGES.values() for page in pages]
FIRST = """() => {
    const shown = "canvas, .js-plotly-plot, table, [data-testid=stDataFrame], [data-testid=stMetric], " +
        ".katex-display, [data-testid=stMarkdownContainer] p";
    const bar = document.querySelector("[data-testid=stTabs] [role=tablist]").getBoundingClientRect();
    const tops = [...document.querySelectorAll(`[data-testid=stMain] :is(${shown})`)]
        .map((node) => node.getBoundingClientRect()).filter((box) => box.height && box.top >= bar.bottom);
    return [bar.top, Math.min(...tops.map((box) => box.top))];
}"""
"""where the bar of tabs begins, and what stands first below it"""
OPEN_TAB = """() => {
    const tab = document.querySelector("[data-testid=stMain] [role=tab][aria-selected=true]");
    const [inner, outer] = [tab, tab.closest("[role=tablist]")].map((node) => node.getBoundingClientRect());
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.right <= innerWidth;
}"""
"""whether the open tab lies inside what its row shows"""
PICTURE = """() => [...document.querySelectorAll("[data-testid=stMain] :is(.js-plotly-plot, .stBidiComponent)")]
    .filter((node) => node.checkVisibility())
    .map((node) => node.getBoundingClientRect()).filter((box) => box.height > 100)
    .map((box) => ({ bottom: Math.round(box.bottom), height: Math.round(box.height) }))[0]"""
FOCUSED_WHILE_WIDE = """(wide) => {
    const formulas = [...document.querySelectorAll("[data-testid=stMain] .katex-display")];
    const overflows = (node) => node.scrollWidth > node.clientWidth + 1;
    return formulas.some(overflows) === wide && formulas.length &&
        formulas.every((node) => overflows(node) === (node.tabIndex === 0));
}"""
"""whether the Tab key stops at each formula that is wider than its place, at no other, and there is one or not"""
SENTENCE = "a dog runs in the snow"
"""of at most 15 tokens: longer ones scroll inside their pictures, or make them taller"""
TALLER: dict[str, dict[str, str]] = {
    "continue_text": {"": "what the model wrote, and how it writes, stand above"},
    "whole_model": {"Figure 1, alive": "every box of every layer, with its name"},
    "model_card": {"In short": "the same"},
    "positional_encoding": {"Word order": "begins with the translations of both orders, in boxes"},
    "decoding": {"Sampling": "begins with a table of what was drawn"},
    "training": {
        "One training step": "begins with the pair and what the step changed",
        "Norm and residual": "begins with a table of all trainings",
    },
    "what_if": {
        "Which heads matter": "begins with six choices: of what, measured on what",
        "Force a prefix": "begins with the words to choose from",
        "Broken on purpose": "begins with the lines of code that are wrong",
    },
    "side_by_side": {
        "Compare": "below the choice of both sides, rows of two heads",
        "Patch": "begins with both sentences",
        "Revisions": "below the choice of both sides, and which two they are",
        "One word in two sentences": "begins with the choice of the sentences",
        "Word pairs": "begins with the choice of the sentences",
    },
    "often_told_wrong": {"": "below the first claim, whose picture waits for a button"},
    "paper": {
        "Line by line": "every box of every layer, with its name",
        "Figures 3 to 5": "a row for each word of the paper's sentences",
    },
    "why_attention": {
        "Recurrence and attention": "three models, one below the other, each with its layers",
        "State space models": "begins with what each model answers",
    },
}
"""by page and tab ("" is a page without tabs): why its first picture does not end on a screen of 1280 x 720"""


def test_the_menu_greys_the_pages_that_the_model_lacks_with_the_reason_and_they_still_open(
    server: str,
    visitor: Visitor,
    translator: Translator,
    saved_checkpoints: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    visitor.visit(f"{server}/masks")
    lacks = lacking(translator.features)
    assert lacks
    visitor.page.get_by_test_id("stTopNavSection").filter(has_text="Explore").click()
    entry = visitor.page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Fill in")
    visitor.page.locator("a[data-lacks]").first.wait_for()
    assert entry.get_attribute("title") == lacks["fill_in"]
    whole = visitor.page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Translate")
    assert whole.get_attribute("data-lacks") is None
    entry.click()
    visitor.page.get_by_text("This page needs").wait_for()


NOWHERE = "selector => !document.querySelector(selector)"


def test_a_formula_takes_the_arrow_keys_exactly_while_it_is_wider_than_its_place(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    for width, wide in ((1280, False), (900, True), (1280, False)):
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.page.wait_for_function(FOCUSED_WHILE_WIDE, arg=wide)
    visitor.visit(f"{server}/glossary")
    visitor.page.wait_for_function(FOCUSED_WHILE_WIDE, arg=True)


CAPTIONS = """() => {
    const look = (p) => {
        const { color, fontSize, lineHeight } = getComputedStyle(p);
        const [left, begin] = [p, p.closest(".stElementContainer")].map((node) => node.getBoundingClientRect().left);
        return String([color, fontSize, lineHeight, left - begin]);
    };
    const looks = (where) => [...document.querySelectorAll(`[data-testid=stMain] ${where} p`)]
        .filter((p) => p.checkVisibility()).map(look);
    return ["blockquote", "[data-testid=stCaptionContainer]"].map((where) => [...new Set(looks(where))]);
}"""
"""how captions look: in one text with a paragraph, and by themselves"""


def test_a_caption_looks_alike_below_a_paragraph_and_by_itself(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/paper?paper=Line+by+line")
    for scheme in ("light", "dark"):
        visitor.change_scheme(scheme)
        below, alone = visitor.page.evaluate(CAPTIONS)
        assert below == alone
        assert len(alone) == 1


def test_a_quotation_in_a_models_readme_is_no_caption(
    saved_checkpoints: Path, tmp_path: Path, visitor: Visitor
) -> None:
    folder = shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    (folder / DEFAULT_CHECKPOINT / "README.md").write_text("A text.\n\n> Quoted.\n", encoding="utf-8")
    with serve(folder, tmp_path / "log.txt") as address:
        visitor.visit(f"{address}/model_card?card=Data,+terms,+limits")
        quoted = visitor.page.locator("blockquote", has_text="Quoted.")
        assert quoted.evaluate("(node) => getComputedStyle(node).borderLeftStyle") == "solid"


def test_a_text_that_was_typed_says_that_it_was_not_run_until_it_is(server: str, visitor: Visitor) -> None:
    """A text that the app puts into the field, perhaps after the run itself, is not said to be typed."""
    visitor.visit(f"{server}/masks")
    field, note = visitor.page.get_by_role("textbox", name="Source sentence"), "[class*=st-key-source][data-changed]"
    visitor.page.wait_for_function(NOWHERE, arg=note)
    before = field.input_value()
    put = "(field, text) => Object.assign(field, { value: text, defaultValue: text })"
    for take_back in (lambda: field.fill(before), lambda: field.evaluate(put, before)):
        field.fill("a dog")
        visitor.page.locator(note).first.wait_for()
        take_back()
        visitor.page.wait_for_function(NOWHERE, arg=note)
    field.fill("a cat")
    with visitor.rerun():
        field.press("Enter")
    visitor.page.wait_for_function(NOWHERE, arg=note)


def test_the_address_names_the_tab_that_a_link_has_opened_on_another_page(server: str, visitor: Visitor) -> None:
    """Both pages call their tab alike in the address; the copied address opens the same tab."""
    visitor.visit(f"{server}/masks")
    visitor.page.get_by_test_id("stMain").get_by_role("link", name="Why this score?").click()
    selected = visitor.page.locator("[role=tab][aria-selected=true]").first
    visitor.page.wait_for_function(
        "location.pathname.endsWith('attention_step_by_step') && new URLSearchParams(location.search).has('part')"
    )
    visitor.settle()
    tab = selected.inner_text()
    assert query(visitor) == {"part": tab}
    visitor.visit(visitor.page.url)
    assert selected.inner_text() == tab


@pytest.mark.parametrize("width", [390, 1280])
def test_the_open_tab_of_a_long_row_is_in_view_and_the_page_stays_at_its_top(
    width: int, server: str, visitor: Visitor
) -> None:
    key, *titles = TABS["training"]
    visitor.page.set_viewport_size({"width": width, "height": 844})
    for title in (titles[-1], titles[len(titles) // 2], titles[0]):
        visitor.visit(f"{server}/training?{key}={quote(title)}")
        visitor.page.wait_for_function(OPEN_TAB)
        assert visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_a_link_to_a_tab_lands_there_and_the_first_picture_of_each_tab_ends_on_the_screen(
    page: Page, server: str, visitor: Visitor, translator: Translator
) -> None:
    """At 1280 x 720, and no picture taller than 520 pixels; but for tabs that are named above, with the reason.

    The link opens the last tab, which may lie outside what the row of tabs shows.
    """
    if not set(page.needs) <= set(translator.features):
        return
    key, *titles = TABS.get(page.name, (page.tabs_key, ""))
    address = f"{server}/{page.name}?source={quote(SENTENCE)}"
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.visit(f"{address}&{key}={quote(titles[-1])}" if titles[-1] else address)
    if titles[-1]:
        assert visitor.page.locator("[role=tab][aria-selected=true]").first.inner_text() == titles[-1]
        bar, first = visitor.page.evaluate(FIRST)
        assert bar < 330  # the tiny model reads bytes, so the notice on such a text takes a line above the tabs
        assert visitor.page.evaluate(OPEN_TAB)
        assert first < 720
    ends = {}
    for title in reversed(titles):
        if title and not open_tab(visitor, title):
            visitor.visit(f"{address}&{key}={quote(title)}")
        if not title or title in visitor.page.locator("[role=tab][aria-selected=true]").all_inner_texts():
            ends[title] = visitor.page.evaluate(PICTURE)
    exceptions = TALLER.get(page.name, {})
    assert ends
    assert set(exceptions) <= set(titles)
    assert {
        title: picture
        for title, picture in ends.items()
        if picture and title not in exceptions and (picture["bottom"] > 720 or picture["height"] > 520)
    } == {}


def test_a_gap_to_fill_and_its_head_stand_on_one_screen(shipped_server: str, visitor: Visitor) -> None:
    asked = urlencode({"checkpoint": "everyday-mlm", "source": "She reads a book in the garden."})
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.visit(f"{shipped_server}/fill_in?{asked}")
    assert visitor.page.evaluate(PICTURE)["bottom"] <= 720


def open_tab(visitor: Visitor, title: str) -> bool:
    """Whether the page has this tab in view: it is open then."""
    tab = visitor.page.get_by_test_id("stMain").get_by_role("tab", name=title, exact=True)
    if not tab.count() or not tab.is_visible():
        return False
    if tab.get_attribute("aria-selected") != "true":
        with visitor.rerun():
            tab.click()
    return True


@pytest.mark.parametrize("change", ["tau=2", "tau=2&scope=Everywhere&kind=Cross"])
def test_all_of_the_sidebar_is_on_the_screen_of_a_laptop_with_a_change_at_work(
    change: str, server: str, visitor: Visitor
) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.visit(f"{server}/masks?{change}")
    sidebar = visitor.page.get_by_test_id("stSidebar")
    sidebar.locator(".st-key-remove-0 button").first.wait_for()
    boxes = [button.bounding_box() for button in sidebar.get_by_role("button").all() if button.is_visible()]
    assert max(box["y"] + box["height"] for box in boxes) <= 700


HIDDEN_BELOW = """(box) => [...box.querySelectorAll("button, textarea, input, label, p")].filter((node) => {
  const { left, top, width, height } = node.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  const shown = node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && width && y < innerHeight;
  return shown && !box.contains(document.elementFromPoint(x, y));
}).map((node) => node.textContent)"""


def test_on_a_phone_nothing_lies_on_the_drawer_and_its_menu_is_the_one_at_the_foot(
    server: str, visitor: Visitor
) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.visit(f"{server}/masks?lang=de")
    page.get_by_test_id("stExpandSidebarButton").click()
    drawer = page.locator("[data-testid=stSidebar][data-collapsed=false]")
    drawer.get_by_role("slider").first.wait_for()
    page.wait_for_function("box => box.getBoundingClientRect().left === 0", arg=drawer.element_handle())
    assert drawer.evaluate(HIDDEN_BELOW) == []
    # Streamlit's own menu is folded, and its fold speaks English.
    assert not page.get_by_test_id("stSidebarNav").is_visible()
    assert page.locator(".st-key-foot-menu").is_visible()


PALEST = """() => Math.min(...[...document.querySelectorAll("[data-testid=stMain] .stElementContainer")]
    .map((box) => getComputedStyle(box).opacity))"""
"""opacity of the palest element of the page"""
STANDS_STILL = f"""() => {{
    const page = document.documentElement, slow = page.hasAttribute("data-slow");
    page.removeAttribute("data-slow");
    const stale = [...document.querySelectorAll("[data-stale=true]")];
    const still = ({PALEST})() === 1 && stale.every((box) => !box.getAnimations().length);
    page.toggleAttribute("data-slow", slow);
    return stale.length > 0 && still;
}}"""
"""whether what is drawn anew neither fades nor waits to fade as long as the run is not said to take long"""


def test_what_is_drawn_anew_stands_still_and_fades_only_where_a_run_takes_long(
    server: str, new_visitor: Callable[..., Visitor]
) -> None:
    """A run takes long here because what it draws is held back."""
    visitor, routes = new_visitor(), []
    held: list[bytes | str] | None = None

    def hand_on(message: bytes | str) -> None:
        draws = isinstance(message, bytes) and ForwardMsg.FromString(message).HasField("delta")
        if held is None or not (held or draws):
            routes[-1].send(message)
        else:
            held.append(message)

    def intercept(route: "WebSocketRoute") -> None:
        routes.append(route)
        route.connect_to_server().on_message(hand_on)

    visitor.page.route_web_socket(re.compile("/_stcore/stream"), intercept)
    visitor.visit(f"{server}/masks")
    held = []
    visitor.page.get_by_test_id("stSidebar").get_by_role("slider", name="Temperature").press("ArrowRight")
    visitor.page.wait_for_function(STANDS_STILL)
    visitor.page.wait_for_function("document.documentElement.hasAttribute('data-slow')")
    visitor.page.wait_for_function(f"({PALEST})() < 0.5")
    waiting, held = held, None
    for message in waiting:
        routes[-1].send(message)
    visitor.page.wait_for_function("!document.documentElement.hasAttribute('data-slow')")
    visitor.settle()
    assert visitor.page.evaluate(PALEST) == 1


@pytest.mark.parametrize("language", ["de", "zh"])
def test_what_the_frame_says_itself_is_in_the_language_of_the_app(language: str, server: str, visitor: Visitor) -> None:
    """Names for a screen reader, and what a chart's buttons say."""
    visitor.visit(f"{server}/masks?lang={language}")
    named = "Help for|Collapse sidebar|App pages|^Help$|^Open$|^Pan$|^Zoom in$|^Zoom out$|^Reset axes$|^Fullscreen$"
    visitor.page.wait_for_function(
        """english => [...document.querySelectorAll("[aria-label], .modebar-btn[data-title]")].every((node) =>
            ![node.ariaLabel, node.dataset.title].some((text) => text && RegExp(english).test(text)))""",
        arg=named,
    )


def test_on_a_phone_the_menu_at_the_foot_marks_where_one_is(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    for address, section in (("masks", "Attention"), ("what_if", "Model"), ("glossary", "Learn")):
        visitor.visit(f"{server}/{address}")
        marked = visitor.page.locator(".st-key-foot-menu button:visible").evaluate_all(
            "all => all.filter((each) => getComputedStyle(each).boxShadow !== 'none').map((each) => each.innerText)"
        )
        assert [label.split()[-1] for label in marked] == [section]
