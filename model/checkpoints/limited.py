"""What a folder makes the app compute gets a deadline and a size: it runs in a process of its own, which is ended."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
"""chats whose text is kept: a page that is drawn again shows the same one"""
_tried: set[str] = set()
"""hashes of tokenizers that passed their trial: one that is opened again, or shared by models, is not tried again"""


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
    if (content := sha256(path)) in _tried:
        return
    seconds = SECONDS + size // 2**20
    limits = {"kind": "tokenizer", "seconds": seconds, "bytes": TOKENIZER_BYTES}
    try:
        _run({"path": str(path), **limits}, sentence("The tokenizer of this model"))
    except Exceeded:
        raise
    except ValueError:  # transformers says it better
        return
    _tried.add(content)


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
