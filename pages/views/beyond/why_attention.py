"""Why attention: the cost of a layer and the path length of information in it, counted and timed (section 4)."""

from collections.abc import Iterator, Mapping
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.heads.softmax import softmax_peaks
from model.background import lstm, recall, scoring_functions, table_1
from model.background.paper_results import TABLE_2
from model.background.recurrence import (
    ADDITIVE,
    EXACT_MATCH,
    EXTRA_STEPS,
    FIXED,
    GRADIENT_AFTER,
    GRADIENT_BEFORE,
    TESTED_LENGTHS,
    TRAINED_LENGTHS,
    TRANSFORMER,
    TRANSFORMER_CONFIG,
    AdditiveAttention,
    LettersRun,
    RecurrentTranslator,
    by_seed,
    count_letters_parameters,
    distances,
    loss_gradient,
    read_results,
    result_arrays,
    right_letter_weights,
    run_letters_model,
)
from model.background.scoring_functions import DOT, MULTIPLICATIVE, SCALED, Multiplicative
from model.background.sizes import self_attention_layer
from model.background.stopwatch import FITTED, LENGTHS, Timings, exponents, growth, measure
from model.background.table_1 import layer_costs, lstm_work
from model.background.then_and_now import BASE, BIG, GNMT, training_of
from model.language import sentence_of, tr
from model.network.state_space import (
    HybridLanguageModel,
    LayerKind,
    SelectiveStateSpace,
    StateSpaceLayer,
    equivalent_map,
)
from model.run import Run
from model.trace import Array, Attention
from pages.views import Need, OnRequest, Result, answer, view
from pages.views.beyond import timing
from pages.views.controls import choice, menu, player, slider, text
from pages.views.shared import LETTER_MODELS, axes
from viz.figure import escape
from viz.forms import Line, Lines, Map, Maps, Mark, Scale
from viz.heatmap import row_names
from viz.labels import say_label, say_options
from viz.latex import span
from viz.special.heads_and_layers import head_map
from viz.special.model_card import lengths_to_plot, log_axes
from viz.special.recurrence import LOG, LOOKS, Schedule, schedule_chart
from viz.special.why_attention import ATTENTION, CONVOLUTIONAL, RECURRENT, RESTRICTED, path_chart
from viz.special.why_attention import LOOKS as LAYER_LOOKS
from viz.steps.head import head_of
from viz.theme import GUIDE, OKABE_ITO, symmetric_range
from viz.tokens import Verbatim, numbered

NORM = "norm of the gradient (log)"
KERNEL = slider("Kernel width k of the convolution", (2, 15), 3, key="kernel")
NEIGHBOURS = slider("Neighbours r of restricted self-attention", (2, 64), 8, key="neighbours")


ORDERS = {
    ATTENTION: ("O(n² · d)", "O(1)", "O(1)"),
    RECURRENT: ("O(n · d²)", "O(n)", "O(n)"),
    CONVOLUTIONAL: ("O(k · n · d²)", "O(1)", "O(logₖ n)"),
    RESTRICTED: ("O(r · n · d)", "O(1)", "O(n / r)"),
}
"""Table 1 as printed: complexity per layer, sequential operations, maximum path length."""


def _tokens(run: Run) -> tuple[str, ...]:
    """What the model's first stack reads."""
    return next(iter(run.trace.streams.values())).tokens.labels


@view(
    "Cost of a layer",
    code=(
        *(layer_costs, table_1.self_attention, table_1.recurrent, table_1.convolutional, table_1.restricted),
        *(table_1.dilated_path, table_1.restricted_path),
    ),
)
def costs(run: Run, kernel: int = KERNEL, neighbours: int = NEIGHBOURS) -> Result:
    """Table 1 of the paper at this sentence, and over the length of sentences."""
    config = run.opened.config
    n, d = len(_tokens(run)), config.d_model
    here, lengths = layer_costs(n, d, kernel, neighbours), lengths_to_plot(n, d)
    curves = table_1.operations_by_length(lengths.tolist(), d, kernel, neighbours)["operations"].astype(float)
    lines = {
        name: Line(lengths, curve, colour, dash=dash, width=3)
        for (name, (colour, dash)), curve in zip(LAYER_LOOKS.items(), curves, strict=True)
    }
    operations = [float(cost.operations) for cost in here.values()]
    lines["your sentence"] = Line([n] * len(here), operations, GUIDE, "circle", "", size=10, names=list(here))
    lines["n² d = n d²"] = Line([d], [float(d) ** 3], GUIDE, "circle-open", "", size=16)
    table = pd.DataFrame(
        {
            "layer": list(here),
            "complexity per layer": [ORDERS[name][0] for name in here],
            "operations here": [cost.operations for cost in here.values()],
            "sequential operations": [ORDERS[name][1] for name in here],
            "sequential here": [cost.sequential for cost in here.values()],
            "maximum path length": [ORDERS[name][2] for name in here],
            "path here": [cost.path for cost in here.values()],
        }
    )
    chart = Lines(
        lines,
        ("tokens n (log)", "operations per layer (log)"),
        ",.0f",
        "xy",
        of="layer",
        height=430,
        marks=[
            _mark(n, f"your sentence: n = {n}", 0.03, "left" if n < lengths[-1] ** 0.5 else "right"),
            _mark(d, f"n = d = {d}", 0.11 if n < d else 0.22, "left"),
        ],
        layout=log_axes(lengths),
    )
    facts = {
        "n": n,
        "d": d,
        "attention_term": here[ATTENTION].operations,
        "matrix": here[RECURRENT].operations,
        "whole": self_attention_layer(config, n).total,
        "lstm": lstm_work(n, d),
    }
    return Result({"operations": chart, "table": table}, facts)


def _mark(at: int, words: str, height: float, side: str) -> Mark:
    """A vertical line with its words; `height` is a share of the panel's."""
    shift = 6 if side == "left" else -6
    place = {"xanchor": side, "align": side, "xshift": shift, "font": {"size": 12}, "y": height, "yanchor": "bottom"}
    return Mark(x=at, text=words, at=place)


def _positions(run: Run) -> dict[int, str]:
    return dict(enumerate(numbered(_tokens(run))))


FROM = menu("From", _positions, key="path_from")
TO = menu("To", _positions, lambda run: len(_tokens(run)) - 1, key="path_to")


@view("Path length")
def path_lengths(
    run: Run, start: int = FROM, end: int = TO, kernel: int = KERNEL, neighbours: int = NEIGHBOURS
) -> Result:
    """The path from one token of the sentence to another in each kind of layer."""
    tokens, (first, second) = _tokens(run), sorted((start, end))
    ways = table_1.paths(first, second, kernel, neighbours)
    facts = {
        "apart": second - first,
        "last": len(tokens) - 1,
        "contiguous": table_1.contiguous_layers(first, second, kernel),
    }
    chart = path_chart(tokens, ways, table_1.windows(ways, len(tokens), kernel, neighbours))
    return Result({"paths": chart}, facts, {f"path_{name}": np.array(nodes) for name, nodes in ways.items()})


DEFAULT, LONGEST = "sequence", TESTED_LENGTHS[-1]
BEST = "best"


def clean_letters(typed: str) -> str:
    """The letters a to z of a text, at most LONGEST; DEFAULT if there are none."""
    return "".join(letter for letter in typed.lower() if letter in ascii_lowercase)[:LONGEST] or DEFAULT


def _heads(_: Run) -> dict[Any, str]:
    config = TRANSFORMER_CONFIG
    heads = [(layer, head) for layer in range(config.n_decoder_layers) for head in range(config.n_heads)]
    return say_options(
        {BEST: "the head that reads the right letters most"} | {one: f"layer {one[0]}, head {one[1]}" for one in heads}
    )


LETTERS = text("Letters to reverse", (DEFAULT, "planet", "abcdefghijkl"), key="letters")
HEAD_OF_TRANSFORMER = menu("Cross-attention of the Transformer", _heads, key="rival_head")
# An LSTM reads token after token, and then writes; a model that does not stop writes a few tokens more.
STEP = player(
    "Step",
    lambda _, letters: (1, 2 * len(clean_letters(letters)) + 1 + EXTRA_STEPS),
    lambda _, letters: len(clean_letters(letters)) + 2,
    key="rivals_step",
)


@view("Recurrence and attention", code=(RecurrentTranslator, AdditiveAttention, loss_gradient))
def recurrence(run: Run, letters: str = LETTERS, head: Any = HEAD_OF_TRANSFORMER, step: int = STEP) -> Result:
    """Three models reverse the typed letters: what they write, step by step, attention and gradient."""
    letters = clean_letters(letters)
    runs = {name: run.compute(run_letters_model, name, letters) for name in LETTER_MODELS}
    shares = {name: right_letter_weights(runs[name]) for name in (ADDITIVE, TRANSFORMER)}
    if head == BEST:
        head = tuple(int(i) for i in np.unravel_index(shares[TRANSFORMER].argmax(), shares[TRANSFORMER].shape))
    places = {ADDITIVE: (0, 0), TRANSFORMER: head}
    schedules = [_schedule(name, one, places.get(name)) for name, one in runs.items()]
    parameters = run.compute(count_letters_parameters)
    table = pd.DataFrame(
        {
            "model": [say_label(title) for title in LETTER_MODELS.values()],
            "writes": [" ".join(one.writes) for one in runs.values()],
            "exact match": ["✓ yes" if one.exact else "✗ no" for one in runs.values()],
            "probability of the whole output": [float(one.probability.prod()) for one in runs.values()],
            "parameters": [parameters[name] for name in runs],
        }
    )
    facts = {
        "letters": " ".join(letters),
        "longest": LONGEST,
        "trained": (TRAINED_LENGTHS[0], TRAINED_LENGTHS[-1]),
        "unseen": 0 if len(letters) in TRAINED_LENGTHS else len(letters),
        "limit": schedules[-1].limit,
        "head": head,
        "shares": {name: share[places[name]] for name, share in shares.items()},
        "first": letters[0],
    }
    parts = ("encoder", "decoder", "patterns", "probability")
    return Result(
        {
            "schedule": schedule_chart(schedules, step),
            "outputs": table,
            "additive": _read_letters(runs[ADDITIVE], (0, 0)),
            "transformer": _read_letters(runs[TRANSFORMER], head),
            "gradient": _gradients(runs),
        },
        facts,
        {f"{name}_{part}": getattr(one, part) for name, one in runs.items() for part in parts},
    )


def _schedule(name: str, run: LettersRun, place: tuple[int, int] | None) -> Schedule:
    recurrent = name != TRANSFORMER
    limit = 1.0 if recurrent else symmetric_range(run.encoder, run.decoder)[1]
    weights = None if place is None else run.patterns[place]
    return Schedule(LETTER_MODELS[name], run.reads, run.writes, run.encoder, run.decoder, weights, recurrent, limit)


def _read_letters(run: LettersRun, place: tuple[int, int]) -> Any:
    """What is read for each token that is written."""
    rows = row_names(("<s>", *run.writes[:-1]), run.writes)
    return head_map(rows, numbered(run.reads), run.patterns[place])


def _gradients(runs: dict[str, LettersRun]) -> Lines:
    """Norm of the gradient at each token that is read over its distance from the last letter that is written."""
    reads = runs[FIXED].reads
    away = distances(len(reads) - 1)
    names = escape(reads)
    lines = {
        LETTER_MODELS[name]: Line(away, one.gradient, colour, symbol, names=names)
        for (name, one), (colour, symbol) in zip(runs.items(), LOOKS, strict=True)
    }
    ticks = [Verbatim(f"{distance}<br>{name}") for distance, name in zip(away, names, strict=True)]
    return Lines(
        lines,
        ("steps between reading the token and writing the last letter", NORM),
        ".4g",
        "y",
        away,
        of="token",
        height=380,
        layout={"xaxis": {"tickangle": 0, "ticktext": ticks}, "yaxis": LOG | {"dtick": "D2"}},
    )


@view("Three models compared")
def comparison(run: Run) -> Result:
    """Exact match over length and gradient over distance, of three seeds each."""
    results = run.compute(read_results)

    def of_all(measure: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {title: by_seed(results, measure, name) for name, title in LETTER_MODELS.items()}

    # A translator of LSTMs and two Transformers: their trainings, and what they reached.
    bleu = {row.system.removesuffix(" + RL"): row.en_fr for row in TABLE_2}
    published = [{"training": training_of(name), "bleu": bleu[name]} for name in (GNMT, BASE, BIG)]
    trained = TRAINED_LENGTHS[0], TRAINED_LENGTHS[-1]
    measured = ("before training", GRADIENT_BEFORE, "dot"), ("after training", GRADIENT_AFTER, "solid")
    gradients = {
        f"{name}, {when}": line
        for when, measure, dash in measured
        for name, line in _of_seeds(of_all(measure), dash).items()
    }
    return Result(
        {
            "exact": _shares(of_all(EXACT_MATCH), trained, ("letters", "exact match")),
            "gradients": Lines(
                gradients, ("steps between reading and writing", NORM), ".4g", "y", height=380, layout={"yaxis": LOG}
            ),
        },
        {"trained": trained, "published": published},
        {
            f"{name}: {part}": array
            for name, arrays in run.compute(result_arrays).items()
            for part, array in arrays.items()
        },
    )


def _of_seeds(models: Mapping[str, tuple[Array, Array]], dash: str = "solid") -> dict[str, Line]:
    """Of each model the mean of its seeds, and the lowest and the highest; x, (x,), and the values, (seed, x)."""
    return {
        name: Line(x, values.mean(axis=0), *look, dash, between=(values.min(axis=0), values.max(axis=0)))
        for (name, (x, values)), look in zip(models.items(), LOOKS, strict=True)
    }


def _shares(models: Mapping[str, tuple[Array, Array]], trained: tuple[int, int], titles: tuple[str, str]) -> Lines:
    """A share of right answers over the length; the trained lengths, first and last, are shaded."""
    marks, percent = [Mark(x=trained[0] - 0.5, to=trained[1] + 0.5)], {"tickformat": ".0%", "range": [-0.03, 1.03]}
    return Lines(_of_seeds(models), titles, ".4g", marks=marks, height=380, layout={"yaxis": percent})


RECALL_MODELS = {recall.ATTENTION: "attention", recall.STATE_SPACE: "state space", recall.HYBRID: "hybrid"}
LOOKED_UP = text(
    "Pairs, then the letter to look up",
    ("a3 k7 f1 d5 k", "q2 m8 e4 x1 b9 t6 h3 w5 m", "u1 c7 p4 y9 g2 n6 z0 s8 j3 v5 r1 l6 i4 o7 d2 a9 g", "h6 b2 t8 b"),
    key="recall_pairs",
)
RECALL_LAYER = menu(
    "Layer of the attention-only and of the state space model",
    lambda _: (
        {BEST: tr("the layer that reads the right digit most")} | {n: tr("layer {layer}", layer=n) for n in (0, 1)}
    ),
    key="recall_layer",
)
RECALL_HEAD = menu(
    "Head of attention",
    lambda _: (
        {BEST: tr("the head that reads the right digit most")}
        | {n: tr("head {head}", head=n) for n in range(recall.CONFIG.n_heads)}
    ),
    key="recall_head",
)
RECALL_CHANNEL = menu(
    "Channel of the state space model",
    lambda _: (
        {BEST: tr("the channel that reads the right digit most")}
        | {n: tr("channel {channel}", channel=n) for n in range(recall.SIZES.d_inner)}
    ),
    key="recall_channel",
)


@view("State space models", code=(SelectiveStateSpace, equivalent_map, StateSpaceLayer, HybridLanguageModel))
def state_space(
    run: Run, pairs: str = LOOKED_UP, layer: Any = RECALL_LAYER, head: Any = RECALL_HEAD, channel: Any = RECALL_CHANNEL
) -> Result:
    """Attention, a selective state space model and a hybrid look a letter up: where they read, and recall by length."""
    measured, parameters = run.compute(recall.read_recall_results), run.compute(recall.count_recall_parameters)
    by_seed = {title: recall.recall_by_seed(measured, name) for name, title in RECALL_MODELS.items()}
    trained = recall.TRAINED_PAIRS[0], recall.TRAINED_PAIRS[-1]
    shows: dict[str, Any] = {"recall": _shares(by_seed, trained, ("pairs", "right answers"))}
    facts: dict[str, Any] = {"problem": "", "trained": trained, "parameters": tuple(parameters.values())}
    facts |= _recall_of_seeds(by_seed[RECALL_MODELS[recall.ATTENTION]], trained[1])
    facts |= {"channels": recall.SIZES.d_inner, "d_state": recall.SIZES.d_state, "kernel": recall.SIZES.d_conv}
    numbers = {
        f"recall_{name}_{part}": array
        for name, arrays in by_seed.items()
        for part, array in zip(("pairs", "by_seed"), arrays, strict=True)
    }
    try:
        tokens = recall.read_pairs(pairs)
    except ValueError as error:
        return Result(shows, facts | {"problem": sentence_of(error)}, numbers)
    runs = {name: run.compute(recall.run_recall_model, name, tokens) for name in RECALL_MODELS}
    chosen = {"attention": head, "state_space": channel}
    alone = {name: runs[name].best_layer if layer == BEST else layer for name in (recall.ATTENTION, recall.STATE_SPACE)}
    shows["maps"] = _recall_maps({name: (runs[name], (one,)) for name, one in alone.items()}, chosen)
    shows["hybrid"] = _recall_maps({recall.HYBRID: (runs[recall.HYBRID], (0, 1))}, chosen)
    count, right = len(tokens) // 2, runs[recall.HYBRID].right
    shows["answers"] = pd.DataFrame(
        {
            "kind": list(RECALL_MODELS.values()),
            "answers": [one.answer for one in runs.values()],
            "exact match": ["✓ yes" if one.answer == right else "✗ no" for one in runs.values()],
            "probability of the right digit": [float(one.probability[int(right)]) for one in runs.values()],
            "parameters": list(parameters.values()),
        }
    )
    facts |= {
        "tokens": tokens,
        "asked": tokens[-1],
        "right": right,
        "unseen": 0 if count in recall.TRAINED_PAIRS else count,
        "layers": tuple(alone.values()),
        "best": {name: float(runs[name].reads_right(one).max()) for name, one in alone.items()},
    }
    numbers |= {f"{name}_probability": one.probability for name, one in runs.items()}
    numbers |= {f"{name}_layer_{n}": maps for name, one in runs.items() for n, maps in enumerate(one.maps)}
    return Result(shows, facts, numbers)


def _recall_of_seeds(attention: tuple[Array, Array], pairs: int) -> dict[str, Any]:
    """What the seeds of attention alone have learned: how many only guess among the digits of a text of `pairs`."""
    at, values = attention
    shares = values[:, list(at).index(pairs)]
    chance = recall.chance_of_a_digit(pairs)
    ends = float(shares.min()), float(shares.max())
    return {"seeds": len(shares), "chance": chance, "guessers": int((shares <= chance).sum()), "of_attention": ends}


def _recall_maps(
    layers: Mapping[str, tuple[recall.RecallRun, tuple[int, ...]]], chosen: Mapping[LayerKind, int | str]
) -> Maps:
    """One head's attention weights or one channel's equivalent map in each of some layers, of models by name.

    `chosen` is the number of the head and of the channel, or BEST. Dotted lines enclose the column of the right digit.
    """
    maps = {}
    for name, (run, numbers) in layers.items():
        for layer in numbers:
            kind = run.kinds[layer]
            number = int(run.reads_right(layer).argmax()) if chosen[kind] == BEST else int(chosen[kind])
            values, visible = run.maps[layer][number], np.tri(len(run.tokens), dtype=bool)
            part = "head" if kind == "attention" else "channel"
            title = f"{RECALL_MODELS[name]}: layer {layer}, {part} {number}"
            signed = Map(values, visible, Scale.signed(values, title="weight of x"), "weight of x")
            maps[title] = Map(values, visible) if kind == "attention" else signed
    names = numbered(run.tokens)
    edges = [Mark(x=run.place + side, panel=panel) for panel in range(1, len(maps) + 1) for side in (-0.5, 0.5)]
    return Maps(names, names, maps, axes=("token", "reads"), marks=edges)


LAYER = 0
"""of the first stack, whose self-attention is timed; all its layers have the same size"""
TIMED = {lstm.ATTENTION: (OKABE_ITO[5], "circle"), lstm.LSTM: (OKABE_ITO[0], "square")}


def _time_layers(run: Run, batch: int) -> Iterator[tuple[float, Timings | None]]:
    """At all lengths, or at those that RoPE, the one part of the layer that knows positions, has angles for."""
    config, lengths = run.opened.config, LENGTHS
    if config.positions == "rope":
        lengths = tuple(n for n in LENGTHS if n <= config.max_len)
        if len(lengths) < FITTED:
            lengths = config.max_len // 4, config.max_len // 2, config.max_len
    return timing.time_side_by_side(lstm.layer_contenders(run.opened.model, LAYER, batch), run.trace.device, lengths)


AT_LAYERS = OnRequest(
    timing.MEASURE,
    "why-time-layers",
    _time_layers,
    lambda run, batch: (run.trace.device, run.trace.checkpoint_hash, batch),
    timing.ALONE,
)


@view("Measured", code=(lstm.layer_contenders, measure), on_request=AT_LAYERS)
def measured(
    run: Run, batch: int = choice("Batch size", (1, 4, 16), key="time_batch"), outcome: Timings | None = None
) -> Result:
    """Time of one self-attention layer and of one LSTM layer of the same width, by sentence length."""
    config, sizes = run.opened.config, lstm.layer_parameters(run.opened.model, LAYER)
    stack, d = next(iter(run.trace.streams)), config.d_model
    facts = {"d": d, "stack": stack, "layer": LAYER, "sizes": sizes}
    lengths, n = outcome.lengths if outcome else LENGTHS, len(_tokens(run))
    work = {
        "attention": np.array([batch * self_attention_layer(config, length).total for length in lengths], float),
        "LSTM": np.array([batch * lstm_work(length, d) for length in lengths], float),
    }
    if outcome is None:
        looks = zip(TIMED.items(), work.values(), strict=True)
        lines = {name: Line(lengths, count, *look, size=10) for (name, look), count in looks}
        facts |= {"lengths": lengths, "ratios": (work["LSTM"] / work["attention"])[[0, -1]].tolist()}
        return Result(
            {"counted": timing.over_length(lines, lengths, "multiply-adds in one pass (log)", n, ",.0f")}, facts
        )
    ours, theirs = (outcome.seconds[name] for name in TIMED)
    rates = {"attention": work["attention"] / ours, "LSTM": work["LSTM"] / theirs}
    columns = {
        "attention: ms": ours * 1e3,
        "LSTM: ms": theirs * 1e3,
        "ratio": theirs / ours,
        "attention: steps": [1] * len(lengths),
        "LSTM: steps": list(lengths),
        "attention: power": exponents(lengths, ours),
        "LSTM: power": exponents(lengths, theirs),
        **{f"{name}: M ops": count / 1e6 for name, count in work.items()},
        **{f"{name}: G ops/s": rate / 1e9 for name, rate in rates.items()},
    }
    facts |= {
        "rates": {name: float(rate[-1]) for name, rate in rates.items()},
        "ratio": theirs / ours,
        "powers": [growth(lengths, seconds) for seconds in (ours, theirs)],
        "as_in_paper": config.kv_heads * config.d_k == config.kv_heads * config.d_v == d,
    }
    chart = timing.time_chart(outcome, timing.time_points(outcome, TIMED, width=3), n)
    return Result({"times": chart, "table": timing.time_table(lengths, columns)}, facts)


SCORINGS = {
    DOT: (OKABE_ITO[0], "circle"),
    SCALED: (OKABE_ITO[5], "x"),
    MULTIPLICATIVE: (OKABE_ITO[2], "square"),
    scoring_functions.ADDITIVE: (OKABE_ITO[3], "diamond"),
}
FORMULAS = {
    DOT: "q · k",
    SCALED: "q · k / √dₖ",
    MULTIPLICATIVE: "qᵀ W k",
    scoring_functions.ADDITIVE: "vᵀ tanh(W₁ q + W₂ k)",
}


def _time_scoring(run: Run) -> Iterator[tuple[float, Timings | None]]:
    contenders = scoring_functions.head_contenders(run.attention, run.head, run.trace.device)
    return timing.time_side_by_side(contenders, run.trace.device)


AT_SCORING = OnRequest(
    timing.MEASURE, "why-time-scoring", _time_scoring, lambda run: (run.trace.device, run.attention.d_k), timing.ALONE
)


@view(
    "Scoring functions",
    code=(
        scoring_functions.multiplicative,
        scoring_functions.dot_product,
        scoring_functions.additive,
        scoring_functions.scoring_costs,
    ),
    needs=(Need.MATRICES,),
    on_request=AT_SCORING,
)
def scoring(run: Run, outcome: Timings | None = None) -> Result:
    """The chosen head's scores under several scoring functions, and their cost."""
    attention, head = run.attention, run.head
    form = scoring_functions.multiplicative(attention, head)
    maps = {"1  q · k": attention.scores[head], "2  scaled": attention.scaled[head], "3  x W xᵀ": form.scores}
    scale = Scale.signed(*maps.values())
    scale = Scale(scale.low, scale.high, title=f"score<br>{span(scale.low, scale.high)}")
    n, m = attention.scores[head].shape
    counted = scoring_functions.scoring_costs(n, m, attention.d_k)
    cost = pd.DataFrame(
        {
            "scoring function": list(counted),
            "score of q and k": [FORMULAS[name] for name in counted],
            "multiply-adds": [one.multiply_adds for one in counted.values()],
            "tanh": [one.tanhs for one in counted.values()],
            "largest result, numbers": [one.numbers for one in counted.values()],
        }
    )
    shows: dict[str, Any] = {
        "scores": Maps(*axes(attention), {name: Map(values, None, scale, name) for name, values in maps.items()}),
        "cost": cost,
    }
    facts = {"n": n, "m": m, "d_k": attention.d_k, **_identity(attention, head, form)}
    if outcome:
        milliseconds = {f"{name}, ms": seconds * 1e3 for name, seconds in outcome.seconds.items()}
        shows["times"] = timing.time_chart(outcome, timing.time_points(outcome, SCORINGS, width=3), n)
        shows["times-table"] = timing.time_table(outcome.lengths, milliseconds)
        facts["slower"] = outcome.seconds[scoring_functions.ADDITIVE][-1] / outcome.seconds[DOT][-1]
    terms = {name: getattr(form, name) for name in ("w", "from_query", "from_key", "constant")}
    return Result(shows, facts, {"visible": attention.mask[head], **terms})


def _identity(attention: Attention, head: int, form: Multiplicative) -> dict[str, Any]:
    """Facts about how far the multiplicative form is from the dot product, and what scaling does to the weights."""
    scores, mask, steps = attention.scores[head], attention.mask[head], head_of(attention, head)
    error = before = np.abs(form.total - scores).max()
    if steps.then:
        before = np.abs(form.total - steps.linear["Q"].astype(np.float64) @ steps.linear["K"].T).max()
    return {
        "then": steps.then,
        "error": error,
        "error_before": before,
        "largest": np.abs(scores).max(),
        "width": form.w.shape,
        "biases": attention.projections.biases,
        "from_key": np.abs(form.from_key).max(),
        "from_query": np.abs(form.from_query).max(),
        "constant": form.constant,
        "peaks": [softmax_peaks(values, mask).mean() for values in (scores, attention.scaled[head], form.scores)],
    }


@answer
def one_line(run: Run) -> Result:
    """Operations and path of self-attention and of recurrence (Table 1), for this text and this width."""
    n, d = len(next(iter(run.trace.streams.values())).tokens), run.opened.config.d_model
    attends, recurs = table_1.self_attention(n, d), table_1.recurrent(n, d)
    return Result(facts={"n": n, "d": d, "attends": attends.operations, "recurs": recurs.operations})
