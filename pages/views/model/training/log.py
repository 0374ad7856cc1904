"""The log of the training: loss, score and speed over time; the line below the heading."""

from collections.abc import Sequence

import pandas as pd

from model.checkpoints.card import Card
from model.language import Numeral, sentence, series
from model.run import Run
from model.trace import Array
from model.training.schedule import FittedSchedule, fit_schedule
from pages.views import Result, answer, view
from pages.views.controls import choice
from pages.views.shared import card_of, is_outdated
from viz.forms import Line, Lines
from viz.labels import say_label
from viz.theme import OKABE_ITO

LOGGED, DEVELOPMENT, SPEED = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]
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


def log_of(card: Card) -> pd.DataFrame:
    """log.csv, NaN for empty cells; no rows without a log."""
    return pd.DataFrame([dict(row) for row in card.log])


def _times(run: Run) -> dict[str, str]:
    log = log_of(card_of(run))
    times = {column: say_label(title) for column, title in TIMES.items() if column in log}
    return times if len(times) > 1 and {*CURVES} & {*log} else {}


OVER = choice("Over", _times, key="over")


@view("Loss and score")
def curves(run: Run, over: str | None = OVER) -> Result:
    """Loss, score and speed over the training, as far as the log has them."""
    card = card_of(run)
    log = log_of(card)
    over = over or next((column for column in TIMES if column in log), None)
    score = next((column for column in SCORES if column in log), SCORES[0])
    panels = {"loss": ("train_loss", "dev_loss"), "score": (score,), "speed": ("tokens_per_second",)}
    drawn = {name: [column for column in columns if column in log] for name, columns in panels.items() if over}
    lacks = [column for columns in panels.values() for column in columns if column not in log]
    fitted = fit_rates(run, log)
    rises = (fitted.restarted_at, *fitted.raised_at) if fitted and fitted.restarted_at else ()
    facts = {
        "outdated": is_outdated(run, card),
        "without": card.missing.get("log.csv", sentence("This checkpoint's log.csv holds no curve.")),
        "drawn": [name for name, columns in drawn.items() if columns],
        "lacks": series(lacks) if lacks else "",
        # The logged steps at which the rate has risen again.
        "rises": [Numeral(f"{step:,}") for step in rises],
    }
    shows = {name: _over_time(log, over, columns) for name, columns in drawn.items() if columns}
    return Result(shows, facts, {f"log_{column}": values.to_numpy(float) for column, values in log.items()})


def _over_time(log: pd.DataFrame, over: str, columns: Sequence[str]) -> Lines:
    """Columns of one unit."""
    lines = {
        name: Line(log[over].to_numpy(float), log[column].to_numpy(float), colour, symbol)
        for column in columns
        for name, _, colour, symbol in [CURVES[column]]
    }
    _, unit, *_ = CURVES[columns[0]]
    return Lines(lines, (TIMES[over], unit), ".6g", layout={"yaxis": {"rangemode": "tozero"}})


def logged_rates(log: pd.DataFrame) -> tuple[Array, Array] | None:
    """Steps and learning rates of the log; None if it has none."""
    if not {"step", "learning_rate"} <= set(log):
        return None
    rows = log[["step", "learning_rate"]].dropna()
    return (rows["step"].to_numpy(float), rows["learning_rate"].to_numpy(float)) if len(rows) else None


def fit_rates(run: Run, log: pd.DataFrame) -> FittedSchedule | None:
    rates = logged_rates(log)
    return fit_schedule(*rates, run.opened.config.d_model) if rates else None


@answer
def one_line(run: Run) -> Result:
    """How far the loss fell in the log of the training, and what it is on this text."""
    log = log_of(card_of(run))
    losses = next((log[name].dropna() for name in ("dev_loss", "train_loss") if name in log), pd.Series(dtype=float))
    fell = (float(losses.iloc[0]), float(losses.iloc[-1])) if len(losses) > 1 else None
    return Result(facts={"fell": fell, "logged": len(log), "here": -run.trace.target_log_probabilities.mean()})
