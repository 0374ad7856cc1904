"""Training: our own small runs, beside the paper's table, and beside power laws."""

from collections.abc import Mapping
from math import sqrt
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import tab_arrays as tab
from model.background.studies import WARMUP, Comparison, compare_with_paper, ends_of_runs, fit_power_law, read_study
from model.background.table_3 import TABLE_3
from model.checkpoints.store import study_checkpoints
from model.trace import Array
from pages.compute.view import View
from pages.widgets import controls
from pages.widgets.chart import chart
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts.studies import ablation_chart, scaling_chart

KAPLAN, CHINCHILLA = 0.076, 20
"""exponent of loss over parameters (Kaplan et al. 2020, figure 1); tokens per parameter (Hoffmann et al. 2022)"""


def show_ablations(view: View) -> None:
    """Our runs with one choice changed, several seeds each, beside the paper's Table 3."""
    rows = compare_with_paper(read_study("ablations"))
    if not rows:
        st.info("No run is finished: python -m model.ablations trains them.", icon=":material/info:")
        return
    base = rows[0]
    seeds = [len(row.bleus) for row in rows]
    counted = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    st.markdown(
        f"**Ours, not the paper's.** An ablation changes one choice and trains again: {len(rows)} translators of "
        f"{base.parameters / 1e6:.1f} M parameters, each with {counted} random seed{'s' * (max(seeds) > 1)}, on 29,000 "
        "picture captions (Multi30k), in a few minutes of one processor core. The paper trained 65 M parameters on 4.5 "
        "million sentence pairs for twelve hours on eight GPUs. What differs between rows here need not differ there, "
        "and the reverse."
    )
    names = [row.row.changed for row in rows]
    papers_base = TABLE_3[0]
    measures = {
        "BLEU, difference from base": (
            [row.bleus - base.bleus.mean() for row in rows],
            [row.paper.bleu - papers_base.bleu if row.paper else None for row in rows],
        ),
        "perplexity, % above base": (
            [100 * (row.perplexities / base.perplexities.mean() - 1) for row in rows],
            [100 * (row.paper.perplexity / papers_base.perplexity - 1) if row.paper else None for row in rows],
        ),
    }
    figure = ablation_chart(names, measures)
    chart(figure, key="ablations", alt="BLEU and perplexity of each row against base, ours and the paper's", roomy=True)
    table = _ablation_table(rows)
    linked = {name: st.column_config.LinkColumn(display_text=name) for name in ("open", "beside base")}
    whole = pd.concat([table[["changed"]].assign(**_links(view, rows)), table.drop(columns="changed")], axis=1)
    controls.table(whole, floats="%.2f", **linked)
    st.caption(
        "Grey band: the seeds of base; a triangle at the edge: beyond the axis. A seed decides the initial weights and "
        "the order of the sentences. BLEU: greedy, on the 1,014 captions of Multi30k's validation set; perplexity "
        "per vocabulary piece, so it cannot be compared with the paper's. A row agrees with the paper if our mean "
        "differs from base's in the same direction, by more than the seeds of either row differ among each other. "
        "The paper has no such spread: each of its rows is one run."
    )
    st.markdown(_describe_disagreements(rows))
    explain(
        "What differs from the paper besides size: base has 4 heads of 16 dimensions where the paper has 8 of 64, so "
        "16 heads are left with 4 dimensions each; and three epochs leave dropout and label smoothing little to "
        "prevent. Whether that is the reason for a difference was not tested. Without warm-up, equation 3 starts at "
        f"its highest rate, {sqrt(WARMUP):.0f} times the peak of base, and the model never learns to translate: that "
        "rate alone may be the reason.",
        r"\mathrm{difference} = \overline{\mathrm{row}} - \overline{\mathrm{base}}",
        "6.2, Table 3",
    )
    export_tab(
        view,
        "ablations",
        Call(tab.study_arrays, "ablations"),
        Picture("Ablations", "ablations", figure),
        table=_seed_table(rows, table, measures),
    )


def _seed_table(
    rows: list[Comparison], table: pd.DataFrame, measures: Mapping[str, tuple[list[Array], list[float | None]]]
) -> pd.DataFrame:
    """What the CSV holds: a line for each seed with all that the chart draws of it, and the columns of its row."""
    counts = [len(row.seeds) for row in rows]
    each = {"seed": [row.seeds for row in rows], "BLEU": [row.bleus for row in rows]}
    each |= {"perplexity": [row.perplexities for row in rows]}
    whole = {}
    for name, (ours, papers) in measures.items():
        each[name] = ours
        whole |= {f"{name}, mean": [own.mean() for own in ours], f"{name}, the paper's": papers}
    of_row = table.rename(columns={"BLEU": "BLEU, mean", "perplexity": "perplexity, mean"}).assign(**whole)
    of_row = of_row.loc[np.repeat(table.index, counts)].reset_index(drop=True)
    return of_row.assign(**{name: np.concatenate(values) for name, values in each.items()})


def _ablation_table(rows: list[Comparison]) -> pd.DataFrame:
    base, papers_base = rows[0], TABLE_3[0]
    return pd.DataFrame(
        [
            {
                "changed": row.row.changed,
                "seeds": len(row.bleus),
                "parameters": row.parameters,
                "BLEU": row.bleus.mean(),
                "BLEU, range": f"{row.bleus.min():.2f} to {row.bleus.max():.2f}",
                "BLEU against base": row.bleu_difference,
                "perplexity": row.perplexities.mean(),
                "perplexity, range": f"{row.perplexities.min():.2f} to {row.perplexities.max():.2f}",
                "the paper's row": row.row.paper or "–",
                "its BLEU against base": row.paper.bleu - papers_base.bleu if row.paper else None,
                "its perplexity against base": row.paper.perplexity - papers_base.perplexity if row.paper else None,
                "BLEU: direction": "" if row is base else row.bleu_verdict,
                "perplexity: direction": "" if row is base else row.perplexity_verdict,
            }
            for row in rows
        ]
    )


def _links(view: View, rows: list[Comparison]) -> dict[str, list[str | None]]:
    """For each row a link that opens its weights, and one that opens them beside base; None where they are not here."""
    here, columns = study_checkpoints(), {"open": [], "beside base": []}
    for row in rows:
        name, text = f"studies/{row.name}", {"source": view.trace.source}
        both = {"checkpoint": "studies/base", "side_mode": "Checkpoints", "side_checkpoint": name} | text
        alone, pair = urlencode({"checkpoint": name} | text), urlencode(both)
        columns["open"].append(f"heads_and_layers?{alone}" if name in here else None)
        columns["beside base"].append(f"side_by_side?{pair}" if name in here and row is not rows[0] else None)
    return columns


def _describe_disagreements(rows: list[Comparison]) -> str:
    """What our runs and the paper's disagree on, in sentences."""
    papers_base, said = TABLE_3[0], []
    for row in rows[1:]:
        ours, theirs = [], []
        if row.bleu_verdict == "disagrees":
            ours.append(f"{row.bleu_difference:+.2f} BLEU")
            theirs.append(f"{row.paper.bleu - papers_base.bleu:+.1f}")
        if row.perplexity_verdict == "disagrees":
            ours.append(f"{100 * (row.perplexity_ratio - 1):+.1f} % perplexity")
            theirs.append(f"{100 * (row.paper.perplexity / papers_base.perplexity - 1):+.1f} %")
        if ours:
            said.append(f"{row.row.changed}: {' and '.join(ours)} here, {' and '.join(theirs)} in the paper")
    single = [row.row.changed for row in rows if row.bleu_verdict == "one seed"]
    judged = (
        "**What disagrees with the paper:** " + "; ".join(said) + "."
        if said
        else ("**Nothing disagrees** with the paper beyond the spread of the seeds.")
    )
    if len(single) == len(rows):
        return "With one seed there is no spread, so no difference is judged."
    return judged + (f" Not judged, with one seed so far: {', '.join(single)}." if single else "")


def show_scaling(view: View) -> None:
    """Loss over size and compute of language models that read the same tokens, with a power law."""
    curves = read_study("scaling")
    ends = ends_of_runs(curves)
    if len(ends) < 3:
        st.info("Fewer than three runs are finished, too few for a power law.", icon=":material/info:")
        return
    names = [f"{count / 1e6:.1f} M" for count in ends["parameters"]]
    law = fit_power_law(ends["n"], ends["dev_loss"])
    of_runs = [curves[curves["run"] == run] for run in ends["run"]]
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
    figure = scaling_chart(names, sizes, losses, compute, lines)
    chart(figure, key="scaling", alt="Development loss over parameters and over training compute.", roomy=True)
    tokens = ends["tokens"].to_numpy()
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
    controls.table(table)
    per_parameter = tokens / ends["parameters"]
    st.markdown(
        f"**{law.n} language models** of one design, each trained once on the same {tokens.max() / 1e6:.1f} "
        f"million tokens. The exponent is **{law.exponent:.3f} ± "
        f"{law.interval:.3f}** (95 %, by Student's t with {law.n - 2} degree{'s' * (law.n != 3)} of freedom); Kaplan "
        f"et al. 2020 found {KAPLAN} for models of up to 1.5 billion parameters that read all they could use. "
        f"Hoffmann et al. 2022 (Chinchilla) found that size and data should grow alike, about {CHINCHILLA} tokens per "
        f"parameter at the best use of compute; these runs read {per_parameter.min():.2g} to {per_parameter.max():.2g}."
    )
    st.markdown(
        f"**Why this proves neither.** {law.n} points leave {law.n - 2} to judge the fit by, and one seed each says "
        "nothing about chance. The smallest models consist mostly of their embedding matrix, which Kaplan et al. leave "
        "out of N, as is done here, and Hoffmann et al. count. No run came near the end of what it could learn, so the "
        "loss measures how fast a size learns under one learning rate as much as what it can hold; and a law with a "
        "constant, the loss that no size removes, would fit as well. As all runs read the same tokens, compute is "
        "proportional to size, so its exponent is the same number and says nothing about the best split between size "
        "and data: that takes runs of different lengths, each with its own schedule. Two cores for an hour are enough "
        "to draw the axes, not the law."
    )
    st.caption(
        "Left: the end of each run; dotted, the same line with the ends of the interval as exponent. Right: each run "
        "while it learns, 6 N operations per token (2 N forward, 4 N backward); the rate falls to zero at the end of a "
        "run, so points before it are higher than those of a shorter run would be."
    )
    export_tab(view, "scaling", Call(tab.study_arrays, "scaling"), Picture("Scaling", "scaling", figure), table=curves)
