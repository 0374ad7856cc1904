"""Attention Explorer, installed: the one name that a wheel installs.

Importing it puts its folder first on Python's path, so that `model`, `pages` and `viz`, which lie in it, have the names
that they have in a checkout.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def main() -> None:
    """The command `attention-explorer`."""
    from pages.frame.server.start import main as start

    start()
