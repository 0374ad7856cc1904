"""Heads and layers: every head of every layer in one picture, one of them opened, and each one's statistics."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis import words
from model.analysis.heads import (
    alignments,
    grammar,
    head_summary,
    head_weights,
    induction,
    many_sentences,
    silver_alignments,
    tally,
)
from model.analysis.heads.alignments import AlignedPair, AlignmentReport
from model.analysis.heads.head_summary import HeadSummary, summarise_kind
from model.analysis.heads.head_tables import HeadTables, TableOptions, head_tables, norm_weighted, overview, rollout
from model.analysis.heads.many_sentences import (
    NOT_OF_A_SENTENCE,
    SCORES,
    Distributions,
    ManySentences,
    MeasuredHead,
    percentile_of,
    read_distributions,
    read_heads,
    score_arrays,
)
from model.checkpoints.store import checkpoint_path, shown_name
from model.interventions import HeadGate
from model.interventions.link import encode
from model.language import later, sentence, sentence_of, series, tr
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import Run
from model.trace import KIND_TITLES, Array
from pages.views import OnRequest, Result, answer, view
from pages.views.chosen_token import CLICKED_TOKEN, key_of, query_of
from pages.views.controls import HEAD, KIND, LAYER, SOURCE, SWITCH, TARGET, TYPED, choice, menu, text, toggle
from viz.canvas.lines import MOST_HEADS, Choices, lines
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing
from viz.forms import Bars, Canvas, Line, Lines, Map, Maps, Mark, Scale, Table
from viz.labels import say_label
from viz.latex import signed
from viz.special.heads_and_layers import group_texts, head_map, numbered_spans, word_names, word_rows
from viz.theme import OKABE_ITO, WEIGHTS
from viz.tokens import decoder_names, labels, numbered

"""groups of tabs"""
MEASURES = {"weights": later("attention weight"), "norms": "‖α v W_O‖", "rollout": later("rollout")}
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
        {"head": tr("This head"), "layer": tr("All heads of the layer")} if _near_heads(run, values)[1:] else {}
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
    place = (
        sentence("layers 0 to {layer}", layer=run.layer)
        if look.values == "rollout"
        else sentence("layer {layer}, head {head}", layer=run.layer, head=run.head)
    )
    title = series([sentence(MEASURES[look.values]), sentence(KIND_TITLES[run.kind].lower()), place])
    clicks = {"layer": LAYER} if look.values == "rollout" else {"kind": KIND, "layer": LAYER, "head": HEAD}
    near = _near_heads(run, look.values)
    summaries = run.compute(summarise_kind, run.trace, run.kind)
    numbers = {
        f"{group.kind}_{name}": getattr(group, name) for group in groups for name in ("values", "mask", "removed")
    }
    return Result(
        {
            "mosaic": Canvas(_mosaic(run, groups, column, high), {"choose": clicks}),
            "map": head_map(rows, keys, opened, mask, MEASURES[look.values], high, place),
            "lines": Canvas(
                _lines(run, tables, near, near if lines_of == "layer" else [column], high, title),
                {"choose": CLICKED_TOKEN},
            ),
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
    shown = say_label(VALUES.options[values].lower())
    return mosaic(
        [_group(run, tables) for tables in groups],
        (run.kind, run.layer, column),
        high=high,
        measure=MEASURES[values],
        title=f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, {shown}",
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
        choices=_choices(run, tables),
    )


def _choices(run: Run, tables: HeadTables) -> Choices:
    groups, chosen = (tables.queries, tables.keys), (query_of(run), key_of(run))
    places = (
        next((place for place, group in enumerate(side) if token in group), None)
        for side, token in zip(groups, chosen, strict=True)
    )
    return Choices(run.kind, *([group[0] for group in side] for side in groups), tuple(places))


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
    # As objects: sentences, to be said in the language of the run.
    return table.assign(rule=pd.Series([head.rule for head in summaries], dtype=object))


BEST_IS_LOW = ("errors",)
OVER = {
    "copy": "of the weights",
    "induction": "mean over random sequences",
    "meaning": "over all pairs of tokens",
    "errors": "over all sentence pairs",
}


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
        "most": {key: _most_of_squares(arrays[key]) for key in PRODUCTS},
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
            ", ".join(f"{piece} ({tr(signed(logit, '.2g'))})" for piece, logit in zip(*row, strict=True))
            for row in zip(pieces, arrays[f"{key}_logits"].tolist(), strict=True)
        ]
    return pd.DataFrame(columns)


@view("Rules and formulas", code=(head_summary.name_type,))
def rules(run: Run) -> Result:
    """The formula of every number in the table, the rules that name a head, in order, and the chosen head by them."""
    limits = ("POSITIONAL", "SINK", "LOCAL", "BROAD", "MONOTONE")
    facts = {name.lower(): getattr(head_summary, name) for name in limits}
    heads = run.compute(summarise_kind, run.trace, run.kind)
    head = next(one for one in heads if (one.layer, one.head) == (run.layer, run.head))
    measured = {
        **{f"{name} token": (getattr(head, name), facts["positional"]) for name in ("previous", "same", "next")},
        "sink": (head.special + head.punctuation, facts["sink"]),
        "local": (None if head.same is None else head.previous + head.same + head.next, facts["local"]),
        "broad": (head.spread, facts["broad"]),
        "monotone": (head.order if run.attention.crosses else None, facts["monotone"]),
    }
    measured = {name: pair for name, pair in measured.items() if pair[0] is not None}
    values, least = np.array(list(measured.values()), float).T
    bars = Bars(
        [*map(say_label, measured)],
        {"this head": values},
        ("rule", "measured"),
        number=".3f",
        what="rule",
        dots={"the rule applies from here on": least},
        height=300,
    )
    return Result({"head": bars}, facts | {"type": head.type})


def _scores(run: Run) -> dict[str, str]:
    """Those that the chosen head has; none where no sentences were measured."""
    try:
        measured = read_heads(run.opened).head(run.kind, run.layer, run.head)
    except ValueError:
        return {}
    return {name: say_label(title) for name, title in SCORES.items() if name in measured.mean}


SCORE = menu("Score", _scores, key="many_score")
ORDER = choice(
    "Order", lambda _, score: {"score": tr("By score"), "layer": tr("By layer")} if score else {}, key="many_order"
)


@view(
    "Over many sentences",
    code=(induction.induction_scores, alignments.word_weights, alignments.count_links, alignments.alignment_error_rate),
)
def many(run: Run, score: str | None = SCORE, order: str | None = ORDER) -> Result:
    """One score of all heads over many sentences; the opened head's type and sentences; a click opens a head."""
    try:
        measured = read_heads(run.opened)
    except ValueError as error:
        return Result(facts={"problem": sentence_of(error)})
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
    sentences = pd.DataFrame({"score": best, f"most itself on ({SCORES[head.shows]})": texts})
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
            "best": Table(sentences, floats="%.3f", **_opening(measured, texts)),
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


def _measures(run: Run) -> dict[str, str]:
    """The scores of a sentence that the chosen head has; none where their distributions are not known."""
    try:
        head, how = read_heads(run.opened).head(run.kind, run.layer, run.head), read_distributions(run.opened)
    except (ValueError, StopIteration):
        return {}
    names = [name for name in how.scores if name in head.mean]
    names.sort(key=lambda name: name != head.shows)  # first the score by which this head is what it is
    return {name: say_label(SCORES[name]) for name in names}


MEASURE = menu("Measure", _measures, key="head_measure")


@view(
    "One head over many sentences",
    code=(tally.measure, many_sentences.describe_distributions, many_sentences.percentile_of),
)
def one_head(run: Run, measure: str | None = MEASURE) -> Result:
    """How one measure of the opened head lies over many sentences, and where this sentence is; what the head reads."""
    if measure is None:
        return Result(facts={"problem": _why_not_measured(run)})
    measured, how = read_heads(run.opened), read_distributions(run.opened)
    head, row = measured.head(run.kind, run.layer, run.head), how.row((run.kind, run.layer, run.head))
    percentiles, counts = how.of(head.place, measure)
    edges = np.linspace(percentiles[0], percentiles[-1], len(counts) + 1)
    here = tally.measure(run.opened, run.trace, run.attention)[run.head][0].get(measure)
    bars = Bars(
        (edges[1:] + edges[:-1]) / 2 if edges[-1] > edges[0] else np.array([edges[0]]),
        {"sentences": counts if edges[-1] > edges[0] else counts.sum(keepdims=True)},
        (SCORES[measure], "sentences"),
        number="d",
        mode="overlay" if edges[-1] > edges[0] else "group",
        what=SCORES[measure],
        marks=[Mark(x=here, text="this sentence")],
    )
    near = np.arange(-tally.FARTHEST, tally.FARTHEST + 1)
    return Result(
        {
            "histogram": bars,
            "tenths": _tenths(measured, how, row, how.scores.index(measure)),
            "most": _sentences(measured, head.best, SCORES[head.shows], "most"),
            "least": _sentences(measured, head.least, SCORES[head.shows], "least"),
            "keys": _pieces(head.keys, "key", "times equal weights"),
            "queries": _pieces(head.queries, "query", "largest weight, mean"),
            "offsets": Bars(near, {"weight": how.offsets[row]}, ("key − query, tokens", "share of a row's weight")),
            "alike": _alike(head, "alike"),
            "alike_ov": _alike(head, "alike_ov"),
        },
        {
            "problem": None,
            "measured": measured,
            "head": head,
            "called": SCORES[measure],
            "shows": SCORES[head.shows],
            "here": here,
            "percentile": percentile_of(here, percentiles),
            "quartiles": percentiles[[25, 50, 75]].tolist(),
            "pool": len(how.texts),
            "often": many_sentences.OFTEN,
            "farthest": tally.FARTHEST,
            "address": urlencode({"heads_part": "One head over many sentences", "head_measure": SCORES[measure]}),
        },
        {"percentiles": percentiles, "counts": counts, "edges": edges, "offsets": how.offsets[row]},
    )


def _why_not_measured(run: Run) -> str:
    """Why there are no distributions of this head, and what to do."""
    try:
        read_heads(run.opened).head(run.kind, run.layer, run.head)
        read_distributions(run.opened)
    except ValueError as error:
        return sentence_of(error)
    return "This head was not measured."


def _tenths(measured: ManySentences, how: Distributions, row: int, score: int) -> Table:
    """The sentences drawn from each tenth, the smallest scores first."""
    rows = [
        {"tenth": tenth + 1, "score": float(how.values[row, score, tenth, number]), "sentence": how.texts[text]}
        for (tenth, number), text in np.ndenumerate(how.drawn[row, score])
        if text >= 0
    ]
    return Table(
        pd.DataFrame(rows, columns=["tenth", "score", "sentence"]),
        floats="%.3f",
        helps={"tenth": "1: the tenth of all sentences with the smallest scores; 10: that with the largest."},
        **_opening(measured, [row["sentence"] for row in rows]),
    )


def _sentences(measured: ManySentences, texts: Sequence[tuple[str, float]], score: str, which: str) -> Table:
    frame = pd.DataFrame(
        {"score": [value for _, value in texts], f"{which} itself on ({score})": [t for t, _ in texts]}
    )
    return Table(frame, floats="%.3f", **_opening(measured, [text for text, _ in texts]))


def _opening(measured: ManySentences, texts: Sequence[str]) -> dict[str, Any]:
    """What a click on one of these sentences opens: the run that was measured, whatever target was chosen before."""
    rows, sets = [{"source": text} for text in texts], {"source": SOURCE}
    if given := measured.targets:
        rows = [
            row | {"target": "typed" if row["source"] in given else "beam", "typed": given.get(row["source"], "")}
            for row in rows
        ]
        sets |= {"target": TARGET, "typed": TYPED}
    elif measured.own_translations:
        rows, sets = [row | {"target": "beam"} for row in rows], sets | {"target": TARGET}
    return {"chooses": rows, "sets": sets}


def _pieces(pieces: Sequence[tuple[str, float, int]], which: str, value: str) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            which: labels([piece for piece, *_ in pieces]),
            value: [number for _, number, _ in pieces],
            "rows": [count for *_, count in pieces],
        }
    )
    table.attrs["floats"] = "%.3f"
    return table


def _alike(head: MeasuredHead, by: str) -> Table:
    """Other heads of the kind, the most similar first; a click opens one."""
    heads = getattr(head, by)
    frame = pd.DataFrame(heads, columns=["layer", "head", "correlation" if by == "alike" else "cosine"])
    places = [{"layer": layer, "head": number} for layer, number, _ in heads]
    return Table(frame, floats="%.3f", chooses=places, sets={"layer": LAYER, "head": HEAD})


def _all_measures(run: Run) -> dict[str, str]:
    """The scores that any head has."""
    try:
        heads = read_heads(run.opened).heads
    except ValueError:
        return {}
    return {name: say_label(title) for name, title in SCORES.items() if any(name in head.mean for head in heads)}


FIND_BY = menu("Find heads by", _all_measures, key="find_by")
FROM = choice(
    "First",
    lambda _, find_by: {"most": tr("The largest"), "least": tr("The smallest")} if find_by else {},
    key="find_from",
)


@view("Find a head", code=(many_sentences.describe_heads,))
def find(run: Run, find_by: str | None = FIND_BY, first: str | None = FROM) -> Result:
    """All heads of all kinds of attention by any measure; a click opens one."""
    try:
        measured = read_heads(run.opened)
    except ValueError as error:
        return Result(facts={"problem": sentence_of(error)})
    heads = [head for head in measured.heads if find_by in head.mean]
    heads.sort(key=lambda head: head.mean[find_by], reverse=first == "most")
    places = [head.place for head in heads]
    table = pd.DataFrame(
        {
            SCORES[find_by]: [head.mean[find_by] for head in heads],
            "layer": [head.layer for head in heads],
            "head": [head.head for head in heads],
            "attention": [tr(KIND_TITLES[head.kind]) for head in heads],
            "±": [head.spread.get(find_by, np.nan) for head in heads],
            "type": [head.type for head in heads],
        }
    ).dropna(axis="columns", how="all")
    here = (run.kind, run.layer, run.head)
    shown = Table(
        table,
        floats="%.3f",
        most_rows=20,
        ticked=places.index(here) if here in places else None,
        chooses=[dict(zip(("kind", "layer", "head"), place, strict=True)) for place in places],
        sets={"kind": KIND, "layer": LAYER, "head": HEAD},
    )
    facts = {"problem": None, "measured": measured, "called": SCORES[find_by], "heads": len(heads)}
    facts |= {"all": len(measured.heads), "place": places.index(here) + 1 if here in places else None, "first": first}
    return Result({"heads": shown}, facts, {"scores": np.array([head.mean[find_by] for head in heads])})


PERCENT = {"correct": "percent", "best offset": "percent", "nearest": "percent"}
WORK_HELPS = {
    "measure": "Positional: the largest share on the previous, the same or the next token. Syntactic: share of right "
    "partners minus that of the best fixed offset. The others: correlation, copy score, prefix-matching score.",
    "rule": "The smallest measure with which a head does this kind of work.",
}


@view(
    "Grammar and meaning",
    code=(grammar.count_relations, grammar.meaning_correlation, grammar.kinds_of_work),
)
def works(run: Run) -> Result:
    """Five kinds of work and which of them the opened head does; its relations beside the best fixed offset."""
    try:
        measured, how = read_heads(run.opened), read_distributions(run.opened)
        head = measured.head(run.kind, run.layer, run.head)
    except (ValueError, StopIteration):
        return Result(facts={"problem": _why_not_measured(run)})
    done = {one.place: grammar.kinds_of_work(one.mean, how.gains(one.place)) for one in measured.heads}
    own = done[head.place]
    counts = {
        name: sum(one.does for place, each in done.items() if place[0] == run.kind for one in each if one.name == name)
        for name in grammar.TYPE_RULES
    }
    table = pd.DataFrame(
        {
            "work": [one.name for one in own],
            "measure": [one.measure for one in own],
            "rule": [f"≥ {grammar.TYPE_RULES[one.name]:g}" for one in own],
            "does it": [
                tr("yes") if one.does else tr("not measured") if np.isnan(one.measure) else tr("no") for one in own
            ],
            "at": [tr(one.best) for one in own],
            "heads that do": [counts[one.name] for one in own],
        }
    )
    relations = _relations(how, how.row(head.place))
    kind = [place for place in how.places if place[0] == run.kind]
    best = _best_relations(how, kind)
    facts = {
        "problem": None,
        "measured": measured,
        "head": head,
        "does": [one.name for one in own if one.does],
        "parsed": len(relations) > 0,
        "words": many_sentences.GAIN_WORDS,
        "heads": len(kind),
        "counts": counts,
        "syntactic": own[1],
        "apart": how.chosen is not None,
        "beyond": how.beyond(head.place),
        "survivors": [
            (f"L{place[1]}H{place[2]}", beyond)
            for place in kind
            if (beyond := how.beyond(place)) is not None and beyond.survives
        ],
    }
    shows = {"works": Table(table, floats="%.3f", helps=WORK_HELPS)}
    if len(relations):
        shows["relations"] = Table(relations, floats="%.3f", formats=PERCENT, most_rows=12)
        shows["best"] = Table(
            best,
            floats="%.3f",
            formats=PERCENT,
            most_rows=12,
            chooses=best[["layer", "head"]].to_dict("records"),
            sets={"layer": LAYER, "head": HEAD},
        )
    return Result(shows, facts, {"measures": np.array([one.measure for one in own])})


def _relations(how: Distributions, row: int) -> pd.DataFrame:
    """Every relation in both directions: how often the largest weight of this head is on the partner."""
    rows = [
        {
            "relation": how.relations[relation],
            "looks": grammar.DIRECTIONS[direction],
            "words": int(words),
            "correct": float(how.hits[row, direction, relation]),
            "best offset": float(how.yardstick[row, direction, relation]),
            "offset": int(how.offset[row, direction, relation]),
        }
        | (
            {}
            if how.nearest is None
            else {"nearest": float(how.nearest[row, direction, relation])}
            | {"nearest by": " ".join(map(tr, grammar.NEAREST[int(how.nearest_by[row, direction, relation])]))}
        )
        for (direction, relation), words in np.ndenumerate(how.words[row])
        if words >= many_sentences.GAIN_WORDS
    ]
    nearest = [] if how.nearest is None else ["nearest", "nearest by"]
    table = pd.DataFrame(rows, columns=["relation", "looks", "words", "correct", "best offset", "offset", *nearest])
    table["gain"] = table["correct"] - table["best offset"]
    return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def _best_relations(how: Distributions, places: Sequence[tuple[str, int, int]]) -> pd.DataFrame:
    """For every relation and direction the head of this kind that is correct most often."""
    tables = [_relations(how, how.row(place)).assign(layer=place[1], head=place[2]) for place in places]
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        return table
    best = table.loc[table.groupby(["relation", "looks"])["correct"].idxmax()]
    columns = ["relation", "looks", "layer", "head", "correct", "best offset", "offset", "gain", "words"]
    columns += [name for name in ("nearest", "nearest by") if name in best]
    return best.sort_values("gain", ascending=False, kind="stable", ignore_index=True)[columns]


def _gold_file(run: Run) -> Path | None:
    """The file of gold links that comes with the opened checkpoint; None: there is none."""
    path = checkpoint_path(run.opened.name) / alignments.GOLD_FILE
    return path if os.path.isfile(path) else None  # which raises nothing where a folder may not be entered


def _typed_pairs(text: str) -> list[tuple[str, str]]:
    """Source and target of each pair of “source = target | source = target”.

    Raises:
        ValueError: a part is not a pair; the sentence says how to write one.
    """
    parts = [part.split(" = ") for part in text.split(" | ") if part.strip()]
    wrong = [part for part in parts if len(part) != 2 or not all(side.strip() for side in part)]
    if wrong or not parts:
        shown = " = ".join(wrong[0]) if wrong else text
        raise ValueError(
            sentence(
                "“{typed}” is not a pair. Write: A dog runs. = Ein Hund rennt. | It is late. = Es ist spät.",
                typed=shown,
            )
        )
    return [(source.strip(), target.strip()) for source, target in parts]


REFERENCES = {"gold": "By reading: gold", "silver": "By a statistical model: silver"}
ALIGNED_BY = choice(
    "Words aligned",
    lambda run: {name: say_label(label) for name, label in REFERENCES.items() if name != "gold" or _gold_file(run)},
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
        yield 1.0, sentence_of(error)


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
        return _aligned_beforehand(run, facts)
    rates, best, layers = outcome.error_rates, outcome.alignment_heads, outcome.layers
    first, predicting, gold = best[0], outcome.predicting_heads, _gold_file(run)
    scale = Scale(0, 1, WEIGHTS, "alignment<br>error rate<br>0 to 1")
    maps = {
        READINGS[name]: Map(rates[..., number], scale=scale, what="alignment error rate")
        for number, name in enumerate(alignments.CONVENTIONS)
    }
    rows = [say_label(f"layer {layer}") for layer in layers]
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
        "conventions": [say_label(one.convention) for one in best],
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
            "map": Maps(
                rows,
                [say_label(f"head {head}") for head in range(outcome.heads.shape[1])],
                maps,
                axes=("layer", "head"),
            ),
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


def _aligned_beforehand(run: Run, facts: Mapping[str, Any]) -> Result:
    """The error rates that the opened checkpoint's heads.json has of cross-attention, if it has any."""
    facts = {**facts, "sentences": 0}
    try:
        measured = read_heads(run.opened)
    except ValueError:
        return Result(facts=facts)
    kind = run.trace.kind("cross")
    of_layers = [[measured.head("cross", layer, head) for head in range(kind.heads)] for layer in kind.layers]
    rates = np.array([[one.mean.get("errors", np.nan) for one in heads] for heads in of_layers], float)
    if np.isnan(rates).all():
        return Result(facts=facts)
    scale = Scale(0, 1, WEIGHTS, "alignment<br>error rate<br>0 to 1")
    rows = [say_label(f"layer {layer}") for layer in kind.layers]
    columns = [say_label(f"head {head}") for head in range(rates.shape[1])]
    maps = {"": Map(rates, ~np.isnan(rates), scale, "alignment error rate")}
    return Result(
        {"measured": Maps(rows, columns, maps, axes=("layer", "head"))},
        facts | {"sentences": measured.sentences, "of": measured.of, "aligned": measured.aligned},
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


@answer
def one_line(run: Run) -> Result:
    """How many heads of the chosen kind each rule names, the most frequent name first, and how many none."""
    types = Counter(head.type for head in run.compute(summarise_kind, run.trace, run.kind))
    mixed = types.pop("mixed", 0)
    return Result(facts={"heads": types.total() + mixed, "types": types.most_common(), "mixed": mixed})
