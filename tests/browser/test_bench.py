"""What `make bench` says about pictures was measured in a window where they were drawn anew."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT
from tests.bench import views

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_each_picture_has_a_time_beside_the_empty_rerun(
    saved_checkpoints: Path, browser: "Browser", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    shown = {name: views.PICTURES[name] for name in ("map", "temperature")}
    monkeypatch.setattr(views, "PICTURES", shown)
    monkeypatch.setattr(views, "chromium", lambda: nullcontext(browser))
    server, *rows = views.views(DEFAULT_CHECKPOINT, (20,), rounds=1)
    assert 0 < server.ratio < 10_000
    assert [row.what for row in rows] == [f"{title}, 20 tokens" for title, _ in shown.values()]
    assert all(row.ratio > 0 for row in rows)
