"""What a folder makes the app compute gets a deadline and a size: it runs in a process of its own, which is ended."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from model.checkpoints.files import sha256
from model.language import Refusal, sentence

SECONDS = 3
"""of the processor, that a template or the trial of a tokenizer may take"""
DEADLINE = 60.0
"""seconds by the clock, also of a machine that has much else to do"""
TEMPLATE_BYTES, TOKENIZER_BYTES = 2**29, 2**32
"""of memory"""
_PROGRAM = Path(__file__).with_name("limited_process.py")
_KEPT = 64
"""chats whose text is kept, as a page that is drawn again shows the same one; and tokenizers that passed their trial"""


class Exceeded(Refusal):
    """A program of a folder took too long, or too much memory; the message says so."""


def fill_in(template: str, facts: Mapping[str, Any], chats: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The text that a chat template in Jinja's language makes of each chat, its `messages` and `add_generation_prompt`;
    facts are what the template may name besides, such as `bos_token`.

    Raises:
        Exceeded: it takes too long, or too much memory.
        ValueError: the template refuses a chat; the message is its own.
    """
    return _filled_in(json.dumps({"template": template, "facts": dict(facts), "chats": list(chats)}))


@lru_cache(_KEPT)
def _filled_in(task: str) -> tuple[str, ...]:
    limits = {"kind": "chats", "seconds": SECONDS, "bytes": TEMPLATE_BYTES}
    return tuple(_run(json.loads(task) | limits, sentence("The chat template of this model"))["texts"])


def try_tokenizer(path: Path, size: int) -> None:
    """Read some texts with a tokenizer.json of so many bytes, of which a large vocabulary takes time to read.

    Raises:
        Exceeded: that takes too long, or too much memory; or its steps could make much of a short text.
    """
    _try(_Tokenizer(sha256(path), SECONDS + size // 2**20, TOKENIZER_BYTES, path))


@dataclass(frozen=True)
class _Tokenizer:
    """A tokenizer.json, the same wherever it lies, and what its trial may take."""

    content: str
    """SHA-256"""
    seconds: int
    bytes: int
    path: Path = field(compare=False)


@lru_cache(_KEPT)
def _try(tokenizer: _Tokenizer) -> None:
    limits = {"kind": "tokenizer", "seconds": tokenizer.seconds, "bytes": tokenizer.bytes}
    try:
        _run({"path": str(tokenizer.path), **limits}, sentence("The tokenizer of this model"))
    except Exceeded:
        raise  # and is tried again
    except ValueError:
        pass  # transformers says it better


def _run(task: Mapping[str, Any], who: str) -> dict[str, Any]:
    # Isolated from this project's modules and from the environment, which may hold secrets.
    command = [sys.executable, "-I", "-B", str(_PROGRAM)]
    needed = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    try:
        done = subprocess.run(
            command, input=json.dumps(task).encode(), capture_output=True, timeout=DEADLINE, env=needed, check=False
        )
        answer = json.loads(done.stdout or "{}")
    except (subprocess.TimeoutExpired, ValueError):
        answer = {"exceeded": True}
    if "refused" in answer:
        raise ValueError(answer["refused"])
    if "texts" not in answer:
        raise Exceeded(
            "{who} takes more than {seconds} seconds or {megabytes:,} MB of memory, or writes endlessly.",
            who=who,
            seconds=task["seconds"],
            megabytes=task["bytes"] // 2**20,
        )
    return answer
