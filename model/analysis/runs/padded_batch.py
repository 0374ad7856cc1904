"""A sentence in a padded batch: what the padding mask changes, which should be nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import torch

from model.checkpoints.checkpoint import Checkpoint
from model.hooks import recording
from model.interventions import applied
from model.language import Refusal
from model.network.batch import pad_batch
from model.network.config import PAD
from model.trace import Array, Trace

RESULTS = ("scaled", "mask", "pattern")
"""what is recorded of each attention, by hook point name"""

_Parts = dict[tuple[str, int], dict[str, Array]]


@dataclass(frozen=True)
class PaddedRun:
    """One attention of a sentence that ran in a batch with a longer one, against the sentence alone.

    Queries are the sentence's own positions; keys are its own, followed by the pads.
    """

    kind: str
    layer: int
    pads: int
    """number of pads, the last keys"""
    companion: tuple[str, ...]
    """pieces of the longer sentence"""
    scaled: Array
    """(heads, query, key + pads): scores / sqrt(d_k), before the mask"""
    mask: Array
    """bool (heads, query, key + pads): True = may attend"""
    pattern: Array
    """(heads, query, key + pads): attention weights"""
    pad_weight: float
    """largest weight on a pad, in any head of any attention"""
    difference: float
    """largest difference between this attention's weights and those of the sentence alone"""
    largest_difference: float
    """the same over all attentions"""
    logits_difference: float
    """largest difference of the logits"""


def room_for_pads(opened: Checkpoint, trace: Trace) -> int:
    """How many pads fit after the trace's longest text."""
    return opened.config.max_len - max(len(stream.tokens) for stream in trace.streams.values())


@torch.inference_mode()
def run_padded(opened: Checkpoint, trace: Trace, kind: str, layer: int, pads: int) -> PaddedRun:
    """Run the trace's sentence again, in a batch of two whose other sentence is `pads` tokens longer.

    The longer sentence repeats the same tokens. The trace's interventions are in effect; a mean over positions
    (`HeadGate`, mode "mean") would count the pads too.

    Raises:
        ValueError: no pads, more than the model's positions hold, or no such attention.
    """
    room = room_for_pads(opened, trace)
    if not 1 <= pads <= room:
        raise Refusal("The batch can take 1 to {room} pads beside this sentence, not {pads}.", room=room, pads=pads)
    own = trace.attention(kind, layer)
    companion, found, logits = _run_batch(opened, trace, pads)
    differences = {
        address: _largest(found[address]["pattern"][..., : len(attention.key_tokens)] - attention.pattern)
        for address, attention in trace.attentions.items()
    }
    return PaddedRun(
        kind=kind,
        layer=layer,
        pads=pads,
        companion=tuple(opened.tokenizer.tokens(companion)),
        **found[own.kind, own.layer],
        pad_weight=max(_largest(parts["pattern"][..., -pads:]) for parts in found.values()),
        difference=differences[kind, layer],
        largest_difference=max(differences.values()),
        logits_difference=_largest(logits - trace.logits),
    )


def _run_batch(opened: Checkpoint, trace: Trace, pads: int) -> tuple[list[int], _Parts, Array]:
    """The longer first text; the sentence's own rows of each result by (kind, layer); its logits."""
    model, longer = opened.model, longer_texts(trace, pads)
    batches = padded_texts(trace, longer, model.output.weight.device, opened.tokenizer.pad)
    paths = {address: path for address, (path, _) in model.attentions().items()}
    points = [f"{path}.{name}" for path in paths.values() for name in RESULTS]
    with applied(model, trace.interventions), recording(model, [*points, "logits"]) as activations:
        model(*batches)
    found = {}
    for address, path in paths.items():
        queries = len(trace.attention(*address).query_tokens)  # the keys' pads stay
        found[address] = {name: activations[f"{path}.{name}"][0, :, :queries].cpu().numpy() for name in RESULTS}
    return longer[0], found, activations["logits"][0, : len(trace.logits)].cpu().numpy()


def longer_texts(trace: Trace, pads: int) -> list[list[int]]:
    """Token ids of a second sentence, `pads` tokens longer, for each stream."""
    return [_repeat(stream.tokens.ids, len(stream.tokens) + pads) for stream in trace.streams.values()]


def padded_texts(
    trace: Trace, longer: Sequence[Sequence[int]], device: torch.device | str, pad: int = PAD
) -> list[torch.Tensor]:
    """What the model reads, (2, position) for each stream: the trace's own text, padded, and the longer one."""
    own = [list(stream.tokens.ids) for stream in trace.streams.values()]
    return [pad_batch([ids, list(other)], device, pad) for ids, other in zip(own, longer, strict=True)]


def _repeat(ids: Sequence[int], length: int) -> list[int]:
    """`ids` repeated up to `length`, with its first token at the start alone and its last one at the end alone."""
    inner = ids[1:-1] or ids[:1]
    return [ids[0], *islice(cycle(inner), length - 2), ids[-1]][:length]


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0))
