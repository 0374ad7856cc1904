"""nginx before several processes, as deploy/nginx.conf sets it up."""

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.soak.server import ROOT, Server, free_port

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
ACCESS, ERRORS = "access.log", "errors.log"
"""what nginx writes of each request, and of what goes wrong"""
PATIENCE = 10.0
"""seconds that nginx may take to start, and to close connections"""


def nginx_program() -> str | None:
    """Its path; Debian installs it where only the administrator's PATH leads."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def balancing(folder: Path, servers: list[Server]) -> Iterator[int]:
    """nginx before these processes, by the shipped configuration; yields its port."""
    port = free_port()
    addresses = "".join(f"server 127.0.0.1:{server.port} max_fails=1 fail_timeout=5s; " for server in servers)
    text = CONFIGURATION.read_text("utf-8")
    for shipped, here in (
        ("server app:8501 max_fails=1 fail_timeout=5s;", addresses),
        ("listen 80;", f"listen 127.0.0.1:{port};"),
        ("/run/nginx-scripts", f"{folder}/scripts"),
        ("/var/log/nginx/access.log", f"{folder}/{ACCESS}"),
        ("/var/log/nginx/error.log", f"{folder}/{ERRORS}"),
        (
            "http {",
            f"http {{ client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; "
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;",
        ),
    ):
        assert text.count(shipped) == 1, f"{CONFIGURATION} has no {shipped!r}"
        text = text.replace(shipped, here)
    # Started by root, it would give its work to a user who may not write to the folder.
    beginning = f"daemon off; pid {folder}/nginx.pid; {'user root;' if os.geteuid() == 0 else ''}"
    (folder / "nginx.conf").write_text(f"{beginning}\n{text}", "utf-8")
    log = folder / "nginx.log"
    nginx = subprocess.Popen([nginx_program(), "-p", folder, "-e", log, "-c", folder / "nginx.conf"])
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(port):
            if time.monotonic() > deadline or nginx.poll() is not None:
                raise RuntimeError(f"nginx did not start:\n{log.read_text() if log.exists() else ''}")
            time.sleep(0.05)
        yield port
    finally:
        nginx.terminate()
        nginx.wait(20)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
            return True
    except OSError:
        return False


def take_cookie(port: int) -> str:
    """What nginx gives a new visitor, to stay with one process."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        return page.headers["Set-Cookie"].partition(";")[0]
