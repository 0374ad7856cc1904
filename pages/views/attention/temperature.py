"""Temperature: softmax(x / tau) of the run's own scores, the division by sqrt(d_k), and the effect of tau."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.distributions import entropy, total_variation
from model.analysis.heads.own_vectors import random_widths
from model.analysis.heads.sharpness import ONE_KEY, measure_sharpness
from model.analysis.heads.softmax import (
    ProductStatistics,
    entropy_by_temperature,
    mean_entropy,
    one_hot_weights,
    product_statistics,
    softmax_at,
    uniform_weights,
)
from model.analysis.runs.two_runs import vector_arrays
from model.interventions import AttentionTemperature, Intervention, Unscaled
from model.language import Numeral, tr
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import TAUS, Place, Run
from pages.views import OnRequest, Result, answer, is_quick, view
from pages.views.chosen_token import QUERY, query_of
from pages.views.controls import TAU, number
from pages.views.shared import axes, probability_changes
from viz.forms import TALLEST_BELOW_CONTROLS, Bars, Canvas, Line, Lines, Map, Maps, Mark, Texts, stretches
from viz.labels import say_label
from viz.ridges import PEAK, Ridges
from viz.special.scaling import runs_chart
from viz.special.temperature import live_weights
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import labels, numbered

CURVE = np.logspace(-2, 2, 81)
RIDGES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
MANY = (0.05, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 20.0)
EXAMPLE = 0.25
"""the temperature that is compared with τ = 1 while nobody has chosen another"""
SOFT = 4.0
"""temperature up to which a row is asked whether it stays on one key"""
SCOPES = {"head": "this head", "layer": "all heads of this layer", "everywhere": "every attention"}


@view("Live", code=(MultiHeadAttention._explicit, AttentionTemperature, softmax_at))
def live(run: Run, row: int = QUERY) -> Result:
    """The head's weights, redrawn in the browser while τ is dragged; on release the model runs again with it."""
    attention, head = run.attention, run.head
    mask, scaled, pattern = attention.mask[head], attention.pre_softmax[head], attention.pattern[head]
    drawing = live_weights(
        attention,
        head,
        (numbered(attention.query_tokens), numbered(attention.key_tokens)),
        [tr("predicts {token}", token=word) for word in labels(attention.predicts.labels)]
        if attention.predicts
        else (),
        title=run.place.title,
        temperature=run.tau,
        taus=TAUS,
        row=row,
        scope=SCOPES[run.scope],
        changes=len(run.kept),
    )
    numbers = {"mask": mask, "score": attention.scores[head], "scaled": scaled, "weight": pattern}
    facts = {"limit": ONE_KEY, "softest": None}
    if mask[row].sum() > 1 and softmax_at(scaled[row], mask[row], SOFT).max() > ONE_KEY:
        facts["softest"] = _softest_head(run)
    return Result({"temperature": Canvas(drawing, {"tau": TAU, "row": QUERY})}, facts, numbers)


def _softest_head(run: Run) -> dict[str, str]:
    """The head of this run whose rows are most even: its name, and the link that chooses it."""
    # Heads without a row to choose in come last.
    heads = {(one.kind, one.layer): np.nan_to_num(one.evenness, nan=-1.0) for one in measure_sharpness([run.trace])}
    kind, layer = max(heads, key=lambda place: heads[place].max())
    place = Place(kind, layer, int(heads[kind, layer].argmax()))
    return {"name": place.title, "link": urlencode(vars(place))}


@view("Before and after")
def before_and_after(run: Run) -> Result:
    """Output and probabilities before and after a temperature inside the model: the sidebar's, or an example."""
    example = run.tau == 1
    if example:
        run = replace(run, scope="everywhere")
        run = replace(run.decoded(*_changes(run, EXAMPLE)), tau=EXAMPLE)
    about = {"example": example, "place": run.place.in_words(run.scope)}
    plain, changes = run.decoded(*run.kept), run.trace.interventions
    if Need.LOGITS not in run.opened.features:
        turned = vector_arrays(plain.trace, run.trace)
        tokens, degrees = numbered(list(plain.trace.streams.values())[-1].tokens.labels), turned["degrees"]
        angles = {"turned by": degrees}
        bars = Bars(tokens, angles, ("token", "angle, in degrees"), None, (OKABE_ITO[1],), number=".4f", unit="°")
        facts = about | {"writes": False, "degrees": degrees, "most": tokens[int(degrees.argmax())]}
        shows = {"vectors": replace(bars, height=300)}
        return Result(shows, facts | _agreement(run, plain, run), turned, drawn=run)
    after, names = plain.forced(*changes), ("τ = 1", f"τ = {run.tau:g}")
    texts = {"Before, τ = 1": plain.trace.translation, f"After, τ = {run.tau:g}": run.trace.translation}
    shows, facts, numbers = _comparison(plain, after, texts, names)
    return Result(shows, about | {"writes": True} | facts | _agreement(run, plain, after), numbers, drawn=run)


def _comparison(plain: Run, after: Run, texts: dict[str, str], names: tuple[str, str]) -> tuple[dict, dict, dict]:
    """What two runs write, and what they give to each token of the plain run's text: pictures, facts and arrays."""
    before, other = plain.trace, after.trace
    right = before.target_probabilities, other.target_probabilities
    numbers = {
        "log_probability_before": before.target_log_probabilities,
        "log_probability_after": other.target_log_probabilities,
        "total_variation": total_variation(before.probabilities, other.probabilities),
    }
    facts = {"totals": (before.log_probability, other.log_probability), "same": len(set(texts.values())) == 1}
    return {"texts": Texts(texts), "probabilities": probability_changes(before, *right, names)}, facts, numbers


def _agreement(run: Run, before: Run, after: Run) -> dict[str, Any]:
    """How far the redrawn weights of the chosen head are from those of the rerun."""
    old, new, head = before.attention, after.attention, run.head
    drawn = softmax_at(old.pre_softmax[head], old.mask[head], float(new.temperature[head]))
    return {
        "tau": run.tau,
        "kept": len(run.kept),
        "apart": float(np.abs(drawn - new.pattern[head]).max()),
        "moved": float(np.abs(old.pre_softmax[head] - new.pre_softmax[head]).max()),
    }


@view("One row", code=(one_hot_weights, uniform_weights, entropy))
def one_row(run: Run, row: int = QUERY) -> Result:
    """One query's weights at several temperatures and in both limits, and its entropy as a function of τ."""
    attention, head = run.attention, run.head
    rows, keys = axes(attention)
    scaled, mask, tau = attention.pre_softmax[head], attention.mask[head], float(attention.temperature[head])
    middle = {_called(one): softmax_at(scaled[row], mask[row], one) for one in sorted({*RIDGES, tau})}
    weights = {"τ → 0": one_hot_weights(scaled[row], mask[row])} | middle | {"τ → ∞": uniform_weights(mask[row])}
    grey = "rgba(128,128,128,0.18)"
    ridges = Ridges(
        keys,
        {name: np.where(mask[row], values, np.nan) for name, values in weights.items()},
        ("key", "attention weight"),
        _called(tau),
        [f"{entropy(values):.2f} bits" for values in weights.values()],
        height=TALLEST_BELOW_CONTROLS,
        marks=[Mark(x=first - 0.5, to=last + 0.5, colour=grey) for first, last in stretches(~mask[row])],
    )
    curves = entropy_by_temperature(scaled, mask, CURVE)
    return Result(
        {"row-panels": ridges, "entropy": _entropy_curves(curves, row, int(mask[row].sum()), tau)},
        {"row": rows[row], "ties": int((weights["τ → 0"] > 0).sum()), "tau": tau, "peak": PEAK},
        {"entropy_of_rows": curves},
    )


def _called(tau: float) -> str:
    return f"τ = {tau:g}"


def _entropy_curves(curves: np.ndarray, row: int, visible: int, tau: float) -> Lines:
    """Entropy over temperature with both limits of the row; `curves` is (tau, query)."""
    most = math.log2(visible) if visible else 0.0
    top = max(most, float(curves.mean(axis=1).max(initial=0.0)), 0.1)
    keys = "1 key" if visible == 1 else f"{visible} keys"
    marks = [Mark(y=0, width=2, text="0: all weight on one key (τ → 0, no ties)", at={"x": 1.0, "xanchor": "right"})]
    if most:
        uniform = f"log₂ {visible} = {most:.3f}: uniform over {keys} (τ → ∞)"
        marks.append(Mark(y=most, width=2, text=uniform, at={"xanchor": "left"}))
    marks.append(Mark(x=tau, colour=OKABE_ITO[5], width=1.5, dash="solid", text=f"the run: τ = {tau:g}"))
    lines = {
        "chosen row": Line(CURVE, curves[:, row], OKABE_ITO[0], width=2.5),
        "mean of the head's rows": Line(CURVE, curves.mean(axis=1), OKABE_ITO[1], dash="dash", width=2.5),
    }
    return Lines(
        lines,
        ("temperature τ (logarithmic)", "entropy (bits)"),
        ".5f",
        "x",
        (0.01, 0.1, 1, 10, 100),
        height=380,
        marks=marks,
        layout={"yaxis": {"range": [-0.06 * top, 1.16 * top], "zeroline": False}},
    )


@view("Divided by √dₖ", code=(product_statistics,), needs=(Need.LOGITS,))
def divided(run: Run) -> Result:
    """The distribution of q·k, its variance compared with d_k, and a run without the division."""
    attention, head = run.attention, run.head
    statistics = [product_statistics(attention, number) for number in range(attention.n_heads)]
    shows = {
        "products": _histogram(attention.scores[head][attention.mask[head]], attention.d_k),
        "variances": _variances(statistics, head, attention.d_k),
    }
    facts = {"statistics": statistics[head], "runs": attention.scale != 1}
    numbers = {name: np.array([getattr(one, name) for one in statistics]) for name in vars(statistics[0])}
    numbers |= {name: getattr(attention, name)[head] for name in ("scores", "scaled", "mask")}
    if attention.scale == 1:
        return Result(shows, facts, numbers)
    more, facts_of_both, comparison = _undivided(run)
    return Result(shows | more, facts | facts_of_both, numbers | comparison)


def _undivided(run: Run) -> tuple[dict, dict, dict]:
    """The run with the division and the one without it, both at τ = 1: pictures, facts and arrays."""
    head, scale = run.head, run.attention.scale
    change = AttentionTemperature(scale) if run.attention.reads_scaled else Unscaled()
    plain, other = run.decoded(*run.kept), run.decoded(*run.kept, change)
    after = plain.forced(*run.kept, change)
    old, new = plain.attention, after.attention
    read = replace(old, scaled=old.scores).pre_softmax[head]
    drawn = softmax_at(read, old.mask[head], 1.0).astype(np.float32)
    maps = {"with: the run": old.pattern[head], "without: redrawn": drawn, "without: rerun": new.pattern[head]}
    texts = {"With the division": plain.trace.translation, "Without it, rerun": other.trace.translation}
    divisor = "√dₖ" if old.divides_by_root else Numeral(f"{1 / scale:.4g}")
    shows, facts, numbers = _comparison(plain, after, texts, (f"divided by {divisor}", "not divided"))
    shows |= {"undivided": Maps(*axes(old), {name: Map(weights, old.mask[head]) for name, weights in maps.items()})}
    facts |= {
        "scale": scale,
        "divisor": divisor,
        "bits": [float(entropy(weights).mean()) for weights in maps.values()],
        "all_bits": (mean_entropy(plain.trace), mean_entropy(after.trace)),
        "apart": np.abs(drawn - new.pattern[head]).max(),
        "unchanged": np.array_equal(old.scores, new.scores),
        "kept": len(run.kept),
    }
    return shows, facts, numbers


def _variances(statistics: list[ProductStatistics], head: int, d_k: int) -> Bars:
    """The variance of q·k in every head of a layer, compared to d_k; the chosen head is framed."""
    heads = range(len(statistics))
    marker = {
        "color": [OKABE_ITO[number % len(OKABE_ITO)] for number in heads],
        "line": {"width": [3 if number == head else 0 for number in heads], "color": GUIDE},
    }
    return Bars(
        [str(number) for number in heads],
        {"measured": np.array([one.variance for one in statistics])},
        ("head", "variance of q·k"),
        None,
        (marker,),
        number=".5g",
        what="head",
        dots={"if the components were independent": np.array([one.if_independent for one in statistics])},
        marks=[Mark(y=d_k, dash="dash", width=2.5, name=f"dₖ = {d_k}")],
    )


def _histogram(scores: np.ndarray, d_k: int) -> Bars:
    """How often each score of the visible cells occurs, before and after the division, in the same bins."""
    limit = max(float(np.abs(scores).max(initial=0.0)), 0.5) * 1.02
    bins = np.linspace(-limit, limit, 62)
    both = {"q·k": scores, "q·k / √dₖ": scores / math.sqrt(d_k)}
    names = [f"{name}: variance {values.astype(np.float64).var():.3g}" for name, values in both.items()]
    counts = [np.histogram(values, bins)[0] for values in both.values()]
    markers = [
        {"color": colour, "opacity": 0.65, "pattern": {"shape": shape, "solidity": 0.25}}
        for colour, shape in ((OKABE_ITO[5], ""), (OKABE_ITO[0], "/"))
    ]
    return Bars(
        (bins[:-1] + bins[1:]) / 2,
        {name: count / max(len(scores), 1) for name, count in zip(names, counts, strict=True)},
        ("score", "share of the cells"),
        None,
        markers,
        "overlay",
        ".1%",
        what=f"score within {(bins[1] - bins[0]) / 2:.2g} of",
        details={
            name: [say_label(f"{cells} cells") for cells in count] for name, count in zip(names, counts, strict=True)
        },
        layout={"yaxis": {"tickformat": ".0%"}},
    )


DRAW = number("Draw of random numbers, {0} to {1}", (0, 99), 0)
HEADS_OF_RUN, RANDOM = OKABE_ITO[1], OKABE_ITO[5]


@view("dₖ from 1 to 1,024", code=(random_widths, product_statistics))
def widths(run: Run, draw: int = DRAW) -> Result:
    """Random queries and keys of growing width, and this model's heads at theirs."""
    keys = run.attention.pattern.shape[-1]
    drawn, kind = run.compute(random_widths, keys, draw), run.trace.kind(run.kind)
    attentions = [run.trace.attention(kind.name, layer) for layer in kind.layers]
    heads = [(one, head) for one in attentions for head in range(one.n_heads)]
    names = [say_label(f"layer {one.layer}, head {head}") for one, head in heads]
    width = np.array([one.d_k for one, _ in heads], float)
    variance = np.array([product_statistics(one, head).variance for one, head in heads])
    peak = np.array([one.pattern[head].max(axis=-1).mean() for one, head in heads])
    x = drawn.widths
    of_heads = {"symbol": "diamond", "dash": "", "names": names}
    variances = {
        "N(0, 1), measured": Line(x, drawn.variance, RANDOM, "circle"),
        "dₖ, footnote 4": Line(x, x, GUIDE, dash="dot"),
        f"heads of {kind.title.lower()}": Line(width, variance, HEADS_OF_RUN, **of_heads),
    }
    peaks = {
        "N(0, 1), not divided": Line(x, drawn.peak, OKABE_ITO[0], "square"),
        "N(0, 1), divided by √dₖ": Line(x, drawn.divided_peak, RANDOM, "circle"),
        f"heads of {kind.title.lower()}, as they run": Line(width, peak, HEADS_OF_RUN, **of_heads),
    }
    slopes = {
        "N(0, 1), not divided": Line(x, drawn.slope, OKABE_ITO[0], "square"),
        "N(0, 1), divided by √dₖ": Line(x, drawn.divided_slope, RANDOM, "circle"),
    }
    facts = {
        "keys": keys,
        "widest": int(x[-1]),
        "ends": {"peak": drawn.peak[-1], "divided_peak": drawn.divided_peak[-1]}
        | {"slope": drawn.slope[-1], "divided_slope": drawn.divided_slope[-1], "variance": drawn.variance[-1]},
        "heads": len(heads),
        "middle": float(np.median(variance)),
        "above": int((variance > width).sum()),
    }
    titles = "dₖ (log)", "mean of the largest weight"
    return Result(
        {
            "variance": Lines(variances, (titles[0], "variance of q·k (log)"), ".4g", "xy", of="head"),
            "peak": Lines(peaks, titles, ".4f", "x", of="head"),
            "slope": Lines(slopes, (titles[0], "mean of the largest slope p (1 − p)"), ".4f", "x"),
        },
        facts,
    )


def _outputs(run: Run) -> Iterator[tuple[float, list[str]]]:
    """What the model writes at each of many temperatures."""
    free, written = replace(run, request=replace(run.request, target=None)), []
    for tau in MANY:
        written.append(free.decoded(*_changes(run, tau)).trace.translation)
        yield len(written) / len(MANY), list(written)


def _changes(run: Run, tau: float) -> tuple[Intervention, ...]:
    """The run's changes with another temperature at its place."""
    return (*(() if tau == 1 else (AttentionTemperature(tau, **run.place.address(run.scope)),)), *run.kept)


AT_MANY = OnRequest(
    f"Let it write at {len(MANY)} temperatures",
    "temperature-run-many",
    _outputs,
    lambda run: (run.trace.checkpoint_hash, replace(run.request, interventions=run.kept), run.place, run.scope),
    icon=":material/play_arrow:",
)


@view("Many temperatures", code=(AttentionTemperature,), needs=(Need.LOGITS,), on_request=AT_MANY)
def many(run: Run, outcome: list[str] | None) -> Result:
    """What many temperatures make of the plain run's text, and, on request, what the model writes at each."""
    facts = {"count": len(MANY), "place": run.place.in_words(run.scope), "done": outcome is not None}
    if outcome is None and not is_quick(run):
        return Result(facts=facts | {"drawn": False})
    plain = run.decoded(*run.kept)
    runs, tokens = [plain.forced(*_changes(run, tau)) for tau in MANY], len(plain.trace.next_ids)
    sums = np.array([one.trace.target_log_probabilities.sum() for one in runs], float)
    entropies = np.array([mean_entropy(one.trace) for one in runs])
    shows, facts = {"runs": runs_chart(MANY, sums / tokens, entropies)}, facts | {"drawn": True, "tokens": tokens}
    numbers = {"temperatures": np.array(MANY), "log_probabilities": sums, "entropies": entropies}
    if outcome is None:
        return Result(shows, facts, numbers)
    table = {
        "τ": [f"{tau:g}" for tau in MANY],
        "output": outcome,
        "ln probability of the plain output": sums,
        "mean entropy, all heads (bits)": entropies,
        "mean entropy, this head (bits)": [float(entropy(one.attention.pattern[run.head]).mean()) for one in runs],
    }
    same = outcome.count(plain.trace.translation)
    return Result(shows | {"runs-table": pd.DataFrame(table)}, facts | {"same": same}, numbers)


@answer
def one_line(run: Run) -> Result:
    """The largest weight of the chosen row, and what a quarter and four times the temperature make of it."""
    attention, row = run.attention, query_of(run)
    scores, mask = attention.pre_softmax[run.head][row], attention.mask[run.head][row]
    tau = float(attention.temperature[run.head])
    others = (
        {} if attention.sink is not None else {one: softmax_at(scores, mask, one).max() for one in (tau / 4, tau * 4)}
    )
    facts = {"row": axes(attention)[0][row], "tau": tau, "most": attention.pattern[run.head][row].max()}
    return Result(facts=facts | {"others": others})
