"""How an induction head formed in a language model of two layers (model.commands.induction), read from its table."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from model.language import Refusal
from model.trace import Array

CHECKPOINT, FILE = "studies/induction", "forming.csv"
KIND = "decoder_self"
COLUMNS = ("step", "layer", "head", "first_half", "second_half", "prefix_matching", "previous_token", "without")
"""a row for each head at each measured step, as model.analysis.heads.induction.Repetition"""


@dataclass(frozen=True)
class Forming:
    """What was measured on the way."""

    steps: Array
    """(step,)"""
    losses: Array
    """(2, step) of the first half and of the second"""
    heads: tuple[tuple[int, int], ...]
    """layer and head"""
    prefix_matching: Array
    """(step, head), as the two that follow"""
    previous_token: Array
    without: Array

    @property
    def induction(self) -> int:
        """Number in `heads` of the one with the largest prefix-matching score in the end."""
        return int(self.prefix_matching[-1].argmax())

    @property
    def formed(self) -> tuple[int, ...]:
        """Numbers of all whose score ends within a tenth of the largest: several heads may do the same work."""
        score = self.prefix_matching[-1]
        return tuple(np.flatnonzero(score >= 0.9 * score.max()).tolist())

    @property
    def previous(self) -> int:
        """Number of the head in an earlier layer that looks most at the token before, in the end."""
        layer, _ = self.heads[self.induction]
        earlier = np.array([each < layer for each, _ in self.heads])
        return int(np.where(earlier, self.previous_token[-1], -1).argmax())

    @property
    def moment(self) -> int:
        """Number in `steps` of the first from which on the induction head's score is at least half of its last one."""
        score = self.prefix_matching[:, self.induction]
        return int(np.flatnonzero(np.append(True, score < score[-1] / 2))[-1])


def read_forming(folder: Path) -> Forming | None:
    """The table in a checkpoint's folder; None if there is none.

    Raises:
        ValueError: it is damaged.
    """
    try:
        table = pd.read_csv(folder / FILE)[list(COLUMNS)].sort_values(["step", "layer", "head"])
        steps, places = table["step"].unique(), table[["layer", "head"]].drop_duplicates()
        columns = {name: table[name].to_numpy(float).reshape(len(steps), len(places)) for name in COLUMNS[3:]}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, OSError) as error:
        raise Refusal(
            "{file} of {checkpoint} is damaged ({error}). Restore it with git checkout.",
            file=FILE,
            checkpoint=CHECKPOINT,
            error=error,
        ) from error
    losses = np.stack([columns["first_half"][:, 0], columns["second_half"][:, 0]])
    heads = tuple((int(layer), int(head)) for layer, head in places.to_numpy())
    return Forming(steps, losses, heads, columns["prefix_matching"], columns["previous_token"], columns["without"])
