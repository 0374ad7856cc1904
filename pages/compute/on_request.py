"""Work that starts at the press of a button and shows its progress; the result is shared by all sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import streamlit as st

from model.background.stopwatch import LENGTHS, PATIENCE, ROUNDS, Contender, Sample, Timings, measure, medians
from pages.compute.cache import store, stored
from pages.compute.queue import in_turns, model_queue

TIMER = ":material/timer:"
PLAY = ":material/play_arrow:"


def pressed(label: str, key: str, icon: str = PLAY, disabled: bool = False) -> bool:
    """A button; True in the one run that its press starts."""
    st.button(label, key=key, icon=icon, disabled=disabled, on_click=_remember_press, args=(key,))
    return st.session_state.pop(f"{key}-pressed", False)


def compute_on_request(
    label: str, key: str, case: tuple[Any, ...], steps: Callable[[], Iterator[tuple[float, Any]]], icon: str = PLAY
) -> Any:
    """The result of long work and the button that starts it; None while there is no result yet.

    Args:
        label: of the button.
        key: of the button.
        case: everything the result depends on.
        steps: yields the share that is done, 0 to 1, and what is known so far; the last one is the result.
        icon: of the button.
    """
    found = stored(key, *case)
    if pressed(label, key, icon, disabled=found is not None) and found is None:
        return compute_with_progress(key, case, steps)
    return found


def compute_with_progress(key: str, case: tuple[Any, ...], steps: Callable[[], Iterator[tuple[float, Any]]]) -> Any:
    """The result of work that takes a while, under a progress bar unless it is known; arguments as above."""
    found = stored(key, *case)
    if found is None:
        bar = st.progress(0.0, "The model is running …")
        for share, found in in_turns(steps()):  # noqa: B007 - the last one is the result
            bar.progress(share, f"{share:.0%}")
        bar.empty()
        store(found, key, *case)
    return found


def measure_on_request(
    key: str,
    case: tuple[Any, ...],
    device: str,
    contenders: Callable[[], Mapping[str, Contender]],
    lengths: Sequence[int] = LENGTHS,
) -> Timings | None:
    """The times measured for this case; nothing is timed before somebody presses the button.

    Two measurements at once would slow each other down, so there is one at a time in this process.

    Args:
        key: of the button.
        case: everything the times depend on besides the device.
        device: where it runs.
        contenders: makes what is timed.
        lengths: at which it is timed.
    """
    start = pressed("Measure on this machine", key, TIMER)
    place = st.empty()
    timings = stored(key, device, *case)
    if start:
        with model_queue().exclusive("timing") as free:
            if free:
                bar = place.progress(0.0, f"Round 1 of {ROUNDS}")
                timings = medians(_sample(contenders(), device, lengths, bar), device)
                store(timings, key, device, *case)
                place.empty()
            else:
                place.info(
                    "Another visitor is measuring on this machine. Try again in a few seconds.",
                    icon=TIMER,
                )
    elif timings is None:
        place.caption("Nothing is timed until you press the button.")
    return timings


def _sample(contenders: Mapping[str, Contender], device: str, lengths: Sequence[int], bar: Any) -> list[Sample]:
    """All samples. The bar moves once a round, because drawing it takes time; it is full when the time is up."""
    start = monotonic()
    samples, per_round = [], len(contenders) * len(lengths)
    for sample in in_turns(measure(contenders, device, lengths)):
        samples.append(sample)
        if len(samples) % per_round == 0:
            done = len(samples) // per_round
            bar.progress(
                min(max(done / ROUNDS, (monotonic() - start) / PATIENCE), 1.0),
                f"Round {min(done + 1, ROUNDS)} of {ROUNDS}",
            )
    return samples


def _remember_press(key: str) -> None:
    st.session_state[f"{key}-pressed"] = True
