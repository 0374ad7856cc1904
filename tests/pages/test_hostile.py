"""The worst of the hostile strings on every page, as source and as a person's own target."""

from collections.abc import Callable

import pytest

from tests.pages.test_pages import ALL_PAGES, holds
from tests.soak.hostile import MARKUP

pytest.importorskip("streamlit")

WORST = (
    " ".join(MARKUP[:6]),
    " ".join(MARKUP[6:10]),
    " ".join(MARKUP[10:16]),
    "\ufffd\ufffe\uffff a",
    "\u202e\u2066abc\u200b\u200d\ufeff \u0301\u0302" + "e\u0301" * 30,
    "".join(map(chr, range(1, 32))) + "\x00\x7f\x85 a",
    "\U000e0041\U0010ffff\ufffe\ufdd0\u2581 \U0001f469\u200d\U0001f4bb \ue000",
    MARKUP[17] + MARKUP[19],
)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_lives_through_the_worst_text_as_source_and_as_own_target(page: str, open_app: Callable) -> None:
    app = open_app(page, target="Typed", typed="Ein Hund", kind="Cross-attention")
    for source, target in zip(WORST, (*WORST[1:], WORST[0]), strict=True):
        app.text_area(key="source").set_value(source)
        app.text_area(key="typed").set_value(target).run()
        assert not app.exception, source
        assert holds(app) == 3, source
