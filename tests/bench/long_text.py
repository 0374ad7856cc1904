"""All heads of a long text: from the run's queries and keys to the painted picture, beside others where they answer.

BertViz and attnview get the weights of a trace, so they are tried up to OTHERS tokens.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.long import long_run as long
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import load_checkpoint
from pages.widgets.long_text import heads_picture, window_of
from tests.bench.browser import window
from tests.bench.growth import exponent
from tests.bench.peers import paint_time
from tests.bench.standalone import Page, bertviz_page, component_page
from tests.bench.table import Row
from tests.browser.chromium import chromium
from tests.soak.server import megabytes_of
from viz.canvas.long_map import long_map
from viz.drawing import Drawing
from viz.tokens import labels

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHECKPOINT = "everyday-lm"
LENGTHS = (256, 512, 1024, 2048, 4096)
OTHERS = {"BertViz": 256, "attnview": 256}
"""tokens of the longest text that each is tried with"""
ROUNDS = 3
HEADS, MEMORY, BYTES = 1.25, 1500, 2.0
"""times the run, MB and MB: the most at 2,048 tokens. Whoever has waited for the run waits about as long again for its
picture: it has taken three quarters of the run, and that share differs by processor."""
FRAME = 8
"""times a bare repaint of the same canvas, both at their 95th percentile: one frame of a screen if that takes 2 ms"""
KEEP = "(data) => { window.picture = data; }"
WRITE = "document.open(); document.write(window.picture); document.close();"
FRAMES = """
async (count) => {
  const marks = document.querySelector(".long_map canvas.marks");
  const box = marks.getBoundingClientRect();
  const at = { clientX: box.left + 0.6 * box.width, clientY: box.top + 0.6 * box.height, bubbles: true, pointerId: 1 };
  marks.setPointerCapture = () => {};
  const frame = () => new Promise((done) => requestAnimationFrame(() => done()));
  const painted = async (act) => {
    await frame();
    const began = performance.now();
    act();
    const channel = new MessageChannel();
    await new Promise((done) => { channel.port1.onmessage = done; channel.port2.postMessage(null); });
    return performance.now() - began;
  };
  const [plane, copy] = [document.querySelector(".long_map canvas"), document.createElement("canvas")];
  [copy.width, copy.height] = [plane.width, plane.height];
  copy.getContext("2d").drawImage(plane, 0, 0);
  const repaint = () => {
    const pen = plane.getContext("2d");
    pen.resetTransform();
    pen.drawImage(copy, 0, 0);
  };
  const times = { moved: [], bare: [] };
  const timed = async (act) => {
    times.moved.push(await painted(act));
    times.bare.push(await painted(repaint));
  };
  for (let i = 0; i < count; i += 1) {
    const zoom = { ...at, ctrlKey: true, deltaY: i % 2 ? 30 : -45, cancelable: true };
    await timed(() => marks.dispatchEvent(new WheelEvent("wheel", zoom)));
  }
  marks.dispatchEvent(new PointerEvent("pointerdown", at));
  for (let i = 1; i < count; i += 1) {
    await timed(() => marks.dispatchEvent(new PointerEvent("pointermove", { ...at, clientX: at.clientX - 3 * i })));
  }
  return times;
}
"""


def long_text(_checkpoint: str, lengths: Sequence[int] = LENGTHS, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for each length and quantity, and the exponents of their growth."""
    checkpoint = load_checkpoint(CHECKPOINT, "cpu")
    text = _text(checkpoint, max(lengths))
    times: dict[str, dict[int, float]] = {"run": {}, "all heads": {}}
    with chromium() as browser:
        for name, n in OTHERS.items():
            yield _beside(browser, checkpoint, _first_tokens(checkpoint, text, n), name)
        for n in lengths:
            part = _first_tokens(checkpoint, text, n)
            before = megabytes_of("self")
            with _peak() as peak:
                ran, built = [], []
                for _ in range(rounds):
                    seconds, run = _timed(lambda part=part: long.long_run(checkpoint, part))
                    ran.append(seconds)
                    seconds, heads = _timed(lambda run=run: heads_picture(run, checkpoint.name, 0, 0))
                    built.append(seconds)
                head = _head_picture(run)
            times["run"][n], times["all heads"][n] = statistics.median(ran), statistics.median(built)
            paint = statistics.median(_paint(browser, heads) for _ in range(rounds))
            frames = _frames(browser, head)
            limits = n == 2048
            yield Row(f"run, {len(run):,} tokens", f"{times['run'][n]:.2f} s, {run.bytes / 1e6:.0f} MB of q and k")
            yield Row(
                f"all {sum(len(each) for each in run.q.values())} heads after the run, {n:,} tokens",
                f"{times['all heads'][n]:.2f} s built + {1000 * paint:.0f} ms painted",
                f"the run {times['run'][n]:.2f} s",
                (times["all heads"][n] + paint) / times["run"][n],
                HEADS if limits else None,
            )
            yield Row(
                f"memory besides the model, {n:,} tokens",
                "",
                "",
                peak() - before,
                MEMORY if limits else None,
                unit="MB",
            )
            sent = (len(heads.data) + len(head.data)) / 1e6
            yield Row(f"sent to the browser, {n:,} tokens", "", "", sent, BYTES if limits else None, unit="MB")
            slow, bare = (float(np.quantile(frames[name], 0.95)) for name in ("moved", "bare"))
            yield Row(
                f"a frame of panning or zooming, 95th percentile, {n:,} tokens",
                f"{slow:.1f} ms, {statistics.median(frames['moved']):.1f} ms in the middle",
                f"bare repaint {bare:.1f} ms",
                slow / bare,
                FRAME,
            )
    for name, found in times.items():
        yield Row(
            f"time of {name} grows as tokens to the power of",
            f"{sorted(found)[-3]:,} to {max(found):,} tokens",
            "",
            exponent(found),
            unit="",
        )


def _head_picture(run: long.LongRun) -> Drawing:
    """The whole of one head of layer 2."""
    place, whole = (run.kinds[0].name, 2), (0, len(run))
    values = long.pooled_head(run, place, 1)
    return long_map([window_of(run, place, values, whole, whole)], labels(run.tokens.labels))


def _text(checkpoint: Checkpoint, tokens: int) -> str:
    text = example = long.example_text(checkpoint)
    while len(checkpoint.tokenizer.encode(text)) < tokens:
        text = f"{text} {example}"
    return text


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _paint(browser: "Browser", drawing: Drawing) -> float:
    page = component_page(drawing)
    return paint_time(browser, [page, page])


def _frames(browser: "Browser", drawing: Drawing) -> dict[str, list[float]]:
    """Milliseconds of frames by turns: "moved", zoomed or dragged, and "bare", as many pixels copied to the canvas."""
    page, opened = component_page(drawing), window(browser)
    try:
        opened.set_content(page.libraries)
        opened.evaluate(page.prepare, page.data)
        opened.evaluate(f"() => {{ {page.draw} }}")
        return opened.evaluate(FRAMES, 40)
    finally:
        opened.context.close()


def _beside(browser: "Browser", checkpoint: Checkpoint, text: str, name: str) -> Row:
    import attnview
    import torch
    from bertviz import model_view

    trace = checkpoint.trace(text)
    weights, tokens = [attention.pattern for attention in trace.attentions.values()], list(trace.tgt_tokens)
    build = {
        "BertViz": lambda: (
            model_view([torch.tensor(layer[None]) for layer in weights], tokens, html_action="return").data
        ),
        "attnview": lambda: attnview.render_html(np.concatenate(weights), tokens=tokens),
    }[name]
    run = long.long_run(checkpoint, text)
    built, heads = _timed(lambda: heads_picture(run, checkpoint.name, 0, 0))
    ours = built + _paint(browser, heads)
    seconds, html = _timed(build)
    page = bertviz_page(html) if name == "BertViz" else Page("<body>", html, KEEP, WRITE)
    theirs = seconds + paint_time(browser, [page])
    sizes = [len(sent) / 1e6 for sent in (heads.data, html.encode())]
    return Row(
        f"all heads beside {name}, {len(tokens)} tokens",
        f"{ours:.2f} s, {sizes[0]:.2f} MB",
        f"{theirs:.2f} s, {sizes[1]:.1f} MB",
        theirs / ours,
        least=True,
    )


def _first_tokens(checkpoint: Checkpoint, text: str, n: int) -> str:
    return checkpoint.tokenizer.decode(checkpoint.tokenizer.encode(text)[: n - 1])


class _peak:
    """Inside the block, the most memory that was resident."""

    def __enter__(self) -> Callable[[], float]:
        self.most, self.done = megabytes_of("self"), threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return lambda: self.most

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.done.wait(0.005):
            self.most = max(self.most, megabytes_of("self"))
