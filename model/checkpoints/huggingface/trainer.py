"""The folder of a Hugging Face Trainer that may still be writing: checkpoint-100, checkpoint-200, each a whole model.

Nothing in it is written at one blow. The Trainer (`_save_checkpoint` in transformers/trainer.py) writes settings,
weights, tokenizer and optimizer, and trainer_state.json last; then it deletes others, file by file, to keep as many as
`save_total_limit`. So a checkpoint counts once the end of trainer_state.json is there, and the weights have every byte
that their headers promise.
"""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from model.checkpoints.files import CheckpointError, open_file, trainer_checkpoints, training_step
from model.checkpoints.huggingface.files import read_settings, shapes_of, weight_files
from model.language import Sentence, sentence, sentence_of

STATE = "trainer_state.json"
LAST, TAIL = b"\n}", 16
"""with which it ends, and bytes in which that stands; every brace before is indented"""


def sort_checkpoints(folder: Path) -> tuple[dict[int, Path], dict[int, str]]:
    """By training step: the checkpoints of a Trainer's folder that can be opened, and what the others lack."""
    finished, unfinished = {}, {}
    for step, path in trainer_checkpoints(folder).items():
        if problem := why_unfinished(path):
            unfinished[step] = problem
        else:
            finished[step] = path
    return finished, unfinished


def model_in(folder: Path) -> Path:
    """The folder itself; of a Trainer whose last model is not there, or not all of it, the newest finished checkpoint.

    Raises:
        CheckpointError: it has checkpoints, and none is finished.
    """
    newest_first = [*reversed(trainer_checkpoints(folder).values())]
    if not newest_first or _why_not_whole(folder) is None:
        return folder
    problems = []
    for path in newest_first:
        if not (problem := why_unfinished(path)):
            return path
        problems.append(problem)
    raise CheckpointError(
        "{folder} has no finished checkpoint yet. {problem} Open this page again once training has progressed; if "
        "nothing is being trained there, start the app with one of these folders: {path}",
        folder=folder,
        problem=problems[0],
        path=newest_first[0],
    )


def tokenizer_folders(folder: Path) -> list[Path]:
    """Where the tokenizer of a model may be: in its folder, and for a Trainer's checkpoint in the one above."""
    return [folder, folder.parent] if training_step(folder) else [folder]


def why_unfinished(checkpoint: Path) -> str | None:
    """What a Trainer's checkpoint lacks, in a sentence; None: nothing."""
    with suppress(OSError), os.scandir(checkpoint) as entries:
        stats = {entry.name: entry.stat() for entry in entries}
        return _why_unfinished(checkpoint, tuple((name, one.st_size, one.st_mtime_ns) for name, one in stats.items()))
    return _why_not_written(checkpoint)


@lru_cache(maxsize=1000)
def _why_unfinished(checkpoint: Path, _files: tuple[tuple[str, int, int], ...]) -> str | None:
    return _why_not_written(checkpoint) or _why_not_whole(checkpoint)


def _why_not_written(checkpoint: Path) -> Sentence | None:
    """Whether the Trainer has not come to its last file; also whether it has begun to delete the checkpoint."""
    with suppress(OSError), open_file(checkpoint / STATE) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - TAIL, 0))
        if file.read().rstrip().endswith(LAST):
            return None
    return sentence(
        "{checkpoint} is not finished: {state}, which the trainer writes last, is missing or incomplete.",
        checkpoint=checkpoint,
        state=STATE,
    )


def _why_not_whole(folder: Path) -> str | None:
    """What a model's folder lacks of settings and weights; None: nothing, as far as their headers tell."""
    try:
        shapes_of(weight_files(folder, read_settings(folder)))
    except CheckpointError as error:
        return sentence_of(error)
    return None
