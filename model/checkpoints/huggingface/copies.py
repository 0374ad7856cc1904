"""What transformers reads of a folder: copies of its small files, without the settings that name code or do not matter.

Transformers looks at the settings of a folder while it reads them: one names a repository whose kernels compute the
attention, another a class to import, a third another file of settings, and some it refuses beside others. What stands
in the copies has none of them, and transformers never sees the folder itself: it could not follow a link there, or wait
for a pipe.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model.checkpoints.files import CheckpointError, UnreadableFile, read_file

COPIED = re.compile(r".*\.(json|txt|model|spm|jinja|tiktoken|bpe|vocab|codes)(\.v\d+)?")
"""names of the files that settings and tokenizers may be read from"""
NEEDED = re.compile(
    r"((generation_|tokenizer_)?config|tokenizer|special_tokens_map|added_tokens)\.json|(vocab|merges|chat_template).*"
    r"|.*\.(model|spm|tiktoken)"
)
"""those of them without which something would be missing; any other that cannot be read is left out"""
SETTINGS = {"config.json": 50_000, "generation_config.json": 50_000, "tokenizer_config.json": 250_000}
"""how many values a file of settings may have, those inside others counted; a tokenizer's lists tokens with six each"""
DROPPED = re.compile(
    r"""_*(
        auto_map | custom_\w+ | trust_remote_code | code_revision     # Python files of a repository
        | (attn|experts)_implementation\w*                            # a repository of kernels, or a function's name
        | \w*kernel_(config|repo|mapping|implementation)
        | compile_config | cache_implementation | cache_config        # what generation would compile, or quantise
        | configuration_files | fast_tokenizer_files | transformers_weights | gguf_file  # another file instead
        | (vocab|merges|tokenizer|spm|source_spm|target_spm|sentencepiece_model|added_tokens|special_tokens_map)_file
        | commit_hash
        | output_(attentions|hidden_states|scores|logits) | (use_)?return_dict\w* | (torch_)?dtype | torchscript
        | num_return_sequences | watermarking_config                  # of a generation that is not done here
    )""",
    re.VERBOSE,
)
"""settings that are dropped: attention is computed here, generation step by step, and files go by their usual names;
what a call gives and in which precision is said with the call"""
USES_KERNELS = re.compile(r"use_(\w+_)?kernels")
"""settings that are turned off: without them a family may look for its kernels"""
MOST_COPIED = 192 * 2**20
"""bytes of all copies"""


@contextmanager
def copies(folder: Path) -> Iterator[Path]:
    """A folder with copies of the settings and the tokenizer, which is gone afterwards.

    Raises:
        CheckpointError: a file of them is not a regular file in the folder, is too large, or has too many settings.
    """
    with TemporaryDirectory(prefix="attention-explorer-") as made:
        copy, total = Path(made), 0
        for path in sorted(folder.iterdir()):
            if not COPIED.fullmatch(path.name) or path.name.endswith(".index.json") or path.is_dir():
                continue
            try:
                content = read_settings_file(path) if path.name in SETTINGS else read_file(path)
            except UnreadableFile:
                if NEEDED.fullmatch(path.name):
                    raise
                continue
            total += len(content)
            if total > MOST_COPIED:
                raise UnreadableFile(
                    "{folder}: its settings and its tokenizer have more than {most:,} bytes, the most that is read.",
                    folder=folder,
                    most=MOST_COPIED,
                )
            (copy / path.name).write_bytes(content)
        try:
            yield copy
        except Exception as error:  # what it says is shown, with the folder that the person knows
            error.args = tuple(text.replace(made, str(folder)) if type(text) is str else text for text in error.args)
            raise


def read_settings_file(path: Path) -> bytes:
    """A file of settings without those that are dropped; one that is not a JSON object, unchanged.

    Raises:
        CheckpointError: it has too many settings, or cannot be read.
    """
    content = read_file(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return content
    check_count(path, found, SETTINGS[path.name])
    return json.dumps(without_dropped(found)).encode()


def check_count(path: Path, found: Any, most: int) -> None:
    """Raise CheckpointError if there are more values than any model's settings have: transformers copies them often."""
    waiting, count = [found] if isinstance(found, dict | list) else [], 0
    while waiting:
        inside = waiting.pop()
        values = inside.values() if isinstance(inside, dict) else inside
        count += len(inside)
        if count > most:
            raise CheckpointError(
                "{path} has more than {most:,} settings: it describes no model.", path=path, most=most
            )
        waiting += [value for value in values if isinstance(value, dict | list)]


def without_dropped(found: Any) -> Any:
    """The settings, and those inside them, without those of `DROPPED`."""
    if isinstance(found, dict):
        return {
            name: False if USES_KERNELS.fullmatch(name) else without_dropped(value)
            for name, value in found.items()
            if not DROPPED.fullmatch(name)
        }
    return [without_dropped(value) for value in found] if isinstance(found, list) else found
