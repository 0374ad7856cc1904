"""When the server starts: do in advance what the first visitor would wait for."""

import importlib
from contextlib import suppress

from model.checkpoints.devices import available_devices
from model.checkpoints.store import first_checkpoint
from pages.compute.runs import prepare
from pages.frame.sidebar.sidebar import FIRST_SENTENCE

DRAWING_MODULES = ("viz.html", "pages.views.explore.translate")
"""what the home page draws with: Plotly and pandas take a second to import"""


def warm_up() -> None:
    """Import what the home page needs, open the model that is open at first, run it on the first sentence, check that
    run."""
    for name in DRAWING_MODULES:
        importlib.import_module(name)
    # Every page reports what is wrong with the checkpoint, or with the sentence for it.
    with suppress(ValueError):
        prepare(first_checkpoint(), available_devices()[0], FIRST_SENTENCE)
