"""Lesson 8: how the weights came about that all other lessons look at."""

import math

import numpy as np
import pandas as pd

from model.analysis.common_claims import mean_evenness
from model.analysis.gradients import loss_gradients
from model.background.studies import WARMUP, read_study
from model.checkpoints.card import read_card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import CheckpointError, checkpoint_path, shown_message, shown_name
from model.training.loss import smoothed_shares, target_entropy
from model.training.schedule import fit_schedule
from pages.compute.view import View
from pages.lessons.positions import CROSSING
from pages.lessons.station import SNAPSHOTS, Answer, Lesson, Station
from pages.lessons.tokens import quote
from viz.latex import signed
from viz.tokens import as_markdown

CAPTION = "A man is riding a bicycle down the street."
SMOOTHING = 0.1
"""the paper's epsilon"""


def explain_curves(view: View) -> Answer:
    """First and last loss on the development text, as losses and as perplexities."""
    log = [row for row in read_card(checkpoint_path(view.translator.name)).log if "dev_loss" in row]
    if len(log) < 2:
        return Answer("This checkpoint has no log of its training.", False)
    first, last = log[0], log[-1]
    vocabulary = view.trace.logits.shape[-1]
    early = (math.log(vocabulary) - first["dev_loss"]) / (math.log(vocabulary) - last["dev_loss"])
    return Answer(
        f"A model that knows nothing spreads its guess over all {vocabulary:,} pieces: a loss of ln {vocabulary:,} = "
        f"{math.log(vocabulary):.2f} nats a token. After {int(first['step']):,} steps the loss on text that training "
        f"never sees is {first['dev_loss']:.2f}, at the end **{last['dev_loss']:.2f}**. As perplexities, eˡᵒˢˢ: "
        f"as unsure as between {math.exp(first['dev_loss']):.0f} pieces, and then between "
        f"**{math.exp(last['dev_loss']):.1f}**. Of the whole fall, **{early:.0%}** comes before that first point, in "
        f"{first['step'] / last['step']:.0%} of the steps.",
        bool(early > 0.5 > first["step"] / last["step"]),
    )


def explain_warmup(view: View) -> Answer:
    """What our small translators lose without warm-up, and this checkpoint's own."""
    runs = read_study("ablations")
    if runs.empty:
        return Answer("The small translators of checkpoints/studies are not here.", False)
    bleu = {row: runs.loc[runs["row"] == row, "bleu"] for row in ("base", "no-warmup")}
    log = read_card(checkpoint_path(view.translator.name)).log
    rates = np.array([(row["step"], row["learning_rate"]) for row in log if {"step", "learning_rate"} <= set(row)])
    fitted = fit_schedule(*rates.T, view.translator.config.d_model) if len(rates) > 2 else None
    own = f" This checkpoint warmed up over {fitted.warmup:,.0f} steps." if fitted else ""
    # Equation 3: d_model^-0.5 at step 1 without warm-up, and (d_model w)^-0.5 at the peak with w steps of it.
    higher = math.sqrt(WARMUP)
    return Answer(
        "Our own small translators, trained with and without it: BLEU "
        f"{', '.join(f'{each:.1f}' for each in bleu['base'])} with warm-up, "
        f"**{', '.join(f'{each:.1f}' for each in bleu['no-warmup'])}** without. The comparison is not a clean one: "
        f"without warm-up, equation 3 also starts at its highest rate, **{higher:.0f} times** the largest of the runs "
        "with it, so a rate that is simply too high may be the whole reason. The usual explanation: at first Adam "
        "divides by estimates of the gradients' size that rest on a few steps, and in a post-norm model the gradients "
        f"near the output are large (Xiong et al. 2020).{own}",
        bleu["no-warmup"].max() < bleu["base"].min() / 2,
    )


def explain_smoothing(view: View) -> Answer:
    """The smoothed target, its entropy, and what the study and the paper report."""
    vocabulary = view.trace.logits.shape[-1]
    right, other = smoothed_shares(vocabulary, SMOOTHING)
    least = target_entropy(vocabulary, SMOOTHING)
    sure = float(view.trace.target_probabilities.max())
    runs = read_study("ablations")
    return Answer(
        f"With ε = {SMOOTHING} the right piece is to get {right:.5f}, and each of the other {vocabulary - 1:,} "
        f"{other:.1e}. The loss cannot fall below the entropy of this target, **{least:.2f}** nats. Certainty is "
        f"punished: the surest token of this text has p = **{sure:.3f}**, and not 1. In the paper's Table 3, smoothing "
        f"costs perplexity (4.67 without, 4.92 with it) and gains BLEU (25.3 and 25.8).{_own_smoothing(runs)}",
        0.8 < sure < 0.99,
    )


def _own_smoothing(runs: pd.DataFrame) -> str:
    """What our small translators say of label smoothing, and whether their seeds differ more."""
    if runs.empty:
        return ""
    off, on = (runs.loc[runs["row"] == row, "bleu"] for row in ("no-label-smoothing", "base"))
    spread = max(np.ptp(off), np.ptp(on))
    verdict = "less than" if abs(on.mean() - off.mean()) <= spread else "more than"
    return (
        f" Our own small translators have {off.mean():.2f} BLEU without and {on.mean():.2f} with it, a difference of "
        f"{verdict} the {spread:.2f} between seeds."
    )


def explain_beginning(view: View) -> Answer:
    """How even the rows are with the first saved weights, and with the last."""
    steps = snapshot_steps(checkpoint_path(view.translator.name))
    if not steps:
        return Answer(
            f"The checkpoint {as_markdown(shown_name(view.translator.name))} has no snapshots of its training.", False
        )
    try:
        first = open_snapshot(view.translator, steps[0]).rerun(view.trace, view.trace.interventions)
    except CheckpointError as error:
        return Answer(as_markdown(shown_message(error)), False)
    before, after = mean_evenness(first), mean_evenness(view.trace)
    return Answer(
        f"After {steps[0]:,} steps a row has **{before:.0%}** of the entropy of equal weights, averaged over all "
        f"heads; at the end **{after:.0%}**. Random weights give small scores, and small scores nearly equal weights. "
        "Nobody tells a head what to look at: the loss of the last token's prediction reaches it through every layer "
        f"above, and over time it pays to look somewhere. At first this translation had a log p of "
        f"{signed(first.log_probability / len(first.next_ids), '+.1f')} nats a token, now it has "
        f"{signed(view.trace.log_probability / len(view.trace.next_ids), '+.1f')}.",
        bool(np.isfinite(before) and before > after + 0.1),
    )


def explain_gradient(view: View) -> Answer:
    """The gradient at the logits, p minus the one-hot target: where it is largest, and where nothing is left."""
    trace = view.trace
    found = loss_gradients(view.translator, trace)["logits"].astype(np.float64)
    wanted = trace.probabilities.astype(np.float64).copy()
    wanted[np.arange(len(trace.next_ids)), list(trace.next_ids)] -= 1
    error = float(np.abs(found - wanted).max())
    sizes = np.linalg.norm(found, axis=-1)
    most, least = int(sizes.argmax()), int(sizes.argmin())
    tokens, p = trace.next_tokens, trace.target_probabilities
    return Answer(
        f"At the logits the gradient of −log p is p − y: the model's probabilities minus the one-hot target, here up "
        f"to {error:.0e}. For {quote(tokens[least])}, with p = {p[least]:.2f}, its length is {sizes[least]:.2f}; for "
        f"{quote(tokens[most])}, with p = {p[most]:.2f}, **{sizes[most]:.2f}**. A token that is already predicted "
        "teaches little. All of it then flows back through every layer to the embeddings.",
        error < 1e-3 and sizes[most] > 1.5 * sizes[least],
    )


def _station(slug: str, source: str = CROSSING, **fields: object) -> Station:
    return Station(slug=slug, source=source, **{"kind": "encoder_self", "layer": 1, "head": 5, **fields})


TRAINING = Lesson(
    "training",
    "Training",
    "Where the weights come from: what a loss means, why the learning rate rises before it falls, why a model should "
    "not be certain, how attention begins, and which tokens still teach.",
    14,
    (
        _station(
            "loss",
            title="What a loss says",
            live="curves",
            do="Read the loss at the first and at the last point.",
            look_for="The curve falls steeply at first, then ever more slowly.",
            question="How good is a loss of, say, 2 nats?",
            hints=(
                "What is the loss of a model that gives every piece the same probability?",
                "e to the power of the loss is a number of pieces.",
            ),
            answer=explain_curves,
            page="training",
            further="All curves of this training",
        ),
        _station(
            "warmup",
            title="Slowly at first",
            live="schedule",
            do="Move the slider of the warm-up steps.",
            look_for="The rate rises in a straight line, then falls with the root of the step.",
            question="Why not begin with the largest steps, when most is to be learned?",
            hints=(
                "Adam divides each step by an estimate of the gradient's size. From how many gradients?",
                "In a post-norm model the gradients of the upper layers are large at the beginning.",
            ),
            answer=explain_warmup,
            page="training",
            further="Ablations: what each choice is worth",
            tab={"training": "Ablations"},
        ),
        _station(
            "smoothing",
            title="Never certain",
            live="smoothing",
            do="Compare the smoothed target with the model's probabilities.",
            look_for="The right piece should get 0.9, and does not get 1.",
            question="Why should a model be kept from being sure?",
            hints=(
                "Which logit would give a probability of exactly 1?",
                "Is there only one right translation?",
            ),
            answer=explain_smoothing,
            page="training",
            further="Label smoothing",
            tab={"training": "Label smoothing"},
        ),
        _station(
            "beginning",
            source=CAPTION,
            checkpoint=SNAPSHOTS,
            kind="cross",
            layer=1,
            head=3,
            title="How attention begins",
            live="snapshots",
            do="Choose one step of the training after the other.",
            look_for="At step 0 the rows are nearly even; bright cells come later.",
            question="Who tells a head what to look at?",
            hints=(
                "What do random queries and keys have in common?",
                "Is there any label for attention weights in the data?",
            ),
            answer=explain_beginning,
            page="training",
            further="Attention through training",
            tab={"training": "Attention through training"},
        ),
        _station(
            "gradient",
            source=CAPTION,
            checkpoint=SNAPSHOTS,
            kind="cross",
            layer=1,
            head=3,
            title="What teaches",
            live="gradient",
            do="Read the curves from right to left, as the gradient flows; compare the one without residual "
            "connections.",
            look_for="The gradient reaches the input of both stacks.",
            question="Which tokens of this sentence would still change the weights, and which hardly?",
            hints=(
                "Write down the derivative of −log softmax(x) at the correct token, and at another one.",
                "It is p − y. How large is that where p of the correct token is nearly 1?",
            ),
            answer=explain_gradient,
            page="gradients",
            further="The gradient through the layers",
            tab={"part": "Through the layers"},
        ),
    ),
)
