"""Models on this machine: those in the local Hugging Face cache that this app can open."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants, scan_cache_dir
from huggingface_hub.errors import CacheNotFound

from model.checkpoints.files import CheckpointError
from model.checkpoints.huggingface.loading import describe


@dataclass(frozen=True)
class CachedModel:
    """What the files of a model say before its weights are read."""

    name: str
    """by which it is opened"""
    kind: str
    """transformers' class"""
    family: str
    """encoder_decoder, decoder or encoder; empty: it has no output for tokens, only its layers can be read"""
    size: int
    """of its weights, in bytes"""


def cached_folders() -> Iterator[tuple[str, Path]]:
    """Name and folder of each model in the cache, by name."""
    with suppress(CacheNotFound, OSError):
        for repository in sorted(scan_cache_dir(constants.HF_HUB_CACHE).repos, key=lambda one: one.repo_id):
            folders = [one.snapshot_path for one in repository.revisions if "main" in one.refs]
            if repository.repo_type == "model" and folders:
                yield repository.repo_id, folders[0]


def describe_cached(name: str, folder: Path) -> CachedModel | None:
    """What can be read of a model in the cache; None: it cannot be opened."""
    with suppress(CheckpointError):
        return CachedModel(name, *describe(folder))
    return None
