"""What the first visitor would wait for, done when the server starts."""

import importlib
from contextlib import suppress

from model.checkpoints.devices import available_devices
from model.checkpoints.store import CheckpointError, available_checkpoints
from pages.compute.runs import Request, prepare
from pages.frame.sidebar import DEFAULTS

DRAWINGS = ("viz.html", "viz.charts.translate", "viz.canvas.lines")
"""what the home page draws with: Plotly and pandas take a second to import"""


def warm_up() -> None:
    """Import what the home page needs, open the first checkpoint, run it on the first sentence, and check that run."""
    for name in DRAWINGS:
        importlib.import_module(name)
    for checkpoint in available_checkpoints()[:1]:
        # What is wrong with it, every page says.
        with suppress(CheckpointError):
            prepare(checkpoint, available_devices()[0], Request(DEFAULTS["source"], None, 4, ()))
