"""The lessons of the page Learn and the questions of Guess first, as data; the right answers are read off the run."""

from functools import cache

from pages.lessons.station import Lesson, read_lesson

ORDER = (
    "recurrence",
    "lookup",
    "scores",
    "heads",
    "positions",
    "encoder_block",
    "decoder_block",
    "training",
    "honest",
    "today",
)


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, from recurrence to today's models."""
    return tuple(read_lesson(name) for name in ORDER)
