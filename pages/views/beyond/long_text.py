"""Efficient attention, tab "Long text": its numbers, as views; pages/widgets/long_text.py draws the tab itself."""

from collections.abc import Mapping

import numpy as np

from model.analysis.long import streaming as cut_caches
from model.analysis.long.long_run import bits_by_position, long_arrays, long_run, open_window, read_ids, why_no_long_run
from model.language import Numeral, Refusal
from model.run import Run
from model.trace import Array
from pages.views import OnRequest, Result, view
from pages.views.controls import choice, decimals, number, steps, text
from viz.forms import Line, Lines, Mark
from viz.theme import OKABE_ITO

WINDOWS = (16, 32, 64, 128)
CACHES = (16, 64, 256, 512, 1024)


def _tokens(run: Run, text: str) -> int:
    """How many tokens of the text a long run reads.

    Raises:
        ValueError: the model reads no long texts, or the text is blank.
    """
    if reason := why_no_long_run(run.opened):
        raise Refusal(reason)
    return len(read_ids(run.opened, text))


def _sizes(run: Run, text: str) -> list[int]:
    tokens = _tokens(run, text)
    return [size for size in WINDOWS if size <= tokens] or [tokens]


def _caches(run: Run, text: str) -> dict[int, str]:
    tokens = 0 if cut_caches.why_no_streaming(run.opened) else min(_tokens(run, text), cut_caches.MOST_TOKENS)
    return {size: Numeral(f"{size:,}") for size in CACHES if size < tokens // 2}


TEXT = text("Text", lambda run: (run.source,), key="long_source")
SIZE = choice(
    "Tokens", _sizes, lambda run, text: min(_sizes(run, text), key=lambda size: abs(size - 32)), key="long_window"
)
START = number(
    "First token",
    lambda run, text, size: (0, _tokens(run, text) - size),
    lambda run, text, size: _tokens(run, text) - size,
    key="long_first",
)
TAU = steps("Temperature τ of these weights", decimals(0.1, 5.0, 0.1), 1.0, key="long_tau")
CACHE = choice(
    "Keys a query sees",
    _caches,
    lambda run, text: min(_caches(run, text), key=lambda size: abs(size - 256), default=None),
    key="long_stream",
)


@view("A window of a long text", code=(long_run, open_window))
def window(run: Run, text: str = TEXT, size: int = SIZE, start: int = START, tau: float = TAU) -> Result:
    """All heads and the chosen one on a long text, and that head token by token in a window of it."""
    case = run.opened, text, run.kind, run.layer, run.head, (start, start + size), tau
    arrays = run.compute(long_arrays, *case)
    outside = arrays["before_the_window"] + arrays["after_the_window"]
    facts = {"tokens": len(arrays["ids"]), "first": start, "last": start + size - 1}
    return Result({}, facts | {"mean": outside.mean(), "most": outside.max()}, arrays)


@view(
    "Streaming",
    code=(cut_caches.stream,),
    on_request=OnRequest(
        "Compare",
        "long_compare",
        work=lambda run, text, window: cut_caches.compare(run.opened, text, window),
        case=lambda run, text, window: None if window is None else (run.opened, text, window),
    ),
)
def streaming(
    run: Run, text: str = TEXT, window: int | None = CACHE, outcome: Mapping[str, Array] | None = None
) -> Result:
    """What a model that keeps a window of its past loses, with and without the first tokens."""
    short = "" if window else "The text is too short: type or paste more."
    facts = {"reason": cut_caches.why_no_streaming(run.opened) or short, "done": outcome is not None}
    facts |= {"sinks": cut_caches.SINKS}
    if outcome is None:
        return Result(facts=facts)
    curves = {name: bits_by_position(found) for name, found in outcome.items()}
    arrays = {f"log_probabilities_{number}": found for number, found in enumerate(outcome.values())}
    chart = bits_chart(curves, run.opened.config.max_len)
    facts |= {"tokens": min(_tokens(run, text), cut_caches.MOST_TOKENS)}
    return Result({"bits": chart}, facts, {"names": np.array(list(outcome))} | arrays)


def bits_chart(curves: Mapping[str, tuple[Array, Array]], built_for: int) -> Lines:
    """Mean of −log₂ p by position, a line for each pair of positions and bits, (part,) each.

    A mark where the positions that the model was built for end; none where the text is no longer.
    """
    looks = zip(OKABE_ITO, ("solid", "dash", "dot", "dashdot"), strict=False)
    lines = {
        name: Line(positions, bits, colour, "circle", dash, size=4)
        for (name, (positions, bits)), (colour, dash) in zip(curves.items(), looks, strict=False)
    }
    ends = max(positions[-1] for positions, _ in curves.values()) > built_for
    marks = [Mark(x=built_for, dash="dash", text=f"{built_for} positions")] if ends else []
    titles = ("position in the text", "−log₂ p, bits per token")
    return Lines(lines, titles, ".2f", height=300 + 24 * len(curves), marks=marks)
