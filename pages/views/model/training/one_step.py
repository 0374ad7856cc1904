"""From loss to update: one training step of the opened model on this pair."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from model.analysis.inside.training_step import (
    BETA_1,
    Block,
    StepOptions,
    TakenSteps,
    adam_step,
    as_trained,
    clip_factor,
    take_steps,
)
from model.language import sentence_of, tr
from model.run import Run, decode
from model.trace import Trace
from pages.text import names_in
from pages.views import Need, Result, view
from pages.views.controls import menu, number, several, slider, text
from pages.views.model.training.log import LOGGED, fit_rates, log_of
from pages.views.model.training.recipe import PAPER_SMOOTHING, PAPER_WARMUP
from pages.views.shared import card_of, log_p_changes
from viz.forms import Line, Lines, Map, Maps, Outcome, Scale, Table
from viz.labels import say_label
from viz.latex import signed
from viz.theme import WEIGHTS

INSIDE = "One training step"
"""the tab of the next four"""
TRAINED_ON = (Need.DECODER, Need.OWN_LAYERS, Need.LOGITS)
BLOCK = 8
"""rows and columns of a matrix that are drawn"""


def _own_schedule(run: Run) -> tuple[int, float]:
    """Warm-up and factor of equation 3 as read back from the log of this training; without one the paper's."""
    fitted = fit_rates(run, log_of(card_of(run)))
    return (max(round(fitted.warmup), 1), fitted.factor) if fitted else (PAPER_WARMUP, 1.0)


def _last(run: Run, matrix: str, axis: int) -> tuple[int, int]:
    return 0, run.opened.model.get_parameter(matrix).shape[axis] - 1


RIGHT = text(
    "The right translation",
    lambda run: (
        [run.trace.translation, tr("what you would write")] if Need.CROSS_ATTENTION in run.opened.features else []
    ),
    key="step_target",
    follows=True,
)
TAKEN = slider("Steps on this pair", (1, 10), 1, key="step_count")
FIRST = slider(
    "Number of the first in equation 3", (1, 20_000), lambda run: max(_own_schedule(run)[0] // 20, 1), key="step_number"
)
CHANGED = names_in("otherwise")
OTHERWISE = several("Different from the paper", CHANGED, [], len(CHANGED), key="step_otherwise")
MATRIX = menu(
    "Matrix",
    lambda run: {path: path for path, weights in run.opened.model.named_parameters() if weights.ndim == 2},
    lambda run: f"{run.opened.model.attentions()[run.kind, run.layer][0]}.w_q.weight",
    key="step_matrix",
    follows=True,
)
ROW = number("Row, {0} to {1}", lambda run, matrix: _last(run, matrix, 0), key="step_row")
COLUMN = number("Column, {0} to {1}", lambda run, matrix: _last(run, matrix, 1), key="step_column")


@view("From loss to update", code=(take_steps, adam_step, clip_factor), tab=INSIDE, needs=TRAINED_ON)
def step(
    run: Run,
    target: str | None = RIGHT,
    taken: int = TAKEN,
    first: int = FIRST,
    otherwise: Sequence[str] = OTHERWISE,
    matrix: str = MATRIX,
    row: int = ROW,
    column: int = COLUMN,
) -> Result:
    """Loss, gradient, Adam's moments and the update of one matrix, and the text after the step."""
    pair = _pair_of(run, target)
    if isinstance(pair, str):
        return Result(facts={"error": pair})
    warmup, factor = _own_schedule(run)
    beta_2, epsilon = 0.999 if "beta" in otherwise else 0.98, 1e-4 if "epsilon" in otherwise else 1e-9
    clip = 1.0 if "clip" in otherwise else 0.0
    options = StepOptions(taken, first, warmup, factor, beta_2, epsilon, clip)
    here = Block(matrix, row, column, BLOCK)
    steps = run.compute(take_steps, run.opened, pair, options, here)
    before, after = steps.log_probabilities
    shows = {
        **_block_maps(steps, here),
        "entry": _entry_table(steps, options),
        "text": Outcome(
            "The same text, before and after",
            *steps.texts,
            {"log p of the pair before": before.sum(), "after": after.sum()},
        ),
        "tokens": log_p_changes(pair.next_tokens, before, after),
    }
    if taken > 1:
        counts = np.arange(taken + 1)
        lines = {"loss": Line(counts, steps.losses, LOGGED, "circle")}
        shows["losses"] = Lines(lines, ("steps taken", "nats per token"), ".5g", height=280)
    facts = {
        "error": "",
        "translates": target is not None,
        "warmup": warmup,
        "multiplier": factor,
        "rate": steps.rate,
        "losses": (steps.losses[0], steps.losses[-1]),
        "smoothing": PAPER_SMOOTHING,
        "norm": steps.norms[-1],
        "clip": clip,
        "factor": clip_factor(steps.norms[-1], clip),
        "size": steps.sizes[-1],
        "largest": steps.largest_update,
        "beta_1": BETA_1,
        "beta_2": beta_2,
        "epsilon": epsilon,
        "entry": (matrix, row, column),
        "megabytes": 16 * steps.parameters / 1e6,
    }
    return Result(
        shows,
        facts,
        {f"block_{name}": values for name, values in steps.adam.items()}
        | {"losses": steps.losses, "gradient_norms": steps.norms, "update_sizes": steps.sizes},
    )


def _pair_of(run: Run, target: str | None) -> Trace | str:
    """The run as trained on the text and its right translation; a sentence if that cannot be read."""
    if target is None or target.strip() == run.trace.translation.strip():
        return as_trained(run.trace)
    try:
        return run.compute(decode, run.opened, replace(run.request, target=target, interventions=()))
    except ValueError as error:
        return sentence_of(error)


def _block_maps(steps: TakenSteps, here: Block) -> dict[str, Maps]:
    """Two pictures: what comes from back-propagation, and what Adam makes of it."""
    adam, starts = steps.adam, (here.row, here.column)
    names = [[str(first + place) for place in range(n)] for first, n in zip(starts, steps.before.shape, strict=True)]
    roots = np.sqrt(adam["v_hat"])
    signed_maps = {
        title: Map(values, None, Scale.signed(values, title=what), what)
        for title, values, what in (
            ("gradient", adam["gradient"], "g"),
            ("mean: m̂", adam["m_hat"], "m̂"),
            ("update", adam["update"], "update"),
        )
    }
    end = float(roots.max()) or 1.0
    root = Map(roots, None, Scale(0, end, WEIGHTS, f"√v̂<br>0 to {signed(end)}"), "√v̂")
    first = {"gradient": signed_maps["gradient"], "root of the mean square: √v̂": root}
    second = {title: signed_maps[title] for title in ("mean: m̂", "update")}
    axes_of = ("row", "column")
    return {"gradient": Maps(*names, first, axes=axes_of), "update": Maps(*names, second, axes=axes_of)}


def _entry_table(steps: TakenSteps, options: StepOptions) -> Table:
    """The chosen weight on its way through the step, a line a quantity."""
    adam = {name: values[0, 0] for name, values in steps.adam.items()}
    lines = {
        "weight before": ("w", steps.before[0, 0]),
        "gradient of the loss": ("∂L/∂w", steps.gradient[0, 0]),
        "after clipping": ("g", adam["gradient"]),
        "mean of the gradients": ("m", adam["m"]),
        "mean of their squares": ("v", adam["v"]),
        "m, corrected for its start at 0": (say_label(f"m̂ = m / (1 − {BETA_1:g}^{options.steps})"), adam["m_hat"]),
        "v, corrected": (say_label(f"v̂ = v / (1 − {options.beta_2:g}^{options.steps})"), adam["v_hat"]),
        "rate of equation 3": ("η", steps.rate),
        "update": ("−η m̂ / (√v̂ + ε)", adam["update"]),
        "update in units of the rate": ("", adam["update"] / steps.rate),
        "weight after": ("w + update", steps.after[0, 0]),
    }
    quantity, (formula, value) = list(lines), zip(*lines.values(), strict=True)
    return Table(pd.DataFrame({"quantity": quantity, "formula": formula, "number": np.array(value, float)}), "%.6g")
