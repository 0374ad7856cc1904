"""Training: what the log says, one step, earlier steps, and our own studies."""

from pages.views.model.training.dropping import dropout
from pages.views.model.training.induction_head import forming
from pages.views.model.training.log import curves, one_line
from pages.views.model.training.moved_heads import moved
from pages.views.model.training.number_formats import formats
from pages.views.model.training.one_step import step
from pages.views.model.training.recipe import schedule, smoothing
from pages.views.model.training.sharp_rows import sharpness
from pages.views.model.training.snapshots import snapshots
from pages.views.model.training.studies import ablations, norm_and_residual, scaling
from pages.views.model.training.why_warm_up import warm_up

VIEWS = (
    curves,
    sharpness,
    schedule,
    smoothing,
    step,
    dropout,
    formats,
    warm_up,
    snapshots,
    moved,
    forming,
    ablations,
    norm_and_residual,
    scaling,
    one_line,
)
"""in the order of the tabs"""
