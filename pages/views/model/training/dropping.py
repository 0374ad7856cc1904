"""Dropout on this run: what is dropped, and what it costs."""

import pandas as pd

from model.analysis.inside.dropout import DRAWS, EMBEDDED, EVERYWHERE, dropout_cost, dropout_places, dropped_at
from model.analysis.inside.training_step import as_trained
from model.network.network import EMBEDDINGS
from model.run import Run
from model.trace import SUBLAYER_TITLES
from pages.views import Result, view
from pages.views.controls import choice, menu, slider
from pages.views.model.training.one_step import INSIDE, TRAINED_ON
from viz.forms import Map, Maps, Scale
from viz.labels import say_label, say_options
from viz.tokens import numbered


def _dropout_rates(run: Run) -> dict[float, str]:
    own = run.opened.config.dropout
    own_rate = {own: f"{own:g}, as this model was trained"} if own not in (0, 0.1) else {}
    return say_options(own_rate | {0.1: "0.1, the paper's base"})


def _sublayers(run: Run) -> dict[str, str]:
    """By hook point: where dropout acts, in words."""
    places = {}
    for path in dropout_places(run.opened.model):
        stack, *rest = path.split(".")
        embedded = next((name for name, one in EMBEDDINGS.items() if one == stack), "")
        if embedded:
            places[path] = say_label(f"{embedded}: embeddings + positions")
        else:
            places[path] = say_label(f"{stack}, layer {rest[1]}: {SUBLAYER_TITLES[rest[2]]}")
    return places


DROPPED_RATE = choice("Dropout rate", _dropout_rates, key="dropout_rate")
DROPPED_PLACE = menu("Place", _sublayers, key="dropout_place")
DROPPED_SEED = slider("Seed of the draw", (0, 20), 0, key="dropout_seed")
DIMENSIONS = 48
"""of a vector that are drawn"""


@view("Dropout", code=(dropout_cost, dropped_at), tab=INSIDE, needs=TRAINED_ON)
def dropout(run: Run, rate: float = DROPPED_RATE, place: str = DROPPED_PLACE, seed: int = DROPPED_SEED) -> Result:
    """What one draw of dropout sets to 0 at a place, and what 20 draws cost at each."""
    pair = as_trained(run.trace)
    drawn = run.compute(dropped_at, run.opened, pair, place, rate, seed)
    cost = run.compute(dropout_cost, run.opened, pair, rate)
    stack = place.split(".")[0]
    stack = next((name for name, one in EMBEDDINGS.items() if one == stack), stack)
    shown = drawn.after[:, :DIMENSIONS], drawn.kept[:, :DIMENSIONS]
    values = Map(*shown, Scale.signed(shown[0], title="after<br>dropout"), "after dropout")
    names = {EMBEDDED: "embeddings + positions", EVERYWHERE: "everywhere, as in training"} | SUBLAYER_TITLES
    table = pd.DataFrame(
        {
            "dropout at": [names[kind] for kind in cost.changes],
            "places": [sum(one == kind for one in dropout_places(run.opened.model).values()) for kind in cost.changes],
            "log p, mean change in nats": [changes.mean() for changes in cost.changes.values()],
            "standard deviation": [changes.std(ddof=1) for changes in cost.changes.values()],
            "largest loss": [changes.min() for changes in cost.changes.values()],
        }
    )
    table.loc[table.index[-1], "places"] = len(dropout_places(run.opened.model))
    table.attrs["floats"] = "%+.3f"
    columns = [str(dimension) for dimension in range(shown[0].shape[1])]
    dropped = Maps(numbered(run.trace.streams[stack].tokens.labels), columns, {"": values}, axes=("token", "dimension"))
    everywhere = cost.changes[EVERYWHERE]
    return Result(
        {"dropped": dropped, "cost": table},
        {
            "exact": round(256 * rate),
            "place": _sublayers(run)[place],
            "share": 1 - drawn.kept.mean(),
            "dimensions": len(columns),
            "d_model": drawn.kept.shape[1],
            "draws": DRAWS,
            "without": cost.without,
            "mean": everywhere.mean(),
            "spread": everywhere.std(ddof=1),
            "own": run.opened.config.dropout,
        },
        {f"change_{kind}": changes for kind, changes in cost.changes.items()} | {"kept": drawn.kept},
    )
