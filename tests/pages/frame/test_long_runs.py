"""Texts longer than one run: their beginning is read; a switch offers more where the model has the positions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import LONG_TRACE_TOKENS, TRACE_TOKENS
from model.checkpoints.store import CHECKPOINTS_VARIABLE, load_checkpoint
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import SENTENCES
from tests.pages.conftest import save_random
from tests.pages.figures import canvases, words
from tests.viz.payload import unpack

TEXT = " ".join(source for source, _ in SENTENCES * 5)
"""some 750 tokens"""


@pytest.fixture
def open_lm(open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Opens heads and layers on a language model with so many positions."""
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))

    def open_lm(positions: int, **query: str):
        save_random(tmp_path / "lm", replace(MODERN, max_len=positions), 0, 2)
        app = open_app("pages/heads_and_layers.py", checkpoint="lm", source=TEXT, new_tokens="0", **query)
        return app, load_checkpoint("lm", "cpu")

    return open_lm


def drawn_tokens(app) -> int:
    header, _ = unpack(canvases(app)[0])
    (group,) = header["groups"]
    return len(group["queries"]) * group["pool"]


def test_a_switch_reads_more_of_a_long_text(open_lm: Callable) -> None:
    app, checkpoint = open_lm(2000)
    assert TRACE_TOKENS - 40 < drawn_tokens(app) <= TRACE_TOKENS
    assert f"one run of the model holds {TRACE_TOKENS:,} tokens" in words(app)
    (switch,) = [each for each in app.toggle if each.key == "long_text"]
    assert f"up to {LONG_TRACE_TOKENS:,} tokens" in switch.label
    switch.set_value(True).run()
    longer = replace(checkpoint, most_tokens=LONG_TRACE_TOKENS)
    tokens = len(longer.trace(longer.truncate(TEXT)).tgt_tokens)
    assert tokens > TRACE_TOKENS
    assert tokens <= drawn_tokens(app) < tokens + 8
    assert "one run of the model holds" not in words(app)


@pytest.mark.parametrize("positions", [TRACE_TOKENS, 300])
def test_no_switch_where_the_model_has_no_more_positions(open_lm: Callable, positions: int) -> None:
    app, _ = open_lm(positions, long_text="true")
    assert drawn_tokens(app) <= positions + 4
    assert not [each for each in app.toggle if each.key == "long_text"]
