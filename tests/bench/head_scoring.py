"""What scoring every head in one batched pass costs, beside one forward pass and beside a pass for each head."""

import statistics
from collections.abc import Callable, Iterator, Sequence

import torch

from model.analysis.head_importance import head_scores
from model.interventions import HeadGate, Intervention, applied
from model.network.encoder_decoder import Transformer
from model.training.data import Pair
from tests.bench.rounds import measured

TOKENS = 20
"""of the source and of the target, </s> among them"""


def head_scoring(model: Transformer, pairs: Sequence[Pair], rounds: int) -> Iterator[str]:
    """Milliseconds to score all cross-attention heads on one sentence, and their ratio to one forward pass."""
    src, tgt = max(pairs, key=lambda pair: min(len(pair[0]), len(pair[1]) - 1, TOKENS))
    src, tgt = cut(src), cut(tgt[1:])
    heads = [(layer, head) for layer in range(model.config.n_decoder_layers) for head in range(model.config.n_heads)]
    gates = [HeadGate(0.0, kind="cross", layer=layer, head=head) for layer, head in heads]
    work = {
        "one batched pass": _once(lambda: list(head_scores(model, [(src, tgt)], "cross", rows=len(heads)))),
        "one forward pass": _once(lambda: _forward(model, src, tgt)),
        "a pass for each head": _once(lambda: [_forward(model, src, tgt, (gate,)) for gate in gates]),
    }
    measured(work, 1)
    batched, single, apart = (1000 / statistics.median(rates) for rates in measured(work, rounds).values())
    yield f"all {len(heads)} cross-attention heads scored, {len(src)} source and {len(tgt)} target tokens"
    yield f"{'one batched pass':<24}{batched:,.1f} ms, {batched / single:.1f} forward passes of {single:,.1f} ms"
    yield f"{'a pass for each head':<24}{apart:,.1f} ms, {apart / batched:.1f} times as long"


def cut(ids: Sequence[int]) -> list[int]:
    """At most TOKENS of them, the last one last."""
    return [*ids[:-1][: TOKENS - 1], ids[-1]]


def _once(work: Callable[[], object]) -> Callable[[], int]:
    """`work` as one unit of itself."""

    def unit() -> int:
        work()
        return 1

    return unit


@torch.inference_mode()
def _forward(
    model: Transformer, src: list[int], tgt: list[int], interventions: Sequence[Intervention] = ()
) -> torch.Tensor:
    with applied(model, interventions):
        return model(torch.tensor([src]), torch.tensor([tgt]))
