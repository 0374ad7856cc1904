"""The app as a process of its own, which can be measured and killed."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import URLError

ROOT = Path(__file__).parents[2]
PATIENCE = 120
"""seconds that a start may take"""
ESTABLISHED = "01"
"""in /proc/net/tcp"""


def free_port() -> int:
    """A port on which nobody listens."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def megabytes_of(process: int | str, what: str = "VmRSS") -> float:
    """Resident memory of a process, or with "VmHWM" its peak; NaN where the system does not tell."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024 / 1e6


def wait_until_healthy(address: str, server: subprocess.Popen, log: Path) -> None:
    """Raises RuntimeError: the server has ended, or did not answer in time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health"):
                return
        except URLError:
            time.sleep(0.02)
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


class Server:
    """One process; `start` may be called again after `kill`, and takes the same port."""

    def __init__(
        self,
        log: Path,
        checkpoints: Path | None = None,
        root: Path | None = None,
        module: str = "streamlit",
        script: str | Path = "app.py",
    ) -> None:
        self.port = free_port()
        self.address = f"http://localhost:{self.port}"
        self.log, self.root, self.module, self.script = log, root or ROOT, module, script
        self.environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        if checkpoints:
            self.environment["ATTENTION_EXPLORER_CHECKPOINTS"] = str(checkpoints)

    def start(self) -> None:
        arguments = ["run", str(self.script), "--server.port"] if self.module == "streamlit" else []
        command = [sys.executable, "-m", self.module, *arguments, str(self.port)]
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(command, cwd=self.root, env=self.environment, stdout=output, stderr=output)
        wait_until_healthy(self.address, self.process, self.log)

    def kill(self) -> None:
        """As a machine that loses its power: nothing is tidied up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def megabytes(self, what: str = "VmRSS") -> float:
        """Resident memory, or with "VmHWM" its peak."""
        return megabytes_of(self.process.pid, what)

    def seconds_of_work(self) -> float:
        """Processor time so far, of all threads."""
        # What clock_getcpuclockid of the C library returns on Linux. /proc counts in hundredths of a second, which is
        # longer than a rerun of a small page.
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def connections(self) -> int:
        """Open TCP connections from others to this server."""
        rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
        return sum(row[1].endswith(f":{self.port:04X}") and row[3] == ESTABLISHED for row in rows[1:] if len(row) > 3)

    def complaints(self) -> list[str]:
        """Lines of its log that tell of an exception."""
        return [line for line in self.log.read_text("utf-8").splitlines() if "Error" in line or "Traceback" in line]


@contextmanager
def serving(
    log: Path,
    checkpoints: Path | None = None,
    root: Path | None = None,
    module: str = "streamlit",
    script: str | Path = "app.py",
) -> Iterator[Server]:
    """A server on a free port, stopped afterwards; of the checkout `root`, by default this one.

    It runs `module`, which is given the port; Streamlit itself runs `script`.
    """
    server = Server(log, checkpoints, root, module, script)
    server.start()
    try:
        yield server
    finally:
        server.stop()
