"""What recording every activation costs, beside a forward pass that nobody records; and its attribution beside it."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from model.analysis.written import logit_parts_of_all
from model.checkpoints.store import load_checkpoint
from model.hooks import explicit_path
from model.network.config import EOS
from model.network.encoder_decoder import Transformer
from model.tracer import record
from tests.bench.rounds import measured
from tests.bench.sentences import TOKENS, text_of
from tests.bench.table import Row

ROUNDS = 21
BUDGET, PARTS_BUDGET = 1.5, 2.0


def recording(checkpoint: str, sizes: Sequence[int] = TOKENS, rounds: int = ROUNDS) -> Iterator[Row]:
    """Three rows for each number of tokens: all activations as numpy arrays, and the finished Trace."""
    translator = load_checkpoint(checkpoint, "cpu")
    model = translator.model
    for tokens in sizes:
        text = text_of(translator.tokenizer, tokens)
        target = [*translator.tokenizer.encode(text), EOS]
        ids = torch.tensor([target])
        work = {
            "forward": once(lambda ids=ids: forward(model, ids)),
            "recorded": once(lambda target=target: record(model, [target, target])),
            "parts": once(partial(logit_parts_of_all, translator, translator.trace_ids(text, target))),
            "trace": once(lambda text=text, target=target: translator.trace_ids(text, target)),
        }
        measured(work, 3)
        found = {name: 1000 / statistics.median(rates) for name, rates in measured(work, rounds).items()}
        beside = f"forward pass {found['forward']:.1f} ms"
        for name, title in (("recorded", "every activation recorded"), ("trace", "the finished Trace")):
            value = f"{found[name]:.1f} ms"
            yield Row(f"{title}, {tokens} tokens", value, beside, found[name] / found["forward"], BUDGET)
        beside, ratio = f"every activation recorded {found['recorded']:.1f} ms", found["parts"] / found["recorded"]
        title = f"the written tokens' logits, part by part, {tokens} tokens"
        yield Row(title, f"{found['parts']:.1f} ms", beside, ratio, PARTS_BUDGET)


@torch.inference_mode()
def forward(model: Transformer, ids: torch.Tensor) -> None:
    """The path through every hook point, with nobody watching: (1, tokens) on either side."""
    with explicit_path():
        model(ids, ids)


def once(work: Callable[[], object]) -> Callable[[], int]:
    def once() -> int:
        work()
        return 1

    return once
