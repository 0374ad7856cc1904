"""What became of each step of a run: read, different from what the equation gives, or unreadable.

A step is read where its equation, computed in double precision from what is shown before it, gives what the model
computed on this very run.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from model.checkpoints.checkpoint import Checkpoint
from model.proof.checks import CHAIN_TOLERANCE, Link, attention_links, chain
from model.trace import Trace

READ, UNREAD = "read", "could not be read"
MATRICES = ("q", "k", "v", "out")
"""steps of an attention that need its matrices"""


@dataclass(frozen=True)
class Step:
    """One step of a run and its state."""

    place: str
    """path of the attention or sub-layer, the stack, or logits"""
    name: str
    """what the step computes, such as q"""
    difference: float | None
    """largest difference of what its equation gives from what the model computed, relative to the largest number of
    the matrix where that is above 1; None: it could not be read"""

    @property
    def read(self) -> bool:
        return self.difference is not None and self.difference <= CHAIN_TOLERANCE

    @property
    def state(self) -> str:
        """In words: read, differs by a number, or could not be read."""
        if self.difference is None:
            return UNREAD
        return READ if self.read else f"differs by {self.difference:.2g}"


@torch.inference_mode()
def verify_steps(checkpoint: Checkpoint, trace: Trace) -> tuple[Step, ...]:
    """Every step of the run with its state, in the order of computation; last, those that could not be read."""
    found = _states(chain(checkpoint, trace))
    known = {(step.place, step.name) for step in found}
    return (*found, *(Step(*place, None) for place in _expected(checkpoint, trace) if place not in known))


@torch.inference_mode()
def verify_attention(checkpoint: Checkpoint, trace: Trace, kind: str, layer: int) -> tuple[Step, ...]:
    """The steps of one attention with their states."""
    path, _ = checkpoint.model.attentions()[kind, layer]
    found = _states(attention_links(checkpoint, trace, kind, layer))
    known = {step.name for step in found}
    return (*found, *(Step(path, name, None) for name in MATRICES if name not in known))


def states_in_words(steps: Sequence[Step]) -> str:
    """One line: "all read", or each other state with its steps."""
    others = [f"{step.name}: {step.state}" for step in steps if not step.read]
    return "; ".join(others) or "all read"


def _states(links: Iterable[Link]) -> list[Step]:
    """One step for all links that lead to it, with the largest of their differences."""
    found: dict[tuple[str, str], float] = {}
    for link in links:
        place = link.place, link.step
        found[place] = max(found.get(place, 0.0), link.error)
    return [Step(*place, error) for place, error in found.items()]


def _expected(checkpoint: Checkpoint, trace: Trace) -> Iterator[tuple[str, str]]:
    """Place and name of the steps that every Transformer has."""
    for name, stream in trace.streams.items():
        yield f"{name} input", "embedding"
        if not stream.sublayers:
            yield name, "residual"
    for path, _ in checkpoint.model.attentions().values():
        yield from ((path, name) for name in (*MATRICES, "scores"))
    if trace.logits.size:
        yield "logits", "logits"
