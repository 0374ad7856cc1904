"""On a GPU: every page opens, every view draws, and a run that finds no room moves to the CPU.

Skipped where PyTorch finds no GPU, as on the machine that checks changes.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from model.checkpoints.store import load_checkpoint
from model.generation.sampling import Sampling
from tests.conftest import FIXTURE
from tests.pages.test_pages import EVERY_PAGE
from tests.pages.test_views import VIEWS, check, runs_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")

GPU, TEXT = "cuda", "Two dogs play."


def test_a_seed_draws_the_same_text_on_both(families: Path) -> None:
    there, here = (load_checkpoint(str(families / "lm"), device) for device in (GPU, "cpu"))
    for seed in range(5):
        choice = {"max_new_tokens": 8, "sampling": Sampling(1.0, 20, 0.9), "seed": seed}
        assert there.trace(TEXT, **choice).next_ids == here.trace(TEXT, **choice).next_ids


@pytest.mark.parametrize("family", ["unscaled", "lm", "mlm"])
def test_every_page_opens_there(open_family: Callable, families: Path, family: str) -> None:
    assert load_checkpoint(str(families / family)).device == "cuda:0"
    for page in EVERY_PAGE:
        open_family(page.path, checkpoint=family, source=TEXT)


@pytest.mark.parametrize("family", ["unscaled", "lm", "mlm"])
def test_every_view_draws_there(families: Path, family: str) -> None:
    """Work on request, too."""
    for run in runs_of(load_checkpoint(str(families / family), GPU)):
        for view in (view for view in VIEWS if not view.missing(run)):
            check(view(run), by_plotly=False)


def test_too_little_memory_there_leaves_the_run_to_the_cpu_and_the_page_says_so(open_app: Callable) -> None:
    """PyTorch itself refuses: this process may take no more of the GPU than it has."""
    load_checkpoint(str(FIXTURE), GPU)
    torch.cuda.empty_cache()
    share = torch.cuda.memory_reserved() / torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(share)
    try:
        app = open_app(source="A dog runs in the snow and a cat sleeps. " * 5)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert any("had too little memory left" in info.value for info in app.info)
