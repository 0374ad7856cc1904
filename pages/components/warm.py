"""What the first visitor would wait for, done when the server starts."""

import importlib
from contextlib import suppress

from model.checkpoints import CheckpointError, available_checkpoints
from model.devices import available_devices
from pages.components.inputs import DEFAULTS
from pages.components.runs import Request, prepare

DRAWINGS = ("viz.chips", "viz.translation", "viz.lines")
"""what the home page draws with: Plotly and pandas take a second to import"""


def warm_up() -> None:
    """Import what the home page needs, open the first checkpoint, run it on the first sentence, and check that run."""
    for name in DRAWINGS:
        importlib.import_module(name)
    for checkpoint in available_checkpoints()[:1]:
        # What is wrong with it, every page says.
        with suppress(CheckpointError):
            prepare(checkpoint, available_devices()[0], Request(DEFAULTS["source"], None, 4, ()))
