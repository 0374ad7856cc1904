"""The paper, line by line: its sentences, equations, figures and tables, each beside this run's number."""

import inspect
from dataclasses import fields
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from model import transformer
from model.analysis.heads.far_cells import FAR, Pair, far_cells, read_sentence, strongest
from model.analysis.heads.head_summary import summarise_kind
from model.analysis.heads.softmax import product_statistics
from model.analysis.positions.position_table import rotate, wavelengths
from model.background.layer_size import LayerSize, layer_sizes
from model.background.paper import FIGURES, TFLOPS
from model.background.paper_results import LATER, TABLE_2, TABLE_4
from model.background.scoring_functions import ADDITIVE, DOT, scoring_costs
from model.background.studies import our_table_3
from model.background.table_1 import recurrent, self_attention
from model.background.table_3 import TABLE_3, Ablation
from model.background.then_and_now import BASE, BIG, Training, training_of
from model.checkpoints.store import shown_name
from model.network.attention import MultiHeadAttention
from model.network.embedding import sinusoids
from model.network.feed_forward import FeedForward
from model.network.layers import DecoderLayer, EncoderLayer
from model.network.residual import Residual
from model.run import Run
from model.trace import Kind, Trace
from model.training.schedule import noam, schedule_curve
from pages.views import Need, Result, answer, view
from pages.views.attention.attention_step_by_step import head_and_rows
from pages.views.chosen_token import first_key, first_query
from pages.views.controls import CLICKED_HEAD, choice, menu
from pages.views.learn.paper_figures import draw_lines, draw_ranking, fact_of_cell, fact_of_pair
from pages.views.model import whole_model
from pages.views.shared import axes, card_of
from viz.forms import Bars, Canvas, Document, Line, Lines, Map, Maps, Scale, Table
from viz.labels import say_label, say_options
from viz.latex import signed
from viz.special.heads_and_layers import head_map
from viz.steps.head import Choice
from viz.steps.steps import all_steps, picture, result
from viz.theme import OKABE_ITO
from viz.tokens import Verbatim, labels

LINE_BY_LINE = "Line by line"
WARMUP, STEPS = 4000, 20_000
"""of the paper's schedule, and how much of it is drawn"""
DRAWN = 40, 64
"""positions and dimensions of the table of sines and cosines that are drawn"""
SHOWN = 12
"""far cells in the table"""


def _first(run: Run) -> Any:
    return next(iter(run.trace.streams.values()))


def _self_kind(run: Run) -> Kind:
    """The model's first kind of attention, which never crosses."""
    return run.trace.kinds[0]


@view("Figure 1: the Transformer", code=whole_model.figure.code, tab=LINE_BY_LINE, needs=whole_model.NEEDS)
def figure_1(run: Run, at: str = whole_model.AT, off: str = whole_model.OFF) -> Result:
    """The paper's architecture with the boxes of this model and their parameters, as The whole model draws it."""
    result = whole_model.draw_model(run, at, off, counts=True)
    return Result({"figure_1": result.shows["whole_model"]}, numbers=result.numbers, drawn=result.drawn)


@view("Abstract, 1 Introduction, 2 Background", tab=LINE_BY_LINE)
def beginning(run: Run) -> Result:
    """What the paper sets out to do without, and what self-attention is."""
    kind, stream = _self_kind(run), _first(run)
    blocks = run.opened.parameters_by_block().values()
    total = sum(sum(parts.values()) for parts in blocks)
    attends = sum(count for parts in blocks for name, count in parts.items() if name.endswith("attn"))
    weights, mask = run.trace.weights_and_mask(kind.name, kind.layers[0])
    rows, columns = weights.shape[-2:]
    cells = run.compute(far_cells, run.trace, kind.name)
    facts = {
        "attentions": sum(len(one.layers) for one in run.trace.kinds),
        "heads": sum(len(one.layers) * one.heads for one in run.trace.kinds),
        "share": attends / total if total else None,
        "n": len(stream.tokens),
        "kind": kind.title.lower(),
        "others": 1 - float(np.trace(weights * mask, axis1=-2, axis2=-1).sum() / (len(weights) * rows)),
        "square": rows == columns,
        "far": FAR,
        "furthest": fact_of_cell(cells, stream.tokens.labels, 0) if len(cells.weights) else None,
    }
    return Result(facts=facts)


@view("3.1 Encoder and decoder stacks", code=(EncoderLayer, DecoderLayer, Residual), tab=LINE_BY_LINE)
def stacks(run: Run) -> Result:
    """Layers, residual connections, their width, and that no row of the decoder sees what comes later."""
    config, trace = run.opened.config, run.trace
    causal = next((kind for kind in trace.kinds if kind.causal), None)
    facts = {
        "layers": (config.n_encoder_layers, config.n_decoder_layers),
        "sublayers": len(trace.sublayers) if Need.STREAM in run.opened.features else None,
        "block": None,
        "rows": len(trace.next_ids),
        "writes": "decoder" in trace.streams,
        "later": _later(trace, causal) if causal else None,
    }
    if facts["sublayers"]:
        facts["block"] = _residual(trace)
    return Result(facts=facts)


def _residual(trace: Trace) -> dict[str, Any]:
    """How the first sub-layer is wrapped, and how far LayerNorm(x + Sublayer(x)), computed again, is from the run."""
    one = trace.sublayers[0]
    post = one.placement == "post" and one.norm is not None
    error = float(np.abs(one.norm(one.before + one.out) - one.after).max()) if post else None
    return {"placement": one.placement, "norm": one.norm.kind if one.norm else "", "error": error}


def _later(trace: Trace, kind: Kind) -> dict[str, Any]:
    """The cells of later tokens in all heads, and the largest weight in one."""
    layers = [trace.weights_and_mask(kind.name, layer)[0] for layer in kind.layers]
    after = np.triu(np.ones(layers[0].shape[-2:], bool), 1)
    cells = int(after.sum()) * sum(map(len, layers))
    return {"cells": cells, "largest": max(float(one[:, after].max(initial=0)) for one in layers)}


@view("3.2 Attention", code=(MultiHeadAttention,), tab=LINE_BY_LINE)
def attention(run: Run) -> Result:
    """Equation 1 on the chosen head, footnote 4, several heads, and the three uses of attention."""
    one, head = run.attention, run.head
    row = int(np.argmax(~np.array(one.query_special))) if not all(one.query_special) else 0
    best = one.pattern[:, row].argmax(axis=-1)
    cross = next((kind for kind in run.trace.kinds if kind.crosses), None)
    costs = scoring_costs(*one.pattern.shape[1:], one.d_k)
    hidden = int((~one.mask[head]).sum())
    facts = {
        "n": one.pattern.shape[1],
        "m": one.pattern.shape[2],
        "error": float(np.abs(one.pattern[head].astype(float) @ one.v[head] - one.z[head]).max()),
        "off": float(np.abs(one.pattern[head].astype(float).sum(axis=-1) - 1).max()),
        "divisor": 1 / one.scale,
        "statistics": product_statistics(one, head),
        "products": costs[DOT].multiply_adds,
        "tanhs": costs[ADDITIVE].tanhs,
        "row": labels(one.query_tokens)[row],
        "keys": [labels(one.key_tokens)[key] for key in dict.fromkeys(best.tolist())],
        "d_v": one.v.shape[-1],
        "source": len(run.trace.src_tokens) if cross else None,
        "hidden": hidden,
        "cells": one.mask[head].size,
    }
    rows, keys = axes(one)
    picture = head_map(rows, keys, one.pattern[head], one.mask[head])
    return Result({"head": picture}, facts, {"pattern": one.pattern[head], "mask": one.mask[head]})


BOXES = "Linear", "MatMul: Q Kᵀ", "Scale", "Mask (opt.)", "SoftMax", "MatMul: with V", "Concat, Linear"
"""of figure 2, by the step of a head"""
BOX = choice("Box of figure 2", dict(enumerate(BOXES, start=1)), 5)


@view(
    "Figure 2: scaled dot-product and multi-head attention",
    code=(MultiHeadAttention,),
    tab=LINE_BY_LINE,
    needs=(Need.FULL_ROWS, Need.MATRICES),
)
def figure_2(run: Run, step: int = BOX) -> Result:
    """The matrices of one box of figure 2 in the chosen head."""
    one, head, name = all_steps()[step - 1], head_and_rows(run), BOXES[step - 1]
    drawing = picture(step - 1, head, Choice(first_query(run), first_key(run)), f"{run.place.title}, {name}")
    facts = {"name": name, "what": one.text(head), "section": one.section}
    return Result({"figure_2": Canvas(drawing)}, facts, result(step - 1, head)[0])


@view("3.3 Feed-forward networks, 3.4 Embeddings and softmax", code=(FeedForward,), tab=LINE_BY_LINE)
def feed_forward(run: Run) -> Result:
    """Equation 2, the shared matrix, and the factor of the embeddings."""
    config, opened = run.opened.config, run.opened
    own, has_stream = Need.OWN_LAYERS in opened.features, Need.STREAM in opened.features
    network = next((s for s in run.trace.sublayers if s.hidden is not None), None) if has_stream else None
    terms = _first(run).embedded.terms if has_stream else {}
    lengths = {name: float(np.linalg.norm(part.astype(float), axis=-1).mean()) for name, part in terms.items()}
    facts = {
        "activation": config.activation if own else "",
        "off": float((network.hidden == 0).mean()) if network else None,
        "relu": own and config.activation == "relu",
        "tied": config.tie_embeddings if own else None,
        "size": config.vocab_size * config.d_model,
        "scale": opened.embedding_scale if own else None,
        "scaled": own and config.scale_embeddings,
        "lengths": lengths or None,
    }
    return Result(facts=facts)


@view("3.5 Positional encoding", code=(sinusoids,), tab=LINE_BY_LINE)
def positions(run: Run) -> Result:
    """The sines and cosines, their wavelengths, and one position as a rotation of another."""
    config = run.opened.config
    own = Need.OWN_LAYERS in run.opened.features
    sines = own and config.positions == "sinusoidal"
    table = run.opened.positional_encoding() if sines else sinusoids(DRAWN[0] + 10, config.d_model).numpy()
    waves = wavelengths(config.d_model)
    turned = np.abs(rotate(table[: DRAWN[0] + 10], 10) - table[10 : DRAWN[0] + 10]).max()
    facts = {
        "sines": sines,
        "positions": config.positions if own else "",
        "waves": (float(waves[0]), float(waves[-1])),
        "ratio": float(waves[1] / waves[0]) if len(waves) > 1 else 1.0,
        "error": float(turned),
        "n": len(_first(run).tokens),
        "learned": _row_of_table_3("learned").bleu - TABLE_3[0].bleu,
        "our_learned": _our_difference("learned-positions"),
    }
    drawn = table[: DRAWN[0], : DRAWN[1]].astype(np.float32)
    rows, columns = [str(position) for position in range(len(drawn))], [str(i) for i in range(drawn.shape[1])]
    one = Map(drawn, scale=Scale.signed(drawn, title="PE"), what="PE")
    return Result({"table": Maps(rows, columns, {"": one}, axes=("position", "dimension"))}, facts)


@view("4 Why self-attention", code=(self_attention, recurrent), tab=LINE_BY_LINE)
def why(run: Run) -> Result:
    """Table 1 at this text's length, and what the heads of this run do."""
    n, d = len(_first(run).tokens), run.opened.config.d_model
    kinds, costs = ("self-attention", "recurrent"), (self_attention(n, d), recurrent(n, d))
    rows = [*zip(kinds, (r"n^2 \cdot d", r"n \cdot d^2"), costs, strict=True)]
    facts: dict[str, Any] = {"n": n, "d": d, "costs": rows, "recurs": costs[1].path, "types": None}
    if Need.MATRICES in run.opened.features:
        found = [one.type for kind in run.trace.kinds for one in run.compute(summarise_kind, run.trace, kind.name)]
        facts |= {"types": {name: found.count(name) for name in sorted(set(found))}, "heads": len(found)}
    numbers = {
        "table_1_layer": kinds,
        "table_1_operations here": [cost.operations for cost in costs],
        "table_1_sequential here": [cost.sequential for cost in costs],
        "table_1_longest path here": [cost.path for cost in costs],
    }
    return Result(facts=facts, numbers=numbers)


@view("5 Training", code=(noam,), tab=LINE_BY_LINE)
def training(run: Run) -> Result:
    """The vocabulary, the hardware, equation 3, dropout and label smoothing."""
    config = run.opened.config
    own = Need.OWN_LAYERS in run.opened.features
    log = card_of(run).log if own else ()
    hours = [row["hours"] for row in log if "hours" in row]
    steps = [row["step"] for row in log if "step" in row]
    writes = Need.LOGITS in run.opened.features
    curve = schedule_curve(512, WARMUP, STEPS, 400)
    facts = {
        "hours": max(hours, default=None),
        "steps": max(steps, default=None),
        "dropout": config.dropout if own else None,
        "warmup": WARMUP,
        "peak": noam(WARMUP, 512, WARMUP),
        "surest": run.compute(_mean_of_largest, run.trace) if writes else None,
        "tokens": len(run.trace.next_ids),
    }
    line = {"equation 3": Line(curve["step"], curve["rate"], OKABE_ITO[0])}
    chart = Lines(line, ("training step", "learning rate"), ".3g", height=300)
    return Result({"schedule": chart}, facts)


def _mean_of_largest(trace: Trace) -> float:
    """Probability of the most probable token, on average of the rows."""
    return float(trace.probabilities.max(axis=-1).mean())


@view("6 Results, 7 Conclusion", code=(Training,), tab=LINE_BY_LINE)
def results(run: Run) -> Result:
    """How the paper searches and counts, and what it planned."""
    base = training_of(BASE)
    facts = {
        "searches": Need.CROSS_ATTENTION in run.opened.features,
        "hours": base.hours,
        "operations": base.operations,
        "tflops": TFLOPS,
        "printed": next(row.en_de_operations for row in TABLE_2 if row.system == BASE),
        "single": _row_of_table_3("h = 1,").bleu - TABLE_3[0].bleu,
        "our_single": _our_difference("heads-1"),
    }
    return Result(facts=facts)


def _our_difference(name: str) -> float | None:
    """BLEU of one of our own rows against our base."""
    return next((one.bleu_difference for one in our_table_3() if one.name == name), None)


def _row_of_table_3(change: str) -> Ablation:
    """The paper's row whose change begins with these words."""
    return next(row for row in TABLE_3 if row.change.startswith(change))


FIGURE = choice("Figure", {number: f"Figure {number}" for number in FIGURES}, 3)


def _paper_run(run: Run, figure: int) -> Trace | str:
    return run.compute(read_sentence, run.opened, FIGURES[figure].sentence)


def _pair(run: Run, figure: int) -> Pair | None:
    trace = _paper_run(run, figure)
    if isinstance(trace, str):
        return None
    return strongest(trace, _self_kind(run).name, FIGURES[figure].query, FIGURES[figure].key)


def _layers(run: Run, figure: int) -> dict[int, str]:
    """The layers to choose from; none where the model cannot read the sentence."""
    if isinstance(_paper_run(run, figure), str):
        return {}
    layers = _self_kind(run).layers
    return say_options({layer: f"{layer} ({number} of {len(layers)})" for number, layer in enumerate(layers, start=1)})


FIGURE_LAYER = menu(
    "Layer of the lines",
    _layers,
    lambda run, figure: pair.layer if (pair := _pair(run, figure)) else _self_kind(run).layers[0],
    follows=True,
)


@view("Figures 3 to 5", code=(far_cells, strongest))
def figures(run: Run, figure: int = FIGURE, layer: int | None = FIGURE_LAYER) -> Result:
    """The paper's two sentences in this model: lines as in the paper, and the rank of what it shows."""
    trace, asked, kind = _paper_run(run, figure), FIGURES[figure], _self_kind(run)
    facts: dict[str, Any] = {"query": asked.query, "key": asked.key, "alone": asked.alone}
    if isinstance(trace, str) or layer is None:
        return Result(facts=facts | {"problem": str(trace)})
    pair, cells = _pair(run, figure), run.compute(far_cells, trace, kind.name)
    tokens = trace.streams[kind.queries].tokens
    facts |= {
        "problem": "",
        "sentence": tokens.text,
        "kind": kind.title.lower(),
        "far": FAR,
        "cells": len(cells.weights),
        "pair": fact_of_pair(pair, cells, tokens.labels) if pair else None,
        "causal": kind.causal,
        "half": int((cells.weights >= 0.5).sum()),
    }
    shows: dict[str, Any] = {"lines": Canvas(draw_lines(trace, kind, layer, pair, asked.alone))}
    if len(cells.weights):
        rows = [fact_of_cell(cells, tokens.labels, number) for number in range(min(SHOWN, len(cells.weights)))]
        table = pd.DataFrame({"rank": range(1, len(rows) + 1)} | {name: [r[name] for r in rows] for name in rows[0]})
        places = [{"kind": kind.name, "layer": row["layer"], "head": row["head"]} for row in rows]
        shows["ranking"] = draw_ranking(cells, pair)
        shows["table"] = Table(table, "%.3f", chooses=places, sets=CLICKED_HEAD)
    return Result(shows, facts | {"ranked": len(shows) > 1}, {"weights": cells.weights, "places": cells.places})


@view("The paper's results")
def paper_results(run: Run) -> Result:
    """Tables 2 and 4, the systems after the paper, and this checkpoint beside them."""
    systems = [*TABLE_2, *LATER]
    operations = {
        "EN-DE training operations": np.array([row.en_de_operations for row in systems], float),
        "EN-FR training operations": np.array([row.en_fr_operations for row in systems], float),
    }
    translations = pd.DataFrame(
        {
            "system": [*(row.system for row in TABLE_2), *(row.system.split(", ")[0] for row in LATER)],
            "EN-DE BLEU": np.array([row.en_de for row in systems], float),
            "EN-FR BLEU": np.array([row.en_fr for row in systems], float),
        }
        # As texts, because the browser's tables end at 2 ** 53.
        | {title: ["" if np.isnan(n) else signed(n, ".1e") for n in counts] for title, counts in operations.items()}
    )
    parses = pd.DataFrame([(row.parser, row.f1, row.training) for row in TABLE_4], columns=["parser", "F1", "training"])
    own = Need.OWN_LAYERS in run.opened.features
    facts = {
        "training": {name: (training_of(name).hours, training_of(name).operations) for name in (BASE, BIG)},
        "later": [row.system for row in LATER],
        "scores": [vars(score) for score in card_of(run).scores] if own else [],
    }
    return Result(
        {"bought": _bought(), "translations": Table(translations, "%.2f"), "parses": Table(parses, "%.1f")},
        facts,
        operations,
    )


def _bought() -> Lines:
    """BLEU over the operations of the training that it took, of every system of Table 2 that states both."""
    stated = [row for row in TABLE_2 if row.en_de is not None and row.en_de_operations is not None]
    others = cycle(zip(("square", "diamond", "cross", "x", "star"), (0, 2, 3, 4, 7), strict=True))
    lines = {}
    for row in stated:
        symbol, colour = ("circle", 5 if row.system == BIG else 1) if row.system in (BASE, BIG) else next(others)
        lines[Verbatim(row.system)] = Line([row.en_de_operations], [row.en_de], OKABE_ITO[colour], symbol, "", size=13)
    return Lines(lines, ("EN-DE training operations (log)", "EN-DE BLEU"), ".2f", "x", layout={"xaxis": {"dtick": 1}})


@view("The paper's Table 3")
def table_3(_: Run) -> Result:
    """The paper's ablations, each with its difference from base, and the row of our own that comes closest."""
    base, ours = TABLE_3[0], {one.row.paper: one for one in our_table_3() if one.row.paper}
    near = [ours.get(row.change) for row in TABLE_3]
    table = pd.DataFrame(
        {
            "changed": [f"{row.group}: {row.change}".removeprefix(": ") for row in TABLE_3],
            "PPL (dev)": [row.perplexity for row in TABLE_3],
            "BLEU (dev)": [row.bleu for row in TABLE_3],
            "BLEU against base": [row.bleu - base.bleu for row in TABLE_3],
            "ours: BLEU against base": [one.bleu_difference if one else np.nan for one in near],
            "ours: PPL, % above base": [100 * (one.perplexity_ratio - 1) if one else np.nan for one in near],
            "ours changes": [say_label(one.row.changed) if one else "" for one in near],
            "parameters, millions": [np.nan if row.millions is None else float(row.millions) for row in TABLE_3],
        }
    )
    formats = {"PPL (dev)": "%.2f", "BLEU (dev)": "%.1f", "BLEU against base": "%+.1f"}
    formats |= {"ours: BLEU against base": "%+.2f", "ours: PPL, % above base": "%+.1f"}
    pairs = [(row, one) for row, one in zip(TABLE_3[1:], near[1:], strict=True) if one]
    shows = {"rows": Table(table, ",", formats)}
    if pairs:
        changes = {
            "the paper's": np.array([row.bleu - base.bleu for row, _ in pairs]),
            "ours": np.array([one.bleu_difference for _, one in pairs]),
        }
        names = [say_label(f"{row.group}: {row.change.split(', ')[0]}") for row, _ in pairs]
        titles = "changed from base", "BLEU against base"
        shows = {"beside": Bars(names, changes, titles, number="+.2f", what="row")} | shows
    return Result(shows, {"ours": sum(one is not None for one in near), "pairs": len(pairs)})


@view("The whole program", needs=(Need.OWN_LAYERS,))
def program(run: Run) -> Result:
    """The Transformer as one Python file, which runs the opened model."""
    name, weights = run.trace.checkpoint, run.trace.checkpoint_hash
    text, config = inspect.getsource(transformer), run.opened.config
    file = f"whole-program-{shown_name(name)}-{weights[:8]}.py"
    facts = {"name": name, "lines": sum(map(bool, text.splitlines())), "file": file}
    chosen = {field.name: getattr(config, field.name) for field in fields(transformer.Config)}
    others = ", ".join(f"{one}={value!r}" for one, value in chosen.items() if value != getattr(transformer.Config, one))
    told = f"# {name}: {others or 'the base model'}\n# SHA-256 of its weights: {weights}\n{text}"
    return Result({"program": Document.of_file(told, file)}, facts)


AUTHORS = "Authors and references"


@view("Three objections of 2017", code=(LayerSize.products, LayerSize.projections, far_cells), tab=AUTHORS)
def objections(run: Run) -> Result:
    """What speaks against a model without recurrence, and what this run has to say to it."""
    kind, trace, stream = _self_kind(run), run.trace, _first(run)
    size, n = layer_sizes(trace, kind.name)[0], len(stream.tokens)
    cells = run.compute(far_cells, trace, kind.name)
    square, straight = size.products(n, n), size.projections(n, n)
    masks = (trace.weights_and_mask(kind.name, layer)[1] for layer in kind.layers)
    facts = {
        "n": n,
        "steps": recurrent(n, size.d_model).path,
        "at_once": any(mask[:, -1, 0].any() for mask in masks),
        "far": fact_of_cell(cells, stream.tokens.labels, 0) if len(cells.weights) else None,
        "share": square / (square + straight),
        "even": size.parameters / size.products(1, 1),
        "kept": n * size.cached,
        "state": 2 * size.d_model,
    }
    return Result(facts=facts)


@view(AUTHORS, tab=AUTHORS)
def references(_: Run) -> Result:
    """Who wrote the paper, and what it and this page cite."""
    return Result()


@answer
def one_line(run: Run) -> Result:
    """How much of a run stands beside the paper's sentences."""
    return Result(
        facts={
            "tokens": sum(len(stream.tokens) for stream in run.trace.streams.values()),
            "heads": sum(len(kind.layers) * kind.heads for kind in run.trace.kinds),
        }
    )
