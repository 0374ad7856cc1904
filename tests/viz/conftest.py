"""A run to draw."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace


@pytest.fixture(scope="session")
def trace(translator: "Translator") -> "Trace":
    """Different numbers of source and target tokens, so that no transpose goes unseen."""
    return translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")
