"""The lessons of the page Learn, as data; each answer is a function of the run on screen."""

from pages.lessons.lookup import LOOKUP
from pages.lessons.recurrence import RECURRENCE
from pages.lessons.station import Lesson

LESSONS: tuple[Lesson, ...] = (RECURRENCE, LOOKUP)
