"""Patching between two runs: which activations of one, put into the other, restore how much of their difference.

Activation patching (Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis";
Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2; Heimersheim and Nanda 2024, "How to Use
and Interpret Activation Patching").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from model.analysis.sweep import is_causal, sweep
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import has_hook_point
from model.interventions import Patch, PatchFrom
from model.language import Refusal
from model.trace import Array, StackName, Trace, log_probabilities
from model.tracer import record

Pairs = tuple[tuple[int, int], ...]
"""(position in the run that is patched, position in the run that the values come from)"""
LEAST = 0.01
"""nats: where two runs differ by less, there is nothing to restore"""


def read_activations(opened: Checkpoint, trace: Trace, paths: Sequence[str]) -> dict[str, Array]:
    """The activations of a run at some of its hook points, without batch, as a recording of all gives them.

    Raises:
        ValueError: the model has no such hook point, or the run gives nothing there.
    """
    texts, found = [stream.tokens.ids for stream in trace.streams.values()], list(dict.fromkeys(paths))
    read = record(opened.model, texts, trace.interventions, found)
    for path in found:
        if path not in read:
            raise Refusal(
                "this run gives nothing at {path}: the model has the hook point, but does not call it", path=path
            )
    return read


def patch_from(
    opened: Checkpoint, other: Trace, path: str, positions: Pairs | None = None, head: int | None = None
) -> Patch:
    """The patch that puts another run's activation at a hook point; a link can hold it by that run's texts.

    `opened` is the model of both runs; `positions` and `head` are as of `Patch`.

    Raises:
        ValueError: as of `read_activations` and `Patch`.
    """
    values = read_activations(opened, other, [path])[path]
    return Patch(path, values, positions, head, _origin(other, path, positions, head))


def resolve_patch(opened: Checkpoint, change: PatchFrom) -> Patch:
    """Run the text of a patch, with the model as trained, and take its values from there.

    Raises:
        ValueError: the text cannot be read, or has no such activation or position.
    """
    other = opened.trace(change.source, change.target)
    return Patch(
        change.path,
        read_activations(opened, other, [change.path])[change.path],
        change.positions,
        change.head,
        change,
    )


def _origin(other: Trace, path: str, positions: Pairs | None, head: int | None) -> PatchFrom | None:
    """What a link says; None of a run with changes of its own, or of a chat, which no text alone repeats."""
    if other.interventions or not isinstance(other.prompt, str):
        return None
    return PatchFrom(path, other.source, other.written or None, positions, head)


def correspond(left: Sequence[str], right: Sequence[str], replaced: bool = True) -> Pairs:
    """Positions of two texts that belong together: equal tokens, as difflib matches them; with `replaced` also tokens
    that stand in one another's place, where equally many do."""
    pairs: list[tuple[int, int]] = []
    for operation, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if operation == "equal" or (replaced and operation == "replace" and j - i == m - k):
            pairs += zip(range(i, j), range(k, m), strict=True)
    return tuple(pairs)


@dataclass(frozen=True)
class Question:
    """What is to be restored: log p of one token after one position."""

    row: int
    """of the run that is patched"""
    other_row: int
    """of the run that the values come from"""
    token: int
    """id"""

    def score(self, trace: Trace) -> float:
        """log p in the run that is patched, in nats."""
        return self.under(trace.logits[self.row])

    def under(self, logits: Array) -> float:
        """log p in nats under the logits (vocabulary,) of the row."""
        return float(log_probabilities(logits)[self.token])

    def goal(self, other: Trace) -> float:
        """log p in the run that the values come from."""
        return self.under(other.logits[self.other_row])

    def is_open(self, trace: Trace, other: Trace) -> bool:
        """Whether the two runs differ enough that there is something to restore."""
        return abs(self.goal(other) - self.score(trace)) >= LEAST


@dataclass(frozen=True)
class Restored:
    """By what was patched, the share of the difference in log p that it restores: 0 as before, 1 as in the other run.

    NaN where nothing corresponds, or where it has not been run yet.
    """

    before: float
    """log p in the run that is patched"""
    goal: float
    """in the run that the values come from"""
    streams: Mapping[StackName, Array]
    """(layer, position): the residual stream before the layer, at one position"""
    heads: Mapping[str, Array]
    """by kind of attention, (layer, head): z of the head, at all positions that correspond"""


def restored(
    opened: Checkpoint, trace: Trace, other: Trace, pairs: Mapping[StackName, Pairs], question: Question
) -> Iterator[tuple[float, Restored]]:
    """Patch each layer and position, and each layer and head, one at a time, of `trace` with the values of `other`;
    `pairs` are by stack the positions that correspond. Yields the share that is done, and what is known so far, the
    whole last.

    Raises:
        ValueError: the two runs do not differ in what is to be restored.
    """
    before, goal = question.score(trace), question.goal(other)
    if not question.is_open(trace, other):
        raise Refusal(
            "log p differs by less than {least} nats between the two runs: there is nothing to restore.", least=LEAST
        )
    layers = {name: list(range(len(opened.model.stacks[name].layers))) for name in pairs}
    layers |= {kind.name: list(kind.layers) for kind in opened.kinds}
    result = Restored(
        before,
        goal,
        {name: np.full((len(layers[name]), len(trace.streams[name].tokens)), np.nan) for name in pairs},
        {kind.name: np.full((len(kind.layers), kind.heads), np.nan) for kind in opened.kinds},
    )
    # A causal row does not read later ones, so what is patched there changes nothing.
    seen = {
        name: tuple(pair for pair in some if pair[0] <= question.row or not is_causal(trace, name))
        for name, some in pairs.items()
    }
    model, places = opened.model, _places(opened, layers, seen)
    places = [place for place in places if has_hook_point(model, place.path) and model.edits_reach(place.path)]
    values = read_activations(opened, other, [place.path for place in places])
    changes = [(Patch(place.path, values[place.path], place.positions, place.head),) for place in places]
    swept = sweep(opened, trace, changes, question.row)
    for done, (place, (logits,)) in enumerate(zip(places, swept, strict=True), start=1):
        table = result.streams[place.name] if place.head is None else result.heads[place.name]
        column = place.positions[0][0] if place.head is None else place.head
        table[layers[place.name].index(place.layer), column] = (question.under(logits) - before) / (goal - before)
        yield done / len(places), result


def stream_path(stack: StackName, layer: int) -> str:
    """The residual stream before a layer."""
    return f"{stack}.layers.{layer}.self_attn_residual.before"


@dataclass(frozen=True)
class _Place:
    name: str
    """of the stack, or of the kind of attention"""
    layer: int
    path: str
    positions: Pairs
    head: int | None = None


def _places(
    opened: Checkpoint, layers: Mapping[str, Sequence[int]], pairs: Mapping[StackName, Pairs]
) -> Iterator[_Place]:
    for name, some in pairs.items():
        for layer in layers[name]:
            yield from (_Place(name, layer, stream_path(name, layer), (pair,)) for pair in some)
    for kind in opened.kinds:
        for layer in layers[kind.name] if pairs.get(kind.queries) else ():
            path, attention = opened.model.attentions()[kind.name, layer]
            for head in range(attention.n_heads):
                yield _Place(kind.name, layer, f"{path}.z", pairs[kind.queries], head)
