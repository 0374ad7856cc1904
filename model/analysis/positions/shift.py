"""What a text loses when all of its tokens stand further to the right than any text in training."""

from collections.abc import Mapping, Sequence

from model.checkpoints.checkpoint import Checkpoint
from model.hooks import editing
from model.network.embedding import sinusoids
from model.network.network import EMBEDDINGS
from model.trace import Trace


def shift_positions(checkpoint: Checkpoint, trace: Trace, shifts: Sequence[int]) -> Mapping[int, float]:
    """Move every token of every stack to a later position: the change of log p in nats per token, by shift.

    Only for models that add sinusoids (paper, section 3.5): those of positions beyond `max_len` are computed here.
    """
    width = checkpoint.model.config.d_model
    found = {}
    for shift in shifts:
        edits = {
            f"{EMBEDDINGS[name]}.positional": lambda old, shift=shift: sinusoids(len(old) + shift, width)[shift:].to(
                old
            )
            for name in trace.streams
        }
        with editing(checkpoint.model, edits):
            after = checkpoint.rerun(trace, trace.interventions)
        found[shift] = (after.log_probability - trace.log_probability) / len(trace.next_ids)
    return found
