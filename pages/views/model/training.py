"""Training: the log of this checkpoint, learning rate, label smoothing, attention at earlier steps, our own studies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import sqrt
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.induction import (
    CHANCE,
    LENGTH,
    SEQUENCES,
    TESTED,
    Repetition,
    induction_scores,
    measure_repetition,
    repeat_random_tokens,
    text_pieces,
)
from model.analysis.heads.sharpness import CHOICES, COLLAPSED, measure_sharpness
from model.analysis.heads.softmax import uniform_weights
from model.analysis.inside.dropout import (
    DRAWS,
    EMBEDDED,
    EVERYWHERE,
    dropout_cost,
    dropout_places,
    dropped_at,
)
from model.analysis.inside.number_formats import FP16_LIMIT, ROUNDING, FormatRun, largest_score, run_in_formats
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
from model.analysis.inside.warm_up import WeightMoves, moves_between_snapshots, update_sizes
from model.analysis.runs.gradients import stream_steps
from model.background import induction
from model.background.studies import (
    DEPTHS,
    LETTERS_STEPS,
    LETTERS_WARMUP,
    PLACEMENTS,
    Comparison,
    compare_with_paper,
    ends_of_runs,
    fit_power_law,
    letters_run,
    read_study,
    study_arrays,
)
from model.background.studies import WARMUP as STUDY_WARMUP
from model.background.table_3 import TABLE_3
from model.checkpoints.card import Card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import (
    CheckpointError,
    checkpoint_path,
    load_checkpoint,
    shown_message,
    shown_name,
    study_checkpoints,
)
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.language import Numeral, Sentence, joined, later, sentence, sentence_of, series, tr
from model.network.network import EMBEDDINGS
from model.network.residual import BatchNorm, Residual
from model.run import Place, Run, decode, force
from model.trace import KIND_TITLES, SUBLAYER_TITLES, Array, Attention, Trace
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares, target_entropy
from model.training.schedule import FittedSchedule, fit_schedule, noam, schedule_curve
from model.training.score_clip import ScoreClip
from pages.views import Need, Result, answer, view
from pages.views.controls import SWITCH, choice, decimals, menu, number, several, slider, steps, text, toggle
from pages.views.shared import POSITION, axes, card_of, is_outdated, log_p_bars
from viz.candidates import candidate_names, with_rest
from viz.forms import Line, Lines, Map, Maps, Mark, Outcome, Scale, Table, Texts
from viz.labels import say_label, say_options
from viz.latex import signed, span
from viz.special.studies import ablation_chart, scaling_chart
from viz.special.translate import rank_candidates
from viz.theme import DECODER, OKABE_ITO, WEIGHTS
from viz.tokens import decoder_rows, numbered

PAPER_WARMUP, PAPER_SMOOTHING = 4000, 0.1
DRAWN = 600
"""points of the schedule's curve"""
KAPLAN, CHINCHILLA = 0.076, 20
"""exponent of loss over parameters (Kaplan et al. 2020, figure 1); tokens per parameter (Hoffmann et al. 2022)"""

LOGGED, DEVELOPMENT, SPEED = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]
LETTERS_TEXT = "r o s e"
"""what the models that reverse letters are opened on"""
CURVES = {
    "train_loss": ("training", "nats per token", LOGGED, "circle"),
    # The two curves of one picture differ in more than their colours.
    "dev_loss": ("development", "nats per token", DEVELOPMENT, "diamond-open"),
    "dev_bleu": ("development, greedy", "BLEU", DEVELOPMENT, "circle"),
    "dev_bits_per_byte": ("development, lower is better", "bits per byte", DEVELOPMENT, "circle"),
    "dev_accuracy": ("development, guessed right", "share of masked tokens", DEVELOPMENT, "circle"),
    "tokens_per_second": ("target tokens", "tokens per second", SPEED, "circle"),
}
"""column of the log -> name, unit, colour and symbol"""
SCORES = "dev_bleu", "dev_bits_per_byte", "dev_accuracy"
"""of a translator, a language model and a masked language model"""
TIMES = {"step": "training step", "epoch": "epoch", "hours": "hours of training"}


def _log(card: Card) -> pd.DataFrame:
    """log.csv, NaN for empty cells; no rows without a log."""
    return pd.DataFrame([dict(row) for row in card.log])


def _times(run: Run) -> dict[str, str]:
    log = _log(card_of(run))
    times = {column: say_label(title) for column, title in TIMES.items() if column in log}
    return times if len(times) > 1 and {*CURVES} & {*log} else {}


OVER = choice("Over", _times, key="over")


@view("Loss and score")
def curves(run: Run, over: str | None = OVER) -> Result:
    """Loss, score and speed over the training, as far as the log has them."""
    card = card_of(run)
    log = _log(card)
    over = over or next((column for column in TIMES if column in log), None)
    score = next((column for column in SCORES if column in log), SCORES[0])
    panels = {"loss": ("train_loss", "dev_loss"), "score": (score,), "speed": ("tokens_per_second",)}
    drawn = {name: [column for column in columns if column in log] for name, columns in panels.items() if over}
    lacks = [column for columns in panels.values() for column in columns if column not in log]
    facts = {
        "outdated": is_outdated(run, card),
        "without": card.missing.get("log.csv", sentence("This checkpoint's log.csv holds no curve.")),
        "drawn": [name for name, columns in drawn.items() if columns],
        "lacks": series(lacks) if lacks else "",
        "rises": _rises(_fit(run, log)),
    }
    shows = {name: _over_time(log, over, columns) for name, columns in drawn.items() if columns}
    return Result(shows, facts, {f"log_{column}": values.to_numpy(float) for column, values in log.items()})


def _rises(fitted: FittedSchedule | None) -> list[Numeral]:
    """The logged steps at which the rate has risen again."""
    steps = (fitted.restarted_at, *fitted.raised_at) if fitted and fitted.restarted_at else ()
    return [Numeral(f"{step:,}") for step in steps]


def _over_time(log: pd.DataFrame, over: str, columns: Sequence[str]) -> Lines:
    """Columns of one unit."""
    lines = {
        name: Line(log[over].to_numpy(float), log[column].to_numpy(float), colour, symbol)
        for column in columns
        for name, _, colour, symbol in [CURVES[column]]
    }
    _, unit, *_ = CURVES[columns[0]]
    return Lines(lines, (TIMES[over], unit), ".6g", layout={"yaxis": {"rangemode": "tozero"}})


def _rates(log: pd.DataFrame) -> tuple[Array, Array] | None:
    """Steps and learning rates of the log; None if it has none."""
    if not {"step", "learning_rate"} <= set(log):
        return None
    rows = log[["step", "learning_rate"]].dropna()
    return (rows["step"].to_numpy(float), rows["learning_rate"].to_numpy(float)) if len(rows) else None


def _fit(run: Run, log: pd.DataFrame) -> FittedSchedule | None:
    rates = _rates(log)
    return fit_schedule(*rates, run.opened.config.d_model) if rates else None


REMEDIES = {
    "none": "no remedy",
    "clip-12": "QK-clip: scores up to 12",
    "decay-1": "weight decay of W_Q and W_K",
    "qk-norm": "QK-norm",
}
"""runs of checkpoints/studies/sharpness.csv -> what they do against scores that grow"""
EVEN = "entropy of a row, of that of equal weights"


@view("Sharpness over the training", code=(measure_sharpness, ScoreClip))
def sharpness(run: Run) -> Result:
    """How sharply the heads attend over the training, of this model and of small ones with a remedy each."""
    log, study = _log(card_of(run)), read_study("sharpness")
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


WARMUP = slider("Warm-up steps", (100, 20_000), PAPER_WARMUP, key="warmup", step=100)


@view("Learning rate", code=(noam, fit_schedule))
def schedule(run: Run, warmup: int = WARMUP) -> Result:
    """Equation 3 for a chosen warm-up and this model's width, with the logged learning rates."""
    d_model, card = run.opened.config.d_model, card_of(run)
    log = _log(card)
    rates, fitted = _rates(log), _fit(run, log)
    end = max(3 * warmup, 1.1 * rates[0].max() if rates else 0)
    curve, peak = schedule_curve(d_model, warmup, int(end), DRAWN), noam(warmup, d_model, warmup)
    lines = {f"equation 3, warm-up {warmup:,}": Line(curve["step"], curve["rate"], DECODER, width=3)}
    if fitted:
        own = max(round(fitted.warmup), 1)
        read_back = np.array([noam(step, d_model, own, fitted.factor) for step in curve["step"].tolist()])
        lines[f"equation 3 as read back, warm-up {own:,}"] = Line(curve["step"], read_back, LOGGED, dash="dot")
    if rates:
        lines["this run, log.csv"] = Line(*rates, LOGGED, "circle", "")
    top = {"y": peak, "yref": "y", "yanchor": "bottom", "xshift": 0}
    chart = Lines(
        lines,
        ("training step", "learning rate"),
        ".6g",
        height=400,
        marks=[Mark(x=warmup, text=f"{signed(peak)} at step {warmup:,}", at=top)],
        layout={"yaxis": {"rangemode": "tozero", "exponentformat": "power"}},
    )
    facts = {
        "outdated": is_outdated(run, card),
        "d_model": d_model,
        "peak": peak,
        "paper": PAPER_WARMUP,
        "logged": len(rates[0]) if rates else 0,
        "fitted": fitted,
        "jumps": fitted.raised_at if fitted else (),
    }
    return Result({"schedule": chart}, facts)


EPSILON = steps("Label smoothing ε", decimals(0.0, 0.5, 0.01), PAPER_SMOOTHING, key="epsilon")


@view(
    "Label smoothing",
    code=(label_smoothed_loss, smoothed_shares, cross_entropies),
    needs=(Need.LOGITS,),
)
def smoothing(run: Run, position: int = POSITION, epsilon: float = EPSILON) -> Result:
    """The smoothed target at one position, the model's probabilities there, and both cross-entropies."""
    trace, vocabulary = run.trace, run.trace.logits.shape[-1]
    share, other = smoothed_shares(vocabulary, epsilon)
    probabilities, correct = trace.probabilities[position], trace.next_ids[position]
    written = trace.next_tokens[position], correct, float(probabilities[correct])
    names, model, chosen = rank_candidates(trace.candidates[position], written)
    target = np.full(len(names), other)
    target[chosen] = share
    plain, smoothed = (cross_entropies(trace.logits, trace.next_ids, one) for one in (0.0, epsilon))
    numbers = {
        "target, correct token": (share, "1 − ε + ε/V"),
        "target, each other token": (other, "ε/V"),
        "model, correct token": (written[2], "The probability that the model gives it here"),
        "nats, one-hot": (plain[position], "Cross-entropy with all of the target on the correct token"),
        "nats, smoothed": (smoothed[position], "Cross-entropy with the smoothed target"),
    }
    table = Table(
        pd.DataFrame({name: [value] for name, (value, _) in numbers.items()}),
        helps={name: text for name, (_, text) in numbers.items()},
    )
    facts = {
        "row": decoder_rows(trace.row_tokens, trace.next_tokens)[position],
        "position": position,
        "positions": len(plain),
        "vocabulary": vocabulary,
        "means": (plain.mean(), smoothed.mean()),
        "entropy": target_entropy(vocabulary, epsilon),
    }
    return Result(
        {"shares": table, "smoothing": _smoothed(names, target, model, chosen, vocabulary)},
        facts,
        {
            "target": target,
            "model": model,
            "probabilities": probabilities,
            "cross_entropy": plain,
            "cross_entropy_smoothed": smoothed,
            "logits": trace.logits,
        },
    )


def _smoothed(tokens: Sequence[str], target: Array, model: Array, right: int, vocabulary: int) -> Lines:
    """Smoothed target and model at one position: its best tokens, the right one shaded, and all others."""
    names = candidate_names(tokens, vocabulary - len(tokens))
    series = ("smoothed target", target, OKABE_ITO[3], "diamond"), ("the model, here", model, DECODER, "circle")
    return Lines(
        {
            name: Line(np.arange(len(names)), with_rest(values), colour, symbol, "", size=12, names=names)
            for name, values, colour, symbol in series
        },
        ("token", "probability (log), of the whole vocabulary"),
        ".6g",
        "y",
        names,
        "token",
        marks=[Mark(x=right - 0.5, to=right + 0.5)],
        layout={"yaxis": {"exponentformat": "power"}},
    )


INSIDE = "One training step"
"""the tab of the next four"""
TRAINED_ON = (Need.DECODER, Need.OWN_LAYERS, Need.LOGITS)
BLOCK = 8
"""rows and columns of a matrix that are drawn"""


def _translation(run: Run) -> list[str]:
    return [run.trace.translation, tr("what you would write")] if Need.CROSS_ATTENTION in run.opened.features else []


def _matrices(run: Run) -> dict[str, str]:
    return {path: path for path, weights in run.opened.model.named_parameters() if weights.ndim == 2}


def _own_schedule(run: Run) -> tuple[int, float]:
    """Warm-up and factor of equation 3 as read back from the log of this training; without one the paper's."""
    fitted = _fit(run, _log(card_of(run)))
    return (max(round(fitted.warmup), 1), fitted.factor) if fitted else (PAPER_WARMUP, 1.0)


def _own_matrix(run: Run) -> str:
    """W_Q of the chosen attention."""
    path, _ = run.opened.model.attentions()[run.kind, run.layer]
    return f"{path}.w_q.weight"


def _last(run: Run, matrix: str, axis: int) -> tuple[int, int]:
    return 0, run.opened.model.get_parameter(matrix).shape[axis] - 1


RIGHT = text("The right translation", _translation, key="step_target", follows=True)
TAKEN = slider("Steps on this pair", (1, 10), 1, key="step_count")
FIRST = slider(
    "Number of the first in equation 3", (1, 20_000), lambda run: max(_own_schedule(run)[0] // 20, 1), key="step_number"
)
CHANGED = {
    "beta": "β₂ = 0.999 instead of 0.98",
    "epsilon": "ε = 1e-4 instead of 1e-9",
    "clip": "gradient clipped to norm 1",
}
OTHERWISE = several("Different from the paper", CHANGED, [], len(CHANGED), key="step_otherwise")
MATRIX = menu("Matrix", _matrices, _own_matrix, key="step_matrix", follows=True)
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
        "tokens": log_p_bars(pair.next_tokens, before, after),
    }
    if taken > 1:
        counts = np.arange(taken + 1)
        lines = {"loss": Line(counts, steps.losses, LOGGED, "circle")}
        shows["losses"] = Lines(lines, ("steps taken", "nats per token"), ".5g", height=280)
    facts = {
        "error": "",
        "translates": target is not None,
        "taken": taken,
        "first": first,
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


def _dropout_rates(run: Run) -> dict[float, str]:
    own = run.opened.config.dropout
    own_rate = {own: f"{own:g}, as this model was trained"} if own not in (0, 0.1) else {}
    return say_options(own_rate | {0.1: "0.1, the paper's base"})


def _sublayers(run: Run) -> dict[str, str]:
    """By hook point: where dropout acts, in words."""
    places = {}
    for path in dropout_places(run.opened.model):
        stack, *rest = path.split(".")
        embedded = next((name for name, one in EMBEDDINGS.items() if one == stack), "")
        if embedded:
            places[path] = say_label(f"{embedded}: embeddings + positions")
        else:
            places[path] = say_label(f"{stack}, layer {rest[1]}: {SUBLAYER_TITLES[rest[2]]}")
    return places


DROPPED_RATE = choice("Dropout rate", _dropout_rates, key="dropout_rate")
DROPPED_PLACE = menu("Place", _sublayers, key="dropout_place")
DROPPED_SEED = slider("Seed of the draw", (0, 20), 0, key="dropout_seed")
DIMENSIONS = 48
"""of a vector that are drawn"""


@view("Dropout", code=(dropout_cost, dropped_at), tab=INSIDE, needs=TRAINED_ON)
def dropout(run: Run, rate: float = DROPPED_RATE, place: str = DROPPED_PLACE, seed: int = DROPPED_SEED) -> Result:
    """What one draw of dropout sets to 0 at a place, and what 20 draws cost at each."""
    pair = as_trained(run.trace)
    drawn = run.compute(dropped_at, run.opened, pair, place, rate, seed)
    cost = run.compute(dropout_cost, run.opened, pair, rate)
    stack = place.split(".")[0]
    stack = next((name for name, one in EMBEDDINGS.items() if one == stack), stack)
    shown = drawn.after[:, :DIMENSIONS], drawn.kept[:, :DIMENSIONS]
    values = Map(*shown, Scale.signed(shown[0], title="after<br>dropout"), "after dropout")
    names = {EMBEDDED: "embeddings + positions", EVERYWHERE: "everywhere, as in training"} | SUBLAYER_TITLES
    table = pd.DataFrame(
        {
            "dropout at": [names[kind] for kind in cost.changes],
            "places": [sum(one == kind for one in dropout_places(run.opened.model).values()) for kind in cost.changes],
            "log p, mean change in nats": [changes.mean() for changes in cost.changes.values()],
            "standard deviation": [changes.std(ddof=1) for changes in cost.changes.values()],
            "largest loss": [changes.min() for changes in cost.changes.values()],
        }
    )
    table.loc[table.index[-1], "places"] = len(dropout_places(run.opened.model))
    table.attrs["floats"] = "%+.3f"
    columns = [str(dimension) for dimension in range(shown[0].shape[1])]
    dropped = Maps(numbered(run.trace.streams[stack].tokens.labels), columns, {"": values}, axes=("token", "dimension"))
    everywhere = cost.changes[EVERYWHERE]
    return Result(
        {"dropped": dropped, "cost": table},
        {
            "rate": rate,
            "exact": round(256 * rate),
            "place": _sublayers(run)[place],
            "seed": seed,
            "share": 1 - drawn.kept.mean(),
            "dimensions": len(columns),
            "d_model": drawn.kept.shape[1],
            "draws": DRAWS,
            "without": cost.without,
            "mean": everywhere.mean(),
            "spread": everywhere.std(ddof=1),
            "own": run.opened.config.dropout,
        },
        {f"change_{kind}": changes for kind, changes in cost.changes.items()} | {"kept": drawn.kept},
    )


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


WAYS = {
    "warm-up": ("with warm-up", OKABE_ITO[0], "circle"),
    "same peak": ("without, at the same peak", OKABE_ITO[5], "x"),
    "highest rate": ("without, equation 3 from step 1", OKABE_ITO[2], "diamond-open"),
}
"""of the runs of model.commands.warm_up: name, colour and symbol"""


UPDATED = choice(
    "Weights",
    {
        "all": "all",
        "embeddings": "embeddings",
        "attention": "attention",
        "feed_forward": "feed-forward",
        "norm": "norm",
    },
    key="updated",
)


@view("Why warm-up", code=(moves_between_snapshots, update_sizes), tab=INSIDE)
def warm_up(run: Run, weights: str = UPDATED) -> Result:
    """Sizes of Adam's updates over the steps, with warm-up, without it at the same peak, and from the highest rate on.

    And of the training of this model how far its weights have moved, in units of the rate: it saved no moments.
    """
    study, shows = _updates(weights), {}
    facts = {"moves": None, "runs": 0, "error": ""}
    fitted, saved = _fit(run, _log(card_of(run))), [step for step in _saved(run) if step <= (_last_step(run) or 0)]
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


END = "end"
"""of the slider: the shipped weights"""


@dataclass(frozen=True)
class Moment:
    """The text of the page, read with the weights of one training step."""

    hash: str
    """SHA-256 of these weights"""
    attention: Attention
    """the chosen one"""
    log_probabilities: Array
    """(position,) of the text's tokens"""
    greedy: str | None
    """their own greedy translation; None: the model does not translate"""

    @property
    def loss(self) -> float:
        """Cross-entropy without smoothing, in nats per token."""
        return float(-self.log_probabilities.mean())


def _saved(run: Run) -> tuple[int, ...]:
    return snapshot_steps(checkpoint_path(run.opened.name))


def _last_step(run: Run) -> int | None:
    log = _log(card_of(run))
    return int(log["step"].max()) if "step" in log else None


def _moments(run: Run) -> dict[str, str]:
    """Every saved step and the end; without commas, which in a link would separate two values."""
    saved = _saved(run)
    return {str(step): str(step) for step in saved} | {END: str(_last_step(run) or END)} if saved else {}


SNAPSHOT = steps("After training step", _moments, END, key="snapshot")
EVERY = toggle("List all steps", lambda run: SWITCH if _saved(run) else {}, key="all-steps")


@view("Attention through training", code=(open_snapshot,), needs=(Need.LOGITS,))
def snapshots(run: Run, snapshot: str | None = SNAPSHOT, every: bool | None = EVERY) -> Result:
    """The chosen head, and the cross-entropy of the text, with the weights of a training step."""
    if snapshot is None:
        return Result(facts={"saved": False, "name": shown_name(run.opened.name)}, lacks=Need.SNAPSHOTS)
    facts = {"saved": True, "step": None if snapshot == END else int(snapshot), "last": _last_step(run), "error": ""}
    try:
        here = _moment(run, snapshot)
        moments = {one: _moment(run, one) for one in _moments(run)} if every else {}
    except CheckpointError as error:
        return Result(facts=facts | {"error": shown_message(error)})
    attention = here.attention
    rows, keys = axes(attention)
    pattern, mask = attention.pattern[run.head], attention.mask[run.head]
    shows = {"pattern": Maps(rows, keys, {"": Map(pattern, mask)})}
    if here.greedy is not None:
        shows["greedy"] = Texts({"Greedy translation with these weights": here.greedy})
    if moments:
        shows["steps"] = _all_steps(moments, _moments(run))
    facts |= {
        "greedy": here.greedy is not None,
        "every": bool(moments),
        "loss": here.loss,
        "vocabulary": run.trace.logits.shape[-1],
        "uniform": float(np.log(run.trace.logits.shape[-1])),
        "hash": here.hash[:12],
        "moved": total_variation(pattern, run.attention.pattern[run.head]).mean(),
        "uneven": total_variation(pattern, uniform_weights(mask)).mean(),
    }
    return Result(shows, facts, {"every_head": attention.pattern, "log_probability": here.log_probabilities})


def _moment(run: Run, snapshot: str) -> Moment:
    """Raises CheckpointError if the snapshot's file is damaged."""
    opened, trace = run.opened, run.trace
    if snapshot != END:
        opened = run.compute(open_snapshot, opened, int(snapshot))
        trace = run.compute(force, opened, trace, trace.interventions)
    translates = Need.CROSS_ATTENTION in opened.features
    greedy = run.compute(_translate, opened, trace.source, trace.interventions) if translates else None
    return Moment(opened.hash, trace.attention(run.kind, run.layer), trace.target_log_probabilities, greedy)


def _translate(opened: Translator, source: str, changes: tuple[Intervention, ...]) -> str:
    (greedy,) = opened.translate((source,), 1, interventions=changes)
    return greedy


def _all_steps(moments: Mapping[str, Moment], labels: Mapping[str, str]) -> pd.DataFrame:
    texts = [moment.greedy for moment in moments.values()]
    table = pd.DataFrame(
        {"step": [f"{int(label):,}" if label.isdecimal() else label for label in labels.values()]}
        | ({"greedy translation": texts} if None not in texts else {})
        | {"nats per token of this text": [moment.loss for moment in moments.values()]}
    )
    table.attrs["floats"] = "%.3f"
    return table


SHOWN_SEED = 2
"""of the random tokens in the picture; 0 and 1 are those of the measures"""
FIRST_HALF, SECOND_HALF, FOUND, BEFORE = OKABE_ITO[3], OKABE_ITO[5], OKABE_ITO[0], OKABE_ITO[2]


def _read_forming() -> induction.Forming | None:
    return induction.read_forming(checkpoint_path(induction.CHECKPOINT))


def _forming_steps(_: Run) -> dict[str, str]:
    """The steps after which the small model was saved, and the end."""
    try:
        measured = _read_forming()
    except ValueError:
        return {}
    saved = snapshot_steps(checkpoint_path(induction.CHECKPOINT))
    return {str(step): str(step) for step in saved} | {END: str(measured.steps[-1])} if measured else {}


FORMING = steps("After training step", _forming_steps, END, key="forming")


@view("An induction head forms", code=(measure_repetition, induction_scores, repeat_random_tokens))
def forming(run: Run, formed: str | None = FORMING) -> Result:
    """Losses and heads of a small model on repeated random tokens over its training; its weights after one step."""
    try:
        measured = _read_forming()
        if measured is None or formed is None:
            return Result(facts={"problem": "", "measured": None})
        opened = run.compute(load_checkpoint, induction.CHECKPOINT, run.opened.device)
        if formed != END:
            opened = run.compute(open_snapshot, opened, int(formed))
        now = run.compute(measure_repetition, opened)
    except ValueError as error:
        return Result(facts={"problem": shown_message(error)})
    step = int(measured.steps[-1] if formed == END else formed)
    layer, head = measured.heads[measured.induction]
    text = opened.tokenizer.decode(repeat_random_tokens(opened.tokenizer, 1, LENGTH, SHOWN_SEED)[0].tolist())
    trace = opened.trace(text)
    attentions = [trace.attention(induction.KIND, one) for one in range(opened.config.n_decoder_layers)]
    maps = {
        f"head {which} of layer {one}": Map(attentions[one].pattern[which], attentions[one].mask[which])
        for one, which in (measured.heads[number] for number in (*measured.formed, measured.previous))
    }
    link = {"checkpoint": induction.CHECKPOINT, "source": text, "layer": layer, "head": head}
    facts = {
        "problem": "",
        "measured": measured,
        "step": step,
        "now": now,
        "link": urlencode(link),
        "symbols": (symbols := len(text_pieces(opened.tokenizer))),
        "guess": np.log(symbols),
        "tested": TESTED,
        "scored": (SEQUENCES, LENGTH, CHANCE),
    }
    rows, keys = axes(attentions[layer])
    shows = {"losses": _forming_losses(measured, step), "scores": _forming_scores(measured, step)}
    return Result(shows | {"maps": Maps(rows, keys, maps), "table": _repetition_table(now)}, facts)


def _forming_marks(measured: induction.Forming, step: int) -> list[Mark]:
    """The moment, and the step whose weights are opened."""
    moment = measured.steps[measured.moment]
    return [Mark(x=moment, text="forms"), Mark(x=step, colour=OKABE_ITO[1], dash="solid")]


def _forming_losses(measured: induction.Forming, step: int) -> Lines:
    first, second = measured.losses
    lines = {
        "first half, random tokens": Line(measured.steps, first, FIRST_HALF, "circle-open"),
        "second half, the same tokens": Line(measured.steps, second, SECOND_HALF, "circle"),
    }
    titles = ("training step", "nats per token")
    marks = _forming_marks(measured, step)
    return Lines(lines, titles, ".3f", height=320, marks=marks, layout={"yaxis": {"rangemode": "tozero"}})


def _forming_scores(measured: induction.Forming, step: int) -> Lines:
    looks_back, others = measured.previous, np.delete(measured.prefix_matching, measured.formed, axis=1)
    places = [f"head {head} of layer {layer}" for layer, head in measured.heads]
    lines = {
        f"prefix matching, {places[one]}": Line(measured.steps, measured.prefix_matching[:, one], colour, "circle")
        for one, colour in zip(measured.formed, (FOUND, *OKABE_ITO[4:]), strict=False)
    } | {
        f"previous token, {places[looks_back]}": Line(
            measured.steps, measured.previous_token[:, looks_back], BEFORE, "diamond"
        ),
        "prefix matching, the highest of the other heads": Line(
            measured.steps, others.max(axis=1, initial=0), FIRST_HALF, "circle-open", dash="dot"
        ),
    }
    titles = ("training step", "mean attention weight")
    marks = _forming_marks(measured, step)
    return Lines(lines, titles, ".3f", height=320, marks=marks, layout={"yaxis": {"range": [0, 1.02]}})


def _repetition_table(now: Repetition) -> Table:
    """Each head with these weights: its scores, and what switching it off costs."""
    layers, heads = zip(*now.heads, strict=True)
    table = pd.DataFrame({"layer": layers, "head": heads, "prefix matching": now.prefix_matching})
    table["previous token"], table["loss without it"] = now.previous_token, now.without
    return Table(table.assign(change=now.without - now.second), floats="%.3f")


def _compared() -> list[Comparison]:
    return compare_with_paper(read_study("ablations"))


def _with_weights(_: Run) -> dict[str, str]:
    """Those runs whose weights are in the folder of checkpoints."""
    here = study_checkpoints()
    return say_options({row.name: row.row.changed for row in _compared() if f"studies/{row.name}" in here})


TRAINED = menu("Open a run", _with_weights, key="ablation")


@view("Ablations")
def ablations(run: Run, trained: str | None = TRAINED) -> Result:
    """Our runs with one choice changed, several seeds each, beside the paper's Table 3."""
    rows = _compared()
    if not rows:
        return Result(facts={"rows": 0})
    base, paper = rows[0], TABLE_3[0]
    measures = {
        "BLEU, difference from base": (
            [row.bleus - base.bleus.mean() for row in rows],
            np.array([row.paper.bleu - paper.bleu if row.paper else np.nan for row in rows]),
        ),
        "perplexity, % above base": (
            [100 * (row.perplexities / base.perplexities.mean() - 1) for row in rows],
            np.array([100 * (row.paper.perplexity / paper.perplexity - 1) if row.paper else np.nan for row in rows]),
        ),
    }
    here = _with_weights(run)
    table = Table(
        _ablation_table(rows),
        "%.2f",
        {"parameters": ","},
        ticked=[row.name for row in rows].index(trained) if trained else None,
        chooses=[{"run": row.name if row.name in here else trained} for row in rows],
        sets={"run": TRAINED} if trained else {},
    )
    seeds = [len(row.bleus) for row in rows]
    single = [sentence(row.row.changed) for row in rows if row.bleu_verdict == "one seed"]
    disagreements = _disagreements(rows)
    facts = {
        "rows": len(rows),
        "parameters": base.parameters,
        "seeds": (min(seeds), max(seeds)),
        "disagreements": series(disagreements, later("{before}; {one}")) if disagreements else "",
        "single": series(single, later("{before}; {one}")) if single else "",
        "judged": len(single) < len(rows),
        "higher": sqrt(STUDY_WARMUP),
        "run": {"name": here[trained], "alone": _link(run, trained), "beside": _pair(run, trained)}
        if trained
        else None,
    }
    chart = ablation_chart([row.row.changed for row in rows], measures)
    return Result({"ablations": chart, "table": table}, facts, study_arrays("ablations") | _of_seeds(rows, measures))


def _of_seeds(rows: list[Comparison], measures: Mapping[str, tuple[list[Array], Array]]) -> dict[str, Array]:
    """What the chart draws: an entry for each seed, and each row's mean and the paper's number at every seed of it."""
    counts = [len(row.seeds) for row in rows]
    arrays = {"changed": np.repeat([row.row.changed for row in rows], counts)}
    for name, (ours, papers) in measures.items():
        means = [own.mean() for own in ours]
        each = {name: np.concatenate(ours), f"{name}, mean": np.repeat(means, counts)}
        arrays |= each | {f"{name}, the paper's": np.repeat(papers, counts)}
    return arrays


def _ablation_table(rows: list[Comparison]) -> pd.DataFrame:
    base, paper = rows[0], TABLE_3[0]
    return pd.DataFrame(
        [
            {
                "changed": row.row.changed,
                "seeds": len(row.bleus),
                "parameters": float(row.parameters),
                "BLEU": row.bleus.mean(),
                "BLEU, range": say_label(span(row.bleus.min(), row.bleus.max(), ".2f")),
                "BLEU against base": row.bleu_difference,
                "perplexity": row.perplexities.mean(),
                "perplexity, range": say_label(span(row.perplexities.min(), row.perplexities.max(), ".2f")),
                "the paper's row": row.row.paper or "–",
                "its BLEU against base": row.paper.bleu - paper.bleu if row.paper else np.nan,
                "its perplexity against base": row.paper.perplexity - paper.perplexity if row.paper else np.nan,
                "BLEU: direction": "" if row is base else row.bleu_verdict,
                "perplexity: direction": "" if row is base else row.perplexity_verdict,
            }
            for row in rows
        ]
    )


def _link(run: Run, name: str) -> str:
    """The query that opens a run's weights on the present text."""
    return urlencode({"checkpoint": f"studies/{name}", "source": run.trace.source})


def _pair(run: Run, name: str) -> str:
    """The query that opens base, and beside it another run's weights; empty for base itself."""
    other = {"side_mode": "Checkpoints", "side_checkpoint": f"studies/{name}"}
    return "" if name == "base" else f"{_link(run, 'base')}&{urlencode(other)}"


def _disagreements(rows: list[Comparison]) -> list[Sentence]:
    """Our differences from base beside the paper's, where they have opposite signs."""
    paper, sentences = TABLE_3[0], []
    for row in rows[1:]:
        ours, theirs = [], []
        if row.bleu_verdict == "disagrees":
            ours.append(sentence("{score} BLEU", score=signed(row.bleu_difference, "+.2f")))
            theirs.append(signed(row.paper.bleu - paper.bleu, "+.1f"))
        if row.perplexity_verdict == "disagrees":
            more, papers = row.perplexity_ratio - 1, row.paper.perplexity / paper.perplexity - 1
            ours.append(sentence("{percent}% perplexity", percent=signed(100 * more, "+.1f")))
            theirs.append(sentence("{percent}%", percent=signed(100 * papers, "+.1f")))
        if ours:
            facts = {"change": sentence(row.row.changed), "ours": joined(ours), "theirs": joined(theirs)}
            sentences.append(sentence("{change}: {ours} here, {theirs} in the paper", **facts))
    return sentences


NORM_RUNS = {
    "no-norm": (2, later("without norm"), True),
    "no-residual": (2, later("without residual connections"), True),
    "batch-norm": (2, later("BatchNorm"), True),
} | {
    letters_run(norm, depth, rises): (depth, f"{norm}-norm", rises)
    for depth in DEPTHS
    for norm in PLACEMENTS
    for rises in (True, False)
}
"""name -> layers of each stack, what its sub-layers have around them, and whether the rate rises"""
NORM_COLOURS = dict(zip(DEPTHS, (OKABE_ITO[2], OKABE_ITO[0], OKABE_ITO[5]), strict=True))


def _norm_runs(_: Run) -> dict[str, str]:
    """Those runs whose weights are in the folder of checkpoints."""
    here = study_checkpoints()
    return say_options({name: name for name in NORM_RUNS if f"studies/{name}" in here})


NORM_RUN = menu("Open a run", _norm_runs, key="norm_run")


@view("Norm and residual", code=(Residual, BatchNorm))
def norm_and_residual(_: Run, trained: str | None = NORM_RUN) -> Result:
    """Small models without norm, without residual connections and with BatchNorm; deep ones, pre-norm and post-norm."""
    logs, gradients = read_study("norm_and_residual"), read_study("gradients_by_layer")
    if not len(gradients):
        return Result(facts={"ends": None})
    ends = {name: logs[logs["run"] == name].iloc[-1] for name in NORM_RUNS if (logs["run"] == name).any()}
    layers = {name: gradients[gradients["run"] == name] for name in NORM_RUNS if (gradients["run"] == name).any()}
    charts = {stack: _gradient_chart(layers, stack) for stack in ("encoder", "decoder")}
    shares = {}
    for name, of_run in layers.items():
        of_decoder = of_run[of_run["stack"] == "decoder"]["gradient"].to_numpy()
        shares[name] = float(of_decoder[0] / of_decoder[-1])
    # Typed, because a model that has learned nothing may write nothing.
    target = {"target": tr("Typed"), "typed": " ".join(reversed(LETTERS_TEXT.split()))}
    link = {"checkpoint": f"studies/{trained}", "source": LETTERS_TEXT} | target
    facts = {
        "ends": {name: end["dev_exact"] for name, end in ends.items()},
        "losses": {name: (end["train_loss"], end["dev_loss"]) for name, end in ends.items()},
        "steps": LETTERS_STEPS,
        "shares": shares,
        "depths": DEPTHS,
        "run": {"name": trained, "link": urlencode(link)} if trained else None,
    }
    return Result(
        {"table": _norm_table(ends, layers), **charts},
        facts,
        study_arrays("norm_and_residual")
        | {f"gradients: {name}": each for name, each in study_arrays("gradients_by_layer").items()},
    )


def _norm_table(ends: Mapping[str, pd.Series], layers: Mapping[str, pd.DataFrame]) -> Table:
    """What each run reached, or the step at which it diverged."""
    rows = []
    for name, of_run in layers.items():
        depth, around, rises = NORM_RUNS[name]
        end, diverged = ends.get(name, {}), of_run["diverged"].iloc[0]
        rows.append(
            {
                "model": name,
                "layers": f"{depth} + {depth}",
                "around each sub-layer": tr(around),
                "warm-up": tr("yes") if rises else tr("no"),
                "loss in training": end.get("train_loss", np.nan),
                "loss, nats per token": end.get("dev_loss", np.nan),
                "reversed without a mistake": end.get("dev_exact", np.nan),
                "diverged at step": "" if np.isnan(diverged) else f"{diverged:.0f}",
            }
        )
    return Table(pd.DataFrame(rows), "%.3f")


def _gradient_chart(layers: Mapping[str, pd.DataFrame], stack: str) -> Lines:
    """The gradient of each layer of a stack before training; warm-up changes nothing there."""
    lines = {}
    for depth in DEPTHS:
        for norm in PLACEMENTS:
            if (of_run := layers.get(letters_run(norm, depth, True))) is None:
                continue
            of_stack = of_run[of_run["stack"] == stack]
            look = {"symbol": "circle"} if norm == "post" else {"symbol": "diamond-open", "dash": "dot"}
            values = of_stack["gradient"].to_numpy()
            lines[f"{norm}-norm, {depth}"] = Line(of_stack["layer"].to_numpy(), values, NORM_COLOURS[depth], **look)
    titles = ("layer", "length of the gradient (log)")
    return Lines(lines, titles, ".3g", "y", height=340, layout={"yaxis": {"exponentformat": "power"}})


@view("Scaling")
def scaling(_: Run) -> Result:
    """Loss over size and compute of language models that read the same tokens, with a power law."""
    logs = read_study("scaling")
    ends = ends_of_runs(logs)
    if len(ends) < 3:
        return Result(facts={"law": None})
    names = [tr(Numeral(f"{count / 1e6:.1f} M")) for count in ends["parameters"]]
    tokens = ends["tokens"].to_numpy()
    law = fit_power_law(ends["n"], ends["dev_loss"])
    of_runs = [logs[logs["run"] == one] for one in ends["run"]]
    compute = [
        (6.0 * n * own["tokens"].to_numpy(), own["dev_loss"].to_numpy())
        for n, own in zip(ends["n"], of_runs, strict=True)
    ]
    sizes, losses = ends["n"].to_numpy(), ends["dev_loss"].to_numpy()
    x = np.array([sizes.min() / 1.5, sizes.max() * 1.5])  # a line on logarithmic axes
    middle, level = np.exp(np.log(sizes).mean()), np.exp(np.log(losses).mean())
    slopes = {
        f"fit: exponent {law.exponent:.3f}": law.exponent,
        f"95%: {law.exponent - law.interval:.3f}": law.exponent - law.interval,
        f"95%: {law.exponent + law.interval:.3f}": law.exponent + law.interval,
        f"Kaplan et al.: {KAPLAN}": KAPLAN,
    }
    lines = {name: (x, level * (x / middle) ** -slope) for name, slope in slopes.items()}
    table = pd.DataFrame(
        {
            "model": names,
            "parameters": ends["parameters"],
            "without embeddings": ends["n"],
            "tokens read": tokens,
            "tokens per parameter": tokens / ends["parameters"],
            "operations": [signed(count, ".2e") for count in ends["compute"]],
            "loss, nats per piece": losses,
            "bits per byte": ends["dev_bits_per_byte"],
            "hours": ends["hours"],
        }
    )
    table.attrs["floats"] = "%.3g"
    facts = {"law": law, "tokens": tokens.max(), "kaplan": KAPLAN, "chinchilla": CHINCHILLA}
    return Result(
        {"scaling": scaling_chart(names, sizes, losses, compute, lines), "table": table},
        facts | {"per_parameter": (table["tokens per parameter"].min(), table["tokens per parameter"].max())},
        study_arrays("scaling"),
    )


@answer
def one_line(run: Run) -> Result:
    """How far the loss fell in the log of the training, and what it is on this text."""
    log = _log(card_of(run))
    losses = next((log[name].dropna() for name in ("dev_loss", "train_loss") if name in log), pd.Series(dtype=float))
    fell = (float(losses.iloc[0]), float(losses.iloc[-1])) if len(losses) > 1 else None
    return Result(facts={"fell": fell, "logged": len(log), "here": -run.trace.target_log_probabilities.mean()})
