"""The app without a clone: a wheel, installed where there is no checkout, starts by its command and draws."""

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.web.cli import main_run

from pages.frame.server import start
from tests.browser.conftest import ROOT, Visitor, _wait_until_healthy

LEFT_OUT = shutil.ignore_patterns("__pycache__", "state.pt", "averaging", "everyday-*", "multi30k-*", "recurrence")
"""of the copy that is built: other checkpoints would take most of the time"""
PARTS = (
    "app.py",
    "model",
    "pages",
    "viz",
    "checkpoints",
    ".streamlit",
    "pyproject.toml",
    "requirements.txt",
    "README.md",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel; it borrows the packages that the app needs."""
    pytest.importorskip("setuptools")
    copy, wheels, environment = (tmp_path_factory.mktemp(name) for name in ("copy", "wheels", "environment"))
    for name in PARTS:
        path = ROOT / name
        shutil.copytree(path, copy / name, ignore=LEFT_OUT) if path.is_dir() else shutil.copy(path, copy / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(copy)]
    subprocess.run(build, check=True, capture_output=True)
    shutil.rmtree(copy)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (wheel,) = wheels.glob("*.whl")
    python = environment / "bin/python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin"


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The address of the app, started by its command in an empty folder on a desktop whose browser writes it down."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log, folder = tmp_path / "log.txt", tmp_path / "empty"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{tmp_path / "opened"}"\n')
    browser.chmod(0o700)
    environment |= {"DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    start = [str(installed / "attention-explorer"), "--server.port", str(port), "--"]
    with open(log, "wb") as output:
        server = subprocess.Popen(start, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        _wait_until_healthy(f"http://localhost:{port}", server, log)
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(20)


def test_the_wheel_opens_the_browser_and_draws_the_first_picture(
    command: str, tmp_path: Path, new_visitor: Callable[..., Visitor]
) -> None:
    visitor = new_visitor()
    visitor.visit(command)
    canvases = visitor.page.locator(".explore canvas")
    canvases.first.wait_for()
    assert max(canvas.bounding_box()["width"] for canvas in canvases.all()) > 100
    opened = tmp_path / "opened"
    visitor.wait_until(lambda: opened.exists() and opened.read_text() == f"{command}\n", "the browser was not opened")


def test_the_wheel_brings_its_settings(installed: Path, tmp_path: Path) -> None:
    """Those of .streamlit/config.toml hold in a folder that has none."""
    script = "import json; from pages.frame.server import start; print(json.dumps([str(start.ROOT), start.settings()]))"
    command = [str(installed / "python"), "-c", script]
    root, settings = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert Path(root).is_relative_to(installed.parent)
    assert settings == start.settings()


def test_streamlit_reads_every_setting_from_its_variable() -> None:
    variables = {name for option in main_run.params for name in [option.envvar] if name}
    settings = start.settings()
    assert settings["STREAMLIT_SERVER_ADDRESS"] == "localhost"
    assert set(settings) <= variables
