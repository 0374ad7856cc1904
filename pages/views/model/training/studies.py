"""Our own studies: the paper's Table 3 in small, norm and residual, scaling."""

from collections.abc import Mapping
from math import sqrt
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.background import studies
from model.background.table_3 import TABLE_3
from model.checkpoints.store import study_checkpoints
from model.language import Numeral, Sentence, joined, later, sentence, series, tr
from model.network.residual import BatchNorm, Residual
from model.run import Run
from model.trace import Array
from pages.views import Result, view
from pages.views.controls import menu
from viz.forms import Line, Lines, Table
from viz.labels import say_label, say_options
from viz.latex import signed, span
from viz.special.studies import ablation_chart, scaling_chart
from viz.theme import OKABE_ITO

KAPLAN, CHINCHILLA = 0.076, 20
"""exponent of loss over parameters (Kaplan et al. 2020, figure 1); tokens per parameter (Hoffmann et al. 2022)"""
LETTERS_TEXT = "r o s e"


def _with_weights(_: Run) -> dict[str, str]:
    """Those runs whose weights are in the folder of checkpoints."""
    here = study_checkpoints()
    return say_options({row.name: row.row.changed for row in studies.our_table_3() if f"studies/{row.name}" in here})


TRAINED = menu("Open a run", _with_weights, key="ablation")


@view("Ablations")
def ablations(run: Run, trained: str | None = TRAINED) -> Result:
    """Our runs with one choice changed, several seeds each, beside the paper's Table 3."""
    rows = studies.our_table_3()
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
        "higher": sqrt(studies.WARMUP),
        "run": {"name": here[trained], "alone": _link(run, trained), "beside": _pair(run, trained)}
        if trained
        else None,
    }
    chart = ablation_chart([row.row.changed for row in rows], measures)
    return Result(
        {"ablations": chart, "table": table}, facts, studies.study_arrays("ablations") | _of_seeds(rows, measures)
    )


def _of_seeds(rows: list[studies.Comparison], measures: Mapping[str, tuple[list[Array], Array]]) -> dict[str, Array]:
    """What the chart draws: an entry for each seed, and each row's mean and the paper's number at every seed of it."""
    counts = [len(row.seeds) for row in rows]
    arrays = {"changed": np.repeat([row.row.changed for row in rows], counts)}
    for name, (ours, papers) in measures.items():
        means = [own.mean() for own in ours]
        each = {name: np.concatenate(ours), f"{name}, mean": np.repeat(means, counts)}
        arrays |= each | {f"{name}, the paper's": np.repeat(papers, counts)}
    return arrays


def _ablation_table(rows: list[studies.Comparison]) -> pd.DataFrame:
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


def _disagreements(rows: list[studies.Comparison]) -> list[Sentence]:
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
    studies.letters_run(norm, depth, rises): (depth, f"{norm}-norm", rises)
    for depth in studies.DEPTHS
    for norm in studies.PLACEMENTS
    for rises in (True, False)
}
"""name -> layers of each stack, what its sub-layers have around them, and whether the rate rises"""
NORM_COLOURS = dict(zip(studies.DEPTHS, (OKABE_ITO[2], OKABE_ITO[0], OKABE_ITO[5]), strict=True))


def _norm_runs(_: Run) -> dict[str, str]:
    """Those runs whose weights are in the folder of checkpoints."""
    here = study_checkpoints()
    return say_options({name: name for name in NORM_RUNS if f"studies/{name}" in here})


NORM_RUN = menu("Open a run", _norm_runs, key="norm_run")


@view("Norm and residual", code=(Residual, BatchNorm))
def norm_and_residual(_: Run, trained: str | None = NORM_RUN) -> Result:
    """Small models without norm, without residual connections and with BatchNorm; deep ones, pre-norm and post-norm."""
    logs, gradients = studies.read_study("norm_and_residual"), studies.read_study("gradients_by_layer")
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
        "steps": studies.LETTERS_STEPS,
        "shares": shares,
        "depths": studies.DEPTHS,
        "run": {"name": trained, "link": urlencode(link)} if trained else None,
    }
    return Result(
        {"table": _norm_table(ends, layers), **charts},
        facts,
        studies.study_arrays("norm_and_residual")
        | {f"gradients: {name}": each for name, each in studies.study_arrays("gradients_by_layer").items()},
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
    for depth in studies.DEPTHS:
        for norm in studies.PLACEMENTS:
            if (of_run := layers.get(studies.letters_run(norm, depth, True))) is None:
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
    logs = studies.read_study("scaling")
    ends = studies.ends_of_runs(logs)
    if len(ends) < 3:
        return Result(facts={"law": None})
    names = [tr(Numeral(f"{count / 1e6:.1f} M")) for count in ends["parameters"]]
    tokens = ends["tokens"].to_numpy()
    law = studies.fit_power_law(ends["n"], ends["dev_loss"])
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
        studies.study_arrays("scaling"),
    )
