"""Checkpoints: opening, checking and saving them, and what a person does with an opened one."""

from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    DEFAULT_CHECKPOINT,
    CheckpointError,
    available_checkpoints,
    checkpoint_path,
    load_checkpoint,
    save_checkpoint,
)

__all__ = [
    "CHECKPOINTS_VARIABLE",
    "DEFAULT_CHECKPOINT",
    "CheckpointError",
    "available_checkpoints",
    "checkpoint_path",
    "load_checkpoint",
    "save_checkpoint",
]
