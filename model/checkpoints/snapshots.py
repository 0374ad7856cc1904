"""The weights that training kept on its way (model.training.SNAPSHOT_STEPS), opened like a checkpoint of their own."""

import re
from dataclasses import replace
from pathlib import Path

from model.checkpoints.store import CheckpointError, checkpoint_path, load_weights, sha256
from model.checkpoints.translator import Translator
from model.network.encoder_decoder import Transformer

_NAME = re.compile(r"step-(\d{6,12})\.safetensors", re.ASCII)


def snapshots(folder: Path) -> tuple[int, ...]:
    """Training steps whose weights a checkpoint's folder holds, rising; empty where it holds none."""
    names = (_NAME.fullmatch(path.name) for path in (folder / "snapshots").glob("*.safetensors") if path.is_file())
    return tuple(sorted({step for name in names if name and _path(folder, step := int(name[1])).name == name[0]}))


def open_snapshot(translator: Translator, step: int) -> Translator:
    """The same model and vocabulary on the same device, with the weights after `step` steps and their own hash.

    Raises:
        CheckpointError: (a ValueError) the checkpoint has no such snapshot, or its file is not whole.
    """
    folder = checkpoint_path(translator.name)
    path = _path(folder, step)
    if step not in snapshots(folder):
        found = ", ".join(f"{kept:,}" for kept in snapshots(folder)) or "none"
        raise CheckpointError(f"{translator.name} has no snapshot of step {step:,}; it has: {found}.")
    model = Transformer(translator.model.config)
    try:
        load_weights(model, path)
        weights_hash = sha256(path)
    except (CheckpointError, OSError) as error:
        # The sentence goes on screen, where a machine's folders have no place.
        raise CheckpointError(str(error).replace(str(path), f"snapshots/{path.name}")) from error
    model = model.to(translator.model.output.weight.device).eval().requires_grad_(False)
    return replace(translator, hash=weights_hash, model=model)


def _path(folder: Path, step: int) -> Path:
    return folder / "snapshots" / f"step-{step:06}.safetensors"
