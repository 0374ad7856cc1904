"""What runs here, in a few lines for a report: `attention-explorer --about`."""

import platform
from importlib import metadata

from model import VERSION

PACKAGES = "torch", "streamlit", "transformers"


def describe() -> str:
    """Versions, device, and each checkpoint with the first digits of the SHA-256 of its weights; no path, no text."""
    # Imported here, because importing torch takes seconds, and the version alone needs none.
    from model.checkpoints.files import sha256
    from model.checkpoints.store import available_checkpoints, checkpoint_path

    weights = {name: checkpoint_path(name) / "model.safetensors" for name in available_checkpoints()}
    hashes = [f"{name} {sha256(path)[:12] if path.is_file() else 'has no weights'}" for name, path in weights.items()]
    return "\n".join(
        (
            f"Attention Explorer {VERSION}",
            f"Python {platform.python_version()}, {', '.join(map(_version, PACKAGES))}",
            f"{platform.system()} {platform.release()}, {platform.machine()}",
            f"runs on {_device()}",
            f"checkpoints: {', '.join(hashes) or 'none'}",
        )
    )


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} not installed"


def _device() -> str:
    import torch

    from model.checkpoints.devices import pick_device

    if (device := pick_device("auto")) != "cpu":
        return f"{device}: {torch.cuda.get_device_name(device)}"
    return f"cpu: {_processor()}, {torch.get_num_threads()} threads"


def _processor() -> str:
    """Its name where the system gives one, else its family."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
