"""Model card: scores, size and configuration of this checkpoint, and the cost of its attention."""

import time
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from model.analysis.heads.sharpness import CHOICES, ONE_KEY, mean_sharpness, measure_sharpness
from model.background.sizes import break_even, count_parameters, multiply_adds, work_by_length
from model.background.table_3 import rounded_millions
from model.checkpoints.card import evaluate_command, in_digits
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import CheckpointError, load_checkpoint, shown_name
from model.language import Numeral, joined, sentence, tr
from model.network.config import PRESETS
from model.network.encoder_decoder import Transformer
from model.run import Run
from model.trace import KIND_TITLES, SUBLAYER_TITLES
from pages.views import Need, Result, answer, view
from pages.views.model import whole_model
from pages.views.shared import COUNTED, card_of, is_outdated
from viz.forms import Document, Line, Lines, Map, Maps, Mark, Scale, Table
from viz.labels import TYPED, say_label
from viz.latex import signed
from viz.special.model_card import ATTENTION, COLOURS, amount, lengths_to_plot, log_axes, percentages
from viz.theme import WEIGHTS

DASHES = "solid", "dash", "dot", "dashdot"
LOCALIZED = ","
"""format of large integers in tables"""


def _load_seconds(opened: Checkpoint) -> float:
    """Seconds that loading this checkpoint takes, measured by loading it again."""
    start = time.perf_counter()
    load_checkpoint(opened.name, opened.device)
    return time.perf_counter() - start


def _loading(run: Run) -> float | None:
    """The same, once; None: the checkpoint can no longer be loaded."""
    try:
        return run.compute(_load_seconds, run.opened)
    except CheckpointError:
        return None


def _weights_size(files: Mapping[str, int]) -> int:
    """Bytes; Hugging Face models may have several files."""
    return sum(size for name, size in files.items() if name.endswith(".safetensors"))


@view("In short", code=(Transformer.parameters_by_part, Transformer.parameters_by_block))
def summary(run: Run, at: str = whole_model.AT, off: str = whole_model.OFF) -> Result:
    """The model itself with the parameters of every box, the first score, and the sizes."""
    card = card_of(run)
    score = next((score for score in card.scores if not score.metric.endswith((" BLEU", "chrF2"))), None)
    parameters, kinds = sum(run.opened.parameters_by_part().values()), parameters_by_kind(run.opened)
    facts = {
        "outdated": is_outdated(run, card),
        "score": {"metric": score.metric, "dataset": score.dataset} if score else None,
        "value": in_digits(score.metric, score.value, score.plus_minus) if score else "",
        "parameters": parameters,
        "short": amount(parameters),
        "kinds": [(kind, amount(count), count / parameters) for kind, count in kinds.items()],
        "megabytes": _weights_size(card.files) / 1e6,
        "seconds": _loading(run),
    }
    numbers = {"parameters_names": np.array([*kinds]), "parameters_parameters": np.array([*kinds.values()])}
    if whole_model.figure.missing(run):
        return Result(facts=facts | {"drawn": False}, numbers=numbers)
    drawn = whole_model.draw_model(run, at, off, counts=True)
    return Result({"model": drawn.shows["whole_model"]}, facts | {"drawn": True}, numbers, drawn=drawn.drawn)


def parameters_by_kind(opened: Checkpoint) -> dict[str, int]:
    """How many parameters each kind of part has: what lies outside the layers, and in all layers together."""
    outside = opened.parameters_by_part()
    counts = {part: outside[part] for part in ("embeddings", "positions") if outside[part]}
    for block in opened.parameters_by_block().values():
        for part, count in block.items():
            counts[part] = counts.get(part, 0) + count
    counts |= {"output": outside["output"]} if outside["output"] else {}
    if rest := sum(outside.values()) - sum(counts.values()):
        counts["last norms of the stacks"] = rest
    return {say_label(SUBLAYER_TITLES.get(part, part)): count for part, count in counts.items()}


def _work_by_length(lengths: np.ndarray, work: np.ndarray, n: int, longest: int, even: float) -> Lines:
    """Multiply-adds, (4, length) in the order of COLOURS, over the tokens of source and of target, both axes
    logarithmic.

    Marked are `n`, the current source's tokens, the `longest` text that the model has positions for, and the length
    `even`, at which attention costs as much as projections and feed-forward together.
    """
    lines = {
        # Plotly has no 64-bit integers; a float holds these exactly.
        name: Line(lengths, np.asarray(counts, float), colour, dash=dash, width=3 if name == ATTENTION else 2)
        for (name, colour), counts, dash in zip(COLOURS.items(), work, DASHES, strict=True)
    }
    places = [(n, f"your sentence: {n}"), (longest, f"longest: {longest:,}")]
    places = sorted([*places, (even, f"attention costs<br>as much: {even:,.0f}")])
    marks = []
    for row, (at, words) in enumerate(places):
        side = "right" if lengths[-1] ** 0.5 < at else "left"
        place = {"xanchor": side, "align": side, "xshift": 0, "y": 0.22 - 0.11 * row, "yanchor": "auto"}
        marks.append(Mark(x=at, text=words, at=place | {"font": {"size": 12}}))
    titles = "tokens n, of source and of target (log)", "multiply-adds in one pass (log)"
    return Lines(lines, titles, ",.0f", "xy", height=420, marks=marks, layout=log_axes(lengths))


@view("Scores")
def scores(run: Run) -> Result:
    """Every score in metrics.json with its signature and command, and the last row of the training log."""
    card = card_of(run)
    facts = {
        "outdated": is_outdated(run, card),
        "missing": [card.missing[name] for name in ("metrics.json", "log.csv") if name in card.missing],
        "scored": bool(card.scores),
        "intervals": any(score.plus_minus is not None for score in card.scores),
        "translates": Need.CROSS_ATTENTION in run.opened.features,
        "rows": len(card.log),
        "end": card.log[-1] if card.log else {},
    }
    last = {f"log_{column}": np.array(value) for column, value in (card.log[-1] if card.log else {}).items()}
    if not card.scores:
        return Result(facts=facts, numbers=last)
    table = pd.DataFrame(
        {
            "set": [score.dataset for score in card.scores],
            "metric": [score.metric for score in card.scores],
            "score": [tr(in_digits(score.metric, score.value, score.plus_minus)) for score in card.scores],
            "beam": [score.beam_size for score in card.scores],
            "sacreBLEU signature, or amount of text": [score.signature for score in card.scores],
        }
    )
    sets = dict.fromkeys(score.dataset for score in card.scores)
    commands = [evaluate_command(run.opened.name, dataset, card.scores) for dataset in sets]
    numbers = {"value": np.array([score.value for score in card.scores])} | last
    return Result({"scores": table, "commands": Document.of_code("\n".join(commands), "bash")}, facts, numbers)


@view("Configuration")
def configuration(run: Run) -> Result:
    """Configuration, parameters by part and files, compared with the paper's base and big models."""
    card, parts = card_of(run), run.opened.parameters_by_part()
    paper = {name: run.compute(count_parameters, PRESETS[name]) for name in ("base", "big")}
    configs = {shown_name(run.opened.name): run.opened.config} | {f"paper's {n}": PRESETS[n] for n in paper}
    rows = {name: {**asdict(one), "d_k": one.d_k} for name, one in configs.items()}
    fields = list(dict.fromkeys(field for values in rows.values() for field in values))
    counts = dict(zip(configs, (parts, *paper.values()), strict=True))
    # As the file of the configuration has it, but for the decimal sign.
    settings = {name: [row.get(field, "") for field in fields] for name, row in rows.items()}
    written = {
        name: [tr(Numeral(one)) if isinstance(one, float) else str(one) for one in own]
        for name, own in settings.items()
    }
    named = list(dict.fromkeys(part for count in counts.values() for part in count))
    columns = {
        name: np.array([*(count.get(part, np.nan) for part in named), sum(count.values())], float)
        for name, count in counts.items()
    }
    compared, needed = [], []
    for name, count in paper.items():
        total, stated, d_model = sum(count.values()), rounded_millions(name), PRESETS[name].d_model
        difference = signed(100 * (total / (stated * 1e6) - 1), "+.1f")
        facts = {"count": Numeral(f"{total / 1e6:.1f} M"), "stated": Numeral(f"{stated} M")}
        compared.append(
            sentence("{model} {count}, {difference}% from {stated}", model=name, difference=difference, **facts)
        )
        low, high = ((1e6 * (stated + half) - total) / d_model + PRESETS[name].vocab_size for half in (-0.5, 0.5))
        needed.append(sentence("{low:,.0f} to {high:,.0f} for {model}", low=low, high=high, model=name))
    tables = pd.DataFrame({"field": fields, **written}), pd.DataFrame({"part": [*named, "together"], **columns})
    for table in tables:
        table.attrs[TYPED] = [shown_name(run.opened.name)]
    files = pd.DataFrame({"file": list(card.files), "bytes": np.array(list(card.files.values()), float)})
    return Result(
        {"fields": Table(tables[0]), "parameters": Table(tables[1], LOCALIZED), "files": Table(files, LOCALIZED)},
        {
            "outdated": is_outdated(run, card),
            "compared": sentence("{base}; {big}", base=compared[0], big=compared[1]),
            "needed": joined(needed),
            "per_parameter": _weights_size(card.files) / sum(parts.values()),
            "device": run.opened.device.partition(":")[0],
            "dtype": str(run.opened.dtype),
        },
    )


@view("This sentence's work", code=(multiply_adds, break_even, count_parameters))
def work_of_sentence(run: Run) -> Result:
    """Multiply-adds over the length of the text, and those of one pass over the current sentence, one row per part."""
    config, trace = run.opened.config, run.trace
    works = multiply_adds(config, len(trace.src_tokens), len(trace.tgt_tokens))
    even, n = break_even(config), len(next(iter(trace.streams.values())).tokens)
    lengths = lengths_to_plot(n, config.max_len, even)
    by_length = work_by_length(config, lengths.tolist())["multiply_adds"]
    pairs = sum(work.scores + work.weighted for work in works.values())
    totals = [work.total for work in works.values()]
    table = pd.DataFrame(
        {
            "part": [COUNTED[part] for part in works],
            "layers": [work.layers for work in works.values()],
            "queries × keys": [f"{w.queries} × {w.keys}" if w.keys else f"{w.queries}" for w in works.values()],
            "Q Kᵀ": [float(work.scores or np.nan) for work in works.values()],
            "weights · V": [float(work.weighted or np.nan) for work in works.values()],
            "learned matrices": [float(work.weights) for work in works.values()],
            "share": list(map(tr, percentages(totals))),
        }
    )
    facts = {
        "total": sum(totals),
        "as_in_paper": config.kv_heads * config.d_k == config.kv_heads * config.d_v == config.d_model,
        "even": even,
        "share": 100 * pairs / sum(totals),
    }
    curves = _work_by_length(lengths, by_length, n, config.max_len, even)
    return Result({"curves": curves, "work": Table(table, LOCALIZED)}, facts)


@view("How sharply it attends", code=(measure_sharpness,))
def sharpness(run: Run) -> Result:
    """Evenness of the rows of every head on this text, and the share of rows on a single key, by kind and layer."""
    places = measure_sharpness([run.trace])
    kinds = {kind.name: kind for kind in run.trace.kinds}
    widest = max(kind.heads for kind in kinds.values())
    even = np.full((len(places), widest), np.nan)
    for number, place in enumerate(places):
        even[number, : len(place.evenness)] = place.evenness
    names = {kind: sentence(title.removesuffix("-attention")) for kind, title in KIND_TITLES.items()}
    rows = [sentence("{kind}, layer {layer}", kind=names[one.kind], layer=one.layer) for one in places]
    heads = [str(head) for head in range(widest)]
    scale = Scale(0, 1, WEIGHTS, "entropy<br>of a row<br>0 to 1")
    drawn = Map(even, np.isfinite(even), scale, "entropy of a row, of that of equal weights")
    means = [mean_sharpness([one]) for one in places]
    table = pd.DataFrame(
        {
            "attention": list(map(str, rows)),
            "entropy of a row, of that of equal weights": [even for even, _, _ in means],
            "rows on one key": [share for _, share, _ in means],
            "largest |q·k / √dₖ|": [largest for _, _, largest in means],
        }
    )
    table.attrs["floats"] = "%.3g"
    total, on_one_key, largest = mean_sharpness(places)
    facts = {"even": total, "on_one_key": on_one_key, "largest": largest, "limit": ONE_KEY, "choices": CHOICES}
    return Result({"evenness": Maps(rows, heads, {"": drawn}, axes=("layer", "head")), "layers": table}, facts)


@view("Data, terms, limits")
def readme(run: Run) -> Result:
    """The checkpoint's README.md: data, licence and limits."""
    card = card_of(run)
    shows = {"readme": Document(card.readme)} if card.readme else {}
    return Result(shows, {"outdated": is_outdated(run, card), "without": card.missing.get("README.md", "")})


@answer
def one_line(run: Run) -> Result:
    """Parameters, and the shape of the network."""
    config = run.opened.config
    facts = {"name": shown_name(run.trace.checkpoint), "parameters": sum(run.opened.parameters_by_part().values())}
    return Result(facts=facts | {"layers": config.n_encoder_layers + config.n_decoder_layers})
