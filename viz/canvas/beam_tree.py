"""The tree of a beam search for the beam_tree component, and the table of finished hypotheses."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from viz.drawing import Drawing
from viz.html import changed_words
from viz.theme import DECODER
from viz.tokens import labels


def tree_picture(
    nodes: Sequence,
    pieces: Sequence[str],
    scores: Sequence[float],
    paths: tuple[Sequence[int], Sequence[int]],
    ranked: Sequence[int],
    step: int,
    start: str,
) -> Drawing:
    """The component draws a column per step and a row per rank.

    Args:
        nodes: candidates in the order of their steps (`step`, `rank`, `parent`, `token_log_probability`,
            `log_probability`, `fate` each).
        pieces: the token of each node.
        scores: log-probability / length penalty of each node's prefix.
        paths: node indices of the best hypothesis, and of the chosen one.
        ranked: node indices of the last tokens of all hypotheses, best score first; a click on one sends its rank.
        step: the column to scroll to.
        start: the token that the search starts after.
    """
    winner, chosen = paths
    data = {
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
        "ranked": list(ranked),
        "step": step,
        "start": labels([start])[0],
        "colour": DECODER,
    }
    return Drawing("beam_tree", data)


def hypotheses_table(
    texts: Sequence[str],
    log_probabilities: Sequence[float],
    lengths: Sequence[int],
    penalties: Sequence[float],
    what: str,
) -> pd.DataFrame:
    """One row per finished text, best score first; score = log p / lp(Y). `what` they are is a column's name."""
    total, penalty = np.array(log_probabilities), np.array(penalties)
    return pd.DataFrame(
        {
            "rank": range(1, len(texts) + 1),
            "differs from the best": ["", *(changed_words(texts[0], other) for other in texts[1:])],
            what: texts,
            "log p(Y | X)": total,
            "length |Y|": lengths,
            "lp(Y)": penalty,
            "score": total / penalty,
        }
    )
