"""The app without a clone: a wheel, installed where there is no checkout, starts by its command and draws; so does what
deploy/space puts into a container.

`make release-check` builds everything, into the folder that RELEASE names, and installs what the wheel needs. Without
it, the copy that is built has one checkpoint, and the environment borrows the packages of this one.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from streamlit.web.cli import main_run

from model import VERSION
from pages.frame.server import start
from tests.browser.conftest import PATIENCE, Visitor
from tests.soak.server import ROOT, free_port, wait_until_healthy

RELEASE = os.environ.get("RELEASE")
PARTS = (
    *(
        "app.py",
        "model",
        "pages",
        "viz",
        "checkpoints",
        ".streamlit",
        "pyproject.toml",
        "requirements.txt",
        "README.md",
    ),
    *("LICENSE", "deploy", "Dockerfile", ".dockerignore"),
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "state.pt", "averaging", "everyday-*", "multi30k-*", "recurrence")
"""of the copy that is built: other checkpoints would take most of the time"""
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project: those of the sdist, or without RELEASE fewer."""
    folder = tmp_path_factory.mktemp("source")
    if RELEASE:
        for old in (*Path(RELEASE).glob("*.whl"), *Path(RELEASE).glob("*.tar.gz")):
            old.unlink()
        _build("sdist", ROOT, Path(RELEASE))
        with tarfile.open(next(Path(RELEASE).glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        return next(folder.iterdir())
    for name in PARTS:
        path = ROOT / name
        shutil.copytree(path, folder / name, ignore=LEFT_OUT) if path.is_dir() else shutil.copy(path, folder / name)
    return folder


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel and was empty before."""
    wheels, environment = Path(RELEASE or tmp_path_factory.mktemp("wheels")), tmp_path_factory.mktemp("environment")
    _build("wheel", source, wheels)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    install = [*PIP, "--python", str(environment / "bin/python"), "install"]
    wheel = str(next(wheels.glob("*.whl")))
    if RELEASE:
        chosen = shlex.split(os.environ.get("TORCH", ""))
        subprocess.run([*install, "-c", str(source / "deploy/constraints.txt"), *chosen, wheel], check=True)
    else:
        subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True, capture_output=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin"


def _build(kind: str, source: Path, folder: Path) -> None:
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)


@contextmanager
def serving(command: Sequence[str], folder: Path, log: Path, **variables: str) -> Iterator[str]:
    """The address at which a command serves, begun in this folder with a port as its Streamlit option."""
    address = f"http://localhost:{(port := free_port())}"
    with open(log, "wb") as output:
        environment = _elsewhere() | variables | {"STREAMLIT_SERVER_PORT": str(port)}
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        wait_until_healthy(address, server, log)
        yield address
    finally:
        server.terminate()
        server.wait(20)


def _elsewhere() -> Mapping[str, str]:
    """The environment's variables without those that lead back to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def see_a_picture(visitor: Visitor, address: str) -> None:
    visitor.visit(address)
    canvases = visitor.page.locator(".explore canvas")
    canvases.first.wait_for()
    assert max(canvas.bounding_box()["width"] for canvas in canvases.all()) > 100
    # Before the server goes: a page that is left without one says so.
    visitor.page.context.close()


def test_the_wheel_opens_the_browser_and_draws_the_first_picture(
    installed: Path, tmp_path: Path, new_visitor: Callable[..., Visitor]
) -> None:
    """In an empty folder, on a desktop whose browser writes down what it is to open."""
    (tmp_path / "empty").mkdir()
    (browser := tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > "{tmp_path / "opened"}"\n')
    browser.chmod(0o700)
    desktop = {"DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    command = [str(installed / "attention-explorer"), "--"]
    with serving(command, tmp_path / "empty", tmp_path / "log.txt", **desktop) as address:
        see_a_picture(new_visitor(), address)
        opened, deadline = tmp_path / "opened", time.monotonic() + PATIENCE / 1000
        while not opened.exists() or opened.read_text() != f"{address}\n":
            assert time.monotonic() < deadline, "the browser was not opened"
            time.sleep(0.1)


def test_a_space_starts_as_its_container_does_and_draws(
    source: Path, installed: Path, tmp_path: Path, new_visitor: Callable[..., Visitor]
) -> None:
    """The repository with the Space's README in place of its own, less what .dockerignore names."""
    ignored = (source / ".dockerignore").read_text("utf-8").split()
    left_out = {str(path) for pattern in ignored for path in source.glob(pattern)}
    shutil.copytree(source, tmp_path / "app", ignore=lambda at, names: {n for n in names if f"{at}/{n}" in left_out})
    shutil.copy(source / "deploy/space/README.md", tmp_path / "app")
    last = (source / "Dockerfile").read_text("utf-8").splitlines()[-1]
    command = json.loads(last.removeprefix("CMD "))
    command = [str(installed / command[0]), *command[1:]]
    with serving(command, tmp_path / "app", tmp_path / "log.txt") as address:
        see_a_picture(new_visitor(), address)


def test_the_wheel_installs_one_name_and_brings_its_settings(installed: Path, tmp_path: Path) -> None:
    """Those of .streamlit/config.toml hold in a folder that has none."""
    script = """import attention_explorer, importlib.metadata, json
from pages.frame.server import start
files = importlib.metadata.files("attention-explorer")
print(json.dumps([str(start.ROOT), start.settings(), sorted({file.parts[0] for file in files})]))"""
    ran = subprocess.run(
        [installed / "python", "-c", script], cwd=tmp_path, env=_elsewhere(), check=True, capture_output=True
    )
    root, settings, names = json.loads(ran.stdout)
    assert Path(root).is_relative_to(installed.parent)
    assert settings == start.settings()
    assert names == ["..", "attention_explorer", f"attention_explorer-{VERSION}.dist-info"]


def test_the_command_says_its_version_and_what_would_run(installed: Path, tmp_path: Path) -> None:
    def said(option: str) -> str:
        command = [installed / "attention-explorer", option]
        ran = subprocess.run(command, cwd=tmp_path, env=_elsewhere(), check=True, capture_output=True, text=True)
        return ran.stdout

    assert said("--version") == f"{VERSION}\n"
    first, versions, _, device, checkpoints = said("--about").splitlines()
    assert first == f"Attention Explorer {VERSION}"
    assert re.match(r"Python 3[.\d]+, torch \d", versions)
    assert device.startswith("runs on ")
    weights = hashlib.sha256((ROOT / "checkpoints/en-de/model.safetensors").read_bytes()).hexdigest()
    assert checkpoints.startswith(f"checkpoints: en-de {weights[:12]}")


def test_streamlit_reads_every_setting_from_its_variable() -> None:
    variables = {name for option in main_run.params for name in [option.envvar] if name}
    settings = start.settings()
    assert settings["STREAMLIT_SERVER_ADDRESS"] == "localhost"
    assert set(settings) <= variables
