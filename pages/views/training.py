"""Training: the log of this checkpoint, learning rate, label smoothing, attention at earlier steps, our own studies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.softmax import uniform_weights
from model.background.studies import WARMUP as STUDY_WARMUP
from model.background.studies import (
    Comparison,
    compare_with_paper,
    ends_of_runs,
    fit_power_law,
    read_study,
    study_arrays,
)
from model.background.table_3 import TABLE_3
from model.checkpoints.card import Card
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import (
    CheckpointError,
    available_checkpoints,
    checkpoint_path,
    shown_message,
    shown_name,
    study_checkpoints,
)
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.run import Run, force
from model.trace import Array, Attention
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares, target_entropy
from model.training.schedule import FittedSchedule, fit_schedule, noam, schedule_curve
from pages.views import Need, Result, answer, view
from pages.views.controls import SWITCH, choice, menu, slider, steps, toggle
from pages.views.names import POSITION, axes, card_of, is_outdated
from viz.forms import Line, Lines, Map, Maps, Mark, Table, Texts
from viz.latex import signed
from viz.special.studies import ablation_chart, scaling_chart
from viz.special.training import smoothing_chart
from viz.special.translate import rank_candidates
from viz.theme import DECODER, OKABE_ITO
from viz.tokens import decoder_rows

PAPER_WARMUP, PAPER_SMOOTHING = 4000, 0.1
DRAWN = 600
"""points of the schedule's curve"""
KAPLAN, CHINCHILLA = 0.076, 20
"""exponent of loss over parameters (Kaplan et al. 2020, figure 1); tokens per parameter (Hoffmann et al. 2022)"""

LOGGED, DEVELOPMENT, SPEED = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]
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
    times = {column: title for column, title in TIMES.items() if column in log}
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
    facts = {
        "outdated": is_outdated(run, card),
        "without": card.missing.get("log.csv", "This checkpoint's log.csv holds no curve."),
        "drawn": [name for name, columns in drawn.items() if columns],
        "lacks": ", ".join(column for columns in panels.values() for column in columns if column not in log),
        "rises": _rises(_fit(run, log)),
    }
    shows = {name: _over_time(log, over, columns) for name, columns in drawn.items() if columns}
    return Result(shows, facts, {f"log_{column}": values.to_numpy(float) for column, values in log.items()})


def _rises(fitted: FittedSchedule | None) -> list[str]:
    """The logged steps at which the rate has risen again, in words."""
    return [f"{step:,}" for step in (fitted.restarted_at, *fitted.raised_at)] if fitted and fitted.restarted_at else []


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


@view("Learning rate", code=(noam, fit_schedule))
def schedule(
    run: Run, warmup: int = slider("Warm-up steps", (100, 20_000), PAPER_WARMUP, key="warmup", step=100)
) -> Result:
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
        marks=[Mark(x=warmup, text=f"{peak:.3g} at step {warmup:,}", at=top)],
        layout={"yaxis": {"rangemode": "tozero", "exponentformat": "power"}},
    )
    facts = {
        "outdated": is_outdated(run, card),
        "d_model": d_model,
        "peak": peak,
        "paper": PAPER_WARMUP,
        "logged": len(rates[0]) if rates else 0,
        "fitted": fitted,
        "jumps": " and ".join(f"{step:,}" for step in fitted.raised_at) if fitted else "",
    }
    return Result({"schedule": chart}, facts)


EPSILON = slider("Label smoothing ε", (0.0, 0.5), PAPER_SMOOTHING, key="epsilon", step=0.01)


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
        {"shares": table, "smoothing": smoothing_chart(names, target, model, chosen, vocabulary)},
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
        others = [name for name in available_checkpoints() if snapshot_steps(checkpoint_path(name))]
        return Result(facts={"saved": False, "name": shown_name(run.opened.name), "others": " or ".join(others)})
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


def _compared() -> list[Comparison]:
    return compare_with_paper(read_study("ablations"))


def _with_weights(_: Run) -> dict[str, str]:
    """Those runs whose weights are in the folder of checkpoints."""
    here = study_checkpoints()
    return {row.name: row.row.changed for row in _compared() if f"studies/{row.name}" in here}


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
        {"parameters": "localized"},
        ticked=[row.name for row in rows].index(trained) if trained else None,
        chooses=[{"run": row.name if row.name in here else trained} for row in rows],
        sets={"run": TRAINED} if trained else {},
    )
    seeds = [len(row.bleus) for row in rows]
    single = [row.row.changed for row in rows if row.bleu_verdict == "one seed"]
    facts = {
        "rows": len(rows),
        "parameters": base.parameters,
        "seeds": (min(seeds), max(seeds)),
        "disagreements": "; ".join(_disagreements(rows)),
        "single": ", ".join(single),
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
                "BLEU, range": f"{row.bleus.min():.2f} to {row.bleus.max():.2f}",
                "BLEU against base": row.bleu_difference,
                "perplexity": row.perplexities.mean(),
                "perplexity, range": f"{row.perplexities.min():.2f} to {row.perplexities.max():.2f}",
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


def _disagreements(rows: list[Comparison]) -> list[str]:
    """Our differences from base beside the paper's, where they have opposite signs."""
    paper, sentences = TABLE_3[0], []
    for row in rows[1:]:
        ours, theirs = [], []
        if row.bleu_verdict == "disagrees":
            ours.append(f"{signed(row.bleu_difference, '+.2f')} BLEU")
            theirs.append(signed(row.paper.bleu - paper.bleu, "+.1f"))
        if row.perplexity_verdict == "disagrees":
            ours.append(f"{signed(100 * (row.perplexity_ratio - 1), '+.1f')} % perplexity")
            theirs.append(f"{signed(100 * (row.paper.perplexity / paper.perplexity - 1), '+.1f')} %")
        if ours:
            sentences.append(f"{row.row.changed}: {' and '.join(ours)} here, {' and '.join(theirs)} in the paper")
    return sentences


@view("Scaling")
def scaling(_: Run) -> Result:
    """Loss over size and compute of language models that read the same tokens, with a power law."""
    logs = read_study("scaling")
    ends = ends_of_runs(logs)
    if len(ends) < 3:
        return Result(facts={"law": None})
    names, tokens = [f"{count / 1e6:.1f} M" for count in ends["parameters"]], ends["tokens"].to_numpy()
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
        f"95 %: {law.exponent - law.interval:.3f}": law.exponent - law.interval,
        f"95 %: {law.exponent + law.interval:.3f}": law.exponent + law.interval,
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
            "operations": [f"{count:.2e}" for count in ends["compute"]],
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
