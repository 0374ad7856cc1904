"""Weights saved during training (model.training.trainer.SNAPSHOT_STEPS), opened like a checkpoint."""

import re
from dataclasses import replace
from pathlib import Path

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import CheckpointError, sha256
from model.checkpoints.store import checkpoint_path, load_weights
from model.language import sentence
from model.network.families import new_network

_NAME = re.compile(r"step-(\d{6,12})\.safetensors", re.ASCII)


def snapshot_steps(folder: Path) -> tuple[int, ...]:
    """Training steps whose weights are in a checkpoint's folder, in ascending order; empty if there are none."""
    names = (_NAME.fullmatch(path.name) for path in (folder / "snapshots").glob("*.safetensors") if path.is_file())
    return tuple(
        sorted({step for name in names if name and snapshot_path(folder, step := int(name[1])).name == name[0]})
    )


def open_snapshot(opened: Checkpoint, step: int) -> Checkpoint:
    """The same model and vocabulary on the same device, with the weights after `step` steps and their own hash.

    Raises:
        CheckpointError: (a ValueError) the checkpoint has no such snapshot, or its file is damaged.
    """
    folder = checkpoint_path(opened.name)
    path = snapshot_path(folder, step)
    if step not in snapshot_steps(folder):
        found = ", ".join(f"{other:,}" for other in snapshot_steps(folder)) or sentence("none")
        raise CheckpointError(
            sentence(
                "{name} has no snapshot of step {step:,}; it has: {found}.", name=opened.name, step=step, found=found
            )
        )
    model = new_network(opened.config)
    try:
        load_weights(model, path, folder)
        weights_hash = sha256(path, folder)
    except (CheckpointError, OSError) as error:
        # The message is shown on screen, where paths of this machine do not belong.
        raise CheckpointError(str(error).replace(str(path), f"snapshots/{path.name}")) from error
    model = model.to(opened.model.output.weight.device).eval().requires_grad_(False)
    return replace(opened, hash=weights_hash, model=model)


def snapshot_path(folder: Path, step: int) -> Path:
    """The file of the weights after so many steps."""
    return folder / "snapshots" / f"step-{step:06}.safetensors"
