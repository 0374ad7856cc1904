"""Our own studies on Training: the figures are the shipped tables; the small checkpoints open by name alone."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from model.background.studies import compare_with_paper, read_study
from model.checkpoints.store import CHECKPOINTS_VARIABLE, available_checkpoints, study_checkpoints
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")
SHIPPED = Path(__file__).parents[2] / "checkpoints"


@pytest.fixture
def shipped(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Opens the app on the shipped checkpoints."""
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    return open_app


def test_the_figure_has_each_seed_of_the_table(open_app: Callable, checkpoint_folder: Path) -> None:
    assert checkpoint_folder.is_dir()
    app = open_app("pages/training.py", training="Ablations")
    assert not app.exception
    rows = compare_with_paper(read_study("ablations"))
    seeds = next(t for t in figure(app, "training-ablations")["data"] if t["name"] == "ours, a seed each")
    expected = np.concatenate([row.bleus for row in rows]) - rows[0].bleus.mean()
    assert np.allclose(numbers(seeds["customdata"]).astype(float), expected)
    inside = np.array(seeds["marker"]["symbol"]) == "circle"
    assert np.allclose(numbers(seeds["x"]).astype(float)[inside], expected[inside])


def test_the_losses_are_those_of_the_table(open_app: Callable, checkpoint_folder: Path) -> None:
    assert checkpoint_folder.is_dir()
    app = open_app("pages/training.py", training="Scaling")
    assert not app.exception
    dots = next(t for t in figure(app, "training-scaling")["data"] if t["name"] == "end of a run")
    ends = read_study("scaling").groupby("run")["dev_loss"].last()
    assert sorted(numbers(dots["y"]).astype(float)) == pytest.approx(sorted(ends))


@pytest.mark.parametrize(("chosen", "name"), [("base: h = 4, d_k = 16", "base"), ("1 head", "heads-1")])
def test_the_chosen_run_opens_alone_and_beside_base(shipped: Callable, chosen: str, name: str) -> None:
    app = shipped("pages/training.py", training="Ablations", ablation=chosen, source="Two dogs run.")
    assert not app.exception
    pages = {urlsplit(link.proto.url).path: parse_qs(urlsplit(link.proto.url).query) for link in app.get("link_button")}
    alone = {"checkpoint": [f"studies/{name}"], "source": ["Two dogs run."]}
    beside = alone | {"checkpoint": ["studies/base"], "side_mode": ["Checkpoints"]}
    beside["side_checkpoint"] = alone["checkpoint"]
    assert pages == {"heads_and_layers": alone} | ({} if name == "base" else {"side_by_side": beside})


def test_a_study_opens_by_its_name_and_a_forged_name_does_not(shipped: Callable) -> None:
    assert "studies/base" in study_checkpoints()
    assert not any("studies" in name for name in available_checkpoints())
    app = shipped(checkpoint="studies/base", source="Two dogs run.")
    assert not app.exception
    assert app.selectbox(key="checkpoint").value == "studies/base"
    for forged in ("studies/../en-de", "../studies/base", "/etc", "studies/nothing"):
        app = shipped(checkpoint=forged, source="Two dogs run.")
        assert not app.exception
        assert app.selectbox(key="checkpoint").value == "en-de"
        assert "that is not there" in words(app)
