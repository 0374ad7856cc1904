"""Training: the log of this checkpoint, learning rate, label smoothing, attention at earlier steps, our own studies."""

from model.analysis.view_arrays import training_arrays
from model.checkpoints.snapshots import open_snapshot
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares
from model.training.schedule import fit_schedule, noam
from pages.frame.open_page import open_page
from pages.parts.model_card import card_of
from pages.parts.snapshots import show_snapshots
from pages.parts.studies import show_ablations, show_scaling
from pages.parts.training import log_table, say_where_parts_went, show_curves, show_schedule, show_smoothing
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import links
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call

view = open_page(__file__)
say_where_parts_went()
card = card_of(view)
log = log_table(card)
figure = show_curves(card, log, view.translator.config.d_model)
last_step = int(log["step"].max()) if "step" in log and log["step"].notna().any() else None
tabs(
    {
        "Learning rate": lambda: show_schedule(view, log),
        "Label smoothing": lambda: show_smoothing(view),
        "Attention through training": lambda: show_snapshots(view, last_step),
        "Ablations": lambda: show_ablations(view),
        "Scaling": lambda: show_scaling(view),
    },
    "training",
)
links(since_2017="What each part since 2017 buys")
show_code(noam, fit_schedule, label_smoothed_loss, smoothed_shares, cross_entropies, open_snapshot)
export(
    view,
    "training",
    Call(training_arrays, view.translator, view.trace),
    log if len(log) else None,
    () if figure is None else (Picture("The curves", "curves", figure),),
)
proof_strip(view)
