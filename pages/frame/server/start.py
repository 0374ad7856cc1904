"""The command `attention-explorer`: starts the app from where it is installed, with the settings that came with it, and
shows it in the browser; `--version` and `--about` say what would start."""

import os
import re
import sys
import tomllib
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from model import VERSION, about

ROOT = Path(__file__).parents[3]
SETTINGS = ROOT / ".streamlit/config.toml"


def main() -> None:
    """Start the server, or say what would start. Options of Streamlit come first; those of the app follow `--`.

    attention-explorer --server.port 8502 -- --model path/to/folder
    """
    said = sys.argv[1:]
    at = said.index("--") if "--" in said else len(said)
    if {"--version", "--about"} & {*said[:at]}:
        sys.stdout.write(f"{about.describe() if '--about' in said else VERSION}\n")
        return
    for name, value in settings().items():
        os.environ.setdefault(name, value)
    # Threads that spin while they wait starve the other visitors' threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from streamlit.web.cli import main as run

    sys.argv = ["streamlit", "run", str(ROOT / "app.py"), *said[:at], "--", "--browser", *said[at + 1 :]]
    run()


def open_browser() -> None:
    """Show the app that this process serves in the browser of this machine, if it has a desktop.

    Streamlit would do so itself if it were not headless, but then also advertises there.
    """
    from streamlit import config
    from streamlit.web.server import server_util

    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        address = server_util.get_display_address(config.get_option("server.address") or "localhost")
        webbrowser.open(server_util.get_url(address))


def settings() -> dict[str, str]:
    """The app's settings as variables of the environment, so that they hold in whatever folder it is started."""
    return dict(_variables("STREAMLIT", tomllib.loads(SETTINGS.read_text(encoding="utf-8"))))


def _variables(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = "_".join((prefix, re.sub("(?<=[a-z])([A-Z])", r"_\1", key).upper()))
        if isinstance(value, Mapping):
            yield from _variables(name, value)
        else:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
