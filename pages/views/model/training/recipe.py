"""The learning rate (equation 3) and label smoothing (section 5.4), with what this checkpoint was given."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.run import Run
from model.trace import Array
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares, target_entropy
from model.training.schedule import fit_schedule, noam, schedule_curve
from pages.views import Need, Result, view
from pages.views.controls import decimals, slider, steps
from pages.views.model.training.log import LOGGED, fit_rates, log_of, logged_rates
from pages.views.shared import POSITION, card_of, is_outdated
from viz.candidates import candidate_names, with_rest
from viz.forms import Line, Lines, Mark, Table
from viz.latex import signed
from viz.special.translate import rank_candidates
from viz.theme import DECODER, OKABE_ITO
from viz.tokens import decoder_rows

PAPER_WARMUP, PAPER_SMOOTHING = 4000, 0.1
DRAWN = 600
"""points of the schedule's curve"""
WARMUP = slider("Warm-up steps", (100, 20_000), PAPER_WARMUP, key="warmup", step=100)


@view("Learning rate", code=(noam, fit_schedule))
def schedule(run: Run, warmup: int = WARMUP) -> Result:
    """Equation 3 for a chosen warm-up and this model's width, with the logged learning rates."""
    d_model, card = run.opened.config.d_model, card_of(run)
    log = log_of(card)
    rates, fitted = logged_rates(log), fit_rates(run, log)
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


@view("Label smoothing", code=(label_smoothed_loss, smoothed_shares, cross_entropies), needs=(Need.LOGITS,))
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
        ("token", "probability (log)"),
        ".6g",
        "y",
        names,
        "token",
        marks=[Mark(x=right - 0.5, to=right + 0.5)],
        layout={"yaxis": {"exponentformat": "power"}},
    )
