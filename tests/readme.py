"""python -m tests.readme: write into README.md where the static pages are published, as pyproject.toml says it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"^\*\*In a browser alone\*\*.*$", re.MULTILINE)


def published_at() -> str:
    """The address of the folder that `make site` built; empty: it is not published."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return settings["tool"]["attention-explorer"]["published-at"]


def line(address: str) -> str:
    """README's line for an address, or for none."""
    where = (
        f"[open the page]({address}), with nothing to install"
        if address
        else "`make site OUT=DIR` builds the pages for any static host or a USB stick"
    )
    return (
        "**In a browser alone**, you can also run the translator and the language model: "
        f"{where} ([how](docs/static-page.md))."
    )


def main() -> None:
    readme = ROOT / "README.md"
    written, count = LINE.subn(lambda _: line(published_at()), readme.read_text("utf-8"))
    if count != 1:
        raise SystemExit(f"README.md has {count} lines that begin with **In a browser alone**; it needs one.")
    readme.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
