"""When the server starts: do in advance what the first visitor would wait for."""

import importlib
from contextlib import suppress

from model.checkpoints.devices import available_devices
from model.checkpoints.store import CheckpointError, available_checkpoints
from pages.compute.runs import Request, prepare
from pages.frame.sidebar import FIRST_SENTENCE

DRAWING_MODULES = ("viz.html", "pages.views.translate")
"""what the home page draws with: Plotly and pandas take a second to import"""


def warm_up() -> None:
    """Import what the home page needs, open the default checkpoint, run it on the first sentence, check that run."""
    for name in DRAWING_MODULES:
        importlib.import_module(name)
    for checkpoint in available_checkpoints()[:1]:
        # Every page reports a broken checkpoint.
        with suppress(CheckpointError):
            prepare(checkpoint, available_devices()[0], Request(FIRST_SENTENCE))
