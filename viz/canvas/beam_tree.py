"""The payload of the beam_tree component, and the table of finished translations."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from viz.html import changed_words
from viz.theme import DECODER
from viz.tokens import labels

Array = np.ndarray


def tree_payload(
    nodes: Sequence,
    pieces: Sequence[str],
    scores: Sequence[float],
    paths: tuple[Sequence[int], Sequence[int]],
    step: int,
) -> dict:
    """The payload: the component draws a column per step and a row per rank.

    Args:
        nodes: candidates in the order of their steps (`step`, `rank`, `parent`, `token_log_probability`,
            `log_probability`, `fate` each).
        pieces: the token of each node.
        scores: log-probability / length penalty of each node's prefix.
        paths: node indices of the best hypothesis, and of the chosen one.
        step: the column to scroll to.
    """
    winner, chosen = paths
    return {
        "nodes": [
            {
                "step": node.step,
                "rank": node.rank,
                "parent": node.parent,
                "label": label,
                "fate": node.fate,
                "token": node.token_log_probability,
                "total": node.log_probability,
                "score": score,
            }
            for node, label, score in zip(nodes, labels(pieces), scores, strict=True)
        ],
        "winner": list(winner),
        "chosen": list(chosen),
        "step": step,
        "colour": DECODER,
    }


def hypotheses_table(
    sentences: Sequence[str], log_probabilities: Sequence[float], lengths: Sequence[int], penalties: Sequence[float]
) -> pd.DataFrame:
    """One row per finished translation, best score first; score = log p / lp(Y)."""
    total, penalty = np.array(log_probabilities), np.array(penalties)
    return pd.DataFrame(
        {
            "rank": range(1, len(sentences) + 1),
            "differs from the best": ["", *(changed_words(sentences[0], other) for other in sentences[1:])],
            "translation": sentences,
            "log p(Y | X)": total,
            "length |Y|": lengths,
            "lp(Y)": penalty,
            "score": total / penalty,
        }
    )
