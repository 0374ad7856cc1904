"""Weights saved during training, opened like a checkpoint: snapshots of ours (model.training.trainer.SNAPSHOT_STEPS),
and the checkpoints of a Hugging Face Trainer. Either may still be writing."""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from model.checkpoints.card import read_card
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import CheckpointError, sha256, trainer_checkpoints, training_step
from model.checkpoints.store import (
    checkpoint_path,
    load_checkpoint,
    load_weights,
    model_folder,
    stamp_of,
    trainer_steps,
)
from model.language import sentence
from model.network.families import new_network

_NAME = re.compile(r"step-(\d{6,12})\.safetensors", re.ASCII)


def snapshot_steps(folder: Path) -> tuple[int, ...]:
    """Training steps whose weights are in a checkpoint's folder, in ascending order; empty if there are none.

    Ours come into the folder whole, by a change of name; of others those count that are finished.
    """
    names = (_NAME.fullmatch(path.name) for path in (folder / "snapshots").glob("*.safetensors") if path.is_file())
    own = {step for name in names if name and snapshot_path(folder, step := int(name[1])).name == name[0]}
    with suppress(CheckpointError):
        return tuple(sorted(own | trainer_steps(folder)[0].keys()))
    return tuple(sorted(own))


def unfinished_steps(folder: Path) -> tuple[str, ...]:
    """What is wrong with each checkpoint of a Hugging Face Trainer that is not among `snapshot_steps`, in sentences."""
    with suppress(CheckpointError):
        return tuple(trainer_steps(folder)[1].values())
    return ()


def newest_step(name: str) -> int | None:
    """The last step that a running training has saved in a checkpoint's folder; None: none is known to run there."""
    folder = checkpoint_path(name)
    if (folder / "state.pt").is_file():  # of our trainer, which adds a row to the log before it saves
        return int(max((row.get("step", 0) for row in read_card(folder).log), default=0)) or None
    with suppress(CheckpointError):
        return training_step(model_folder(name))
    return None


def snapshot_stamp(name: str, step: int) -> tuple:
    """Changes with the files of a step's weights; of a step that is not there it is empty."""
    folder = checkpoint_path(name)
    if path := trainer_checkpoints(folder).get(step):
        return stamp_of(path)
    with suppress(OSError):
        return (snapshot_path(folder, step).stat().st_mtime_ns,)
    return ()


def open_snapshot(opened: Checkpoint, step: int) -> Checkpoint:
    """The same model and vocabulary on the same device, with the weights after `step` steps and their own hash.

    Raises:
        CheckpointError: (a ValueError) the checkpoint has no such snapshot, or its file is damaged.
    """
    folder = checkpoint_path(opened.name)
    if path := trainer_steps(folder)[0].get(step):
        try:
            found = load_checkpoint(str(path), opened.device)
            return replace(found, name=opened.name, most_tokens=opened.most_tokens)
        except CheckpointError:
            if step in trainer_steps(folder)[0]:  # else it was deleted just then
                raise
    path = snapshot_path(folder, step)
    if step not in snapshot_steps(folder):
        facts = {"name": opened.name, "step": step}
        facts["found"] = ", ".join(f"{other:,}" for other in snapshot_steps(folder)) or sentence("none")
        if trainer_checkpoints(folder):
            raise CheckpointError(
                "{name} no longer has the checkpoint of step {step:,}; it has: {found}. A trainer deletes old ones "
                "(save_total_limit).",
                **facts,
            )
        raise CheckpointError("{name} has no snapshot of step {step:,}; it has: {found}.", **facts)
    model = new_network(opened.config)
    try:
        load_weights(model, path, folder)
        weights_hash = sha256(path, folder)
    except (CheckpointError, OSError) as error:
        # The message is shown on screen, where paths of this machine do not belong.
        raise CheckpointError(str(error).replace(str(path), f"snapshots/{path.name}")) from error
    model = model.to(opened.model.output.weight.device).eval().requires_grad_(False)
    return replace(opened, hash=weights_hash, model=model, step=step)


def snapshot_path(folder: Path, step: int) -> Path:
    """The file of the weights after so many steps."""
    return folder / "snapshots" / f"step-{step:06}.safetensors"
