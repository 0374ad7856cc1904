"""Measure everything, part by part, and write docs/speed.md: python -m tests.bench [--only views,peers]."""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from model.checkpoints.store import DEFAULT_CHECKPOINT
from tests.bench import (
    coldstart,
    growth,
    long_text,
    patch_map,
    peers,
    processor,
    recording,
    speed,
    static_page,
    views,
    whole_pages,
)
from tests.bench.report import write_section
from tests.bench.speed import print_lines
from tests.bench.table import Row, markdown, text


@dataclass(frozen=True)
class Part:
    """One section of the report."""

    title: str
    explanation: str
    measure: Callable[[str], Iterable[Row]]
    """from a checkpoint's name to rows"""


PARTS = {
    "views": Part(
        "From a slider's move to the painted picture",
        "Each picture is timed beside a rerun of Streamlit that draws nothing, all heads, with no other picture open, "
        "beside a component that receives as many bytes, and the empty rerun beside plain Streamlit without torch; two "
        "animation frames (33 ms) are included. Every move brings new data, at a random moment within a frame; the "
        "temperature is dragged with the pointer.",
        views.views,
    ),
    "pages": Part(
        "Whole pages",
        "From a move of the temperature, whose run is cached, to the page's last change, the proof strip included. "
        "Measured in turns with four changing heat maps in plain Streamlit, in a window of their own.",
        whole_pages.pages,
    ),
    "pictures": Part(
        "Pictures of the run, each in its tab",
        "As whole pages, of tabs whose pictures are a run's numbers in a form of their own.",
        partial(whole_pages.pages, addresses=whole_pages.PICTURES),
    ),
    "processor": Part(
        "Where the processor's time goes",
        "The server's processor time for one visitor without a browser. A new sentence is searched, traced and "
        "proved; for another head or another page, all runs are cached. Streamlit is the rest, including its "
        "commands and sending. Measured in turns with Hugging Face's generate, which only translates the same "
        "sentence (the same weights, four beams, one thread), and with a rerun of a plain Streamlit page that has "
        "one chart.",
        processor.processor,
    ),
    "peers": Part(
        "Beside BertViz",
        "The same weights, built and painted. BertViz's libraries are loaded and compiled before the clock starts.",
        peers.peers,
    ),
    "recording": Part(
        "Recording every activation",
        "Beside the same forward pass without recording.",
        recording.recording,
    ),
    "patches": Part(
        "Patching between two sentences",
        "Every layer and position, and every layer and head, of one sentence put into the run of another, beside as "
        "many runs with one patch each.",
        patch_map.patch_map,
    ),
    "growth": Part(
        "Growth with the length of the sentence",
        "The exponent with which time and memory grow from 128 to 512 tokens.",
        growth.growth,
    ),
    "long": Part(
        "Long text",
        "One run of everyday-lm, all of its heads in one picture, and one head that is dragged and zoomed. BertViz and "
        "attnview get the weights of a trace. A bare repaint copies as many pixels to the same canvas.",
        long_text.long_text,
    ),
    "coldstart": Part(
        "From the start of the server, or from a link, to the first picture",
        "Each time in a new browser window with an empty cache: it reads Streamlit's and Plotly's scripts for the "
        "first time, which is most of what a visit to a running server takes. A new server is compared with the two "
        "parts that it cannot do without: importing torch, and plain Streamlit from its start to its first chart.",
        coldstart.coldstart,
    ),
    "site": Part(
        "The static pages",
        "Served from this machine to a new window each time, by turns, beside a fixed product of two matrices in the "
        "same page. The processor is throttled in the page's own thread, because a browser does not throttle workers. "
        "Aims on two free cores: first picture 1 s, ready 1 s after the last byte, twelve tokens 0.2 s; 4 × slower "
        "1.5 s, from the slider to the redrawn run 0.7 s, 50 ms between frames.",
        static_page.static_page,
    ),
}
SPEED = Part(
    "Translation and training",
    "Sentences per second beside CTranslate2 and Hugging Face, target tokens per second beside torch.nn.Transformer, "
    "all with the same weights and the same output, which is checked before anything is timed.",
    lambda _: (),
)


def main(arguments: list[str] | None = None) -> None:
    """Measure each chosen part, print its table, and write its section of docs/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__, add_help=False)
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--only", default=",".join(["speed", *PARTS]), help="parts, separated by commas")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT)
    args, rest = parser.parse_known_args(arguments)
    if args.help:
        parser.print_help()
        speed.main(["--help"])
    chosen = args.only.split(",")
    if unknown := set(chosen) - {"speed", *PARTS}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are speed, {', '.join(PARTS)}")
    if "speed" in chosen:
        started = time.perf_counter()
        lines = speed.main(["--checkpoint", args.checkpoint, *rest])
        seconds = time.perf_counter() - started
        write_section("speed", SPEED.title, SPEED.explanation, ["```", *lines, "```"], seconds)
    elif rest:
        parser.error(f"only the part speed knows {' '.join(rest)}")
    for name, part in PARTS.items():
        if name in chosen:
            started = time.perf_counter()
            rows = list(part.measure(args.checkpoint))
            print_lines(["", *text(part.title, rows)])
            write_section(name, part.title, part.explanation, markdown(rows), time.perf_counter() - started)


if __name__ == "__main__":
    main()
