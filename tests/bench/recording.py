"""What recording every activation costs, beside the same forward pass that nobody records."""

import statistics
from collections.abc import Callable, Iterator, Sequence

import torch

from model.checkpoints.store import load_checkpoint
from model.hooks import explicit_path
from model.network.config import EOS
from model.network.encoder_decoder import Transformer
from model.tracer import record
from tests.bench.rounds import measured
from tests.bench.sentences import TOKENS, text_of
from tests.bench.table import Row

ROUNDS = 21
BUDGET = 1.5


def recording(checkpoint: str, sizes: Sequence[int] = TOKENS, rounds: int = ROUNDS) -> Iterator[Row]:
    """Two rows for each number of tokens: all activations as numpy arrays, and the finished Trace."""
    translator = load_checkpoint(checkpoint, "cpu")
    model = translator.model
    for tokens in sizes:
        text = text_of(translator.tokenizer, tokens)
        target = [*translator.tokenizer.encode(text), EOS]
        ids = torch.tensor([target])
        work = {
            "forward": _once(lambda ids=ids: forward(model, ids)),
            "recorded": _once(lambda target=target: record(model, [target, target])),
            "trace": _once(lambda text=text, target=target: translator.trace_ids(text, target)),
        }
        measured(work, 3)
        found = {name: 1000 / statistics.median(rates) for name, rates in measured(work, rounds).items()}
        beside = f"forward pass {found['forward']:.1f} ms"
        for name, title in (("recorded", "every activation recorded"), ("trace", "the finished Trace")):
            value = f"{found[name]:.1f} ms"
            yield Row(f"{title}, {tokens} tokens", value, beside, found[name] / found["forward"], BUDGET)


@torch.inference_mode()
def forward(model: Transformer, ids: torch.Tensor) -> None:
    """The path through every hook point, with nobody watching: (1, tokens) on either side."""
    with explicit_path():
        model(ids, ids)


def _once(work: Callable[[], object]) -> Callable[[], int]:
    def once() -> int:
        work()
        return 1

    return once
