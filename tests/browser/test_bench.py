"""What `make bench` says about pictures was measured in a window where they were drawn anew."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT
from tests.bench import views
from tests.bench.browser import chromium_path


def test_each_picture_has_a_time_beside_the_empty_rerun(
    saved_checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chromium_path() is None:
        pytest.skip("needs a browser")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    shown = {name: views.PICTURES[name] for name in ("map", "temperature")}
    monkeypatch.setattr(views, "PICTURES", shown)
    # In a thread of its own: this one already has Playwright's loop for the other tests' windows.
    with ThreadPoolExecutor(1) as thread:
        server, *rows = thread.submit(lambda: list(views.views(DEFAULT_CHECKPOINT, (20,), rounds=1))).result()
    assert 0 < server.ratio < 10_000
    assert [row.what for row in rows] == [f"{title}, 20 tokens" for title, _ in shown.values()]
    assert all(row.ratio > 0 for row in rows)
