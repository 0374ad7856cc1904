"""What every head does over many sentences, measured beforehand; and finding a head by it."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from model.analysis.heads import alignments, induction, many_sentences, tally
from model.analysis.heads.head_summary import summarise_kind
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
from model.language import sentence_of, tr
from model.run import Run
from model.trace import KIND_TITLES
from pages.text import names_in
from pages.views import Result, view
from pages.views.controls import CLICKED_HEAD, HEAD, LAYER, SOURCE, TARGET, TYPED, choice, menu
from viz.forms import Bars, Line, Lines, Mark, Table
from viz.labels import say_label
from viz.theme import OKABE_ITO
from viz.tokens import labels

BEST_IS_LOW = ("errors",)
OVER = names_in("over_sentences")


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
            "best": _sentences(measured, head.best, SCORES[head.shows], "most"),
        },
        {
            "problem": None,
            "measured": measured,
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
        return Result(facts={"problem": why_not_measured(run)})
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


def why_not_measured(run: Run) -> str:
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
        sets=CLICKED_HEAD,
    )
    facts = {"problem": None, "measured": measured, "called": SCORES[find_by], "heads": len(heads)}
    facts |= {"all": len(measured.heads), "place": places.index(here) + 1 if here in places else None}
    return Result({"heads": shown}, facts, {"scores": np.array([head.mean[find_by] for head in heads])})
