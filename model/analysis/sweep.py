"""Many runs on the same tokens, each with changes of its own: one head off after another, one sub-layer, one box."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit, editing, explicit_path
from model.interventions import HeadGate, Intervention, applied
from model.needs import Need
from model.network.network import Network
from model.trace import Array, Trace, log_probabilities

BATCH_LOGITS = 10_000_000
"""numbers in the logits of one batch at most: 40 MB"""

Changes = Sequence[Intervention]


def sweep(opened: Checkpoint, trace: Trace, changes: Sequence[Changes]) -> Iterator[Array]:
    """The logits of the run's tokens under each of the changes, which act besides those of the run.

    Heads that are switched off alone or together are the rows of one batch in networks of this project's own code.
    Hugging Face models run once for each change, as what they do with a batch is up to them.

    Yields:
        (row, vocabulary), in the order of `changes`.
    """
    gates = all(isinstance(change, HeadGate) for each in changes for change in each)
    rows = 1
    if gates and Need.OWN_LAYERS in opened.features:
        rows = max(BATCH_LOGITS // max(trace.logits.size, 1), 1)
    for first in range(0, len(changes), rows):
        check_cancelled()
        yield from _run_together(opened.model, trace, changes[first : first + rows], gates)


def log_probability(logits: Array, ids: Sequence[int]) -> float:
    """log p in nats of the tokens `ids` under the logits (row, vocabulary), as `Trace.log_probability` adds them up."""
    return float(log_probabilities(logits)[range(len(ids)), list(ids)].sum())


@torch.inference_mode()
def _run_together(model: Network, trace: Trace, changes: Sequence[Changes], gates: bool) -> list[Array]:
    """The logits under each of the changes; several of them side by side must be gates of heads alone."""
    device, own = model.output.weight.device, [*trace.interventions, *(() if gates else changes[0])]
    texts = [torch.tensor([stream.tokens.ids], device=device) for stream in trace.streams.values()]
    edits = _edit_rows(model, changes) if gates else {}
    *sources, last = texts
    if any(path.startswith("encoder.") for path in edits):  # else one row of the encoder's output serves all
        sources = [ids.expand(len(changes), -1) for ids in sources]
    with applied(model, own), editing(model, edits), explicit_path():
        logits = model(*sources, last.expand(len(changes), -1))
    return [row.cpu().numpy() for row in logits]


def _edit_rows(model: Network, changes: Sequence[Changes]) -> Mapping[str, Edit]:
    """By path, an edit that makes each of the changes in its own row of the batch."""
    edits: dict[str, list[tuple[int, Edit]]] = {}
    for row, change in ((row, change) for row, each in enumerate(changes) for change in each):
        for path, edit in change.edits(model).items():
            edits.setdefault(path, []).append((row, edit))

    def in_rows(of_path: Sequence[tuple[int, Edit]]) -> Edit:
        def edit_each(z: Tensor) -> Tensor:
            z = z.clone()
            for row, edit in of_path:
                z[row : row + 1] = edit(z[row : row + 1])
            return z

        return edit_each

    return {path: in_rows(of_path) for path, of_path in edits.items()}
