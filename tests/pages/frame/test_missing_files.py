"""Where a file that comes with the app is gone, its view says so, and the rest of the page stands."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from model.background import digits, pieces, recall, recurrence

pytestmark = pytest.mark.usefixtures("checkpoint_folder", "fresh_caches")


@pytest.mark.parametrize(
    ("module", "folder", "page", "tab"),
    [
        (recall, "FOLDER", "why_attention", {"why": "State space models"}),
        (recurrence, "FOLDER", "why_attention", {"why": "Recurrence and attention"}),
        (recurrence, "FOLDER", "gradients", {"part": "Over distance"}),
        (digits, "FOLDER", "since_2017", {"since": "Images as tokens"}),
        (pieces, "PIECES", "family_tree", {"family": "One sentence, three ways"}),
    ],
)
def test_the_view_of_a_missing_file_names_it_and_the_page_stands(
    module: ModuleType,
    folder: str,
    page: str,
    tab: dict[str, str],
    open_app: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, folder, tmp_path / "gone")
    for name, function in vars(module).items():
        if hasattr(function, "cache_clear"):
            monkeypatch.setattr(module, name, function.__wrapped__)
    app = open_app(f"pages/{page}.py", **tab)
    (said,) = (error.value for error in app.error)
    assert "gone/" in said
    assert len(app.tabs) > 3
