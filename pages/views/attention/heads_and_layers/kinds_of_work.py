"""Grammar and meaning: five kinds of work, and relations beside the best fixed offset."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.analysis.heads import grammar, many_sentences
from model.analysis.heads.many_sentences import Distributions, read_distributions, read_heads
from model.language import tr
from model.run import Run
from pages.text import names_in
from pages.views import Result, view
from pages.views.attention.heads_and_layers.over_sentences import why_not_measured
from pages.views.controls import HEAD, LAYER
from viz.forms import Table

PERCENT = {"correct": "percent", "best offset": "percent", "nearest": "percent"}
WORK_HELPS = names_in("works")


@view("Grammar and meaning", code=(grammar.count_relations, grammar.meaning_correlation, grammar.kinds_of_work))
def works(run: Run) -> Result:
    """Five kinds of work and which of them the opened head does; its relations beside the best fixed offset."""
    try:
        measured, how = read_heads(run.opened), read_distributions(run.opened)
        head = measured.head(run.kind, run.layer, run.head)
    except (ValueError, StopIteration):
        return Result(facts={"problem": why_not_measured(run)})
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
