"""Many runs on the same tokens, each with changes of its own: one head off after another, one sub-layer, one box."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import eq

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit, editing, explicit_path
from model.interventions import HeadGate, Intervention, Patch, applied
from model.interventions.patch import of_source
from model.needs import Need
from model.network.network import Network
from model.trace import Array, StackName, Trace, log_probabilities

BATCH_NUMBERS = 10_000_000
"""in the largest activation of one batch at most: 40 MB"""

Changes = Sequence[Intervention]


def sweep(opened: Checkpoint, trace: Trace, changes: Sequence[Changes], row: int | None = None) -> Iterator[Array]:
    """The logits of the run's tokens, (row, vocabulary), under each of the changes, which act besides those of the run.

    Heads that are switched off, alone or together, and patches are the rows of one batch. What a Hugging Face model
    does with a batch is up to it: its batches carry the unchanged run as one more row, and as soon as that is no longer
    the run of `trace`, each change runs alone. Where one `row` of the last stack is asked for, only its logits are
    computed, and no change may act on the logits.
    """
    by_row = all(_acts_in_a_row(change) for each in changes for change in each)
    most = max(BATCH_NUMBERS // _largest_activation(opened, trace), 1) if by_row else 1
    own = Need.OWN_LAYERS in opened.features
    layers = [_first_layer(opened.model, each) if own and by_row else None for each in changes]
    first = 0
    while first < len(changes):
        check_cancelled()
        alike = takewhile(partial(eq, layers[first]), layers[first : first + most])
        some = list(changes[first : first + len([*alike])])
        control = [()] if len(some) > 1 and not own else []
        logits = _run_together(opened.model, trace, control + some, by_row, own, row)
        if control and not _is_run_of(trace, logits[0], row):
            most = 1
            continue
        yield from logits[len(control) :]
        first += len(some)


def _first_layer(model: Network, changes: Changes) -> tuple[int, ...]:
    """The stack and layer before which the changes leave the run as it is; empty: nothing."""
    paths = [path.split(".") for change in changes for path in change.edits(model)]
    order = list(model.stacks)
    places = [(order.index(path[0]), int(path[2])) if path[1:2] == ["layers"] else () for path in paths]
    return min(places, default=())


def _largest_activation(opened: Checkpoint, trace: Trace) -> int:
    """Numbers in the largest activation of one run: logits, a layer's weights of attention, or a feed-forward's."""
    length = {name: len(stream.tokens) for name, stream in trace.streams.items()}
    weights = [kind.heads * length[kind.queries] * length[kind.keys] for kind in opened.kinds]
    return max(trace.logits.size, *weights, opened.config.d_ff * max(length.values()))


def _is_run_of(trace: Trace, logits: Array, row: int | None) -> bool:
    """Whether logits, of all rows or of one, are those of the run but for rounding."""
    there = trace.logits if row is None else trace.logits[row : row + 1]
    return np.allclose(logits, there, rtol=0, atol=1e-4 * float(np.abs(trace.logits).max(initial=1.0)))


def _acts_in_a_row(change: Intervention) -> bool:
    """Whether it changes a row of a batch alone, whatever the others are."""
    return isinstance(change, HeadGate) or (isinstance(change, Patch) and not change.path.endswith(".positional"))


def log_probability(logits: Array, ids: Sequence[int]) -> float:
    """log p in nats of the tokens `ids` under the logits (row, vocabulary), as `Trace.log_probability` adds them up."""
    return float(log_probabilities(logits)[range(len(ids)), list(ids)].sum())


def is_causal(trace: Trace, stack: StackName) -> bool:
    """Whether it is certain that no row of the stack depends on later tokens: a change of the run may lift the mask."""
    return not trace.interventions and any(kind.causal and kind.queries == stack for kind in trace.kinds)


@torch.inference_mode()
def _run_together(
    model: Network, trace: Trace, changes: Sequence[Changes], by_row: bool, own: bool, row: int | None
) -> list[Array]:
    """The logits under each of the changes; several of them side by side must change a row of the batch each.

    Our own layers run once for all rows until the first of them is changed.
    """
    always, texts = [*trace.interventions, *(() if by_row else changes[0])], model.texts_of(trace)
    if row is not None and is_causal(trace, [*trace.streams][-1]):
        # What comes after the row does not reach it.
        texts[-1] = texts[-1][:, : row + 1]
    edits = _edit_rows(model, changes, own) if by_row else {}
    if not own:
        *sources, last = texts
        if any(of_source(path) for path in edits):  # else one row of the encoder's output serves all
            sources = [ids.expand(len(changes), -1) for ids in sources]
        texts = [*sources, last.expand(len(changes), -1)]
    one = slice(None) if row is None else slice(row, row + 1)
    # The other rows are not projected to the vocabulary.
    keep_row: Mapping[str, Edit] = {"final": lambda x: x[:, one]} if own else {}
    with applied(model, always), editing(model, edits), editing(model, keep_row), explicit_path():
        logits = model(*texts) if own else model(*texts)[:, one]
    return [each.cpu().numpy() for each in logits.expand(len(changes), -1, -1)]


def _edit_rows(model: Network, changes: Sequence[Changes], own: bool) -> Mapping[str, Edit]:
    """By path, an edit that makes each of the changes in its own row of the batch."""
    edits: dict[str, list[tuple[int, Edit]]] = {}
    for row, change in ((row, change) for row, each in enumerate(changes) for change in each):
        for path, edit in change.edits(model).items():
            edits.setdefault(path, []).append((row, edit))

    def in_rows(of_path: Sequence[tuple[int, Edit]]) -> Edit:
        def edit_each(x: Tensor) -> Tensor:
            # Some models flatten the batch before their feed-forward, and one temperature serves all rows.
            flat = not own and x.dim() == 3 and len(x) < len(changes)
            z = x.reshape(len(changes), -1, x.shape[-1]) if flat else x.expand(len(changes), *x.shape[1:])
            z = z.clone()
            for row, edit in of_path:
                z[row : row + 1] = edit(z[row : row + 1])
            return z.reshape(x.shape) if flat else z

        return edit_each

    return {path: in_rows(of_path) for path, of_path in edits.items()}
