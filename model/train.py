"""Train a checkpoint: python -m model.train --preset tiny --train FILE... --dev FILE --out DIR.

Several processes: torchrun --nproc-per-node 2 -m model.train ...
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import sacrebleu
import torch
import torch.distributed as dist
from tqdm import tqdm

from model.checkpoints.files import atomic_write
from model.checkpoints.store import load_checkpoint, pick_device
from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from model.checkpoints.translator import Translator
from model.network.batch import token_batches
from model.network.config import PRESETS, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.training.data import Batch, Text, drawn, encode_pairs, read_pairs
from model.training.loss import label_smoothed_loss
from model.training.trainer import Trainer, TrainingOptions


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, train, and say how far it came."""
    args = _parse(arguments)
    device = pick_device(args.device)
    distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    if distributed:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    try:
        trainer = _trainer(args, device)
        _run(trainer, args.minutes)
    finally:
        if distributed:
            dist.destroy_process_group()


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m model.train", description="Train a Transformer checkpoint.")
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument(
        "--train",
        nargs="+",
        metavar="FILE[:WEIGHT]",
        required=True,
        help="source<TAB>target, .gz, .xz; FILE:2 twice an epoch",
    )
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--start-from", metavar="CHECKPOINT", help="its weights, sizes and vocabulary, not --preset's")
    parser.add_argument("--out", type=Path, required=True, help="the checkpoint's folder, and the run's state")
    parser.add_argument("--minutes", type=float, help="stop after this long; --resume goes on")
    parser.add_argument("--resume", action="store_true", help="go on from the state in --out, if there is one")
    parser.add_argument("--device", default="auto")
    for name in ("vocab_size", "max_len"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int)
    parser.add_argument("--dropout", type=float)
    for name, value in TrainingOptions.__dataclass_fields__.items():
        choices = ("float32", "bfloat16") if name == "precision" else None
        parser.add_argument(f"--{name.replace('_', '-')}", type=value.type, default=value.default, choices=choices)
    args = parser.parse_args(arguments)
    if not args.resume and (args.out / "state.pt").exists():
        parser.error(f"{args.out} holds a run already: add --resume to go on with it, or name another --out")
    return args


def _trainer(args: argparse.Namespace, device: str) -> Trainer:
    options = TrainingOptions(**{name: getattr(args, name) for name in TrainingOptions.__dataclass_fields__})
    changes = {
        name: value for name in ("vocab_size", "max_len", "dropout") if (value := getattr(args, name)) is not None
    }
    start = load_checkpoint(args.start_from, device="cpu") if args.start_from else None
    config = replace(start.model.config if start else PRESETS[args.preset], **changes)
    texts = [Text.read(name) for name in args.train]
    tokenizer = start.tokenizer if start else _tokenizer(args.out, drawn(texts, "vocabulary"), config)
    torch.manual_seed(options.seed)
    model = Transformer(config).to(device)
    if start:
        model.load_state_dict(start.model.state_dict())
    dev = [pair for pair in read_pairs([args.dev]) if encode_pairs(tokenizer, [pair], config.max_len)]
    if not dev:
        raise ValueError(f"{args.dev} holds no sentence pair of at most max_len = {config.max_len} tokens")
    trainer = Trainer(
        args.out, model, tokenizer, texts, options, lambda model: _evaluate(model, tokenizer, dev, device)
    )
    if args.resume and (args.out / "state.pt").exists():
        trainer.resume()
    return trainer


def _tokenizer(folder: Path, pairs: list[tuple[str, str]], config: TransformerConfig) -> Tokenizer:
    """The run's own vocabulary if it already has one, else a new one, learned by the first process."""
    path = folder / "tokenizer.model"
    if not path.exists() and int(os.environ.get("RANK", 0)) == 0:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer = train_tokenizer((text for pair in pairs for text in pair), config.vocab_size)
        with atomic_write(path) as temporary:
            temporary.write_bytes(tokenizer.serialized)
    if dist.is_initialized():
        dist.barrier()
    tokenizer = Tokenizer(path.read_bytes())
    if len(tokenizer) != config.vocab_size:
        raise ValueError(f"{path} has {len(tokenizer)} pieces: pass --vocab-size {len(tokenizer)}, or remove it")
    return tokenizer


@torch.inference_mode()
def _evaluate(model: Transformer, tokenizer: Tokenizer, dev: list[tuple[str, str]], device: str) -> dict[str, float]:
    """Cross-entropy per token in nats, without smoothing, and BLEU of greedy translations."""
    pairs = encode_pairs(tokenizer, dev, model.config.max_len)
    loss = tokens = 0.0
    for indices in token_batches([max(map(len, pair)) for pair in pairs], 4096, seed="dev"):
        batch = Batch.of([pairs[i] for i in indices], device)
        loss += label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, smoothing=0.0).item()
        tokens += (batch.tgt_out != 0).sum().item()
    translator = Translator("dev", "", model, tokenizer)
    translations = translator.translate([source for source, _ in dev], beam_size=1)
    bleu = sacrebleu.corpus_bleu(translations, [[target for _, target in dev]]).score
    return {"dev_loss": loss / tokens, "dev_bleu": bleu}


def _run(trainer: Trainer, minutes: float | None) -> None:
    """Drive the trainer behind a progress bar with tokens a second and time left."""
    bar = tqdm(
        total=trainer.options.steps,
        initial=trainer.progress.step,
        unit="step",
        disable=None if trainer.rank == 0 else True,
    )
    seen, since = trainer.progress.tokens, trainer.progress.seconds
    for progress in trainer.run(minutes):
        seconds = max(progress.seconds - since, 1e-9)
        bar.set_postfix_str(
            f"{(progress.tokens - seen) / seconds:,.0f} tokens/s, epoch {progress.epoch}", refresh=False
        )
        bar.update()
    bar.close()


if __name__ == "__main__":
    main()
