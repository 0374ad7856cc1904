"""The same run in bfloat16 and float16: where it leaves float32."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from model.analysis.inside.number_formats import FP16_LIMIT, ROUNDING, FormatRun, largest_score, run_in_formats
from model.analysis.inside.training_step import as_trained
from model.analysis.runs.gradients import stream_steps
from model.run import Place, Run
from model.trace import Array, Trace
from pages.views import Result, view
from pages.views.model.training.one_step import INSIDE, TRAINED_ON
from viz.forms import Line, Lines, Mark
from viz.labels import say_label
from viz.latex import signed
from viz.theme import OKABE_ITO

FORMAT_STYLES = {"bf16": {"colour": OKABE_ITO[5], "symbol": "circle"}, "fp16": {"colour": OKABE_ITO[2], "symbol": "x"}}


@view("Number formats", code=(run_in_formats, largest_score), tab=INSIDE, needs=TRAINED_ON)
def formats(run: Run) -> Result:
    """The same run in single precision, bfloat16 and half precision, layer by layer."""
    pair = as_trained(run.trace)
    found = run.compute(run_in_formats, run.opened, pair)
    largest, reference = largest_score(run.trace), found["fp32"]
    shows = {stack: _formats_chart(run.trace, stack, found) for stack in run.trace.streams}
    shows["formats"] = pd.DataFrame(
        {
            "format": list(found),
            "one rounding, at most": [signed(ROUNDING[name], ".2g") for name in found],
            "first step that is further off": [
                _first_apart(run.trace, one.differences, ROUNDING[name]) for name, one in found.items()
            ],
            "other most probable tokens": [int((one.best != reference.best).sum()) for one in found.values()],
            "log p of the text": [one.log_probabilities.sum() for one in found.values()],
            "writes the same, greedily": [
                "–" if one.text is None else "yes" if one.text == reference.text else "no" for one in found.values()
            ],
        }
    )
    shows["formats"].attrs["floats"] = "%.4f"
    facts = {
        "stacks": list(run.trace.streams),
        "largest": largest.score,
        "head": Place(largest.kind, largest.layer, largest.head).title,
        "limit": FP16_LIMIT,
        "exact": found["fp16"].exact_weights,
        "worst": {name: max(map(np.max, one.differences.values())) for name, one in found.items()},
    }
    return Result(shows, facts, {f"log_probability_{name}": one.log_probabilities for name, one in found.items()})


def _formats_chart(trace: Trace, stack: str, found: Mapping[str, FormatRun]) -> Lines:
    names = [say_label(step) for step in stream_steps(trace, stack)]
    places = np.arange(len(names))
    lines = {
        name: Line(places, found[name].differences[stack], **style, names=names)
        for name, style in FORMAT_STYLES.items()
    }
    marks = [
        Mark(y=ROUNDING[name], colour=style["colour"], text=f"one rounding, {name}")
        for name, style in FORMAT_STYLES.items()
    ]
    layout = {"xaxis": {"tickangle": -45}, "yaxis": {"exponentformat": "power", "dtick": 1}}
    titles = ("sub-layer", "relative difference from fp32 (log)")
    return Lines(lines, titles, ".3g", "y", ticks=names, of="after", marks=marks, layout=layout)


def _first_apart(trace: Trace, differences: Mapping[str, Array], rounding: float) -> str:
    """The first step, encoder first, that is further from fp32 than one rounding."""
    for stack, values in differences.items():
        if (apart := np.flatnonzero(values > rounding)).size:
            return f"{stack}, {stream_steps(trace, stack)[apart[0]]}"
    return "none"
