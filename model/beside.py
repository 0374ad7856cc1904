"""Data of a module in TOML files that stand beside it."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_beside(module: str, name: str = "") -> dict[str, Any]:
    """The tables of a TOML file beside a module, which gives its `__file__`; without a name, of the one called as it.

    All callers share what is read, so nobody changes it.
    """
    path = Path(module)
    return tomllib.loads((path.with_name(f"{name}.toml") if name else path.with_suffix(".toml")).read_text("utf-8"))
