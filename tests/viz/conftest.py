"""A run to draw."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Attention, Trace


@pytest.fixture(scope="session")
def trace(translator: "Translator") -> "Trace":
    """Different numbers of source and target tokens, so that no transpose goes unseen."""
    return translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")


@pytest.fixture(scope="session")
def rotated_attention(translator: "Translator") -> "Attention":
    """Of a random language model that normalises and rotates queries and keys; key heads are shared by two."""
    from tests.model.checkpoints.test_language_model import opened

    return opened(translator.tokenizer).trace("a dog and a cat").attention("decoder_self", 0)
