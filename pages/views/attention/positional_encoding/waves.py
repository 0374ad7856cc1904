"""Wavelengths of the dimensions."""

import math

import numpy as np

from model.analysis.positions import position_table
from model.analysis.positions.rotation import rotated_head
from model.run import Run
from pages.views import Result, view
from pages.views.attention.positional_encoding import scheme
from pages.views.controls import several
from viz.forms import Line, Lines, Mark
from viz.special.position_waves import wave_chart
from viz.special.positional_encoding import dimension_name
from viz.theme import GUIDE, OKABE_ITO


def waves_of(run: Run) -> dict[int, str]:
    width = scheme.table_of(run, None).shape[1] if scheme.follows_formula(run) else 0
    return {dimension: dimension_name(dimension) for dimension in range(width)}


WAVES = several(
    "Dimensions to draw as waves",
    waves_of,
    lambda run: [len(waves_of(run)) * part // 32 * 2 for part in (1, 3, 5, 7)],
    8,
    key="waves",
)
PERIODS = {"type": "log", "tickformat": ",", "zeroline": False}


@view("Wavelengths", code=(position_table.wavelengths_in,), needs=(scheme.PERIODIC,))
def wavelengths(
    run: Run, side: str | None = scheme.SIDE, rows: int | None = scheme.POSITIONS, waves: list[int] | None = WAVES
) -> Result:
    """How many positions each pair of dimensions needs for one period; some dimensions of a table as waves."""
    if scheme.scheme_of(run) == "rope":
        return _rotary_wavelengths(run)
    encoding = scheme.table_of(run, side)
    formula, measured = position_table.wavelengths(encoding.shape[1]), position_table.wavelengths_in(encoding)
    pairs, levels = np.arange(len(formula)), {"2π": 2 * math.pi, "10000 · 2π": 2 * math.pi * 10_000}
    levels |= {f"length of the table: {len(encoding)}": len(encoding)}
    lines = {"formula": Line(pairs, formula, GUIDE, width=1.5)}
    lines |= {"the model's table": Line(pairs, measured, GUIDE, "circle", "", size=5)}
    for dimension, colour in zip(waves, OKABE_ITO, strict=False):
        pair = [dimension // 2]
        lines[dimension_name(dimension)] = Line(pair, measured[pair], colour, "circle", "", size=12)
    picture = Lines(
        lines,
        ("pair i (dimensions 2i and 2i+1)", "wavelength, positions (log)"),
        height=380,
        marks=[
            Mark(y=level, text=name, at={"y": math.log10(level), "x": 0.01, "xanchor": "left"})
            for name, level in levels.items()
        ],
        layout={"yaxis": PERIODS | {"range": [0.6, 5.1], "dtick": 1, "exponentformat": "none"}},
    )
    facts = {
        "scheme": "added",
        "off": np.abs(measured / formula - 1).max(),
        "slow": int((formula > len(encoding)).sum()),
        "pairs": len(formula),
        "length": len(encoding),
    }
    shows = {"wavelengths": picture, "waves": wave_chart(encoding[:rows], formula, waves)}
    numbers = {"waves": encoding[:rows, waves], "waves_dimension": np.array(waves, int), "encoding": encoding}
    return Result(shows, facts, numbers)


def _rotary_wavelengths(run: Run) -> Result:
    attention, head = scheme.place_with(run, "rotary")
    length = len(attention.key_tokens)
    waves = rotated_head(run.trace, attention.kind, attention.layer, head).wavelength
    pairs, turning = np.arange(len(waves)), np.isfinite(waves)
    lines = {
        "measured in this run": Line(pairs[turning], waves[turning], OKABE_ITO[0], "circle", ""),
        f"length of your text: {length}": Line([0, len(pairs) - 1], [length] * 2, GUIDE, dash="dot"),
    }
    titles = "pair i of dimensions", "wavelength, positions (log)"
    facts = {"scheme": "rope", "slow": int((waves > length).sum()), "pairs": len(waves), "length": length}
    return Result({"wavelengths": Lines(lines, titles, height=380, layout={"yaxis": PERIODS})}, facts)
