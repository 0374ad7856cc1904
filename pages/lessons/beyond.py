"""Lesson 11: cheaper attention, larger models, the paper's results, and mistakes that nobody sees."""

import numpy as np

from model.analysis.mechanisms.flash import flash_attention
from model.background.paper_results import TABLE_2
from model.needs import Need
from model.proof.mistakes import MISTAKES, run_mistake
from model.run import Run
from pages.lessons.reading import Facts
from pages.views.model.training import scaling as scaling_view

TILE = 4
"""queries, and keys, of a tile"""
IN_CODE = ("no-scaling", "transposed-mask", "softmax-over-queries", "heads-by-view")
"""mistakes of which one shows in the sums of the rows"""


def flash(run: Run) -> Facts:
    """How far the head computed tile by tile is from the run, and how much it holds at a time."""
    tiled = flash_attention(run.attention, run.head, TILE)
    names = ("difference", "tile_bytes", "square_bytes")
    return {name: getattr(tiled, name) for name in names} | {"tiles": len(tiled.rows)}


def square(run: Run) -> Facts:
    """Bytes of one head's weights for this text, and for texts of thousands of tokens."""
    queries, keys = run.attention.pattern.shape[1:]
    return {"here": 4 * queries * keys, "queries": queries, "keys": keys, "lengths": (1_000, 4_000)}


def scaling(run: Run) -> Facts:
    """The power law of our small language models, beside those of the literature."""
    facts = scaling_view(run).facts
    return facts if facts["law"] else None


def results(_: Run) -> Facts:
    """By how much the paper's big model is ahead of those before it, English to German."""
    before = [row for row in TABLE_2 if row.en_de is not None and not row.system.startswith("Transformer")]
    best = {
        name: max((row for row in before if ("ensemble" in row.system) == ensemble), key=lambda row: row.en_de)
        for name, ensemble in (("single", False), ("ensemble", True))
    }
    base, big = (next(row for row in TABLE_2 if row.system == f"Transformer, {name}") for name in ("base", "big"))
    return best | {"big": big, "base": base}


def mistakes(run: Run) -> Facts:
    """How far from 1 the rows of weights sum under each mistake, and what it does to log p."""
    if Need.OWN_LAYERS not in run.opened.features:
        return None
    runs = [run.compute(run_mistake, run.opened, run.trace, name, run.kind, run.layer, False) for name in IN_CODE]
    # A query that may attend to nothing has no weights to add up.
    sums = [np.where(one.mask.any(axis=-1), one.pattern.sum(axis=-1), 1) for one in runs]
    return {
        "titles": [MISTAKES[name].title for name in IN_CODE],
        "apart": [float(np.abs(rows - 1).max()) for rows in sums],
        "changes": [one.log_p - run.trace.log_probability for one in runs],
    }
