"""Gradients: how the loss flows back through the run, and whether attention explains what was predicted."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from model.analysis.heads.softmax import softmax_jacobian
from model.analysis.runs import attributions, gradients, swapped_weights
from model.background import recurrence
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import ResidualOff, UniformAttention, Unscaled
from model.language import tr
from model.run import TAUS, Run
from model.trace import KIND_TITLES, Array, Attention, Trace
from pages.text import names_in
from pages.views import Need, OnRequest, Result, answer, is_quick, is_short, view
from pages.views.chosen_token import QUERY
from pages.views.controls import choice, menu, steps
from pages.views.shared import LETTER_MODELS, axes
from viz.forms import Bars, Line, Lines, Map, Maps, Mark, Scale
from viz.heatmap import signed_axis
from viz.labels import say_label, say_options
from viz.special.swapped_weights import swap_scatter
from viz.theme import CHOSEN, OKABE_ITO, VALUE
from viz.tokens import decoder_rows, labels

WEIGHTS = {"trained": "as trained", "random": "random, before training"}
SEED = 0
"""of the random weights"""
CURVE = np.logspace(-2, 2, 61)
NAMES = names_in("attributions")
RANDOM = "random order"
PLAY = ":material/play_arrow:"
COLOURS = (*OKABE_ITO[:4], "#999999")
STYLES = [
    {"colour": colour, "dash": dash, "symbol": symbol}
    for colour, dash, symbol in zip(
        COLOURS, ("solid", "dash", "dot", "dashdot", "dot"), ("circle", "square", "diamond", "x", "cross"), strict=True
    )
]
"""of the runs, and of the measures with random orders last"""
HATCHES = ("", "/", "x", ".")


def _seed(weights: str) -> int | None:
    """Of the random weights; None for the trained ones."""
    return SEED if weights == "random" else None


@view("Through the layers", code=(gradients.loss_gradients, gradients.stream_gradients), needs=(Need.STREAM,))
def layers(run: Run, weights: str = choice("Weights", WEIGHTS, key="gradients_weights")) -> Result:
    """Norm of the gradient after each sub-layer, with and without residual connections and the division."""
    opened, trace, seed = run.opened, run.trace, _seed(weights)
    residual, divides = _removes_residual(opened), run.attention.scale != 1
    changes = {"as it is": ()}
    changes |= {"no residual connections": (ResidualOff(),)} if residual else {}
    changes |= {_undone(run.attention): (Unscaled(),)} if divides else {}
    changes |= {"neither": (ResidualOff(), Unscaled())} if residual and divides else {}
    found = run.compute(gradients.gradients_by_change, opened, trace, tuple(changes.values()), seed)
    norms = dict(zip(changes, found, strict=True))
    rounding = {}
    if Need.OWN_LAYERS not in opened.features:
        rounding = {
            name: run.compute(gradients.rounding_of_streams, opened, trace, c, seed) for name, c in changes.items()
        }
    last = trace.sublayers[-1]
    return Result(
        {stack: _stream(trace, stack, norms) for stack in trace.streams} | {"factors": _factors(norms, rounding)},
        {
            "stacks": list(trace.streams),
            "seed": seed,
            "residual": residual,
            "single": bool(rounding),
            "placement": last.placement,
            "multiplier": last.multiplier,
        },
        {
            f"{stack}_{name}_rounding".replace(" ", "_"): shares
            for name, by_stack in rounding.items()
            for stack, shares in by_stack.items()
        },
    )


def _undone(attention: Attention) -> str:
    """A run without the factor that this model gives its scores, in words."""
    return f"not divided by {'√dₖ' if attention.divides_by_root else format(1 / attention.scale, '.4g')}"


def _removes_residual(opened: Checkpoint) -> bool:
    """True if each sub-layer of the model has a residual connection of its own."""
    try:
        ResidualOff().edits(opened.model)
    except ValueError:
        return False
    return True


def _stream(trace: Trace, stack: str, norms: Mapping[str, Mapping[str, Array]]) -> Lines:
    """Norm of the gradient along one stack's residual stream, a curve a run; the loss is at the right end."""
    names = [say_label(step) for step in gradients.stream_steps(trace, stack)]
    curves = {name: of_run[stack] for name, of_run in norms.items()}
    places = np.arange(len(names))
    lines = {
        name: Line(places, values, **style, names=names)
        for (name, values), style in zip(curves.items(), STYLES, strict=False)
    }
    layout = {"xaxis": {"tickangle": -45}, "yaxis": _log_axis(np.stack(list(curves.values())))}
    titles = ("sub-layer", "norm of ∂L/∂x (log)")
    return Lines(lines, titles, ".4g", "y", ticks=names, of="after", layout=layout)


def _log_axis(values: Array) -> dict:
    """A logarithmic axis, with ticks between the powers of ten only where there are few of these."""
    some = values[values > 0]
    wide = some.size and some.max() > 100 * some.min()
    return {"exponentformat": "power"} | ({"nticks": 5} if wide else {"dtick": "D2", "minorloglabels": "complete"})


def _factors(norms: Mapping[str, Mapping[str, Array]], rounding: Mapping[str, Mapping[str, Array]]) -> pd.DataFrame:
    """By which factor the gradient changes from a stack's last sub-layer back to its input, a line a run.

    And the largest of `rounding_of_streams`, where it was measured.
    """
    table = pd.DataFrame({"run": list(norms)})
    for stack in norms["as it is"]:
        ends = [(of_run[stack][0], of_run[stack][-1]) for of_run in norms.values()]
        table[f"{stack}: at the input / at the top"] = [first / last if last else np.nan for first, last in ends]
    if rounding:
        table["moved by one rounding"] = [max(share.max() for share in rounding[name].values()) for name in norms]
    table.attrs["floats"] = "%.2g"
    return table


@view("Through the softmax", code=(softmax_jacobian,), needs=(Need.FULL_ROWS,))
def jacobian(run: Run, row: int = QUERY, tau: float = steps("Temperature τ", TAUS, 1.0, key="gradients_tau")) -> Result:
    """How the chosen row's weights respond to its scores, and how that depends on temperature."""
    attention, scale = run.attention, run.attention.scale
    rows, keys = axes(attention)
    divides = scale != 1 and attention.reads_scaled
    taus = [*CURVE.tolist(), tau, *([scale] if divides else [])]
    found, count = softmax_jacobian(attention, run.head, row, tau, taus), len(CURVE)
    marks = {tau: (f"chosen: τ = {tau:g}", CHOSEN)}
    marks |= {scale: (_undone(attention), OKABE_ITO[2])} if divides else {}
    curves = {"largest eigenvalue": found.largest[:count], "Frobenius norm": found.frobenius[:count]}
    scale_of_colours = Scale.signed(found.matrix)
    return Result(
        {
            "jacobian": Maps(
                keys,
                keys,
                {"": Map(found.matrix.astype(np.float32), scale=scale_of_colours, what="derivative")},
                axes=("weight on", "score of"),
                layout={
                    "coloraxis": signed_axis((scale_of_colours.low, scale_of_colours.high)),
                    "margin": {"r": 10},
                    "xaxis": {"title": "score that changes"},
                    "yaxis": {"title": "weight that answers"},
                },
            ),
            "jacobian-size": Lines(
                {
                    name: Line(CURVE, values, style["colour"], dash=style["dash"])
                    for (name, values), style in zip(curves.items(), STYLES, strict=False)
                },
                ("temperature τ (logarithmic)", "size of diag(p) − p pᵀ"),
                ".5g",
                "x",
                (0.01, 0.1, 1, 10, 100),
                height=400,
                marks=[
                    Mark(x=at, colour=colour, dash="solid", width=1.5, name=name)
                    for at, (name, colour) in marks.items()
                ],
                layout={"yaxis": {"rangemode": "tozero"}},
            ),
        },
        {
            "row": rows[row],
            "divides": divides,
            "largest": np.abs(found.matrix).max(),
            "sizes": list(zip(found.largest[count:], found.frobenius[count:], strict=True)),
        },
    )


@view("Over distance", code=(gradients.distance_gradients,))
def distance(run: Run, weights: str = choice("Weights", WEIGHTS, "random", key="gradients_distance_weights")) -> Result:
    """The gradient over distance: this model on its text, three small models on the letters task."""
    found = run.compute(_distance, run.opened, run.trace, _seed(weights))
    measure = recurrence.GRADIENT_AFTER if weights == "trained" else recurrence.GRADIENT_BEFORE
    results = run.compute(recurrence.read_results)
    of_seeds = {title: recurrence.by_seed(results, measure, name) for name, title in LETTER_MODELS.items()}
    means = {title: (at, values.mean(axis=0)) for title, (at, values) in of_seeds.items()}
    line = Line(found.distance, found.norm, symbol="circle", names=found.pairs)
    looks = zip((OKABE_ITO[0], OKABE_ITO[2], OKABE_ITO[5]), ("square", "diamond", "circle"), strict=True)
    letters = {
        title: Line(at, mean, colour, symbol, between=(of_seeds[title][1].min(axis=0), of_seeds[title][1].max(axis=0)))
        for (title, (at, mean)), (colour, symbol) in zip(means.items(), looks, strict=True)
    }
    titles = ("steps between reading and predicting", "norm (log)")
    rows = len(run.trace.next_ids)
    return Result(
        {
            "distance": Lines(
                {"this model": line},
                titles,
                ".4g",
                "y",
                of="pairs:",
                height=380,
                layout={"yaxis": _log_axis(found.norm)},
            ),
            "rivals": Lines(
                letters, titles, ".4g", "y", height=380, layout={"yaxis": {"exponentformat": "power", "dtick": 1}}
            ),
            "factors": _slopes({"this model": (found.distance, found.norm)} | means),
        },
        {"rows": rows, "counted": min(rows, gradients.MOST_ROWS)},
        {"pairs": found.pairs} | {f"{name}_each_seed": of_seeds[title][1] for name, title in LETTER_MODELS.items()},
    )


def _distance(opened: Checkpoint, trace: Trace, seed: int | None) -> gradients.DistanceGradients:
    *_, found = gradients.distance_gradients(opened, trace, seed)
    return found


def _slopes(curves: Mapping[str, tuple[Array, Array]]) -> pd.DataFrame:
    """The factor a step of an exponential that is fitted to each curve, which is (distance,) and its norms."""
    fitted = []
    for name, (at, norms) in curves.items():
        seen = norms > 0
        if seen.sum() > 1:
            factor = math.exp(np.polyfit(at[seen], np.log(norms[seen]), 1)[0])
            fitted.append((say_label(name), factor, at[seen][0], at[seen][-1]))
    table = pd.DataFrame(fitted, columns=["model", "factor a step", "from distance", "to distance"])
    table.attrs["floats"] = "%.3g"
    return table


def _predictions(run: Run) -> dict[int, str]:
    rows = decoder_rows(run.trace.row_tokens, run.trace.next_tokens)
    return {number: f"{number} {row}" for number, row in enumerate(rows)}


PREDICTED = menu("The row that", _predictions, lambda run: len(run.trace.next_ids) // 2, key="gradients_at")
REMOVAL = choice(
    "A token is removed by",
    {"embedding": "its embedding set to 0", "attention": "hidden from attention"},
    key="gradients_removal",
)
OVER = choice("Tokens are removed for", {"row": "this row", "all": "all rows"}, key="gradients_over")


def _layer(run: Run) -> int:
    """The chosen one; the last one where the explained attention has none of this number."""
    kind = attributions.explained_kind(run.opened)
    return run.layer if run.layer in kind.layers else kind.layers[-1]


def _rows(run: Run, row: int, over: str) -> list[int]:
    return list(range(len(run.trace.next_ids))) if over == "all" else [row]


MEASURE = OnRequest(
    "Measure and remove tokens",
    "gradients_measure",
    lambda run, row, removal, over: (
        (verdict.done, verdict)
        for verdict in attributions.judge(run.opened, run.trace, _layer(run), _rows(run, row, over), removal)
    ),
    lambda run, row, removal, over: (run.trace, _layer(run), _rows(run, row, over), removal),
    icon=PLAY,
    at_once=lambda run, over: over == "row" and is_short(run),
)


@view(
    "Does attention explain?",
    code=(gradients.gradient_times_input, attributions.measure_tokens, attributions.judge),
    needs=(Need.MATRICES,),
    on_request=MEASURE,
)
def explanation(
    run: Run,
    row: int = PREDICTED,
    removal: str = REMOVAL,
    over: str = OVER,
    outcome: attributions.Verdict | None = None,
) -> Result:
    """Four measures of what each token mattered for one prediction, and tokens removed in their order."""
    trace, kind, rows = run.trace, attributions.explained_kind(run.opened), _rows(run, row, over)
    facts = {"done": outcome is not None, "rows": len(rows), "removal": removal}
    if outcome is None:
        return Result(facts=facts)
    count = attributions.count_tokens(kind, trace, row)
    tokens = labels(trace.streams[kind.keys].tokens.labels[:count])
    measured = {name: values[rows.index(row), :count] for name, values in outcome.measures.items()}
    shares = {NAMES[name]: values / values.sum() if values.sum() else values for name, values in measured.items()}
    markers = [{"color": c, "pattern": {"shape": hatch}} for c, hatch in zip(COLOURS, HATCHES, strict=False)]
    curves, orders = outcome.log_p.mean(axis=0), [*NAMES.values(), RANDOM]
    best = [orders[int(gain.mean(axis=0).argmax())] for gain in (outcome.deletion, outcome.insertion)]
    return Result(
        {
            "measures": Bars(tokens, shares, ("token read", "share"), colours=markers, number=".4f", what="token"),
            "deletion": _removal(curves, 0, orders, "share of the tokens deleted: lower is better"),
            "insertion": _removal(curves, 1, orders, "share of the tokens put back: higher is better"),
            "verdict": _verdict(outcome, orders),
        },
        facts
        | {
            "kind": kind.title,
            "layer": _layer(run),
            "deep": len(kind.layers) > 1,
            "best": best,
            "random_orders": attributions.RANDOM_ORDERS,
        },
        {f"measured_{name}": values for name, values in measured.items()}
        | {name: getattr(outcome, name) for name in ("log_p", "agreement")},
    )


def _removal(curves: Array, side: int, names: Sequence[str], title: str) -> Lines:
    """Log p of the predicted tokens over the share of the tokens that are removed (side 0) or put back (side 1), in one
    range for both. The curves are (order, 2, share) in nats, as in `Verdict`."""
    lines = {
        name: Line(attributions.SHARES, values, **style)
        for name, values, style in zip(names, curves[:, side], STYLES, strict=True)
    }
    low = min(float(curves.min()), -1e-3)
    layout = {"yaxis": {"range": [1.05 * low, -0.05 * low]}}
    return Lines(lines, (title, "log p, nats"), ".4f", height=400, marks=[Mark(y=0)], layout=layout)


def _verdict(verdict: attributions.Verdict, names: Sequence[str]) -> pd.DataFrame:
    """A line an order: how good it is, and Spearman's rank correlation with the other measures; means over the rows."""
    defined = np.isfinite(verdict.agreement)
    agreement = np.where(defined, verdict.agreement, 0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    agreement = np.where(defined.any(axis=0), agreement, np.nan)
    table = pd.DataFrame({"ordered by": names})
    table["deletion: log p lost"] = verdict.deletion.mean(axis=0)
    table["insertion: log p gained"] = verdict.insertion.mean(axis=0)
    for name, column in zip(attributions.MEASURES, agreement.T, strict=True):
        table[f"ρ with {name}"] = np.append(column, np.nan)
    table.attrs["floats"] = "%.3f"
    return table


SEEDS = tuple(range(20))
WAYS = {"uniform": "Uniform", "permuted": "Shuffled"}
SHORT = {"tv": "Total variation", "jsd": "Jensen-Shannon"}
EXPLAINED = (Need.CROSS_ATTENTION, Need.OWN_LAYERS)
WHICH = choice(
    "Replace the weights of",
    lambda run: {"head": say_label(f"Layer {run.layer}, head {run.head}"), "kind": tr("Every head of this kind")},
    key="explain_which",
)
WAY = choice("Replaced by", lambda _, which: say_options(WAYS) if which == "kind" else {}, key="explain_way")
DISTANCE = choice("Distance", lambda _, which: say_options(SHORT) if which == "kind" else {}, key="explain_distance")


def _swap(
    run: Run, which: str
) -> Iterator[tuple[float, list[swapped_weights.Distances] | swapped_weights.HeadDistances]]:
    if which == "kind":
        for heads in swapped_weights.swap_every_head(run.opened, run.trace, run.kind):
            yield heads.done, heads
        return
    swaps: list[swapped_weights.Distances] = []
    for one in swapped_weights.swap_weights(run.opened, run.trace, run.kind, run.layer, run.head, SEEDS):
        swaps.append(one)
        yield len(swaps) / (1 + len(SEEDS)), swaps


SWAP = OnRequest(
    "Replace the weights",
    "explain_swap",
    _swap,
    lambda run, which: (run.trace, run.kind) if which == "kind" else (run.trace, run.kind, run.layer, run.head),
    icon=PLAY,
    at_once=lambda run, which: which == "head" and is_quick(run),
)


@view(
    "Other weights, same output?",
    code=(swapped_weights.swap_weights, swapped_weights.swap_every_head),
    needs=EXPLAINED,
    on_request=SWAP,
)
def other_weights(
    run: Run,
    which: str = WHICH,
    way: str | None = WAY,
    distance: str | None = DISTANCE,
    outcome: list[swapped_weights.Distances] | swapped_weights.HeadDistances | None = None,
) -> Result:
    """How far the output moves when the weights of a head, or of each head of a kind, are replaced."""
    facts = {"kind": KIND_TITLES[run.kind], "done": outcome is not None, "seeds": len(SEEDS)}
    if outcome is None:
        return Result(facts=facts)
    if which == "head":
        every = {name: np.array([getattr(one, name) for one in outcome]) for name in swapped_weights.NAMES}
        table = _one_head(outcome)
        moved = {name: row.to_numpy(float) for name, row in table.set_index("swapped for").iterrows()}
        bars = Bars([*table.columns[1:]], moved, ("", "distance, mean"), number=".4f", what="distance", height=320)
        return Result({"moved": bars, "swaps": table}, facts, every)
    arrays = getattr(outcome, way)
    moved, output = arrays[f"pattern_{distance}"], arrays[f"output_{distance}"]
    layer, head = np.unravel_index(np.nanargmax(output), output.shape)
    chart = swap_scatter(
        moved,
        output,
        distance,
        (run.layer, run.head),
        f"{KIND_TITLES[run.kind]}: a point a head, its weights {'made uniform' if way == 'uniform' else 'shuffled'}",
    )
    facts |= {
        "below": int((output < moved).sum()),
        "heads": output.size,
        "strongest": (int(layer), int(head), output.max()),
    }
    everything = {
        f"{name}_{measure}": array
        for name, arrays in (("uniform", outcome.uniform), ("permuted", outcome.permuted))
        for measure, array in arrays.items()
    }
    return Result({"swaps": chart}, facts, everything)


def _one_head(swaps: list[swapped_weights.Distances]) -> pd.DataFrame:
    """How far weights and output moved, with uniform weights and in the median of the shuffles."""
    uniform = next(one.means for one in swaps if isinstance(one.intervention, UniformAttention))
    shuffled = pd.DataFrame([one.means for one in swaps if not isinstance(one.intervention, UniformAttention)])
    rows = {"uniform weights": uniform, f"shuffled, median of {len(shuffled)}": shuffled.median().to_dict()}
    columns = {
        f"{title} moved, {measure.upper()}": [row[f"{part}_{measure}"] for row in rows.values()]
        for measure in SHORT
        for part, title in (("pattern", "weights"), ("output", "output"))
    }
    return pd.DataFrame({"swapped for": list(rows), **columns})


ZERO = OnRequest(
    "Zero each key's value",
    "explain_zero",
    lambda run: (
        (float(np.isfinite(effects.change).mean()), effects)
        for effects in swapped_weights.zero_values(run.opened, run.trace, run.kind, run.layer, run.head)
    ),
    lambda run: (run.trace, run.kind, run.layer, run.head),
    icon=PLAY,
    at_once=is_quick,
)


@view(
    "Value zeroing",
    code=(swapped_weights.zero_values, swapped_weights.rank_correlation),
    needs=EXPLAINED,
    on_request=ZERO,
)
def value_zeroing(run: Run, outcome: swapped_weights.ValueEffects | None = None) -> Result:
    """What each key's value contributes, beside the attention weight on it."""
    if outcome is None:
        return Result(facts={"done": False})
    keys = labels(run.attention.key_tokens)
    weights, shares = run.attention.pattern[run.head].mean(axis=0), outcome.share.mean(axis=0)
    rank = swapped_weights.rank_correlation(weights, shares)
    table = pd.DataFrame(
        {
            "position": range(len(keys)),
            "key": keys,
            "attention weight": weights,
            "value zeroing": shares,
            "change in log p, nats": outcome.change,
        }
    )
    hatched = {"color": VALUE, "pattern": {"shape": "/"}}
    chart = Bars(
        keys,
        {"attention weight": weights, "value zeroing": shares},
        ("key", "share of the row, mean"),
        colours=(OKABE_ITO[0], hatched),
        number=".6f",
        what="key",
        height=340,
    )
    return Result(
        {"zeroing": chart, "table": table},
        {"done": True, "keys": len(keys), "rank": None if np.isnan(rank) else rank},
        {"distance": outcome.distance},
    )


@answer
def one_line(run: Run) -> Result:
    """The loss of this text, which all gradients begin with, and the token that it is largest at."""
    losses = -run.trace.target_log_probabilities
    worst = int(losses.argmax())
    return Result(facts={"mean": losses.mean(), "token": labels(run.trace.next_tokens)[worst], "worst": losses[worst]})
