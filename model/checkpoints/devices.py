"""What the model can run on, and how a process that serves many people uses it."""

import gc

import torch

OutOfMemory = torch.OutOfMemoryError
"""raised where a GPU has too little memory for a run"""


def available_devices() -> list[str]:
    """ "cpu", and each CUDA device that is there, the fastest first."""
    return [*(f"cuda:{i}" for i in range(torch.cuda.device_count())), "cpu"]


def settle() -> None:
    """After the model is loaded in a server: keep what is loaded out of later garbage collections.

    Walking through torch's objects alone takes about 100 ms each time, for all sessions.
    """
    gc.collect()
    gc.freeze()


def free_memory() -> None:
    """Give back what PyTorch holds on GPUs without using it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
