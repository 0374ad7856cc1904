"""Which head moved most between two training steps, and one head over all of them."""

from collections.abc import Sequence

import numpy as np

from model.analysis.distributions import total_variation
from model.analysis.runs.revisions import ranked_heads
from model.checkpoints.store import CheckpointError, shown_message
from model.run import Place, Run
from pages.views import Need, Result, is_quick, view
from pages.views.controls import SWITCH, steps, toggle
from pages.views.model.training.snapshots import (
    END,
    moments_of,
    nothing_saved,
    read_at,
    read_each,
    say_moment,
    unfinished,
)
from pages.views.part_pictures import head_maps
from pages.views.shared import axes
from viz.forms import Map, Maps

MOST_PANELS = 6
"""of one head over the steps"""

SINCE = steps("From training step", moments_of, key="since-step")
UNTIL = steps("To training step", moments_of, END, key="until-step")
BETWEEN = toggle(
    "Show the head at the steps in between", lambda run: SWITCH if moments_of(run) and not is_quick(run) else {}
)


@view("Which head moved most", code=(total_variation,), needs=(Need.LOGITS,))
def moved(run: Run, since: str | None = SINCE, until: str | None = UNTIL, between: bool | None = BETWEEN) -> Result:
    """How far each head's attention on the text moved between two training steps; the chosen head over the steps."""
    if since is None:
        return nothing_saved(run)
    labels, skipped = moments_of(run), unfinished(run)
    named = [say_moment(labels[since]), say_moment(labels[until])]
    facts = {"saved": True, "steps": named, "skipped": skipped, "error": ""}
    try:
        before, after = read_at(run, since), read_at(run, until)
    except CheckpointError as error:
        return Result(facts=facts | {"error": shown_message(error)})
    distances = {
        place: total_variation(pattern, after.patterns[place]).mean(axis=-1)
        for place, pattern in before.patterns.items()
    }
    values = {kind.name: np.stack([distances[kind.name, layer] for layer in kind.layers]) for kind in run.trace.kinds}
    (kind, layer, head, most), *_ = ranked_heads(distances)
    here = {since: before, until: after}
    if between or between is None:
        here |= read_each(run, _between([*labels], since, until), skipped)
    rows, keys = axes(run.attention)
    place, mask = (run.kind, run.layer), run.attention.mask[run.head]
    maps = {
        f"step {label}" if label.isdecimal() else label: Map(here[step].patterns[place][run.head], mask)
        for step, label in labels.items()
        if step in here
    }
    facts |= {
        "most": Place(kind, layer, head),
        "distance": most,
        "median": np.median(np.concatenate([*distances.values()])),
        "shown": len(maps),
        "between": abs([*labels].index(until) - [*labels].index(since)) + 1,
        "own": float(distances[place][run.head]),
    }
    shows = {
        "heads": head_maps(run, values, "total variation of its attention"),
        "panels": Maps(rows, keys, maps, across=min(len(maps), 3)),
    }
    return Result(shows, facts)


def _between(moments: Sequence[str], since: str, until: str) -> list[str]:
    """Moments between two, of many some at even distances."""
    first, last = sorted((moments.index(since), moments.index(until)))
    chosen = np.linspace(first, last, min(MOST_PANELS, last - first + 1)).round().astype(int)
    return [moments[place] for place in chosen[1:-1]]
