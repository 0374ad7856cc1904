"""All heads beside BertViz's model_view, token lines beside its head_view: the same weights, built, sent and painted.

Both are drawn in a window of Chromium that is open and has the libraries already; BertViz without one of its own cells
of a notebook around it, ours without Streamlit.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from model.checkpoints.store import load_checkpoint
from model.trace import Trace
from tests.bench.browser import window
from tests.bench.sentences import TOKENS, trace_of
from tests.bench.standalone import Page, bertviz_page, component_page
from tests.bench.table import Row
from tests.browser.chromium import chromium
from viz.canvas.lines import lines
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing
from viz.tokens import labels

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FASTER = {20: 15, 60: 40, 128: 100}
"""how many times faster all heads have to be built and painted, by number of tokens"""
SMALLER = {60: 40, 128: 40}
Measured = tuple[float, float, int]
"""seconds to build, seconds to paint, bytes"""
LAYER = 2
WARMING = 20
"""tokens of the picture that a window draws first, so that its scripts are compiled"""
PAINTED = """
(draw) => new Promise((done, failed) => {
  const [work, channel] = [new Function(draw), new MessageChannel()];
  requestAnimationFrame(() => {
    const began = performance.now();
    try {
      work();
    } catch (error) {
      failed(error);
    }
    channel.port1.onmessage = () => done(performance.now() - began);
    channel.port2.postMessage(null);
  });
})
"""
"""A promise: milliseconds from the beginning of a frame in which `draw` runs until the browser has laid out and painted
that frame. The next message comes after that; waiting for the screen's clock would only blur the difference."""


def peers(checkpoint: str, sizes: Sequence[int] = TOKENS, rounds: int = 5) -> Iterator[Row]:
    """For each number of tokens and either picture: time until painted, and bytes."""
    translator = load_checkpoint(checkpoint, "cpu")
    warming = pairs(trace_of(translator, WARMING))
    with chromium() as browser:
        for tokens in sizes:
            pictures = pairs(trace_of(translator, tokens))
            for title, pair in pictures.items():
                # Here BertViz takes up to a minute, and differs by a factor of a hundred.
                turns = rounds if tokens < 100 else 1
                found = compared(browser, pair, warming[title], turns)
                yield from _rows(f"{title}, {tokens} tokens", tokens, found)


@dataclass(frozen=True)
class Picture:
    """One way to draw some attention weights."""

    build: Callable[[], str | Drawing]
    """from tensors to what is sent to the browser: a drawing of ours, or BertViz's HTML"""

    def page(self, sent: str | Drawing) -> Page:
        return component_page(sent) if isinstance(sent, Drawing) else bertviz_page(sent)


def pairs(trace: Trace) -> dict[str, tuple[Picture, Picture]]:
    """Title -> how we, and how BertViz, build the picture of the encoder's self-attention."""
    import torch
    from bertviz import head_view, model_view

    attentions = [trace.attention("encoder_self", layer) for layer in range(_layers(trace))]
    tokens, names = list(trace.src_tokens), labels(trace.src_tokens)
    weights = np.stack([attention.pattern for attention in attentions])
    tensors = [torch.tensor(layer[None]) for layer in weights]

    def all_heads() -> Drawing:
        return mosaic([Group("encoder_self", "Encoder self-attention", weights, names, names)])

    def token_lines() -> Drawing:
        return lines(weights[LAYER, :8], names, names)

    def bertviz(view: Callable[..., Any], layers: list) -> Callable[[], str]:
        return lambda: view(layers, tokens, html_action="return").data

    return {
        "all heads": (Picture(all_heads), Picture(bertviz(model_view, tensors))),
        "token lines": (Picture(token_lines), Picture(bertviz(head_view, [tensors[LAYER][:, :8]]))),
    }


def _layers(trace: Trace) -> int:
    return len([kind for kind, _ in trace.attentions if kind == "encoder_self"])


def compared(
    browser: "Browser", pictures: Sequence[Picture], warming: Sequence[Picture], rounds: int
) -> list[list[Measured]]:
    """Of each picture one measurement a round; each time another one is first."""
    warmed = [picture.page(picture.build()) for picture in warming]
    found: list[list[Measured]] = [[] for _ in pictures]
    for number in range(rounds):
        for place in sorted(range(len(pictures)), reverse=bool(number % 2)):
            began = time.perf_counter()
            sent = pictures[place].build()
            built = time.perf_counter() - began
            size = len(sent.encode() if isinstance(sent, str) else sent.data)
            found[place].append((built, paint_time(browser, [warmed[place], pictures[place].page(sent)]), size))
    return found


def paint_time(browser: "Browser", pages: Sequence[Page]) -> float:
    """Seconds from the moment when an open window has the last picture's data until it is painted.

    The others, of the same libraries, are drawn before it.
    """
    opened = window(browser)
    opened.set_default_timeout(300_000)
    try:
        opened.set_content(pages[0].libraries)
        for page in pages:
            opened.evaluate(page.prepare, page.data)
            milliseconds = opened.evaluate(PAINTED, page.draw)
        return milliseconds / 1000
    finally:
        opened.context.close()


def _rows(title: str, tokens: int, found: Sequence[Sequence[Measured]]) -> Iterator[Row]:
    ours, theirs = ([statistics.median(column) for column in zip(*rounds, strict=True)] for rounds in found)
    faster = sum(theirs[:2]) / sum(ours[:2])
    time_budget, size_budget = (
        (FASTER.get(tokens), SMALLER.get(tokens)) if title.startswith("all heads") else (None, None)
    )
    yield Row(f"{title}: built and painted", _said(*ours), _said(*theirs), faster, time_budget, least=True)
    sizes = [f"{measured[2] / 1e6:.3g} MB" for measured in (ours, theirs)]
    yield Row(f"{title}: sent", *sizes, theirs[2] / ours[2], size_budget, least=True)


def _said(build: float, paint: float, _size: float) -> str:
    return f"{1000 * build:,.1f} + {1000 * paint:,.0f} ms"
