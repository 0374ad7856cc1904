"""Hostile text in Chromium, typed and by link, as source and as own target, on every page: it stays text."""

from urllib.parse import urlencode

import pytest

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


def typed(visitor: Visitor, label: str, text: str) -> None:
    box = visitor.page.get_by_label(label)
    box.fill(text)
    box.press("Control+Enter")
    visitor.page.wait_for_timeout(300)
    visitor.settle()


@pytest.mark.parametrize("by_link", [False, True], ids=["typed", "by link"])
def test_hostile_text_stays_text_on_every_page(server: str, visitor: Visitor, by_link: bool) -> None:
    query = {"source": SOURCE, "target": "Typed", "typed": TARGET} if by_link else {"target": "Typed", "typed": "Ein"}
    for page in ALL_PAGES:
        visitor.visit(f"{server}/{path(page)}?{urlencode(query)}")
        if not by_link:
            typed(visitor, "Source sentence, English", SOURCE)
            typed(visitor, "Your own translation", TARGET)
        assert set(visitor.page.evaluate(FOUND).values()) == {0}, (path(page), visitor.page.evaluate(FOUND))
