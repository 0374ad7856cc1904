"""Training: how this checkpoint learned, at which rate, towards which target, and how its attention formed."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from model.checkpoints.snapshots import open_snapshot
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares
from model.training.schedule import fit_schedule, noam
from pages.frame.open_page import View, open_page
from pages.frame.proof_strip import proof_strip
from pages.parts.model_card import card_of
from pages.parts.snapshots import show_snapshots
from pages.parts.training import log_table, show_curves, show_schedule, show_smoothing
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export
from pages.widgets.snippet import Recipe


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
figure = show_curves(card, log, view.translator.model.config.d_model)
last_step = int(log["step"].max()) if "step" in log and log["step"].notna().any() else None
arrays = {f"log_{column}": log[column].to_numpy(float) for column in log}
views = sections(view, log, last_step)
for tab, show in zip(st.tabs(list(views), key="training", bind="query-params"), views.values(), strict=True):
    if tab.open:
        with tab:
            arrays |= show()
show_code(noam, fit_schedule, label_smoothed_loss, smoothed_shares, cross_entropies, open_snapshot)
export(
    view,
    "training",
    {"logits": view.trace.logits, **arrays},
    log if len(log) else None,
    () if figure is None else (Picture("The curves", "curves", figure),),
    Recipe({"logits": "trace.logits"}),
)
proof_strip(view)
