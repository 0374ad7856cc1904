"""Sessions that close while the model works for them: their work is dropped."""

import time
from pathlib import Path

from tests.soak.client import Session
from tests.soak.server import Server, serving

SESSIONS = 20
IDLE = 0.15
"""share of one processor core that an idle server may use"""
AT_MOST = 10.0
"""seconds after which it must be idle"""


def ask_and_leave(server: Server, sessions: int = SESSIONS, clauses: int = 20) -> tuple[float, float]:
    """Each asks for the beam search of a long text of its own, and closes.

    Returns:
        seconds of processor time that one such run takes if it is waited for, and seconds until the server is idle.
    """
    first = _asking(server, 0)
    worked = server.seconds_of_work()
    first.change({"source": _text(0, clauses)})
    one = server.seconds_of_work() - worked
    asking = [_asking(server, number) for number in range(1, 1 + sessions)]
    for number, session in enumerate(asking, 1):
        session.ask({"source": _text(number, clauses)})
    time.sleep(0.5)
    for session in asking:
        session.close()
    closed = time.monotonic()
    while time.monotonic() - closed < 10 * AT_MOST:
        worked = server.seconds_of_work()
        time.sleep(0.5)
        if server.seconds_of_work() - worked < 0.5 * IDLE:
            break
    idle = time.monotonic() - closed - 0.5
    first.close()
    return one, idle


def main(folder: Path) -> list[str]:
    """Print what was measured; returns what went wrong."""
    with serving(folder / "closed.log") as server:
        one, idle = ask_and_leave(server)
        problems = server.complaints()
    print(
        f"closed: {SESSIONS} sessions ask for a long text ({one:.1f} s of work each, {SESSIONS * one:.0f} s in all) "
        f"and close: idle after {idle:.1f} s"
    )
    return problems + [f"still at work {idle:.0f} s after all had closed"] * (idle > AT_MOST)


def _asking(server: Server, number: int) -> Session:
    session = Session(server.port, source=f"Session {number} is here.")
    session.open()
    return session


def _text(number: int, clauses: int) -> str:
    animals = ("dogs", "cats", "birds", "horses", "children")
    return ", and then ".join(f"{number + i} {animals[i % 5]} ran over the street" for i in range(clauses)) + "."
