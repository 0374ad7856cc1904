"""The lessons of the page Learn and the questions of Guess first, as data; the right answers are read off the run."""

from functools import cache

from model.language import language
from pages.lessons.station import Lesson, read_lesson

ORDER = (
    "first_steps",
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
    "beyond",
    "exercises",
    "interview",
)


def lessons() -> tuple[Lesson, ...]:
    """All lessons in the language of this run, from a dot product to what is asked in interviews."""
    return _lessons(language().code)


@cache
def _lessons(_code: str) -> tuple[Lesson, ...]:
    return tuple(read_lesson(name) for name in ORDER)
