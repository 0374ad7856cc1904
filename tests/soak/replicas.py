"""Several processes behind nginx: visitors stay with theirs, and survive its end."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.soak.client import Session
from tests.soak.load import Answer
from tests.soak.proxy import PATIENCE, balancing, take_cookie
from tests.soak.server import Server, serving


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


def main(folder: Path) -> list[str]:
    """Print what was measured; returns what went wrong."""
    problems = lose_one(folder)
    print(f"replicas: 30 sessions, 3 processes, one killed: {len(problems)} lost more than a reload")
    return problems
