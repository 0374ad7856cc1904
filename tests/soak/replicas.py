"""Several processes behind nginx, as deploy/nginx.conf sets it up: visitors stay with theirs, and survive its end."""

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.soak import classroom
from tests.soak.client import Session
from tests.soak.load import Answer
from tests.soak.server import ROOT, Server, free_port, serving

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
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
        (
            "http {",
            f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; "
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;",
        ),
    ):
        assert text.count(shipped) == 1, f"{CONFIGURATION} has no {shipped!r}"
        text = text.replace(shipped, here)
    (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/nginx.pid;\n{text}", "utf-8")
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


def lose_one(folder: Path, checkpoints: Path | None = None, sessions: int = 30, replicas: int = 3) -> list[str]:
    """The busiest process is killed; everybody reloads their address, and must see what they saw before."""
    problems = []
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(folder / f"replica-{number}.log", checkpoints)) for number in range(replicas)
        ]
        port = stack.enter_context(balancing(folder, servers))
        links = [{"source": f"There are {number + 2} dogs in the garden.", "layer": "1"} for number in range(sessions)]

        def arrive(link: dict[str, str], cookie: str = "") -> tuple[Session, Answer]:
            session = Session(port, cookie=cookie or take_cookie(port), **link)
            session.open()
            return session, Answer.shown(session)

        with ThreadPoolExecutor(sessions) as pool:
            arrived = list(pool.map(arrive, links))
            # What brought the cookies is closed a moment later; then each session has one connection.
            deadline = time.monotonic() + PATIENCE
            while sum(map(Server.connections, servers)) != sessions and time.monotonic() < deadline:
                time.sleep(0.05)
            before = [server.connections() for server in servers]
            for session, _ in arrived:
                session.change({"head": "1"})
            if [server.connections() for server in servers] != before:
                problems.append("somebody changed places between two moves")
            max(servers, key=Server.connections).kill()
            again = list(pool.map(arrive, links, [session.cookie for session, _ in arrived]))
        for link, (_, seen), (session, found) in zip(links, arrived, again, strict=True):
            if session.problems() or not found.same(seen):
                problems.append(f"after a process was killed {link} shows something else: {session.problems()}")
        for session, _ in (*arrived, *again):
            session.close()
    return problems


def take_cookie(port: int) -> str:
    """What nginx gives a new visitor, to stay with one process."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        return page.headers["Set-Cookie"].partition(";")[0]


def main(folder: Path, visitors: int = 50) -> list[str]:
    """Print what was measured; returns what went wrong."""
    problems = lose_one(folder)
    print(f"replicas: 30 sessions, 3 processes, one killed: {len(problems)} lost more than a reload")
    for count in (1, 2):
        with ExitStack() as stack:
            servers = [stack.enter_context(serving(folder / f"{count}-{i}.log")) for i in range(count)]
            port = stack.enter_context(balancing(folder, servers))
            everybody = [classroom.Visitor(port, number, take_cookie(port)) for number in range(visitors)]
            tally = classroom.teach(servers, everybody, classroom.RUSH, (0.0, 0.0))
            problems += tally.errors
        rate = len(tally.seconds) / classroom.RUSH
        print(f"  {count}: {visitors} visitors who never rest get {rate:.1f} answers a second")
    return problems
