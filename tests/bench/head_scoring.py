"""What scoring every head in one batched pass costs, beside one forward pass and beside a pass for each head."""

import statistics
from collections.abc import Iterator, Sequence

from model.analysis.heads.head_importance import head_scores
from model.analysis.sweep import sweep
from model.checkpoints.translator import Translator
from model.interventions import HeadGate
from tests.bench.recording import once
from tests.bench.rounds import measured

WORDS = 12
"""of the source and of the target at most"""


def head_scoring(translator: Translator, texts: Sequence[tuple[str, str]], rounds: int) -> Iterator[str]:
    """Milliseconds to score all cross-attention heads on one sentence, and their ratio to one forward pass."""
    longest = max(texts, key=lambda pair: min(len(text.split()) for text in pair))
    trace = translator.trace(*(" ".join(text.split()[:WORDS]) for text in longest))
    kind = trace.kind("cross")
    gates = [HeadGate(0.0, "cross", layer, head) for layer in kind.layers for head in range(kind.heads)]
    work = {
        "one batched pass": once(lambda: list(head_scores(translator, [trace], "cross"))),
        "one forward pass": once(lambda: list(sweep(translator, trace, [()]))),
        "a pass for each head": once(lambda: [list(sweep(translator, trace, [(gate,)])) for gate in gates]),
    }
    measured(work, 1)
    batched, single, apart = (1000 / statistics.median(rates) for rates in measured(work, rounds).values())
    lengths = f"{len(trace.src_ids)} source and {len(trace.next_ids)} target tokens"
    yield f"all {len(gates)} cross-attention heads scored, {lengths}"
    yield f"{'one batched pass':<24}{batched:,.1f} ms, {batched / single:.1f} forward passes of {single:,.1f} ms"
    yield f"{'a pass for each head':<24}{apart:,.1f} ms, {apart / batched:.1f} times as long"
