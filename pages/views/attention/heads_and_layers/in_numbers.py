"""All heads of a kind as numbers, the rules that name them, and the line below the heading."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.analysis.heads import head_summary
from model.analysis.heads.head_summary import HeadSummary, summarise_kind
from model.analysis.heads.head_tables import overview
from model.run import Run
from model.trace import Array
from pages.text import names_in
from pages.views import Result, answer, view
from pages.views.attention.heads_and_layers.mosaic import HIDE, RENORMALISE, VALUES, WORDS, _look
from pages.views.controls import HEAD, LAYER
from viz.forms import Bars, Table
from viz.labels import say_label

HELPS = names_in("measures_of_heads")
SHARES = ("previous", "same", "next", "special", "punctuation", "hidden", "hidden, most")


@view("All heads in numbers", code=(head_summary.summarise, head_summary._measure, head_summary.name_type))
def all_heads(
    run: Run, values: str = VALUES, words: bool = WORDS, hide: bool = HIDE, renormalise: bool | None = RENORMALISE
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
    """One row for each head; shares are 0 to 1, columns that no head of this attention has are left out. `removed`, of
    (head, query), is the weight of each row that fell on hidden tokens."""
    fields = ("layer", "head", "type", "entropy", "confidence", "distance", "previous", "same", "next", "special")
    fields += ("punctuation",)
    table = pd.DataFrame({field: [getattr(head, field) for head in summaries] for field in fields})
    table = table.rename(columns={"entropy": "entropy (bits)"}).dropna(axis="columns", how="all")
    if removed is not None:
        table["hidden"], table["hidden, most"] = removed.mean(axis=-1), removed.max(axis=-1)
    # As objects: sentences, to be said in the language of the run.
    return table.assign(rule=pd.Series([head.rule for head in summaries], dtype=object))


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


@answer
def one_line(run: Run) -> Result:
    """How many heads of the chosen kind each rule names, the most frequent name first, and how many none."""
    types = Counter(head.type for head in run.compute(summarise_kind, run.trace, run.kind))
    mixed = types.pop("mixed", 0)
    return Result(facts={"heads": types.total() + mixed, "types": types.most_common(), "mixed": mixed})
