"""Lesson 8: how the weights came about that all other lessons look at."""

import math

import numpy as np

from model.analysis.heads.evenness import mean_evenness
from model.analysis.runs.gradients import loss_gradients
from model.background import induction
from model.background.studies import WARMUP, read_study
from model.checkpoints.card import read_card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import checkpoint_path, shown_name
from model.run import Run
from model.training.loss import smoothed_shares, target_entropy
from model.training.schedule import fit_schedule
from pages.lessons.reading import Facts, lengths_of

SMOOTHING = 0.1
"""the paper's epsilon"""


def loss(run: Run) -> Facts:
    """First and last loss on the development text, as losses and as perplexities."""
    log = [row for row in read_card(checkpoint_path(run.opened.name)).log if "dev_loss" in row]
    if len(log) < 2:
        return None
    (first, last), vocabulary = ((row["dev_loss"] for row in (log[0], log[-1])), run.trace.logits.shape[-1])
    nothing = math.log(vocabulary)
    return {
        "vocabulary": vocabulary,
        "nothing": nothing,
        "step": int(log[0]["step"]),
        "first": first,
        "last": last,
        "perplexities": (math.exp(first), math.exp(last)),
        "early": (nothing - first) / (nothing - last),
        "share": log[0]["step"] / log[-1]["step"],
    }


def warmup(run: Run) -> Facts:
    """What our small translators lose without warm-up, and this checkpoint's own."""
    runs = read_study("ablations")
    if runs.empty:
        return None
    log = read_card(checkpoint_path(run.opened.name)).log
    rates = np.array([(row["step"], row["learning_rate"]) for row in log if {"step", "learning_rate"} <= set(row)])
    fitted = fit_schedule(*rates.T, run.opened.config.d_model) if len(rates) > 2 else None
    return {
        "base": runs.loc[runs["row"] == "base", "bleu"].tolist(),
        "without": runs.loc[runs["row"] == "no-warmup", "bleu"].tolist(),
        # Equation 3: d_model^-0.5 at step 1 without warm-up, and (d_model w)^-0.5 at the peak with w steps of it.
        "higher": math.sqrt(WARMUP),
        "own": fitted.warmup if fitted else 0,
    }


def smoothing(run: Run) -> Facts:
    """The smoothed target, its entropy, and what our small translators say of it."""
    vocabulary, runs = run.trace.logits.shape[-1], read_study("ablations")
    off, on = (runs.loc[runs["row"] == row, "bleu"] if len(runs) else [] for row in ("no-label-smoothing", "base"))
    return {
        "smoothing": SMOOTHING,
        "vocabulary": vocabulary,
        "shares": smoothed_shares(vocabulary, SMOOTHING),
        "least": target_entropy(vocabulary, SMOOTHING),
        "sure": run.trace.target_probabilities.max(),
        "bleu": (np.mean(off), np.mean(on)) if len(on) else None,
        "spread": max(np.ptp(off), np.ptp(on)) if len(on) else None,
    }


def beginning(run: Run) -> Facts:
    """How even the rows are with the first saved weights, and with the last."""
    steps = snapshot_steps(checkpoint_path(run.opened.name))
    if not steps:
        return {"steps": None, "checkpoint": shown_name(run.opened.name)}
    first = open_snapshot(run.opened, steps[0]).rerun(run.trace, run.trace.interventions)
    return {
        "steps": steps[0],
        "before": mean_evenness(first),
        "after": mean_evenness(run.trace),
        "log_p": [trace.log_probability / len(trace.next_ids) for trace in (first, run.trace)],
    }


def induction_head(_: Run) -> Facts:
    """When the head of the small model formed, and what it does in the end."""
    measured = induction.read_forming(checkpoint_path(induction.CHECKPOINT))
    if measured is None:
        return None
    head, losses = measured.induction, measured.losses[1]
    return {
        "finds": measured.heads[head],
        "back": measured.heads[measured.previous],
        "step": measured.steps[measured.moment],
        "last": measured.steps[-1],
        "score": measured.prefix_matching[-1, head],
        "losses": (losses[0], losses[-1]),
        "costs": (measured.without[-1, measured.previous] - losses[-1], measured.without[-1, head] - losses[-1]),
        "other": np.delete(measured.prefix_matching[-1], head).max(),
    }


def gradient(run: Run) -> Facts:
    """The gradient at the logits, p minus the one-hot target: where it is largest, and where nothing is left."""
    trace = run.trace
    gradients = loss_gradients(run.opened, trace)["logits"].astype(np.float64)
    wanted = trace.probabilities.astype(np.float64).copy()
    wanted[np.arange(len(trace.next_ids)), list(trace.next_ids)] -= 1
    sizes = lengths_of(gradients)
    ends = {"most": int(sizes.argmax()), "least": int(sizes.argmin())}
    rows = {name: (trace.next_tokens[row], trace.target_probabilities[row], sizes[row]) for name, row in ends.items()}
    return {"error": np.abs(gradients - wanted).max(), **rows}
