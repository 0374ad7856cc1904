"""Many sessions at once: each answer is compared with what the model says to this session alone."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from model.analysis.heads.aligned_head import best_aligned_head
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.trace import Trace
from tests.soak.client import Session
from tests.soak.server import Server, serving
from viz import html

THINKING = (0.5, 2.5)
"""seconds between an answer and the next change"""
FORGOTTEN = 130
"""seconds after which Streamlit forgets a closed session: until then it may come back"""
KINDS = {"encoder_self": "Encoder self", "cross": "Cross"}
TOLERANCE = 1e-5
"""of probabilities and weights: another number of threads adds in another order"""


@dataclass(frozen=True)
class Case:
    """What one session asks for."""

    source: str
    tau: float
    kind: str
    layer: int
    head: int

    @property
    def widgets(self) -> dict[str, str]:
        place = {"kind": KINDS[self.kind], "layer": str(self.layer), "head": str(self.head)}
        return {"source": self.source, "tau": f"{self.tau:g}", **place}

    def traced(self, translator: Translator) -> Trace:
        change = AttentionTemperature(self.tau, kind=self.kind, layer=self.layer, head=self.head)
        return translator.trace(self.source, interventions=() if self.tau == 1 else (change,))


@dataclass(frozen=True)
class Answer:
    """What a page shows, or should."""

    sentence: str
    """the translation, as the page's HTML"""
    certainty: np.ndarray
    alignment: np.ndarray

    @classmethod
    def expected(cls, trace: Trace) -> "Answer":
        written = trace.target_probabilities
        layer, head = best_aligned_head(trace)
        alignment = trace.attention("cross", layer).pattern[head]
        return cls(html.translated(trace.translation, trace.source, trace.next_tokens, "cross"), written, alignment)

    @classmethod
    def shown(cls, session: Session) -> "Answer":
        (sentence,) = [html for html in session.html() if '<p class="sentence">' in html]
        return cls(sentence, session.bars("translate-certainty"), session.cells("translate-map"))

    def same(self, other: "Answer") -> bool:
        pairs = ((self.certainty, other.certainty), (self.alignment, other.alignment))
        same_numbers = all(a.shape == b.shape and np.allclose(a, b, rtol=0, atol=TOLERANCE) for a, b in pairs)
        return self.sentence == other.sentence and same_numbers


@dataclass
class Tally:
    """What the sessions met."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waited: int = 0
    """answers before which somebody read how many are before"""
    crossed: int = 0
    """answers that were another session's"""
    by_move: dict[str, list[float]] = field(default_factory=dict)
    """seconds, by what was done"""
    work: float = 0.0
    """the server's processor time, in seconds"""

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.seconds, share)) if self.seconds else float("nan")


def cases(number: int, translator: Translator, each: int = 4) -> list[Case]:
    """Of one session: sentences that name its number, so that nobody else's fit."""
    config, rng = translator.model.config, random.Random(number)
    texts = (f"There are {number + 2} dogs in the garden.", f"I saw {number + 2} women and a red car in the street.")
    return [
        Case(
            texts[i % 2],
            rng.choice((1.0, 0.3, 0.5, 2.0, 3.0)),
            rng.choice(tuple(KINDS)),
            rng.randrange(min(config.n_encoder_layers, config.n_decoder_layers)),
            rng.randrange(config.n_heads),
        )
        for i in range(each)
    ]


def visit(
    session: Session, known: Sequence[tuple[Case, Answer]], others: Sequence[Answer], until: float, tally: Tally
) -> None:
    """Type, move sliders, look at the answer, think, until the time is up."""
    rng = random.Random(known[0][0].source)
    while time.monotonic() < until:
        case, expected = rng.choice(known)
        read = len(session.waited)
        try:
            session.change({"tau": "1"})  # a temperature would stay at the head for which it was set
            tally.seconds.append(session.change(case.widgets))
            tally.waited += any(text.startswith("The model is busy") for text in session.waited[read:])
            tally.errors += session.problems()
            found = Answer.shown(session)
            if not found.same(expected):
                tally.crossed += any(found.same(other) for other in others)
                tally.errors.append(f"{case}: another answer than this session's own")
        except Exception as error:  # a session that fails must not end the others'
            tally.errors.append(f"{case}: {type(error).__name__}: {error}")
            return
        time.sleep(min(rng.uniform(*THINKING), max(until - time.monotonic(), 0)))


def crowd(server: Server, sessions: int, seconds: float, translator: Translator) -> tuple[Tally, list[Session]]:
    """That many sessions for that long; they are left open."""
    asked = [cases(number, translator) for number in range(sessions)]
    known = [[(case, Answer.expected(case.traced(translator))) for case in own] for own in asked]
    tally = Tally()

    def arrive(number: int) -> Session:
        session = Session(server.port, source=asked[number][0].source)
        session.open()
        return session

    with ThreadPoolExecutor(sessions) as pool:
        opened = list(pool.map(arrive, range(sessions)))
        until = time.monotonic() + seconds
        visits = []
        for number, session in enumerate(opened):
            others = [answer for other, own in enumerate(known) if other != number for _, answer in own]
            visits.append(pool.submit(visit, session, known[number], others, until, tally))
        for future in visits:
            future.result()
    return tally, opened


def main(folder: Path, sessions: int = 50, minutes: float = 5.0) -> list[str]:
    """Print what was measured; returns what went wrong."""
    translator = load_checkpoint(device="cpu")
    with serving(folder / "load.log") as server:
        alone, opened = crowd(server, 1, min(20.0, 60 * minutes), translator)
        before = server.megabytes()
        tally, more = crowd(server, sessions, 60 * minutes, translator)
        during = server.megabytes()
        for session in opened + more:
            session.close()
        time.sleep(FORGOTTEN)
        crowd(server, 1, 5.0, translator)[1][0].close()  # Streamlit forgets when somebody comes or goes
        time.sleep(2)
        after, peak = server.megabytes(), server.megabytes("VmHWM")
        problems = [*alone.errors, *tally.errors, *server.complaints()]
    print(
        f"load: {sessions} sessions, {minutes:g} minutes, {len(tally.seconds)} answers, {len(problems)} errors, "
        f"{tally.crossed} of another session; p50 {tally.quantile(0.5):.2f} s, p95 {tally.quantile(0.95):.2f} s "
        f"(alone {alone.quantile(0.5):.2f} s, {alone.quantile(0.95):.2f} s); {tally.waited} read that the model is busy"
    )
    print(
        f"memory: {before:,.0f} MB with one session, {during:,.0f} MB with {sessions} "
        f"({(during - before) / sessions:.1f} MB each), {after:,.0f} MB after all have closed, peak {peak:,.0f} MB"
    )
    return problems
