"""Timing on request: a button, its progress, and what was measured, kept for everybody."""

from collections.abc import Callable, Mapping
from time import monotonic

import streamlit as st

from model.background.stopwatch import LENGTHS, PATIENCE, ROUNDS, Contender, Sample, Timings, medians, timed
from pages.compute.queue import gate, in_turns


def measured(
    key: str, case: tuple[object, ...], device: str, contenders: Callable[[], Mapping[str, Contender]]
) -> Timings | None:
    """What was measured for this case; nothing is timed before somebody presses the button.

    Two measurements at once would slow each other down: one at a time in this process.

    Args:
        key: of the button.
        case: all that the times depend on.
        device: where it runs.
        contenders: makes what is timed.
    """
    holder = kept_result("timing", key, device, *case)
    pressed = asked("Measure on this machine", key, ":material/timer:")
    place = st.empty()
    if pressed:
        with gate().alone("timing") as mine:
            if mine:
                bar = place.progress(0.0, f"Round 1 of {ROUNDS}")
                holder[:] = [medians(_rounds(contenders(), device, bar), device)]
                place.empty()
            else:
                place.info(
                    "Somebody is measuring on this machine just now. Try again in a few seconds.",
                    icon=":material/timer:",
                )
    elif not holder:
        place.caption("Nothing is timed until you press the button.")
    return holder[0] if holder else None


def _rounds(contenders: Mapping[str, Contender], device: str, bar: object) -> list[Sample]:
    """All samples; the bar moves once a round, since drawing it takes time from what is timed.

    On a busy machine it is full when the time is up, not the rounds.
    """
    began = monotonic()
    samples, a_round = [], len(contenders) * len(LENGTHS)
    for sample in in_turns(timed(contenders, device)):
        samples.append(sample)
        if len(samples) % a_round == 0:
            done = len(samples) // a_round
            bar.progress(
                min(max(done / ROUNDS, (monotonic() - began) / PATIENCE), 1.0),
                f"Round {min(done + 1, ROUNDS)} of {ROUNDS}",
            )
    return samples


def asked(label: str, key: str, icon: str) -> bool:
    """A button; True in the run that its press starts."""
    st.button(label, key=key, icon=icon, on_click=_ask, args=(key,))
    return st.session_state.pop(f"{key}-asked", False)


def _ask(key: str) -> None:
    st.session_state[f"{key}-asked"] = True


@st.cache_resource(max_entries=96, show_spinner=False)
def kept_result(*case: object) -> list:  # noqa: ARG001 - the cache tells cases apart by it
    """Empty until the case has been worked out, then its result; shared by all, the oldest dropped."""
    return []
