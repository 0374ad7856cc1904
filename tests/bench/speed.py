"""How fast we translate and learn, beside others with the same weights: python -m tests.bench.speed [--data FILE]."""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.translator import Translator
from model.network.batch import token_batches
from model.network.config import PAD
from model.network.encoder_decoder import Transformer
from model.training.data import Batch, Pair, encode_pairs, read_pairs
from model.training.loss import label_smoothed_loss
from model.training.trainer import TrainingOptions
from pages.views.examples import examples_of
from tests.bench.head_scoring import head_scoring
from tests.bench.proof import (
    SMALLEST_AGREEMENT,
    DifferentError,
    agreement,
    log_probability_difference,
    logit_difference,
)
from tests.bench.rounds import WIDTH, better, headings, line, measured
from tests.bench.torch_twin import TorchTwin

if TYPE_CHECKING:
    from tests.bench.engines import Engine

PROVED_ON = 32
"""sentence pairs whose logits are compared"""
MODES = (("greedy, one by one", 1, 1), ("beam 4, one by one", 4, 1), ("beam 4, batches of 32", 4, 32))
"""label, beam size, sentences a batch"""


def main(arguments: list[str] | None = None) -> list[str]:
    """Measure sentences translated a second, the cost of scoring heads, and target tokens learned from a second.

    Returns:
        the lines that were printed.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speed", description="Speed beside other libraries.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT)
    parser.add_argument("--data", type=Path, help="source<TAB>target lines (.gz, .xz); else the app's examples")
    parser.add_argument("--sentences", type=int, default=500, help="the first so many; fewer are repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=TrainingOptions.max_tokens, help="of a training batch")
    args = parser.parse_args(arguments)
    if min(args.sentences, args.rounds, args.max_tokens) < 1:
        parser.error("--sentences, --rounds and --max-tokens must be at least 1")
    if args.data and not args.data.is_file():
        parser.error(f"there is no file {args.data}")
    translator = load_checkpoint(args.checkpoint, "cpu")
    texts = list(islice(cycle(_texts(translator, args.data)), args.sentences))
    pairs = encode_pairs(translator.tokenizer, texts, translator.model.config.max_len)
    lines = [f"{translator.name}: {len(texts)} sentences, {torch.get_num_threads()} threads, float32"]
    lines += [f"median of {args.rounds} rounds (slowest-fastest), everyone's turn in each round", ""]
    print_lines(lines)
    try:
        with tempfile.TemporaryDirectory() as folder:
            every = torch.get_num_threads()
            engines = _with_threads(every, translator, Path(folder))
            lines += print_lines(_same_function(translator, engines, pairs[:PROVED_ON]))
            lines += print_lines(_translation(translator, Path(folder), [source for source, _ in texts], args.rounds))
        lines += print_lines([*head_scoring(translator, texts, args.rounds), ""])
        lines += print_lines(_training(translator.model, pairs, args.max_tokens, args.rounds))
    except DifferentError as error:
        raise SystemExit(f"Not the same function, so nothing to compare: {error}") from error
    return lines


def print_lines(lines: Iterator[str] | list[str]) -> list[str]:
    """Print each line as soon as it is there, and return them all."""
    printed = []
    for text in lines:
        print(text, flush=True)  # noqa: T201 - the table is what this program is for
        printed.append(text)
    return printed


def _texts(translator: Translator, data: Path | None) -> list[tuple[str, str]]:
    """Sentence pairs; what the examples lack, a target, is our own translation."""
    sentences = examples_of(translator.name).sentences
    return read_pairs([data]) if data else list(zip(sentences, translator.translate(sentences), strict=True))


def _same_function(translator: Translator, compared: Mapping[str, "Engine"], pairs: Sequence[Pair]) -> Iterator[str]:
    model = translator.model
    logits = logit_difference(model, compared["Hugging Face"].logits, pairs)
    log_p = log_probability_difference(model, compared["CTranslate2"].log_probabilities, pairs)
    yield f"largest difference of a logit, Hugging Face from ours: {logits:.1e}"
    yield f"largest difference of a log-probability, CTranslate2 from ours: {log_p:.1e}"
    yield ""


def _translation(translator: Translator, folder: Path, texts: list[str], rounds: int) -> Iterator[str]:
    """Sentences per second in each mode, and how many translations are letter by letter ours.

    Small products gain little from a second thread, and some engines lose: one by one, each is measured with one thread
    and with all, and compared at its better number.
    """
    # Alike in length, a batch has little padding; everyone gets the same batches.
    texts = sorted(texts, key=lambda text: len(translator.tokenizer.encode(text)))
    every = torch.get_num_threads()
    numbers = sorted({1, every})
    compared = {threads: _with_threads(threads, translator, folder / str(threads)) for threads in numbers}
    yield headings("sentences per second", list(compared[every]))
    same: list[str] = []
    for label, beam_size, size in MODES:
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        rates = {}
        for threads in numbers if size == 1 else [every]:
            torch.set_num_threads(threads)
            found: dict[str, list[str]] = {}
            work = {n: _translating(n, engine, batches, beam_size, found) for n, engine in compared[threads].items()}
            measured({n: _translating(n, compared[threads][n], batches[-1:], beam_size, {}) for n in work}, 1)
            rates[threads] = measured(work, rounds)
            yield line(f"{label}, {threads} thread{'s' * (threads > 1)}", rates[threads])
        if len(rates) > 1:
            yield line(f"{label}, each at its better", better(list(rates.values())))
        shares = agreement({name: found[name] for name in work})
        same.append(f"{label:<{WIDTH}}" + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
        if beam_size == 1 and min(shares.values()) < SMALLEST_AGREEMENT:
            raise DifferentError(f"share of our greedy translations: {same[-1]}")
    torch.set_num_threads(every)
    yield from ("", "translations that are ours, letter by letter", *same, "")


def _with_threads(threads: int, translator: Translator, folder: Path) -> Mapping[str, "Engine"]:
    from tests.bench.engines import engines

    torch.set_num_threads(threads)
    folder.mkdir(exist_ok=True)
    return engines(translator, folder)


def _translating(
    name: str, engine: "Engine", batches: list[list[str]], beam_size: int, found: dict[str, list[str]]
) -> Callable[[], int]:
    def work() -> int:
        found[name] = [text for batch in batches for text in engine.translate(batch, beam_size)]
        return len(found[name])

    return work


def _training(trained: Transformer, pairs: Sequence[Pair], max_tokens: int, rounds: int) -> Iterator[str]:
    """Target tokens per second of steps as the Trainer's: forward, backward, Adam."""
    model = Transformer(trained.config)
    model.load_state_dict(trained.state_dict())
    models = {"ours": model, "torch.nn.Transformer": TorchTwin(model)}
    difference = logit_difference(model.eval(), models["torch.nn.Transformer"].eval(), pairs[:PROVED_ON])
    indices = token_batches([max(map(len, pair)) for pair in pairs], max_tokens, seed="bench")
    batches = [Batch.of([pairs[i] for i in batch]) for batch in indices]
    work = {name: _learning(model, batches) for name, model in models.items()}
    measured(work, 1)
    yield headings("target tokens per second", list(models))
    yield line("training", measured(work, rounds))
    yield ""
    yield f"largest difference of a logit, torch.nn.Transformer from ours, before training: {difference:.1e}"


def _learning(model: nn.Module, batches: Sequence[Batch]) -> Callable[[], int]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def work() -> int:
        tokens = 0
        model.train()
        for batch in batches:
            words = int((batch.tgt_out != PAD).sum())
            loss = label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, TrainingOptions.label_smoothing)
            optimizer.zero_grad()
            (loss / words).backward()
            optimizer.step()
            tokens += words
        return tokens

    return work


if __name__ == "__main__":
    main()
