"""Hostile text as source and as target, typed and by link, on every page in Chromium: it stays text."""

from urllib.parse import urlencode

from tests.browser.conftest import Visitor
from tests.browser.test_app import ALL_PAGES, path

SOURCE = (
    "<script>window.__hit=1</script><img src=x onerror=window.__hit=1><svg onload=window.__hit=1> "
    "[go](javascript:window.__hit=1) ![i](x.png) $x^2$ :red[r] \u202eabc\x01 {{7*7}} %{x}"
)
TARGET = '<iframe srcdoc="x"></iframe><a href="javascript:window.__hit=1">a</a> $$y$$ `c` **b** <b onclick=x>b</b>'
FOUND = """() => {
  const roots = [document];
  for (const root of roots)
    for (const node of root.querySelectorAll('*')) if (node.shadowRoot) roots.push(node.shadowRoot);
  const all = (what) => roots.flatMap((root) => [...root.querySelectorAll(what)]);
  return {
    hit: window.__hit ?? 0,
    handlers: all('[onerror], [onload], [onclick]').length,
    script: all('[data-testid=stApp] script').length,
    iframe: all('iframe').length,
    image: all('img').filter((node) => /x(\\.png)?$/.test(node.getAttribute('src') ?? '')).length,
    link: all('a').filter((node) => /javascript:/.test(node.getAttribute('href') ?? '')).length,
    formula: all('.katex annotation').filter((node) => ['x^2', 'y'].includes(node.textContent.trim())).length,
    exception: all('[data-testid=stException]').length,
  };
}"""


def test_hostile_text_by_link_stays_text_on_every_page_in_the_light_and_the_dark_scheme(
    server: str, visitor: Visitor
) -> None:
    """Each page is opened in one scheme and changed to the other; the next page is opened in that one."""
    schemes = ["light", "dark"]
    for page in ALL_PAGES:
        visitor.page.emulate_media(color_scheme=schemes[0])
        visitor.visit(f"{server}/{path(page)}?{urlencode({'source': SOURCE, 'target': 'Typed', 'typed': TARGET})}")
        assert set(visitor.page.evaluate(FOUND).values()) == {0}, (path(page), visitor.page.evaluate(FOUND))
        assert (brightness(visitor) > 200) == (schemes[0] == "light"), path(page)
        schemes.reverse()
        visitor.page.emulate_media(color_scheme=schemes[0])
        visitor.page.wait_for_function(
            f"getComputedStyle(document.querySelector('.stApp')).colorScheme === '{schemes[0]}'"
        )
        assert (brightness(visitor) > 200) == (schemes[0] == "light"), path(page)


def test_hostile_text_that_is_typed_stays_text_and_goes_along_to_other_pages(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/?{urlencode({'target': 'Typed', 'typed': 'Ein'})}")
    for label, key, text in (
        ("Source sentence, English", "source", SOURCE),
        ("Your own translation", "typed", TARGET),
    ):
        box = visitor.page.get_by_label(label)
        box.fill(text)
        box.press("Control+Enter")
        visitor.page.wait_for_function(
            "([key, text]) => new URLSearchParams(location.search).get(key)?.includes(text)", arg=[key, text[:60]]
        )
        visitor.settle()
    assert set(visitor.page.evaluate(FOUND).values()) == {0}
    visitor.page.locator("[data-testid=stPageLink]").get_by_text(ALL_PAGES[1].title).click()
    visitor.page.get_by_role("heading", name=ALL_PAGES[1].title, exact=True).wait_for()
    visitor.settle()
    assert SOURCE[:60] in visitor.page.get_by_label("Source sentence, English").input_value()
    assert set(visitor.page.evaluate(FOUND).values()) == {0}


def brightness(visitor: Visitor) -> float:
    """Of the app's background, 0 to 255."""
    background = visitor.page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
    return sum(map(int, background.removeprefix("rgb(").removesuffix(")").split(",")[:3])) / 3
