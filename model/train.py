"""Train a checkpoint: python -m model.train --preset tiny --train FILE... --dev FILE --out DIR.

In several processes: torchrun --nproc-per-node 2 -m model.train ...
"""

import argparse
import csv
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import sacrebleu
import torch
import torch.distributed as dist
from tqdm import tqdm

from model.analysis.heads.sharpness import COLLAPSED, mean_sharpness, measure_sharpness
from model.beside import read_beside
from model.checkpoints.files import atomic_write
from model.checkpoints.store import OPENED, check_own, load_checkpoint, pick_device
from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from model.checkpoints.translator import Translator
from model.command_line import command_parser, real_number, run_command
from model.network.config import PRESETS, TransformerConfig
from model.network.families import new_network
from model.network.network import Network
from model.training.data import Example, Text, sample_epoch
from model.training.tasks import TASKS, predict_tokens
from model.training.trainer import Trainer, TrainingOptions


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and train, behind a progress bar.

    Raises:
        ValueError: the data, the checkpoint to start from or --out is at fault, or the run diverges.
    """
    args = _parse(arguments)
    device = pick_device(args.device)
    distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    if distributed:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    try:
        was_there = not (args.resume or args.start) and (args.out / VOCABULARY).exists()
        trainer = _new_trainer(args, device)
        if was_there and trainer.rank == 0:
            sys.stderr.write(_describe_vocabulary(args.out / VOCABULARY, trainer))
        _run(trainer, args.minutes)
        if trainer.rank == 0:
            sys.stderr.write(_describe_result(args.out, trainer))
    finally:
        if distributed:
            dist.destroy_process_group()


VOCABULARY = "tokenizer.model"
SECONDS_OF_A_LINE = 30
"""from one line of progress to the next, where there is no terminal"""
SHARPNESS_EXAMPLES = 8
"""of the development text, on which each evaluation measures how sharply the model attends"""
DESCRIBED = 1_000
"""examples by which it says how a vocabulary cuts a text"""

HELP = read_beside(__file__)
"""what each option sets, by its name"""


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_parser("train", "Train a Transformer checkpoint.")
    parser.add_argument("--preset", choices=PRESETS, default="tiny", help="configuration to start from (default: tiny)")
    parser.add_argument(
        "--train",
        nargs="+",
        metavar="FILE[:WEIGHT]",
        required=True,
        help="lines of source<TAB>target, for a language model plain lines; also .gz or .xz; FILE:2 is read twice per "
        "epoch, FILE:0.3 to three tenths",
    )
    parser.add_argument("--dev", type=Path, required=True, help="text to evaluate on, in the same format")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint and the state of the run")
    parser.add_argument(
        "--start-from", metavar="CHECKPOINT", help="continue from its weights, configuration and vocabulary"
    )
    parser.add_argument("--minutes", type=real_number(0), help="stop after this time; continue later with --resume")
    parser.add_argument("--resume", action="store_true", help="continue from the state in --out, if there is one")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    model = parser.add_argument_group("model", "Each option replaces one value of the preset.")
    training = parser.add_argument_group("training")
    for name, kind in get_type_hints(TransformerConfig).items():
        _add_option(model, name, kind, None, HELP[name])
    for name, kind in get_type_hints(TrainingOptions).items():
        default = getattr(TrainingOptions, name)
        _add_option(training, name, kind, default, f"{HELP[name]} (default: {default})")
    args = parser.parse_args(arguments)
    if not args.resume and (args.out / "state.pt").exists():
        parser.error(f"{args.out} already contains a run: add --resume to continue it, or choose another --out")
    args.start = load_checkpoint(args.start_from, device="cpu") if args.start_from else None
    if args.start:
        check_own(args.start, "--start-from")
    try:
        _options(args), _config(args)
    except ValueError as error:
        # The fields of a configuration are called as the options that set them.
        names = rf"\b({'|'.join(HELP)})\b(?= |$)"
        parser.error(re.sub(names, lambda field: f"--{field[1].replace('_', '-')}", str(error)))
    return args


def _options(args: argparse.Namespace) -> TrainingOptions:
    return TrainingOptions(**{name: getattr(args, name) for name in get_type_hints(TrainingOptions)})


def _config(args: argparse.Namespace) -> TransformerConfig:
    changes = {name: getattr(args, name) for name in get_type_hints(TransformerConfig)}
    config = args.start.model.config if args.start else PRESETS[args.preset]
    return replace(config, **{name: value for name, value in changes.items() if value is not None})


def _add_option(group: argparse._ArgumentGroup, name: str, kind: Any, default: object, text: str) -> None:
    """A flag for one field of a configuration: --no-NAME turns a bool off, a Literal becomes choices."""
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
    else:
        choices = get_args(kind)
        group.add_argument(flag, type=str if choices else kind, choices=choices or None, default=default, help=text)


def new_trainer(arguments: list[str]) -> Trainer:
    """What the command line with these arguments trains, before its first step; raises what `main` raises."""
    args = _parse(arguments)
    return _new_trainer(args, pick_device(args.device))


def _new_trainer(args: argparse.Namespace, device: str) -> Trainer:
    options, config, start = _options(args), _config(args), args.start
    task = TASKS[config.family]
    texts = [Text.read(name, config.family) for name in args.train]
    tokenizer = start.tokenizer if start else _tokenizer(args.out, sample_epoch(texts, "vocabulary"), config)
    model = new_network(config)
    # From a generator of their own: of several trainings in one process, each has the weights of its seed.
    model.initialise(torch.Generator().manual_seed(options.seed))
    model.to(device)
    if start:
        try:
            model.load_state_dict(start.model.state_dict())
        except RuntimeError as error:
            raise ValueError(f"the weights of {args.start_from} do not fit this configuration: {error}") from error
    examples = Text.read(str(args.dev), config.family).examples
    dev = [example for example in examples if task.encode(tokenizer, [example], config.max_len)]
    if not dev:
        raise ValueError(f"{args.dev} has no example of at most max_len = {config.max_len} tokens")
    trainer = Trainer(
        args.out, model, tokenizer, texts, options, lambda model: _evaluate(model, tokenizer, dev, device)
    )
    if args.resume and (args.out / "state.pt").exists():
        trainer.resume()
    return trainer


def _tokenizer(folder: Path, examples: list[Example], config: TransformerConfig) -> Tokenizer:
    """The run's own vocabulary if it already has one, else a new one, learned by the first process."""
    path = folder / VOCABULARY
    if not path.exists() and int(os.environ.get("RANK", 0)) == 0:
        folder.mkdir(parents=True, exist_ok=True)
        texts = (text for example in examples for text in ([example] if isinstance(example, str) else example))
        try:
            tokenizer = train_tokenizer(texts, config.vocab_size, masked=TASKS[config.family].masked)
        except ValueError as error:
            raise ValueError(f"{error} Choose another --vocab-size.") from error
        with atomic_write(path) as temporary:
            temporary.write_bytes(tokenizer.serialized)
    if dist.is_initialized():
        dist.barrier()
    tokenizer = Tokenizer(path.read_bytes())
    if len(tokenizer) != config.vocab_size:
        raise ValueError(f"{path} has {len(tokenizer)} pieces: pass --vocab-size {len(tokenizer)}, or delete the file")
    return tokenizer


def _describe_vocabulary(path: Path, trainer: Trainer) -> str:
    """That the folder had a vocabulary, how it cuts the new text, and how to start anew."""
    examples = sample_epoch(trainer.texts, "vocabulary")[:DESCRIBED]
    texts = [text for example in examples for text in ([example] if isinstance(example, str) else example)]
    pieces = sum(len(trainer.tokenizer.encode(text)) for text in texts)
    words = max(sum(len(text.split()) for text in texts), 1)
    return (
        f"{path} was there before: its {len(trainer.tokenizer)} pieces are used, which cut this text into "
        f"{pieces / words:.1f} a word. If it was learned from another text, stop, delete it, and start again.\n"
    )


def _evaluate(model: Network, tokenizer: Tokenizer, dev: list[Example], device: str) -> dict[str, float]:
    """Cross-entropy per token in nats, without smoothing, and the family's own score."""
    predictions = predict_tokens(model, tokenizer, dev, device)
    scores = {"dev_loss": predictions.nats / predictions.tokens} | _sharpness(model, tokenizer, dev)
    if model.config.family == "encoder_decoder":
        translations = Translator("dev", "", model, tokenizer).translate([source for source, _ in dev], beam_size=1)
        targets = [target for _, target in dev]
        exact = [translation == target for translation, target in zip(translations, targets, strict=True)]
        bleu = sacrebleu.corpus_bleu(translations, [targets]).score
        return scores | {"dev_bleu": bleu, "dev_exact": sum(exact) / len(exact)}
    if model.config.family == "encoder":
        return scores | {"dev_accuracy": predictions.correct / predictions.tokens}
    return scores | {"dev_bits_per_byte": predictions.bits_per_byte(dev)}


def _sharpness(model: Network, tokenizer: Tokenizer, dev: list[Example]) -> dict[str, float]:
    """How sharply the model attends on a few examples of `dev`: a warning where its heads can no longer be read."""
    few = dev[:: max(len(dev) // SHARPNESS_EXAMPLES, 1)][:SHARPNESS_EXAMPLES]
    opened = OPENED[model.config.family]("dev", "", model, tokenizer)
    texts = [(example,) if isinstance(example, str) else example for example in few]
    # Of a text that a trace takes; training cuts or leaves out longer ones.
    short = [each for each in texts if all(0 < len(tokenizer.encode(text)) < opened.token_limit for text in each)]
    places = measure_sharpness(opened.trace(*each) for each in short)
    even, _, largest = mean_sharpness(places)
    if even < COLLAPSED:
        tqdm.write(
            f"The heads look at single tokens: the entropy of a row is {even:.2f} of what equal weights have, and the "
            f"largest score is {largest:.0f}. Such entropy collapse (Zhai et al. 2023) leaves attention nothing to "
            "learn from. Start again with --clip-scores 12.",
            file=sys.stderr,
        )
    layers = {f"evenness_{place.kind}_{place.layer}": mean_sharpness([place])[0] for place in places}
    return {"largest_score": largest, "evenness": even} | layers


def _run(trainer: Trainer, minutes: float | None) -> None:
    """Run the trainer behind a progress bar that shows tokens per second and the time left; without a terminal, which a
    bar needs, a line says so now and then."""
    lines, due = trainer.rank == 0 and not sys.stderr.isatty(), 0.0
    seen, since = trainer.progress.tokens, trainer.progress.seconds
    with tqdm(
        total=trainer.options.steps,
        initial=trainer.progress.step,
        unit="step",
        disable=None if trainer.rank == 0 else True,
    ) as bar:
        for progress in trainer.run(minutes):
            seconds = max(progress.seconds - since, 1e-9)
            speed = f"{(progress.tokens - seen) / seconds:,.0f} tokens/s, epoch {progress.epoch}"
            bar.set_postfix_str(speed, refresh=False)
            bar.update()
            if lines and time.monotonic() >= due:
                sys.stderr.write(f"step {progress.step:,} of {trainer.options.steps:,}, {speed}\n")
                sys.stderr.flush()
                due = time.monotonic() + SECONDS_OF_A_LINE


def _describe_result(folder: Path, trainer: Trainer) -> str:
    """How far the run is, what was last measured, and how to look at the model."""
    done = f"{folder}: step {trainer.progress.step:,} of {trainer.options.steps:,}"
    log = folder / "log.csv"
    rows = list(csv.DictReader(log.read_text(encoding="utf-8").splitlines())) if log.exists() else []
    measured = (
        [f"{name} {float(value):.4g}" for name, value in rows[-1].items() if name.startswith("dev_")] if rows else []
    )
    return f"{', '.join([done, *measured])}. To open it: python -m streamlit run app.py -- --model {folder}\n"


if __name__ == "__main__":
    run_command(main)
