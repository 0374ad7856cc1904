"""A class: thirty people who think between their moves, each with sentences of their own."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pages import PAGES
from pages.widgets.controls import OPEN_TAB
from pages.widgets.live_training import PAUSE_SECONDS
from tests.soak.client import Session
from tests.soak.load import Tally
from tests.soak.proxy import balancing, take_cookie
from tests.soak.server import Server, serving

THINKING = (4.0, 8.0)
"""seconds between an answer and the next move"""
LIVE_TRAINING, CORRECTION = "Train it in front of you", "Fine-tune on a correction"
"""tabs of Training, where visitors train"""
WATCHING = (PAUSE_SECONDS, PAUSE_SECONDS)
"""seconds between two redrawings of a training"""
RUSH = 60.0
"""seconds for which fifty visitors never rest"""
MOVES = {"place": 5, "temperature": 2, "sentence": 2, "page": 1, "patches": 1}
"""how often each is made, of eleven"""
PEOPLE = ("A man", "A woman", "The girl", "The boy", "My sister", "Our teacher", "An old dog", "A child")
DEEDS = ("reads", "buys", "finds", "carries", "paints", "sells", "looks at", "takes")
THINGS = ("a red book", "the small house", "some apples", "a new car", "two letters", "the old map", "a blue shirt")
PLACES = ("in the garden", "at the station", "near the river", "in the kitchen", "on the street", "after school")
TEMPERATURES = ("0.2", "0.5", "1", "2", "3")


def write_sentence(number: int, count: int) -> str:
    """The sentence that visitor `number` types as their `count`-th; no two are the same."""
    rng = random.Random(f"{number} {count}")
    said = " ".join(rng.choice(words) for words in (PEOPLE, DEEDS, THINGS, PLACES))
    return f"{said}, and visitor {number} says it {count} times."


class Visitor:
    """Somebody in the class: makes one move after another, and counts their own sentences."""

    def __init__(self, port: int, number: int, cookie: str = "") -> None:
        self.number, self.typed, self.maps, self.tab = number, 0, 0, ""
        self.rng = random.Random(number)
        self.port, self.cookie = port, cookie
        self.session = self._enter()

    def _enter(self) -> Session:
        return Session(self.port, self.cookie, source=write_sentence(self.number, self.typed))

    def _go_once(self, tab: str) -> bool:
        """Open this tab of Training, unless it is open; returns whether it was opened now."""
        if self.tab == tab:
            return False
        self.tab = self.session.query[OPEN_TAB] = tab
        self.session.go("training")
        return True

    def choose_move(self) -> str:
        """One of MOVES, at random, as often as it says."""
        return self.rng.choices(list(MOVES), list(MOVES.values()))[0]

    def move(self, kind: str) -> float:
        """Make one of MOVES; seconds until the page was whole."""
        return getattr(self, f"_change_{kind}")()

    def _change_place(self) -> float:
        offered = {key: found for key in ("head", "layer", "step") if (found := self.session.options(key))}
        if not offered:
            return self._change_temperature()
        key = self.rng.choice(list(offered))
        return self.session.change({key: self.rng.choice(offered[key])})

    def _change_temperature(self) -> float:
        return self.session.change({"tau": self.rng.choice(TEMPERATURES)})

    def _change_sentence(self) -> float:
        self.typed += 1
        return self.session.change({"source": write_sentence(self.number, self.typed)})

    def _change_page(self) -> float:
        return self.session.go(self.rng.choice(list_pages()))

    def _change_patches(self) -> float:
        """See every patch between two sentences; every other time, leave while the model runs anew, and come back."""
        self.session.query[OPEN_TAB] = "Patch"
        seconds = self.session.go("side_by_side")
        self.session.query.pop(OPEN_TAB, None)
        self.maps += 1
        # The patches of a short text are there at once; those of a long one wait for a button.
        waits = self.session.has("patch_map")
        if self.maps % 2 == 0:
            return seconds + (self.session.change({"patch_map": True}) if waits else 0)
        self.typed += 1
        self.session.ask({"patch_map": True} if waits else {"source": write_sentence(self.number, self.typed)})
        self.session.close()
        self.session = self._enter()
        return seconds + self.session.open()


class Trainer(Visitor):
    """One beside the class: trains the letters task and watches it, and begins again when it is done."""

    def choose_move(self) -> str:
        """See what it has learned since."""
        return "training"

    def _change_training(self) -> float:
        """The pictures after some more steps."""
        session = self.session
        if self._go_once(LIVE_TRAINING):
            return session.change({"live-start": True})
        if any("**Done**" in text for text in session.texts()):
            session.change({"live-end": True})
            return session.change({"live-start": True})
        return session.redraw()


class Corrector(Visitor):
    """One beside the class: teaches a copy of the model a correction, undoes it, teaches it again."""

    learned, undone = 0, 0

    def choose_move(self) -> str:
        """Teach what is not learned; undo what is."""
        return "undo" if self._says("**Learned**") else "correction"

    def _change_correction(self) -> float:
        """What a press of the button brings: steps until it is learned, twenty seconds at most."""
        session = self.session
        if self._go_once(CORRECTION):
            seconds = session.change({"corrected": f"Ja, {session.value('corrected')}", "corrected-send": True})
        else:
            seconds = session.change({"correction-steps": True})
        self.learned += self._says("**Learned**")
        return seconds

    def _change_undo(self) -> float:
        seconds = self.session.change({"correction-undo": True})
        assert self._says("No step has been taken"), self.session.texts()
        self.undone += 1
        return seconds

    def _says(self, part: str) -> bool:
        return any(part in text for text in self.session.texts())


def list_pages() -> list[str]:
    """The paths of the pages that show a translator."""
    found = (
        page for group in PAGES.values() for page in group if not any("language model" in need for need in page.needs)
    )
    return [Path(page.path).stem for page in found]


def attend(visitor: Visitor, until: float, tally: Tally, thinking: tuple[float, float]) -> None:
    """Think and move until the time is up."""
    while True:
        pause = visitor.rng.uniform(*thinking)
        if time.monotonic() + pause > until:
            return
        time.sleep(pause)
        try:
            kind = visitor.choose_move()
            seconds = visitor.move(kind)
            tally.seconds.append(seconds)
            tally.by_move.setdefault(kind, []).append(seconds)
            tally.errors += visitor.session.problems()
        except Exception as error:  # a session that fails must not end the others'
            tally.errors.append(f"visitor {visitor.number}: {type(error).__name__}: {error}")
            return


def teach(
    servers: Sequence[Server],
    everybody: Sequence[Visitor],
    seconds: float,
    thinking: tuple[float, float] = THINKING,
    training: Sequence[Visitor] = (),
) -> Tally:
    """All of them for that long; `servers` are those that do the work.

    The tally counts the answers that the class gets; errors and moves also of those who train beside it.
    """
    tally, beside = Tally(), Tally()
    seats = [(visitor, tally, thinking) for visitor in everybody]
    seats += [(visitor, beside, WATCHING if isinstance(visitor, Trainer) else thinking) for visitor in training]
    with ThreadPoolExecutor(len(seats)) as pool:
        list(pool.map(lambda seat: seat[0].session.open(), seats))
        worked, until = _work(servers), time.monotonic() + seconds
        list(pool.map(lambda seat: attend(seat[0], until, *seat[1:]), seats))
        tally.work = _work(servers) - worked
    for visitor, *_ in seats:
        visitor.session.close()
    tally.errors += beside.errors
    tally.by_move |= beside.by_move
    return tally


def _work(servers: Sequence[Server]) -> float:
    return sum(server.seconds_of_work() for server in servers)


@contextmanager
def serving_class(
    folder: Path, replicas: int = 1, root: Path | None = None
) -> Iterator[tuple[list[Server], Callable[[int], Visitor]]]:
    """The app in so many processes, behind nginx if there are several, and a function that lets in visitor `number`.

    Args:
        folder: where the servers write their logs.
        replicas: how many processes.
        root: a checkout of another version; None: this one.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(folder / f"class-{i}.log", root=root)) for i in range(replicas)]
        for number, server in enumerate(servers, 900):
            teach([server], [Visitor(server.port, number)], 10.0, (0.0, 0.0))  # what is made once for each process
        if replicas == 1:
            yield servers, lambda number: Visitor(servers[0].port, number)
        else:
            port = stack.enter_context(balancing(folder, servers))
            yield servers, lambda number: Visitor(port, number, take_cookie(port))


def main(
    folder: Path,
    visitors: int = 30,
    minutes: float = 3.0,
    replicas: int = 1,
    other: Path | None = None,
    training: bool = False,
) -> list[str]:
    """Print what was measured; returns what went wrong.

    Args:
        folder: where the servers write their logs.
        visitors: how many attend.
        minutes: how long.
        replicas: how many processes serve them.
        other: a checkout of another version, in one process, whose answers a second are compared: fifty visitors who
            never rest.
        training: whether somebody trains the letters task and somebody teaches a correction, all the time.
    """
    with serving_class(folder, replicas) as (servers, enter):
        alone = teach(servers, [enter(950)], 30.0, (0.2, 0.5))
        corrector = Corrector(servers[0].port, 961)
        trainers = [Trainer(servers[0].port, 960), corrector] if training else []
        tally = teach(servers, [enter(number) for number in range(visitors)], 60 * minutes, training=trainers)
        problems = [*alone.errors, *tally.errors, *(line for server in servers for line in server.complaints())]
        megabytes = sum(server.megabytes("VmHWM") for server in servers)
    where = "1 process" if replicas == 1 else f"{replicas} processes"
    print(
        f"class: {visitors} visitors, {len(tally.seconds)} answers, {len(problems)} errors, "
        f"p50 {tally.quantile(0.5):.2f} s, p95 {tally.quantile(0.95):.2f} s "
        f"(alone {alone.quantile(0.5):.2f} s, {alone.quantile(0.95):.2f} s), "
        f"at most {megabytes:,.0f} MB"
    )
    print(
        f"  {where}, {tally.work / max(len(tally.seconds), 1) * 1e3:.0f} ms of processor time an answer; by move, p50:"
    )
    for kind, seconds in sorted(tally.by_move.items()):
        print(f"  {kind}: {sorted(seconds)[len(seconds) // 2]:.2f} s of {len(seconds)}")
    if training:
        print(f"  a correction was learned {corrector.learned} times, and undone {corrector.undone} times")
    if other:
        before, theirs, after = (
            _count_restless(folder, count, root) for count, root in ((replicas, None), (1, other), (replicas, None))
        )
        ours = (before + after) / 2
        print(f"never resting: 50 visitors get {ours:.1f} answers a second, {ours / theirs:.2f} times the other's")
    return problems


def _count_restless(folder: Path, replicas: int, root: Path | None) -> float:
    """Answers a second that fifty visitors get."""
    with serving_class(folder, replicas, root) as (servers, enter):
        return len(teach(servers, [enter(number) for number in range(50)], RUSH, (0.0, 0.0)).seconds) / RUSH
