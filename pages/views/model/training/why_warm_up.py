"""Why warm-up: updates with it and without, and how far this training moved its weights."""

from math import sqrt

import numpy as np
import pandas as pd

from model.analysis.inside.warm_up import WeightMoves, moves_between_snapshots, update_sizes
from model.background.studies import LETTERS_WARMUP, read_study, study_arrays
from model.checkpoints.store import CheckpointError, shown_message
from model.run import Run
from pages.text import names_in
from pages.views import Result, view
from pages.views.controls import choice
from pages.views.model.training.log import LOGGED, fit_rates, log_of
from pages.views.model.training.one_step import INSIDE
from pages.views.model.training.snapshots import last_step, saved_steps
from pages.views.shared import card_of
from viz.forms import Line, Lines
from viz.theme import OKABE_ITO

WAYS = {
    "warm-up": ("with warm-up", OKABE_ITO[0], "circle"),
    "same peak": ("without, at the same peak", OKABE_ITO[5], "x"),
    "highest rate": ("without, equation 3 from step 1", OKABE_ITO[2], "diamond-open"),
}
"""of the runs of model.commands.warm_up: name, colour and symbol"""


UPDATED = choice("Weights", names_in("updated"), key="updated")


@view("Why warm-up", code=(moves_between_snapshots, update_sizes), tab=INSIDE)
def warm_up(run: Run, weights: str = UPDATED) -> Result:
    """Sizes of Adam's updates over the steps, with warm-up, without it at the same peak, and from the highest rate on.

    And of the training of this model how far its weights have moved, in units of the rate: it saved no moments.
    """
    study, shows = _updates(weights), {}
    facts = {"moves": None, "runs": 0, "error": ""}
    fitted, saved = (
        fit_rates(run, log_of(card_of(run))),
        [step for step in saved_steps(run) if step <= (last_step(run) or 0)],
    )
    if fitted and len(saved) > 1:
        try:
            moves = run.compute(
                moves_between_snapshots, run.opened, tuple(saved), max(round(fitted.warmup), 1), fitted.factor
            )
        except CheckpointError as error:
            return Result(facts=facts | {"error": shown_message(error)})
        shows["moves"] = _moves_chart(moves)
        sharp = moves.blur < moves.ratio / 5
        facts["moves"] = [
            (*map(int, ends), ratio) for ends, ratio in zip(moves.ends[sharp], moves.ratio[sharp], strict=True)
        ]
    if len(study):
        shows |= {name: _study_chart(study, name) for name in STUDY_TITLES}
        shares = study[study["step"] == study["step"].max()].groupby("way")["exact"]
        begin = study[study["step"] == 1].groupby("way").mean(numeric_only=True)
        facts |= {
            "runs": study["seed"].nunique(),
            "steps": int(study["step"].max()),
            "ends": {
                WAYS[way][0]: (own.mean(), own.min(), own.max()) for way in WAYS for own in [shares.get_group(way)]
            },
            "apart": shares.min()["warm-up"] > shares.max()["same peak"],
            "first": begin["ratio"]["warm-up"],
            "shares": {WAYS[way][0]: begin["size"][way] / begin["weights"][way] for way in WAYS},
            "higher": sqrt(LETTERS_WARMUP),
        }
    return Result(shows, facts, study_arrays("warm_up") if len(study) else {})


def _updates(weights: str) -> pd.DataFrame:
    """The table of model.commands.warm_up with the updates of one kind of weights; no rows if there is none."""
    study = read_study("warm_up")
    if not len(study):
        return study
    ratio, own = study[f"update_{weights}"], study[f"weights_{weights}"]
    # After the last step the rate is 0, which a logarithmic axis cannot show.
    size = (study["rate"] * ratio).replace(0, np.nan)
    return study.assign(ratio=ratio, size=size, weights=own, exact=study["dev_exact"])


def _moves_chart(moves: WeightMoves) -> Lines:
    middle = np.sqrt(np.maximum(moves.ends[:, 0], 1) * moves.ends[:, 1])
    names = [f"steps {first:,} to {last:,}" for first, last in moves.ends]
    between = np.maximum(moves.ratio - moves.blur, 0), moves.ratio + moves.blur
    line = Line(middle, moves.ratio, LOGGED, "circle", names=names, between=between)
    layout = {"yaxis": {"rangemode": "tozero"}}
    titles = ("training step (log)", "net move / sum of rates")
    return Lines({"this training": line}, titles, ".3g", "x", height=300, layout=layout)


STUDY_TITLES = {
    "size": ("training step (log)", "root mean square of an update (log)"),
    "ratio": ("training step (log)", "root mean square of an update / rate"),
    "exact": ("training step", "reversed without a mistake"),
}


def _study_chart(study: pd.DataFrame, column: str) -> Lines:
    """Mean over the seeds, with their range."""
    lines = {}
    for way, (name, colour, symbol) in WAYS.items():
        of_way = study[study["way"] == way].dropna(subset=column).groupby("step")[column]
        mean, ends = of_way.mean(), (of_way.min().to_numpy(), of_way.max().to_numpy())
        lines[name] = Line(mean.index.to_numpy(float), mean.to_numpy(), colour, symbol, size=6, between=ends)
    logarithmic = {"size": "xy", "ratio": "x"}.get(column, "")
    axis = {"exponentformat": "power"} if column == "size" else {"rangemode": "tozero"}
    return Lines(lines, STUDY_TITLES[column], ".3g", logarithmic, height=320, layout={"yaxis": axis})
