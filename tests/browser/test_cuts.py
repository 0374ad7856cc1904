"""Nothing on a page is cut, lies on something else or only looks like a link; `make walk` looks at all of it."""

from itertools import product
from urllib.parse import urlencode

import pytest

from pages import Page
from pages.text import languages
from tests.browser.conftest import Visitor
from tests.browser.cuts import cuts, pictures
from tests.browser.test_app import ALL_PAGES, path
from tests.walk import HEIGHT, WIDTHS

FOUND = [
    *(("what_if?part=Force+a+prefix", 1280), ("what_if?part=Broken+on+purpose", 1280)),
    *(("masks?part=Lift+the+causal+mask", 1280), ("three_families?families_part=A+causal+encoder", 1280)),
    *(
        ("side_by_side?part=Word+pairs", 1024),
        ("side_by_side?part=Compare", 1024),
        ("side_by_side?part=Revisions", 1024),
    ),
    *((f"training?training={tab}&lang=de", 390) for tab in ("Label+smoothing", "Fine-tune+on+a+correction")),
]
"""tab and width of what was found and mended, with neighbours: charts below a “?”, long labels, titles of axes"""
LOOKS = [*product(languages(), WIDTHS, ("light", "dark"))]
FAULTS = {
    "cut": "<p style='width: 40px; overflow: hidden; white-space: nowrap'>a long sentence</p>",
    "on another": "<p>one text</p><p style='position: relative; top: -34px'>another text</p>",
    "buttons on a control": "<button>one</button><div class='modebar' style='margin-top: -9px; height: 20px'></div>",
    "no link": "<p style='text-decoration: underline'>no link</p>",
}
RIGHT = """<p>a sentence</p> <p><a href='#x'>a link</a></p> <p style='width: 40px; overflow: auto'>a long sentence</p>
<p title='a long sentence' style='width: 40px; overflow: hidden; white-space: nowrap'>a long sentence</p>"""
ON_CANVAS = """<canvas width=200 height=40></canvas><script>
const pen = document.querySelector("canvas").getContext("2d");
pen.fillText("whole", 10, 20);
pen.fillText("too far to the right", 180, 20);
</script>"""


@pytest.mark.parametrize("page", ALL_PAGES, ids=path)
def test_on_a_page_nothing_is_cut_and_something_is_drawn(page: Page, server: str, visitor: Visitor) -> None:
    """Each in one language, width and scheme, so that all occur about equally often."""
    # 7 and 24 have no common divisor: neighbours differ in everything.
    language, width, scheme = LOOKS[7 * ALL_PAGES.index(page) % len(LOOKS)]
    visitor.page.set_viewport_size({"width": width, "height": HEIGHT})
    visitor.page.emulate_media(color_scheme=scheme)
    visitor.visit(f"{server}/{path(page)}?{urlencode({'lang': language})}")
    assert (language, width, scheme, cuts(visitor.page)) == (language, width, scheme, [])
    # Text and lists; and curves of a log that the tests' checkpoint has not.
    assert page.name in ("glossary", "learn", "paper", "training") or pictures(visitor.page)


@pytest.mark.parametrize(("tab", "width"), FOUND)
def test_what_was_mended_on_a_tab_stays_so(tab: str, width: int, server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": width, "height": HEIGHT})
    visitor.visit(f"{server}/{tab}")
    assert cuts(visitor.page) == []


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_each_kind_is_found(kind: str, visitor: Visitor) -> None:
    visitor.page.goto("about:blank")
    visitor.page.set_content(f"<main data-testid=stApp>{RIGHT}</main>")
    assert cuts(visitor.page) == []
    visitor.page.set_content(f"<main data-testid=stApp>{RIGHT}{FAULTS[kind]}</main>")
    assert [found for found, *_ in cuts(visitor.page)] == [kind]


def test_a_word_that_ends_outside_its_canvas_is_found(visitor: Visitor) -> None:
    visitor.page.goto("about:blank")
    visitor.page.set_content(f"<main data-testid=stApp>{ON_CANVAS}</main>")
    assert cuts(visitor.page) == [("cut on a canvas", "stApp", "too far to the right")]
