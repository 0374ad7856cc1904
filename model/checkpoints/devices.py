"""Devices the model can run on, and memory in a process that serves many people."""

import gc

import torch

OutOfMemory = torch.OutOfMemoryError
"""raised if a GPU has too little memory for a run"""


def available_devices() -> list[str]:
    """All CUDA devices, then "cpu"."""
    return [*(f"cuda:{i}" for i in range(torch.cuda.device_count())), "cpu"]


def freeze_loaded_objects() -> None:
    """Exclude everything loaded so far from garbage collection, once the model is loaded in a server.

    Otherwise each collection walks through torch's objects, which takes about 100 ms and stops all sessions.
    """
    gc.collect()
    gc.freeze()


def free_memory() -> None:
    """Release GPU memory that PyTorch has reserved but does not use."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
