"""What the map of all patches between two sentences costs, beside as many patched runs, one after another."""

import statistics
from collections.abc import Iterator

from model.analysis.runs.patching import Question, correspond, patch_from, restored, stream_path
from model.checkpoints.store import load_checkpoint
from tests.bench.recording import once
from tests.bench.rounds import measured
from tests.bench.table import Row

PAIR = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)
SINGLE, ROUNDS, BUDGET = 10, 5, 0.5
"""SINGLE: patched runs that are timed for the others"""


def patch_map(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """One row: every layer and position and every layer and head, beside as many finished Traces with a patch each."""
    translator = load_checkpoint(checkpoint, "cpu")
    trace = translator.trace(PAIR[0])
    other = translator.trace_ids(PAIR[1], trace.next_ids)
    pairs = {name: correspond(*(run.streams[name].tokens.labels for run in (trace, other))) for name in trace.streams}
    row, token = max(
        ((row, int(logits.argmax())) for row, logits in enumerate(other.logits)),
        key=lambda place: abs(float(other.probabilities[place] - trace.probabilities[place])),
    )
    question = Question(row, row, token)
    count = sum(1 for _ in restored(translator, trace, other, pairs, question))
    patches = [patch_from(translator, other, stream_path("encoder", 1), (pair,)) for pair in pairs["encoder"][:SINGLE]]
    work = {
        "map": once(lambda: list(restored(translator, trace, other, pairs, question))),
        "single": once(lambda: [translator.rerun(trace, (patch,)) for patch in patches]),
    }
    measured(work, 1)
    whole, some = (1000 / statistics.median(rates) for rates in measured(work, rounds).values())
    beside = count * some / len(patches)
    title = f"the map of {count} patches, {len(trace.src_ids)} source and {len(trace.next_ids)} target tokens"
    yield Row(title, f"{whole:,.0f} ms", f"as many patched runs {beside:,.0f} ms", whole / beside, BUDGET)
