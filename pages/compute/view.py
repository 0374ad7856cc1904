"""What a page shows, under its older names."""

from collections.abc import Mapping

from model.run import Place as Place
from model.run import Run as View  # noqa: F401 - pages that are not made of views yet
from model.trace import KIND_TITLES

KINDS: Mapping[str, str] = KIND_TITLES
"""titles by name, of all kinds there are"""
