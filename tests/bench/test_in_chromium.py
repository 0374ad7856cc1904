"""What `make bench` says about pictures was measured in a window where they were drawn anew."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT
from tests.bench import long_text, views
from tests.browser.conftest import browser as browser
from tests.browser.conftest import launch as launch
from viz.canvas.long_map import LongWindow, long_map

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_pictures_have_a_time_beside_the_empty_rerun_and_that_beside_plain_streamlit(
    saved_checkpoints: Path, browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    shown = {name: views.PICTURES[name] for name in ("map", "temperature")}
    monkeypatch.setattr(views, "PICTURES", shown)
    monkeypatch.setattr(views, "chromium", lambda: nullcontext(browser))
    server, *rows = views.views(DEFAULT_CHECKPOINT, (20,), rounds=1)
    assert server.ratio > 0
    assert server.beside.startswith("plain")
    assert [row.what for row in rows] == [f"{title}, 20 tokens" for title, _ in shown.values()]
    assert all(row.ratio > 0 for row in rows)


def test_each_frame_of_panning_and_zooming_is_beside_a_bare_repaint(browser: "Browser") -> None:
    tokens = 40
    weights = np.tril(np.random.default_rng(0).random((tokens, tokens)))
    frames = long_text._frames(browser, long_map([LongWindow(weights, 0, 0)], [str(i) for i in range(tokens)]))
    assert len(frames["moved"]) == len(frames["bare"]) > 0
    assert min(*frames["moved"], *frames["bare"]) > 0
