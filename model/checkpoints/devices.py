"""Devices the model can run on, and memory in a process that serves many people."""

import gc
import math
import os
from contextlib import suppress

import torch

from model.language import Refusal

OutOfMemory = torch.OutOfMemoryError
"""raised if a GPU has too little memory for a run"""


def available_devices() -> list[str]:
    """All CUDA devices, then "cpu"."""
    return [*(f"cuda:{i}" for i in range(torch.cuda.device_count())), "cpu"]


def pick_device(device: str) -> str:
    """ "auto" -> "cuda" if available, else "cpu"; any other name is returned as it is.

    Raises:
        ValueError: PyTorch has no such device.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise Refusal("device {device!r} is not available; try 'auto' or 'cpu'", device=device) from error
    return device


def share_cores(runs: int) -> None:
    """Give each of `runs` simultaneous runs of the model an equal number of this process's cores, one at least.

    By default PyTorch gives every run all cores: on short texts they mostly wait for one another.
    """
    torch.set_num_threads(max((os.cpu_count() or 1) // runs, 1))


def freeze_loaded_objects() -> None:
    """Exclude everything loaded so far from garbage collection, once the model is loaded in a server.

    Otherwise each collection walks through torch's objects, which takes about 100 ms and stops all sessions. What
    was excluded before and nothing holds any more, as a model that was open, goes.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def available_memory() -> float:
    """Bytes of main memory that programs can still take; infinity where the system does not say."""
    with suppress(OSError, StopIteration), open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    return math.inf


def free_memory() -> None:
    """Release GPU memory that PyTorch has reserved but does not use."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
