"""The lessons of the page Learn, as data; each answer is a function of the run on screen."""

from pages.lessons.decoder_block import DECODER_BLOCK
from pages.lessons.encoder_block import ENCODER_BLOCK
from pages.lessons.heads import HEADS
from pages.lessons.honest import HONEST
from pages.lessons.lookup import LOOKUP
from pages.lessons.positions import POSITIONS
from pages.lessons.recurrence import RECURRENCE
from pages.lessons.scores import SCORES
from pages.lessons.station import Lesson
from pages.lessons.today import TODAY
from pages.lessons.training import TRAINING

LESSONS: tuple[Lesson, ...] = (
    RECURRENCE,
    LOOKUP,
    SCORES,
    HEADS,
    POSITIONS,
    ENCODER_BLOCK,
    DECODER_BLOCK,
    TRAINING,
    HONEST,
    TODAY,
)
