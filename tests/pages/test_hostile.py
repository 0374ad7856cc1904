"""Odd characters on every page, as source and as a person's own target, and markup in the frame around the pages.

What is markup on any tab of any page is in test_injection.py.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.pages.test_pages import ALL_PAGES, TWO_PAGES, holds
from tests.soak.hostile import MARKUP

if TYPE_CHECKING:
    from model.checkpoints.tokenizer import Tokenizer

pytest.importorskip("streamlit")

ODD = (
    "\ufffd\ufffe\uffff a",
    "\u202e\u2066abc\u200b\u200d\ufeff \u0301\u0302" + "e\u0301" * 30,
    "".join(map(chr, range(1, 32))) + "\x00\x7f\x85 a",
    "\U000e0041\U0010ffff\ufffe\ufdd0\u2581 \U0001f469\u200d\U0001f4bb \ue000",
    "👩‍👩‍👧‍👦 eats 🍕",
    "\u202eאבג\u202c kat",
    "a\x00b\x07c\x1b[31md\u2028e",
    "\u2581\u2581 a\u2581b",
)
ROOM = 120
"""tokens; one run of the tiny model holds 128"""


def packed(parts: tuple[str, ...], tokenizer: "Tokenizer") -> Iterator[str]:
    """Parts joined into as few texts as fit into one run each."""
    text = ""
    for part in parts:
        joined = f"{text} {part}" if text else part
        if len(tokenizer.encode(joined)) > ROOM:
            yield text
            joined = part
        text = joined
    yield text


@pytest.mark.parametrize(
    ("page", "parts"), [*((page, ODD) for page in ALL_PAGES), *((page, MARKUP) for page in TWO_PAGES)]
)
def test_a_page_takes_hostile_text_as_source_or_as_own_target(
    page: str, parts: tuple[str, ...], open_app: Callable, tokenizer: "Tokenizer"
) -> None:
    """Each text as one of the two here, and as the other on the next page."""
    texts = list(packed(parts, tokenizer))
    assert all(len(tokenizer.encode(text)) <= ROOM for text in texts)
    swap = ALL_PAGES.index(page) % 2
    app = open_app(page, target="Typed", typed="Ein Hund", kind="Cross-attention")
    for pair in zip(texts[::2], texts[1::2] or texts, strict=False):
        source, target = reversed(pair) if swap else pair
        app.text_area(key="source").set_value(source)
        app.text_area(key="typed").set_value(target).run()
        assert not app.exception, pair
        assert holds(app) == 3, pair
