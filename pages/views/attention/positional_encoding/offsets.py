"""How scores and similarities follow from the distance alone."""

import numpy as np
import pandas as pd

from model.analysis.positions import position_table
from model.analysis.positions.rotation import rotate_pairs, shifted_scores
from model.analysis.positions.score_bias import biased_head
from model.run import Run
from model.trace import Array
from pages.views import Result, view
from pages.views.attention.positional_encoding import scheme
from pages.views.chosen_token import query_of
from pages.views.controls import choice, menu, slider
from pages.views.shared import axes, score_by_offset
from viz.forms import Line, Lines
from viz.labels import say_options
from viz.special.positional_encoding import PositionMap

MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def _origins(run: Run, side: str | None) -> tuple[int, int]:
    return (0, len(scheme.table_of(run, side)) - 1) if scheme.adds_table(run) else scheme.NOTHING


def _rotary_axes(run: Run) -> tuple[list[str], list[str]]:
    """Names of the queries and keys that RoPE rotates."""
    return axes(scheme.place_with(run, "rotary")[0]) if scheme.scheme_of(run) == "rope" else ([], [])


MEASURE = choice("Similarity", lambda run: say_options(MEASURES) if scheme.adds_table(run) else {}, key="measure")
ORIGIN = slider("From position", _origins, lambda run, side: (_origins(run, side)[1] + 1) // 2, key="from")
QUERY = menu(
    "Query",
    lambda run: dict(enumerate(_rotary_axes(run)[0])),
    lambda run: min(query_of(run), len(_rotary_axes(run)[0]) - 1),
    key="pe_query",
    follows=True,
)
KEY = menu(
    "Key",
    lambda run: dict(enumerate(_rotary_axes(run)[1])),
    lambda run: min(1, len(_rotary_axes(run)[1]) - 1),
    key="pe_key",
)
SHIFTS = 0, 512
SHIFT = slider(
    "Shift every position by s",
    lambda run: SHIFTS if scheme.scheme_of(run) == "rope" else scheme.NOTHING,
    100,
    key="pe_shift",
)


@view("Distance", code=(position_table.similarity, rotate_pairs, shifted_scores), needs=(scheme.ENCODED,))
def distance(
    run: Run,
    side: str | None = scheme.SIDE,
    rows: int | None = scheme.POSITIONS,
    measure: str | None = MEASURE,
    origin: int | None = ORIGIN,
    query: int | None = QUERY,
    key: int | None = KEY,
    shift: int | None = SHIFT,
) -> Result:
    """A measure of how far what the model does for positions depends on their distance alone."""
    match scheme.scheme_of(run):
        case "added":
            return _similarities(run, scheme.table_of(run, side), rows, measure, origin)
        case "rope":
            return _rotary_distance(run, query, key, shift)
    attention, head = scheme.place_with(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    spread = float((biased.highest - biased.lowest).max())
    facts = {"scheme": "bias", "only": spread <= scheme.ROUNDING * np.abs(biased.bias).max(), "spread": spread}
    table = pd.DataFrame({"head": range(len(biased.slopes)), "slope m, measured": biased.slopes})
    return Result({"slopes": table}, facts)


def _similarities(run: Run, encoding: Array, rows: int, measure: str, origin: int) -> Result:
    """How similar every two positions of the table are, and one position to all others by their distance."""
    similar = run.compute(position_table.similarity, encoding, measure == "cosine")
    lowest, highest = position_table.similarity_by_offset(similar)
    limit, name = 1.0 if measure == "cosine" else float(np.abs(similar).max()), MEASURES[measure]
    offsets = np.arange(len(similar)) - origin
    low, high = (values[abs(offsets)] for values in (lowest, highest))
    lines = {
        "all positions, lowest to highest": Line(offsets, similar[origin], between=(low, high)),
        # Wide, so that they are visible around the curve where lowest and highest are equal.
        "lowest": Line(offsets, low, scheme.BAND, width=5),
        "highest": Line(offsets, high, scheme.BAND, width=5),
        f"position {origin}": Line(offsets, similar[origin], width=1.5),
    }
    return Result(
        {
            "similarity": PositionMap(
                values=similar[:rows, :rows], limits=(-limit, limit), title="position", what=name, height=430
            ),
            "similarity-curve": Lines(lines, ("offset k", name), height=430),
        },
        {
            "scheme": "added",
            "learned": run.opened.config.positions == "learned",
            "called": name,
            "origin": origin,
            "spread": (highest - lowest).max(),
        },
        {"lowest": lowest, "highest": highest},
    )


def _rotary_distance(run: Run, query: int, key: int, shift: int) -> Result:
    """The score of one query and one key of the run at other distances, and all scores with the text shifted."""
    attention, head = scheme.place_with(run, "rotary")
    pairs, scores = rotate_pairs(attention, head, query, key), attention.scores[head]
    size = np.abs(scores).max()
    off = np.abs(shifted_scores(attention, head, shift) - scores).max()
    facts = {"scheme": "rope", "only": off <= scheme.ROUNDING * size, "shift": shift, "count": scores.size}
    picture = score_by_offset(pairs.offsets, pairs.scores, pairs.unrotated_score, key - query)
    return Result({"rotary-offsets": picture}, facts | {"off": off, "size": size})
