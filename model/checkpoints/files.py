"""Files of checkpoints: hashes, and atomic writing: a reader, even after a crash, finds the old content or the new."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model.language import sentence


class CheckpointError(ValueError):
    """A checkpoint that is missing or damaged; the message names the file, what was expected, and a remedy."""


MOST_QUOTED = 300
"""characters of what a library says"""


def quote(error: BaseException) -> str:
    """What an error says, on one line and not too long, without the stop at its end; its kind where it says nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{text[:MOST_QUOTED]} …" if len(text) > MOST_QUOTED else text.rstrip(".")


def read_json_object(path: Path) -> dict[str, Any]:
    """The names and values of a JSON file.

    Raises:
        CheckpointError: it cannot be read, or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            sentence(
                "{path} is not a JSON file that can be read ({error}). Copy it again.", path=path, error=quote(error)
            )
        ) from error
    if not isinstance(found, dict):
        raise CheckpointError(
            sentence("{path} holds no JSON object, with names and values in braces. Copy it again.", path=path)
        )
    return found


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it replaces `path` when the block ends without an exception.

    The data is synced to disk first, so the file is complete even after a power failure.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
