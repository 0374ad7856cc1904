"""Training: how this checkpoint learned, at which rate, towards which target, and how its attention formed."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from model.loss import label_smoothed_loss
from model.rates import measured_schedule
from model.schedule import noam
from model.smoothing import cross_entropies, smoothed_shares
from model.snapshots import forced, open_snapshot
from model.snippet import Recipe
from pages.components.explain import show_code
from pages.components.export import Picture, export
from pages.components.frame import View, open_page
from pages.components.model_card import card_of
from pages.components.proof import proof_strip
from pages.components.snapshots import show_snapshots
from pages.components.training import log_table, show_curves, show_schedule, show_smoothing


def sections(view: View, log: pd.DataFrame, last_step: int | None) -> dict[str, Callable[[], dict[str, np.ndarray]]]:
    """The tabs below the curves; each returns what it adds to the export."""
    return {
        "Learning rate": lambda: show_schedule(view, log),
        "Label smoothing": lambda: show_smoothing(view),
        "Attention through training": lambda: show_snapshots(view, last_step),
    }


view = open_page(__file__)
card = card_of(view)
log = log_table(card)
figure = show_curves(card, log)
last_step = int(log["step"].max()) if "step" in log and log["step"].notna().any() else None
arrays = {f"log_{column}": log[column].to_numpy(float) for column in log}
views = sections(view, log, last_step)
for tab, show in zip(st.tabs(list(views), key="training", bind="query-params"), views.values(), strict=True):
    if tab.open:
        with tab:
            arrays |= show()
show_code(noam, measured_schedule, label_smoothed_loss, smoothed_shares, cross_entropies, open_snapshot, forced)
export(
    view,
    "training",
    {"logits": view.trace.logits, **arrays},
    log if len(log) else None,
    () if figure is None else (Picture("The curves", "curves", figure),),
    Recipe({"logits": "trace.logits"}),
)
proof_strip(view)
