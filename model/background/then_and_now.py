"""What trainings took, from 2017 on, as their authors report it; and the operations by formula."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from model.background.family import member
from model.background.paper import TFLOPS
from model.beside import read_beside
from model.language import Sentence, joined, sentence


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training. None: not published."""

    name: str
    """of the member of the family, or of a model before it"""
    text: Sentence
    """what it read"""
    devices: int | None = None
    device: str
    hours: float | None = None
    """by the clock"""
    device_hours: float | None = None
    """where the authors give them instead; else devices x hours"""
    parallel: str = ""
    """how the work was divided; empty: not published"""
    dropout: str = ""
    smoothing: str = ""
    """of the labels"""
    decay: str = ""
    """of the weights; these three as published, empty where the authors name none"""
    source: Sentence

    @property
    def all_hours(self) -> float | None:
        """Of all devices together."""
        if self.device_hours is not None:
            return self.device_hours
        return None if self.devices is None or self.hours is None else self.devices * self.hours

    @property
    def operations(self) -> float | None:
        """Time x devices x speed, as the paper estimates them, where it has the speed of the device; else 6 for each
        parameter at work and token (Kaplan et al. 2020).
        """
        if self.device in TFLOPS:
            return self.all_hours * 3600 * TFLOPS[self.device] * 1e12
        one = member(self.name)
        return None if one.tokens is None else 6 * sum(one.parameters(active=True).values()) * one.tokens


GNMT, BASE, BIG = "GNMT", "Transformer, base", "Transformer, big"


def _read_trainings() -> Iterator[Training]:
    for row in read_beside(__file__)["training"]:
        of = {name: joined(fact) if isinstance(fact, list) else fact for name, fact in row.pop("of").items()}
        yield Training(**row | {"text": sentence(row["text"]), "source": sentence(row["source"], **of)})


TRAININGS = tuple(_read_trainings())


def training_of(name: str) -> Training:
    """The training of this name."""
    return next(one for one in TRAININGS if one.name == name)


STRAYS = 0.2
"""a share by which the tokens of a step, which a run of a training keeps alike, may differ from their mean"""


def tokens_of_log(log: Sequence[Mapping[str, float]]) -> float | None:
    """Tokens of a training, all its runs together: those that it read, where log.csv counts them; else those that it
    predicted, by `tokens_per_second`, which is a mean over a run since the run began.

    Such a log says nothing of where a run that goes on from another begins: it does where the tokens of a step would
    jump if the old run went on. None: the log has neither.
    """
    if log and "tokens" in log[-1]:
        counts = [row["tokens"] for row in log if "tokens" in row]
        return counts[-1] + sum(count for count, following in pairwise(counts) if following < count)
    rows = [row for row in log if {"step", "hours", "tokens_per_second"} <= set(row)]
    if not rows:
        return None
    done, began, first = 0.0, 0.0, 0.0  # tokens of the runs before; hours and step at which this one began
    count, hours, step = 0.0, 0.0, 0.0  # at the row before
    for row in rows:
        now = row["tokens_per_second"] * 3600 * (row["hours"] - began)
        if step > first and row["step"] > step:
            mean = count / (step - first)
            if abs((now - count) / (row["step"] - step) - mean) > STRAYS * mean:
                done, began, first = done + count, hours, step
                now = row["tokens_per_second"] * 3600 * (row["hours"] - began)
        count, hours, step = now, row["hours"], row["step"]
    return done + count
