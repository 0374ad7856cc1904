"""Heads and layers: every head of every layer in one picture, one of them opened, and each one's statistics."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis import words
from model.analysis.heads import alignments, head_summary, head_weights, induction, silver_alignments
from model.analysis.heads.alignments import AlignedPair, AlignmentReport
from model.analysis.heads.head_summary import HeadSummary, summarise_kind
from model.analysis.heads.head_tables import HeadTables, TableOptions, head_tables, norm_weighted, overview, rollout
from model.analysis.heads.many_sentences import NOT_OF_A_SENTENCE, SCORES, read_heads, score_arrays
from model.checkpoints.store import checkpoint_path, shown_name
from model.interventions import HeadGate
from model.interventions.link import encode
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import Run
from model.trace import KIND_TITLES, Array
from pages.views import OnRequest, Result, answer, view
from pages.views.controls import HEAD, KIND, LAYER, SOURCE, SWITCH, choice, menu, text, toggle
from viz.canvas.lines import MOST_HEADS, lines
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing
from viz.forms import Canvas, Line, Lines, Map, Maps, Mark, Scale, Table
from viz.special.heads_and_layers import group_texts, head_map, numbered_spans, word_names, word_rows
from viz.theme import OKABE_ITO, WEIGHTS
from viz.tokens import decoder_names, labels, numbered

MEASURES = {"weights": "attention weight", "norms": "‖α v W_O‖", "rollout": "rollout"}
VALUES = choice(
    "Numbers", {"weights": "Attention weights", "norms": "Norm-weighted", "rollout": "Rollout"}, key="heads_values"
)
KINDS = toggle("All kinds", key="heads_kinds")
WORDS = toggle(
    "Whole words",
    key="heads_words",
    help="Tokens are merged into words: weights are summed over a word's keys and averaged over its queries.",
)
HIDE = toggle("Hide special tokens", key="heads_hide")
RENORMALISE = toggle(
    "Renormalise",
    lambda _, hide: SWITCH if hide else {},
    key="heads_again",
    help="Each row is scaled back to the sum that it had before tokens were hidden.",
)


def _rolls(run: Run) -> bool:
    return not (run.attention.crosses or run.attention.causal)


def _near_heads(run: Run, values: str) -> list[int]:
    """The heads of the layer whose lines one picture holds, the chosen one among them; rollout has one table."""
    if values == "rollout" and _rolls(run):
        return [0]
    start = run.head // MOST_HEADS * MOST_HEADS
    return list(range(start, min(start + MOST_HEADS, run.attention.n_heads)))


LINES = choice(
    "Lines of",
    lambda run, values: (
        {"head": "This head", "layer": "All heads of the layer"} if _near_heads(run, values)[1:] else {}
    ),
    key="heads_lines",
)


def _look(run: Run, values: str, words: bool, hide: bool, renormalise: bool | None) -> TableOptions:
    """What is shown: not what this attention does not have, and not what would leave nothing."""
    hide = hide and not _reads_one_token(run)
    return TableOptions(
        values if values != "rollout" or _rolls(run) else "weights", words, hide, bool(hide and renormalise)
    )


def _reads_one_token(run: Run) -> bool:
    return run.attention.causal and len(run.trace.tgt_tokens) == 1


@view(
    "All heads",
    code=(MultiHeadAttention._explicit, norm_weighted, rollout, words.merge, words.word_groups, words.hide_keys),
)
def heads(
    run: Run,
    values: str = VALUES,
    kinds: bool = KINDS,
    words: bool = WORDS,
    hide: bool = HIDE,
    renormalise: bool | None = RENORMALISE,
    lines_of: str | None = LINES,
) -> Result:
    """Every head of every layer in one picture; one of them as a map and as lines."""
    look = _look(run, values, words, hide, renormalise)
    groups = _groups(run, look, kinds)
    tables, column = head_tables(run.trace, run.kind, look, [run.layer]), 0 if look.values == "rollout" else run.head
    opened, mask, attention = tables.values[0, column], tables.mask[0, column], run.attention
    following = attention.predicts.labels if attention.predicts else None
    rows = word_rows(attention.query_tokens, following, tables.queries)
    keys = word_names(attention.key_tokens, tables.keys)
    high = 1.0
    if look.values == "norms":
        high = max(float(np.nanmax(group.values, initial=0)) for group in groups) or 1.0
    place = f"layers 0 to {run.layer}" if look.values == "rollout" else f"layer {run.layer}, head {run.head}"
    title = f"{MEASURES[look.values]}, {KIND_TITLES[run.kind].lower()}, {place}"
    clicks = {"layer": LAYER} if look.values == "rollout" else {"kind": KIND, "layer": LAYER, "head": HEAD}
    near = _near_heads(run, look.values)
    summaries = run.compute(summarise_kind, run.trace, run.kind)
    numbers = {
        f"{group.kind}_{name}": getattr(group, name) for group in groups for name in ("values", "mask", "removed")
    }
    return Result(
        {
            "mosaic": Canvas(_mosaic(run, groups, column, high), {"choose": clicks}),
            "map": head_map(rows, keys, opened, mask, MEASURES[look.values], high),
            "lines": Canvas(_lines(run, tables, near, near if lines_of == "layer" else [column], high, title)),
        },
        {
            "look": look,
            "title": title,
            "place": place,
            "refused": values == "rollout" and look.values != "rollout",
            "crosses": any(kind.crosses for kind in run.trace.kinds),
            "alone": hide and not look.hide,
            "head": next(one for one in summaries if (one.layer, one.head) == (run.layer, run.head)),
            "switch_off": urlencode({"add": encode((HeadGate(0.0, **run.place.address()),))}),
            **_hidden(run, look, tables.removed[0, column], opened, rows),
        },
        numbers | {"opened": opened, "opened_mask": mask, "query_names": np.array(rows), "key_names": np.array(keys)},
    )


def _groups(run: Run, look: TableOptions, kinds: bool) -> list[HeadTables]:
    """The tables of each kind in the mosaic, pooled if the text is long."""
    names = [kind.name for kind in run.trace.kinds] if kinds and look.values != "rollout" else [run.kind]
    if look.hide and len(run.trace.tgt_tokens) == 1:
        names = [name for name in names if not run.trace.kind(name).causal or name == run.kind]
    return [run.compute(overview, run.trace, name, look) for name in names]


def _mosaic(run: Run, groups: Sequence[HeadTables], column: int, high: float) -> Drawing:
    trace, values = run.trace, groups[0].look.values
    return mosaic(
        [_group(run, tables) for tables in groups],
        (run.kind, run.layer, column),
        high=high,
        measure=MEASURES[values],
        title=f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, {VALUES.options[values].lower()}",
        opens="st-key-heads_and_layers-map",
    )


def _group(run: Run, tables: HeadTables) -> Group:
    """One kind of attention; its labels have no positions, which the picture adds itself."""
    attention = run.trace.attention(tables.kind, run.trace.kind(tables.kind).layers[0])
    queries, keys = group_texts(attention.query_tokens, tables.queries), group_texts(attention.key_tokens, tables.keys)
    if attention.predicts:
        following = group_texts(attention.predicts.labels, tables.queries)
        queries = decoder_names(queries, following)
    if tables.pool > 1:
        queries, keys = (numbered_spans(texts, tables.pool) for texts in (queries, keys))
    averaged = tables.look.values == "rollout"
    title = "Rollout, up to each layer" if averaged else KIND_TITLES[tables.kind]
    paths = _paths(run, tables, run.trace.kind(tables.kind).layers)
    return Group(tables.kind, title, tables.values, queries, keys, tables.mask, averaged, tables.pool, paths)


def _paths(run: Run, tables: HeadTables, layers: Sequence[int]) -> list[str]:
    """Of the attention in each layer; of what was computed from its weights, the same with the options."""
    made = [name for name in ("words", "hide", "renormalise") if getattr(tables.look, name)]
    made += [tables.look.values] * (tables.look.values != "weights") + [f"pool {tables.pool}"] * (tables.pool > 1)
    return [".".join([run.trace.kind(tables.kind).path(layer), *made]) for layer in layers]


def _lines(run: Run, tables: HeadTables, near: list[int], shown: list[int], high: float, title: str) -> Drawing:
    """The lines of some heads of the layer; buttons in the picture show and hide each."""
    attention = run.attention
    following = attention.predicts
    return lines(
        tables.values[0][near],
        group_texts(attention.query_tokens, tables.queries),
        group_texts(attention.key_tokens, tables.keys),
        heads=near,
        shown=shown,
        allowed=tables.mask[0][near],
        predicts=group_texts(following.labels, tables.queries) if following else None,
        high=high,
        measure=MEASURES[tables.look.values],
        title=title,
        path=_paths(run, tables, [run.layer])[0],
    )


def _hidden(run: Run, look: TableOptions, removed: Array, opened: Array, rows: list[str]) -> dict[str, Any]:
    """Facts about hidden tokens: their names, their share of a row, and how many rows have no weight left."""
    attention = run.attention
    special = [token for token, hides in zip(attention.key_tokens, attention.key_special, strict=True) if hides]
    if not look.hide or not special:
        return {"hidden": []}
    return {
        "hidden": labels(tuple(dict.fromkeys(special))),
        "removed": removed,
        "most": rows[int(removed.argmax())],
        "empty": int(np.isnan(opened).all(axis=-1).sum()),
    }


HELPS = {
    "type": "The first rule that applies; the last column gives its numbers.",
    "rule": "The rule behind the name, with this head's numbers.",
    "entropy (bits)": "Mean over rows: 0 if each row attends to a single key, log₂ n for n equal weights.",
    "confidence": "Mean over rows of the largest weight.",
    "distance": "Mean distance in tokens, weighted by attention: from the row's own token, or from the diagonal in "
    "cross-attention.",
    "previous": "Share of the weight on the previous token.",
    "same": "Share of the weight on the row's own token.",
    "next": "Share of the weight on the next token.",
    "special": "Share of the weight on the start and end tokens.",
    "punctuation": "Share of the weight on punctuation tokens.",
    "hidden": "Mean share of a row that the hidden tokens had in the numbers that “All heads” draws.",
    "hidden, most": "Share that the hidden tokens had in the row that lost most.",
}
SHARES = ("previous", "same", "next", "special", "punctuation", "hidden", "hidden, most")


@view("All heads in numbers", code=(head_summary.summarise, head_summary._measure, head_summary.name_type))
def all_heads(
    run: Run,
    values: str = VALUES,
    words: bool = WORDS,
    hide: bool = HIDE,
    renormalise: bool | None = RENORMALISE,
) -> Result:
    """The numbers and the type of every head of a kind; a click on a row opens its head."""
    look, removed = _look(run, values, words, hide, renormalise), None
    summaries = run.compute(summarise_kind, run.trace, run.kind)
    if look.hide and look.values != "rollout":
        removed = run.compute(overview, run.trace, run.kind, look).removed.reshape(len(summaries), -1)
    places = [{"layer": head.layer, "head": head.head} for head in summaries]
    table = Table(
        summary_table(summaries, removed),
        floats="%.3f",
        formats=dict.fromkeys(SHARES, "percent"),
        helps=HELPS,
        pinned=("type",),
        ticked=places.index({"layer": run.layer, "head": run.head}),
        chooses=places,
        sets={"layer": LAYER, "head": HEAD},
    )
    return Result({"table": table}, {"hidden": removed is not None})


def summary_table(summaries: Sequence[HeadSummary], removed: Array | None = None) -> pd.DataFrame:
    """One row for each head; shares are 0 to 1, columns that no head of this attention has are left out.

    Args:
        summaries: of all heads.
        removed: (head, query), the weight of each row that fell on hidden tokens.
    """
    fields = ("layer", "head", "type", "entropy", "confidence", "distance", "previous", "same", "next", "special")
    fields += ("punctuation",)
    table = pd.DataFrame({field: [getattr(head, field) for head in summaries] for field in fields})
    table = table.rename(columns={"entropy": "entropy (bits)"}).dropna(axis="columns", how="all")
    if removed is not None:
        table["hidden"], table["hidden, most"] = removed.mean(axis=-1), removed.max(axis=-1)
    return table.assign(rule=[head.rule for head in summaries])


BEST_IS_LOW = ("errors",)
OVER = {"copy": "of the weights", "induction": "mean over random sequences", "errors": "over all sentence pairs"}


def _scores(run: Run) -> dict[str, str]:
    """Those that the chosen head has; none where no sentences were measured."""
    try:
        measured = read_heads(run.opened).head(run.kind, run.layer, run.head)
    except ValueError:
        return {}
    return {name: title for name, title in SCORES.items() if name in measured.mean}


SCORE = menu("Score", _scores, key="many_score")
ORDER = choice("Order", lambda _, score: {"score": "By score", "layer": "By layer"} if score else {}, key="many_order")


@view(
    "Over many sentences",
    code=(induction.induction_scores, alignments.word_weights, alignments.count_links, alignments.alignment_error_rate),
)
def many(run: Run, score: str | None = SCORE, order: str | None = ORDER) -> Result:
    """One score of all heads over many sentences; the opened head's type and sentences; a click opens a head."""
    try:
        measured = read_heads(run.opened)
    except ValueError as error:
        return Result(facts={"problem": str(error)})
    head = measured.head(run.kind, run.layer, run.head)
    types = {(one.layer, one.head): one.type for one in run.compute(summarise_kind, run.trace, run.kind)}
    scores = pd.DataFrame(score_arrays(run.opened, run.trace, run.kind, score))
    if order == "score":
        scores = scores.sort_values("mean", ascending=score in BEST_IS_LOW, kind="stable", ignore_index=True)
    places = list(zip(scores["layer"].tolist(), scores["head"].tolist(), strict=True))
    chosen = places.index((run.layer, run.head))
    usual = [measured.head(run.kind, *place) for place in places]
    table = scores.drop(columns="layer_mean").assign(
        usual=[one.type for one in usual],
        share=[one.types.get(one.type, 0.0) for one in usual],
        now=[types[place] for place in places],
    )
    names = {"usual": f"type over {measured.sentences:,}", "share": "on", "now": "type here", "spread": "±"}
    names |= {"mean": "score"} if score in NOT_OF_A_SENTENCE else {}
    texts, best = zip(*head.best, strict=True)
    sentences = pd.DataFrame({"score": best, f"most itself on, by {SCORES[head.shows]}": texts})
    row, means = scores.iloc[chosen], scores["mean"]
    better = means < row["mean"] if score in BEST_IS_LOW else means > row["mean"]
    layers = scores.drop_duplicates("layer").sort_values("layer")
    return Result(
        {
            "scores": _score_chart(scores, chosen, score, order == "layer"),
            "table": Table(
                table.dropna(axis="columns", how="all").rename(columns=names),
                floats="%.3f",
                formats={"on": "percent"},
                most_rows=10,
            ),
            "best": Table(
                sentences, floats="%.3f", chooses=[{"source": text} for text in texts], sets={"source": SOURCE}
            ),
        },
        {
            "problem": None,
            "measured": measured,
            "score": score,
            "called": SCORES[score],
            "lengths": (induction.SEQUENCES, induction.LENGTH, induction.EVERY),
            "chance": induction.CHANCE if run.attention.causal else 1 / (2 * induction.LENGTH + 2),
            "of_a_sentence": score not in NOT_OF_A_SENTENCE,
            "layer_means": dict(zip(layers["layer"].tolist(), layers["layer_mean"].tolist(), strict=True)),
            "head": head,
            "here": types[run.layer, run.head],
            "row": row.to_dict(),
            "rank": int(better.sum()) + 1,
            "count": len(means),
            "from_lowest": score in BEST_IS_LOW,
        },
        {name: scores[name].to_numpy() for name in ("layer", "head", "mean", "spread", "here", "layer_mean")},
    )


def _score_chart(scores: pd.DataFrame, chosen: int, score: str, by_layer: bool) -> Lines:
    """One score of every head: its mean with one standard deviation, and this sentence's; the mean of each layer."""
    names = [f"{layer}.{head}" for layer, head in zip(scores["layer"], scores["head"], strict=True)]
    mean, spread, here = (scores[name].to_numpy() for name in ("mean", "spread", "here"))
    x, over, between = np.arange(len(names)), OVER.get(score, "mean over the sentences"), None
    if not np.isnan(spread).all():
        over, between = f"{over}, ± one standard deviation", (mean - spread, mean + spread)
    drawn = {over: Line(x, mean, OKABE_ITO[0], "circle", "", names=names, between=between)}
    if not np.isnan(here).all():
        drawn["this sentence"] = Line(x, here, OKABE_ITO[5], "diamond-open", "", names=names)
    if by_layer:
        drawn["mean of the layer's heads"] = Line(x, scores["layer_mean"].to_numpy(), OKABE_ITO[3], names=names)
    return Lines(
        drawn,
        ("layer.head" + ("" if by_layer else ", sorted"), SCORES[score]),
        ".3f",
        ticks=names,
        of="head",
        marks=[Mark(x=chosen, text="opened")],
        layout={"xaxis": {"range": [-0.7, len(names) - 0.3]}},
        chooses=[{"layer": int(one.layer), "head": int(one.head)} for one in scores.itertuples()],
        sets={"layer": LAYER, "head": HEAD},
    )


def _gold_file(run: Run) -> Path | None:
    """The file of gold links that comes with the opened checkpoint; None: there is none."""
    path = checkpoint_path(run.opened.name) / alignments.GOLD_FILE
    return path if os.path.isfile(path) else None  # which raises nothing where a folder may not be entered


def _typed_pairs(text: str) -> list[tuple[str, str]]:
    """Source and target of each pair of “source = target | source = target”.

    Raises:
        ValueError: a part is no pair; the sentence says how to write one.
    """
    parts = [part.split(" = ") for part in text.split(" | ") if part.strip()]
    wrong = [part for part in parts if len(part) != 2 or not all(side.strip() for side in part)]
    if wrong or not parts:
        shown = " = ".join(wrong[0]) if wrong else text
        raise ValueError(f"“{shown}” is no pair. Write: A dog runs. = Ein Hund rennt. | It is late. = Es ist spät.")
    return [(source.strip(), target.strip()) for source, target in parts]


REFERENCES = {"gold": "By reading: gold", "silver": "By a statistical model: silver"}
ALIGNED_BY = choice(
    "Words aligned",
    lambda run: {name: label for name, label in REFERENCES.items() if name != "gold" or _gold_file(run)},
    key="align_by",
)
TYPED_PAIRS = text(
    "Sentence pairs, source = target | source = target",
    lambda run, reference: (
        (f"{run.trace.source} = {run.trace.translation}", "A dog runs. = Ein Hund rennt. | It is late. = Es ist spät.")
        if reference == "silver"
        else ()
    ),
    key="align_pairs",
)


def _align(run: Run, reference: str, pairs: str | None) -> Iterator[tuple[float, AlignmentReport | str]]:
    """Score every head; a sentence where the pairs cannot be read or scored."""
    try:
        path = _gold_file(run)
        gold = alignments.read_gold(path) if path else []
        known: dict[str, list[Array]] = {}
        texts = [(pair.source, pair.target) for pair in gold]
        if reference == "gold":
            silver = silver_alignments.silver_alignments(texts)
            known = {"silver": [links.sure for links in silver]}
            aligned = gold
        else:
            typed = _typed_pairs(pairs)
            links = silver_alignments.silver_alignments(typed, texts)
            aligned = [AlignedPair(*pair, each) for pair, each in zip(typed, links, strict=True)]
        yield from alignments.measure_alignment(run.opened, aligned, reference, others=known)
    except ValueError as error:
        yield 1.0, str(error)


ALIGN = OnRequest(
    "Score every head",
    "align_heads",
    _align,
    lambda run, reference, pairs: (run.opened, reference, pairs),
    icon=":material/play_arrow:",
)
READINGS = {"predicts": "rows as what they predict", "reads": "rows as what they read"}


@view(
    "Which heads align words",
    code=(
        alignments.word_weights,
        alignments.make_links,
        alignments.count_links,
        alignments.alignment_error_rate,
        silver_alignments.silver_alignments,
    ),
    needs=(Need.CROSS_ATTENTION,),
    on_request=ALIGN,
)
def aligned(
    run: Run,
    reference: str = ALIGNED_BY,
    pairs: str | None = TYPED_PAIRS,
    outcome: AlignmentReport | str | None = None,
) -> Result:
    """The alignment error rate of every head of cross-attention, read in both ways; the list of those that align."""
    facts = {"done": isinstance(outcome, AlignmentReport), "problem": outcome if isinstance(outcome, str) else None}
    facts |= {"reference": reference, "typed": pairs, "within": alignments.WITHIN}
    if not facts["done"]:
        return Result(facts=facts)
    rates, best, layers = outcome.error_rates, outcome.alignment_heads, outcome.layers
    first, predicting, gold = best[0], outcome.predicting_heads, _gold_file(run)
    scale = Scale(0, 1, WEIGHTS, "alignment<br>error rate<br>0 to 1")
    maps = {
        READINGS[name]: Map(rates[..., number], scale=scale, what="alignment error rate")
        for number, name in enumerate(alignments.CONVENTIONS)
    }
    rows = [f"layer {layer}" for layer in layers]
    places = [
        {"kind": "cross", "layer": layer, "head": head} for layer in layers for head in range(outcome.heads.shape[1])
    ]
    order = np.argsort(rates.min(axis=-1).ravel(), kind="stable")
    means = outcome.mean_error_rates
    facts |= {
        "pairs": outcome.pairs,
        "left_out": outcome.left_out,
        "best": first,
        "other": float(rates[layers.index(first.layer), first.head].max()),
        "listed": [[one.layer, one.head] for one in best],
        "conventions": [one.convention for one in best],
        "mixed": any(one.convention != "predicts" for one in best),
        "predicting": [[one.layer, one.head] for one in predicting],
        "predicting_best": predicting[0].aer,
        "ctranslate2": outcome.ctranslate2,
        "flips": int((rates.argmin(axis=-1) != 0).sum()),
        "heads": len(places),
        "means": dict(zip(layers, means.min(axis=-1).tolist(), strict=True)),
        "baselines": {name: alignments.score_links(counts).aer for name, counts in outcome.baselines.items()},
        "method": silver_alignments.METHOD,
        "taught": len(alignments.read_gold(gold)) if gold and reference == "silver" else 0,
    }
    return Result(
        {
            "map": Maps(rows, [f"head {head}" for head in range(outcome.heads.shape[1])], maps, axes=("layer", "head")),
            "table": Table(
                _alignment_table(outcome, places, order),
                floats="%.3f",
                helps=ALIGNMENT_HELPS,
                most_rows=12,
                chooses=[places[place] for place in order.tolist()],
                sets={"kind": KIND, "layer": LAYER, "head": HEAD},
            ),
        },
        facts,
        {"error_rates": rates, "layer_error_rates": means, "counts": outcome.heads},
    )


ALIGNMENT_HELPS = {
    "predicts": "Error rate if a row stands for the target word that it predicts.",
    "reads": "Error rate if a row stands for the target word that it reads, the one before.",
    "precision": "Share of the head's links that are possible, in its better reading.",
    "recall": "Share of the sure links that the head makes, in its better reading.",
    "F1": "Harmonic mean of precision and recall.",
}


def _alignment_table(found: AlignmentReport, places: Sequence[dict[str, Any]], order: Array) -> pd.DataFrame:
    counts = found.heads.reshape(len(places), *found.heads.shape[2:])
    rows = []
    for place in order.tolist():
        rates = alignments.alignment_error_rate(counts[place])
        scores = alignments.score_links(counts[place][rates.argmin()])
        rows.append(
            {"layer": places[place]["layer"], "head": places[place]["head"]}
            | dict(zip(alignments.CONVENTIONS, rates.tolist(), strict=True))
            | {"precision": scores.precision, "recall": scores.recall, "F1": scores.f1}
        )
    return pd.DataFrame(rows)


PRODUCTS = {"qk": "W_Q W_Kᵀ", "ov": "W_V W_O"}


@view(
    "Weights of the head",
    code=(
        head_weights.singular_values,
        head_weights._of_product,
        head_weights.promoted_logits,
        head_weights.copy_score,
    ),
)
def weights(run: Run) -> Result:
    """Singular values of the two products of a head's matrices, and what each token promotes through the second."""
    attention = run.attention
    if attention.projections is None:
        return Result(facts={"read": False})
    arrays = run.compute(head_weights.weight_arrays, run.opened, run.trace, run.kind, run.layer, run.head)
    looks = zip(((OKABE_ITO[0], "circle"), (OKABE_ITO[5], "diamond-open")), PRODUCTS.items(), strict=True)
    curves = {name: Line(np.arange(1, len(arrays[key]) + 1), arrays[key], *look) for look, (key, name) in looks}
    axes = ("singular values, the largest first", "singular value")
    shows = {"values": Lines(curves, axes, ".4g", height=320, layout={"yaxis": {"rangemode": "tozero"}})}
    if "run_ids" in arrays:
        shows["dictionary"] = _dictionary(run, arrays)
    shared = attention.kv_head or ()
    mates = [number for number, group in enumerate(shared) if group == shared[run.head]]
    facts = {
        "read": True,
        "sizes": (attention.key_input.shape[-1], attention.d_k, attention.v.shape[-1]),
        "halves": [(PRODUCTS[key], *_most_of_squares(arrays[key])) for key in PRODUCTS],
        "biases": attention.projections.biases,
        "mates": mates if len(mates) > 1 else [],
        "dictionary": "run_ids" in arrays,
        "writes": run.stream.predicts is not None,
        "copy_score": arrays.get("copy_score"),
    }
    return Result(shows, facts, arrays)


def _most_of_squares(values: Array) -> tuple[int, float]:
    """How many of the largest make up 90 % of the sum of all squares, and this sum."""
    squares = values**2
    return int(np.searchsorted(np.cumsum(squares), 0.9 * squares.sum())) + 1, float(squares.sum())


def _dictionary(run: Run, arrays: dict[str, Array]) -> pd.DataFrame:
    """A row for each token that the head may attend to, with the pieces that it promotes."""
    columns = {"token": numbered(run.attention.key_tokens)}
    for key, title in {"embedding": "its embedding promotes", "run": "its vector in this run promotes"}.items():
        pieces = [labels(run.opened.tokenizer.tokens(ids)) for ids in arrays[f"{key}_ids"].tolist()]
        columns[title] = [
            ", ".join(f"{piece} ({logit:.2g})" for piece, logit in zip(*row, strict=True))
            for row in zip(pieces, arrays[f"{key}_logits"].tolist(), strict=True)
        ]
    return pd.DataFrame(columns)


@view("Rules and formulas", code=(head_summary.name_type,))
def rules(_: Run) -> Result:
    """The formula of every number in the table, and the rules that name a head, in order."""
    limits = ("POSITIONAL", "SINK", "LOCAL", "BROAD", "MONOTONE")
    return Result(facts={name.lower(): getattr(head_summary, name) for name in limits})


@answer
def one_line(run: Run) -> Result:
    """How many heads of the chosen kind a rule names, and which name is the most frequent."""
    types = Counter(head.type for head in run.compute(summarise_kind, run.trace, run.kind) if head.type != "mixed")
    most = types.most_common(1)
    heads = sum(len(run.trace.kind(run.kind).layers) * [run.trace.kind(run.kind).heads])
    return Result(facts={"heads": heads, "named": types.total(), "most": most[0] if most else None})
