"""Every test of the model starts from the same random state."""

import pytest


@pytest.fixture(autouse=True)
def seeded() -> None:
    import torch

    torch.manual_seed(0)
