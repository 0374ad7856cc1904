"""Checks that the parts of a model give what it computes: each step of the probe's run, computed again."""

from collections.abc import Iterator

from model.checkpoints.huggingface.network import HookedModel
from model.language import sentence, series
from model.trace import CHAIN_TOLERANCE, Attention, Trace, relative_error

STEPS = ("q", "k", "v", "out")


def leave_out_unverified(model: HookedModel, trace: Trace) -> None:
    """Forget the matrices that do not give a run's queries, keys, values or output, and note by how much they fail."""
    for place, attention in trace.attentions.items():
        path, points = model.attentions()[place]
        if failing := dict(_failing(attention)):
            model.leave_out(points, failing)
            by = [sentence("{name} by {error:.2g}", name=name, error=error) for name, error in failing.items()]
            model.notes.append(
                sentence(
                    "{path}: what the matrices give differs from the model's own numbers ({by}, relative to the "
                    "largest number); what the model does there could not be read.",
                    path=path,
                    by=series(by),
                )
            )


def _failing(attention: Attention) -> Iterator[tuple[str, float]]:
    for name in STEPS if attention.projections is not None else ():
        error = max(relative_error(*step) for step in attention.recompute(name))
        if not error <= CHAIN_TOLERANCE:
            yield name, error
