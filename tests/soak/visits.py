"""Two thousand sessions that come, look at a page and go: how much memory each of them leaves behind."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tests.soak.classroom import list_pages, write_sentence
from tests.soak.client import Session
from tests.soak.server import Server, serving

SESSIONS, SECONDS = 2000, 600.0
SETTLED = 500
"""visits after which the slope is measured: Streamlit has begun to forget the first, and the caches are full"""
SENTENCES = 10
MOST = 10.0
"""kB of resident memory a session"""
AT_ONCE = 8


def come_and_go(server: Server, sessions: int, seconds: float) -> list[tuple[int, float]]:
    """(visits so far, megabytes) after each twentieth visit; the visits are spread evenly over the time."""
    measured, started, pages = [], time.monotonic(), list_pages()

    def visit(number: int) -> None:
        time.sleep(max(started + number * seconds / sessions - time.monotonic(), 0))
        session = Session(server.port, source=write_sentence(number % SENTENCES, 0))
        session.open()
        session.go(pages[number % len(pages)])
        session.close()
        if number % 20 == 0:
            measured.append((number, server.megabytes()))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(visit, range(sessions)))
    return measured


def slope(measured: list[tuple[int, float]], settled: int) -> float:
    """kB a session after the first `settled`, by least squares."""
    later = np.array([row for row in measured if row[0] >= settled])
    return float(np.polyfit(later[:, 0], later[:, 1], 1)[0] * 1e3)


def main(folder: Path) -> list[str]:
    """Print what was measured; returns what went wrong."""
    with serving(folder / "visits.log") as server:
        measured = come_and_go(server, SESSIONS, SECONDS)
        problems = server.complaints()
    grown = slope(measured, SETTLED)
    at = dict(measured)
    print(
        f"visits: {SESSIONS} sessions in {SECONDS / 60:g} minutes; {at[SETTLED]:,.0f} MB after {SETTLED}, "
        f"{at[max(at)]:,.0f} MB at the end: {grown:.1f} kB a session"
    )
    return problems + [f"{grown:.1f} kB a session, more than {MOST:g}"] * (grown > MOST)
