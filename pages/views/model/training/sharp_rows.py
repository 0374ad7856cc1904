"""How sharp rows become while a model trains, and what keeps them from it."""

from itertools import cycle

import pandas as pd

from model.analysis.heads.sharpness import CHOICES, COLLAPSED, measure_sharpness
from model.background.studies import read_study, study_arrays
from model.language import sentence
from model.run import Run
from model.trace import KIND_TITLES
from model.training.score_clip import ScoreClip
from pages.text import names_in
from pages.views import Result, view
from pages.views.model.training.log import LOGGED, TIMES, log_of
from pages.views.shared import card_of
from viz.forms import Line, Lines
from viz.labels import say_label
from viz.theme import OKABE_ITO

REMEDIES = names_in("remedies")
"""runs of checkpoints/studies/sharpness.csv -> what they do against scores that grow"""
EVEN = "entropy of a row, of that of equal weights"


@view("Sharpness over the training", code=(measure_sharpness, ScoreClip))
def sharpness(run: Run) -> Result:
    """How sharply the heads attend over the training, of this model and of small ones with a remedy each."""
    log, study = log_of(card_of(run)), read_study("sharpness")
    shows = {} if study.empty else _remedies(study)
    facts = {"ends": {}, "logged": "evenness" in log, "collapsed": COLLAPSED, "choices": CHOICES}
    if facts["logged"]:
        shows = {"own": _own_sharpness(log)} | shows
    if not study.empty:
        ends = study.groupby("run", sort=False).last()
        known = ends.loc[[name for name in REMEDIES if name in ends.index]]
        shows["table"] = pd.DataFrame(
            {
                "run": [say_label(REMEDIES[name]) for name in known.index],
                EVEN: known["evenness"],
                "largest |q·k / √dₖ|": known["largest_score"],
                "loss, nats per piece": known["dev_loss"],
                "bits per byte": known["dev_bits_per_byte"],
            }
        )
        shows["table"].attrs["floats"] = "%.3g"
        facts |= {
            "ends": known[["evenness", "largest_score", "dev_loss"]].to_dict("index"),
            "parameters": int(known["parameters"].iloc[0]),
            "tokens": float(known["tokens"].iloc[0]),
        }
    return Result(shows, facts, study_arrays("sharpness"))


def _own_sharpness(log: pd.DataFrame) -> Lines:
    """Mean evenness of each layer at the logged steps that have it."""
    rows = log.dropna(subset="evenness")
    at = rows["step"].to_numpy(float)
    lines = {"all heads": Line(at, rows["evenness"].to_numpy(float), LOGGED, "circle", width=3)}
    columns = [column for column in rows if column.startswith("evenness_")]
    for column, colour in zip(columns, cycle(OKABE_ITO[1:7]), strict=False):
        kind, layer = column.removeprefix("evenness_").rsplit("_", 1)
        name = sentence("{kind}, layer {layer}", kind=sentence(KIND_TITLES[kind]), layer=layer)
        lines[str(name)] = Line(at, rows[column].to_numpy(float), colour, dash="dot")
    return Lines(lines, (TIMES["step"], EVEN), ".3f", height=400, layout={"yaxis": {"range": [0, 1]}})


def _remedies(study: pd.DataFrame) -> dict[str, Lines]:
    """Evenness, largest score and loss of each small run over its steps."""
    measures = {"even": ("evenness", EVEN, ""), "scores": ("largest_score", "largest |q·k / √dₖ|", "y")}
    measures |= {"losses": ("dev_loss", "nats per token", "")}
    names = [name for name in REMEDIES if name in set(study["run"])]
    runs = {name: study[study["run"] == name] for name in names}
    return {
        show: Lines(
            {
                REMEDIES[name]: Line(
                    own["step"].to_numpy(float),
                    own[column].to_numpy(float),
                    colour,
                    "circle" if name == "none" else "diamond-open",
                )
                for (name, own), colour in zip(runs.items(), OKABE_ITO, strict=False)
            },
            (TIMES["step"], title),
            ".4g",
            log,
            # Plotly writes 20 as "2" on a logarithmic axis.
            layout={"yaxis": {"tickvals": [1, 2, 5, 10, 20, 50, 100, 200, 500]}} if log else {},
        )
        for show, (column, title, log) in measures.items()
    }
