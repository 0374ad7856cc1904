"""Files of checkpoints: the one reader of all that a folder holds, and atomic writing: a reader, even after a crash,
finds the old content or the new.

A folder may come from anyone. What is read of it is a regular file inside it, of at most so many bytes: no link to a
file elsewhere, no pipe and no device, which would have no end.
"""

import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, is_zipfile

import numpy as np

from model.language import Refusal, sentence


class CheckpointError(Refusal):
    """A checkpoint that is missing or damaged; the message names the file, what was expected, and a remedy."""


MOST_BYTES = 64 * 2**20
"""of a file that is read as a whole; the vocabularies of the largest models have half as many"""
MOST_TEXT = 4 * 2**20
"""bytes of a file that a person reads or writes: README.md, a log, settings"""
MOST_ARRAYS = 2**29
"""bytes of the arrays in one file"""
MOST_HEADER = 16 * 2**20
"""bytes of the names and shapes in a file of weights"""
MOST_TENSORS = 20_000
"""of a model; transformers looks at each of their names many times"""
MOST_QUOTED = 300
"""characters of what a library says"""
TRAINERS = re.compile(r"checkpoint-([1-9]\d{0,11})", re.ASCII)
"""name of a checkpoint in the folder of a Hugging Face Trainer"""


def quote(error: BaseException) -> str:
    """What an error says, on one line and not too long, without the stop at its end; its kind where it says nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{text[:MOST_QUOTED]} …" if len(text) > MOST_QUOTED else text.rstrip(".")


class UnreadableFile(CheckpointError, OSError):
    """What stands at a place in a folder is not read; the message says why."""


def find_file(path: Path, folder: Path | None = None) -> Path:
    """The file itself, once its links are followed.

    Args:
        path: of the file.
        folder: of the checkpoint; None: the one that the file stands in.

    Raises:
        FileNotFoundError: there is none.
        UnreadableFile: it is not a regular file, or stands elsewhere.
    """
    found, inside = Path(os.path.realpath(path, strict=True)), (folder or path.parent).resolve()
    # In the cache of Hugging Face a model's folder holds links to the files beside it.
    cached = inside.parents[1] / "blobs" if inside.parent.name == "snapshots" else inside
    if not {inside, cached} & {*found.parents}:
        raise UnreadableFile(
            "{path} is a link to a file elsewhere, which is not read. Copy the file itself.", path=path
        )
    if not stat.S_ISREG(found.stat().st_mode):
        raise UnreadableFile("{path} is not a regular file and is not read.", path=path)
    return found


@contextmanager
def open_file(path: Path, folder: Path | None = None, most: int | None = None) -> Iterator[BinaryIO]:
    """Open a file of a checkpoint's folder; nothing else opens one.

    Args:
        path: of the file.
        folder: of the checkpoint; None: the one that the file stands in.
        most: bytes that it may have; None: as many as it likes, for who reads it piece by piece.

    Raises:
        FileNotFoundError: there is none.
        UnreadableFile: it is not a regular file, stands elsewhere, or is too large.
    """
    found = find_file(path, folder)
    # Without waiting, should a pipe have taken the place of the file meanwhile.
    with open(found, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise UnreadableFile(
                "{path} has {size:,} bytes; at most {most:,} are read.", path=path, size=size, most=most
            )
        yield file


def read_file(path: Path, folder: Path | None = None, most: int = MOST_BYTES) -> bytes:
    """The content of a file, which raises as `open_file` does."""
    with open_file(path, folder, most) as file:
        return file.read(most)


def read_text(path: Path, folder: Path | None = None, most: int = MOST_TEXT) -> str:
    """The text of a UTF-8 file, which raises as `open_file` does, and UnicodeDecodeError."""
    return read_file(path, folder, most).decode("utf-8-sig").replace("\r\n", "\n")


def read_json(path: Path, folder: Path | None = None, most: int = MOST_BYTES) -> Any:
    """What a JSON file holds; arguments as of `open_file`.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        return json.loads(read_file(path, folder, most))
    except UnreadableFile:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            "{path} is not a readable JSON file ({error}). Copy it again.", path=path, error=quote(error)
        ) from error


def read_json_object(path: Path, most: int = MOST_BYTES, folder: Path | None = None) -> dict[str, Any]:
    """The names and values of a JSON file.

    Raises:
        CheckpointError: it cannot be read, or holds something else.
    """
    found = read_json(path, folder, most)
    if not isinstance(found, dict):
        raise CheckpointError("{path} holds no JSON object (names and values in braces). Copy it again.", path=path)
    return found


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz, whose numbers may take more bytes than the file, which raises as `open_file` does.

    Raises:
        BadZipFile: it is not one.
        ValueError: an array is damaged, or holds Python objects.
    """
    with open_file(path, most=MOST_BYTES) as file:
        if not is_zipfile(file):
            raise BadZipFile(sentence("it is no .npz"))
        with np.load(file, allow_pickle=False) as stored:
            size = sum(info.file_size for info in stored.zip.infolist())
            if size > MOST_ARRAYS:
                raise UnreadableFile("its arrays have {size:,} bytes, more than {most:,}", size=size, most=MOST_ARRAYS)
            return dict(stored)


def find_weights(path: Path, folder: Path | None = None) -> Path:
    """The file of weights itself, for safetensors to open, once its header is found to be of bearable size.

    Raises:
        OSError: it cannot be read.
        UnreadableFile: it is not a regular file, stands elsewhere, or has too many tensors.
    """
    with open_file(path, folder) as file:
        length = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))[0]
        size = os.fstat(file.fileno()).st_size
        if MOST_HEADER < length < size:
            raise UnreadableFile(
                "{path}: the names and shapes of its tensors take {size:,} bytes; at most {most:,} are read.",
                path=path,
                size=length,
                most=MOST_HEADER,
            )
        # Counted before the names are read: each tensor says where its numbers stand.
        check_tensor_count(path, file.read(min(length, size)).count(b'"data_offsets"'))
    return find_file(path, folder)


def check_tensor_count(path: Path, count: int) -> None:
    """Raise UnreadableFile if a model has too many tensors."""
    if count > MOST_TENSORS:
        raise UnreadableFile(
            "{path} has {count:,} tensors; models of at most {most:,} are opened.",
            path=path,
            count=count,
            most=MOST_TENSORS,
        )


def sha256(path: Path, folder: Path | None = None) -> str:
    """Hexadecimal SHA-256 of a file, which raises as `open_file` does."""
    with open_file(path, folder) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def trainer_checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints in the folder of a Hugging Face Trainer by training step, in order, finished or not."""
    with suppress(OSError), os.scandir(folder) as entries:
        found = {int(name[1]): folder / entry.name for entry in entries if (name := TRAINERS.fullmatch(entry.name))}
        return {step: path for step, path in sorted(found.items()) if os.path.isdir(path)}
    return {}


def training_step(folder: Path) -> int | None:
    """After which a Trainer saved the checkpoint in this folder; None: it is not one of several."""
    found = TRAINERS.fullmatch(folder.name)
    return int(found[1]) if found else None


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
