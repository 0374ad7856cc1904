"""What trainings took, from 2017 on, as their authors report it; and the operations by formula."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from model.background.family import SECTION, member
from model.background.paper import TFLOPS
from model.language import Sentence, joined, sentence


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training. None: not published."""

    name: str
    """of the member of the family, or of a model before it"""
    text: str
    """what it read"""
    devices: int | None
    device: str
    hours: float | None
    """by the clock"""
    device_hours: float | None = None
    """where the authors give them instead; else devices x hours"""
    parallel: str = ""
    """how the work was divided; empty: not published"""
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
TRAININGS: tuple[Training, ...] = (
    Training(
        name=GNMT,
        text=sentence("36 million sentence pairs"),
        devices=96,
        device="K80",
        hours=6 * 24,
        parallel="model and data",
        source=sentence("{work}, sections {numbers}", work="Wu et al. 2016", numbers=joined(["3.3", "8"])),
    ),
    Training(
        name=BASE,
        text=sentence("4.5 million sentence pairs"),
        devices=8,
        device="P100",
        hours=12,
        source=sentence(SECTION, work="Vaswani et al. 2017", number="5.2"),
    ),
    Training(
        name=BIG,
        text=sentence("4.5 million sentence pairs"),
        devices=8,
        device="P100",
        hours=84,
        source=sentence(SECTION, work="Vaswani et al. 2017", number="5.2"),
    ),
    Training(
        name="BERT, large",
        text=sentence("3.3 billion words, 40 times"),
        devices=64,
        device="TPU chip",
        hours=96,
        source=sentence("{work}, appendix {number}", work="Devlin et al. 2019", number="A.2"),
    ),
    Training(
        name="GPT-3",
        text=sentence("300 billion tokens"),
        devices=None,
        device="V100",
        hours=None,
        parallel="inside each matrix product, and across layers",
        source=sentence(SECTION, work="Brown et al. 2020", number="2.3"),
    ),
    Training(
        name="PaLM, 540B",
        text=sentence("780 billion tokens"),
        devices=6144,
        device="TPU v4 chip",
        hours=None,
        device_hours=1200 * 6144 + 336 * 3072,
        parallel="data and model, across two pods; no pipeline",
        source=sentence("{work}, section 4 and appendix B", work="Chowdhery et al. 2022"),
    ),
    Training(
        name="Llama, 65B",
        text=sentence("1.4 trillion tokens"),
        devices=2048,
        device="A100",
        hours=None,
        device_hours=1_022_362,
        parallel="model and sequence",
        source=sentence("{work}, sections 2.4 and 6, Table 15", work="Touvron et al. 2023"),
    ),
    Training(
        name="Llama 3.1, 405B",
        text=sentence("15.6 trillion tokens"),
        devices=16_384,
        device="H100",
        hours=None,
        device_hours=30.84e6,
        parallel="tensors, context, pipeline and data",
        source=sentence("{work}, section 3.3; model card", work="Grattafiori et al. 2024"),
    ),
    Training(
        name="DeepSeek-V3",
        text=sentence("14.8 trillion tokens"),
        devices=2048,
        device="H800",
        hours=None,
        device_hours=2.788e6,
        parallel="pipeline, experts and data",
        source=sentence("{work}, sections {numbers}", work="DeepSeek-AI 2024", numbers=joined(["1", "3.1", "3.2"])),
    ),
)


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
