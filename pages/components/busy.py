"""The line that somebody reads who waits for others: how many are before."""

from contextlib import ExitStack
from time import monotonic

import streamlit as st

AT_LEAST = 1.0
"""seconds that a number stands"""
UNTIL_SEEN = 0.6
"""seconds after which a spinner is on screen: Streamlit shows none that lasts less than half a second"""


class BusyLine:
    """A spinner, so that nothing below it moves; a new one for each number, the old one staying until it is seen."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, ExitStack]] = []
        self._said = 0

    def say(self, before: int) -> None:
        """Call it again and again."""
        now = monotonic()
        if before != self._said and (not self._lines or now - self._lines[-1][0] >= AT_LEAST):
            line = ExitStack()
            line.enter_context(st.spinner(f"The model is busy: {before} before you"))
            self._lines.append((now, line))
            self._said = before
        if len(self._lines) > 1 and now - self._lines[-1][0] >= UNTIL_SEEN:
            self._lines.pop(0)[1].close()

    def clear(self) -> None:
        with ExitStack() as all_lines:
            while self._lines:
                all_lines.push(self._lines.pop()[1])
