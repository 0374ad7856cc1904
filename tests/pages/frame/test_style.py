"""The style sheet of every page."""

import re

from pages.frame.page_style import STYLE


def test_no_selector_makes_a_browser_style_the_whole_page_again() -> None:
    """A sibling beside :has() does: Plotly adds and measures hundreds of labels, and each would cost 40 ms."""
    selectors = re.findall(r"[^{};]*:has\([^{]*(?={)", STYLE.read_text("utf-8"))
    assert len(selectors) > 5
    assert [selector for selector in selectors if "~" in selector or selector.strip().startswith(".stApp")] == []
