"""A step of k positions as a rotation of each pair of dimensions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.analysis.positions import position_table
from model.run import Run
from pages.views import Result, view
from pages.views.attention.positional_encoding.scheme import SIDE, SINES, table_of
from pages.views.attention.positional_encoding.waves import waves_of
from pages.views.controls import several, slider
from viz.special.position_waves import block_equation, block_map, clock_chart
from viz.special.positional_encoding import positions_text


def _half_length(run: Run, side: str | None) -> int:
    return len(table_of(run, side)) // 2


def _pairs(run: Run) -> int:
    return len(waves_of(run)) // 2


START = slider("Position pos", lambda run, side: (0, _half_length(run, side) - 1), 5, key="pos")
OFFSET = slider("Offset k", lambda run, side: (1, _half_length(run, side)), 10, key="offset")
PAIR = slider("Pair i", lambda run: (0, _pairs(run) - 1), lambda run: _pairs(run) // 8, key="pair")
PAIRS = several(
    "Pairs of dimensions to draw as well",
    lambda run: range(_pairs(run)),
    lambda run: sorted({round(at) for at in np.linspace(0, _pairs(run) - 1, min(6, _pairs(run)))}),
    7,
    key="pe_pairs",
)


@view("Rotation", code=(position_table.rotate,), needs=(SINES,))
def table_rotation(
    run: Run,
    side: str | None = SIDE,
    start: int = START,
    offset: int = OFFSET,
    pair: int = PAIR,
    pairs: Sequence[int] = PAIRS,
) -> Result:
    """PE(pos + k) = M_k PE(pos): clock hands, the blocks of M_k, one of them in numbers, and the largest error."""
    encoding, k, shown = table_of(run, side), offset, sorted({*pairs, pair})
    blocks, predicted = position_table.rotation_blocks(encoding, k), position_table.rotate(encoding, k)
    errors, waves = np.abs(predicted - encoding[k:]), position_table.wavelengths(encoding.shape[1])
    rows = {f"PE({start})": encoding[start], f"PE({start + k})": encoding[start + k]}
    both = slice(2 * pair, 2 * pair + 2)
    table = pd.DataFrame(
        {
            "pair": shown,
            "wavelength": [positions_text(waves[i]) for i in shown],
            "rotation": [f"{360 * k / waves[i]:,.4g}°" for i in shown],
            "largest error": errors.max(axis=0).reshape(-1, 2).max(axis=1)[shown],
        }
    )
    table.attrs["floats"] = "%.1e"
    return Result(
        {
            "clocks": clock_chart(rows, {f"M<sub>{k}</sub> PE({start})": predicted[start]}, shown, pair, waves),
            "blocks": block_map(blocks[shown], shown, k),
            "pairs": table,
        },
        {
            "offset": k,
            "lengths": encoding.shape,
            "off": errors.max(),
            "pairs": len(waves),
            "equation": block_equation(blocks[pair], encoding[start, both], encoding[start + k, both], start, k, pair),
        },
        {"blocks": blocks, "predicted": predicted},
    )
