"""The folder of a Hugging Face Trainer, written as it writes: file by file, trainer_state.json last."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.model.checkpoints.huggingface.folders import save_family

ORDER = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer_config.json",
    "tokenizer.json",
    "training_args.bin",
    "optimizer.pt",
    "trainer_state.json",
)
"""of `Trainer._save_checkpoint` in transformers 5"""


def save_step(folder: Path, step: int, family: str = "GPT-2", name: str = "") -> Path:
    """Write the whole checkpoint of a step, whose weights differ from those of every other step."""
    path = save_family(folder / (name or f"checkpoint-{step}"), family)
    weights, noise = load_file(path / "model.safetensors"), torch.Generator().manual_seed(step)
    moved = {name: each + 0.3 * torch.randn(each.shape, generator=noise) for name, each in weights.items()}
    save_file(moved, path / "model.safetensors", metadata={"format": "pt"})
    for other in ("training_args.bin", "optimizer.pt"):
        (path / other).write_bytes(bytes(100))
    history = [{"step": each, "loss": 1 / each} for each in range(1, 40)]
    state = {"global_step": step, "log_history": history, "stateful_callbacks": {"control": {"args": {}}}}
    (path / "trainer_state.json").write_text(json.dumps(state, indent=2, sort_keys=True) + "\n")
    return path
