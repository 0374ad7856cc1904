"""Beam search with nothing thrown away: every candidate of every step, where it came from, and what became of it.

It finds what `model.generation.search.beam_search` finds for one sentence; that one is for
translating, this one for looking.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.generation.search import Hypothesis, length_limits, length_penalty
from model.hooks import recording
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.layers import LayerCache
from model.network.masks import padding_mask
from model.trace import Array

FATES = ("kept", "finished", "pruned", "left")
"""kept: goes on; finished: ended, by </s> or at the length limit; pruned: not among the best; left: would have gone on,
but enough sentences were finished"""


@dataclass(frozen=True)
class Node:
    """One candidate: a prefix of the translation that ends with `token`."""

    step: int
    """from 0; the prefix has step + 1 tokens"""
    rank: int
    """among the candidates of its step, 0 the most probable prefix"""
    parent: int
    """index, in the tree, of the prefix that it goes on from; -1 at step 0"""
    token: int
    token_log_probability: float
    """log p(token | parent's prefix, source), natural logarithm"""
    log_probability: float
    """log p(prefix | source): the parent's and the token's"""
    fate: str
    """one of FATES"""


@dataclass(frozen=True)
class BeamStep:
    """What one step of the search considered."""

    nodes: tuple[Node, ...]
    """the 2 * beam_size most probable continuations of all beams, best first"""
    patterns: Array
    """(layer, beam, head, source position): the cross-attention weights with which each beam chose its next token"""
    beams: tuple[int, ...]
    """for each beam of `patterns` the index of its prefix in the tree; -1 for the empty prefix"""


@dataclass(frozen=True)
class BeamTree:
    """A whole search; nodes are numbered through, step by step."""

    beam_size: int
    nodes: tuple[Node, ...]
    ends: tuple[int, ...]
    """indices of the finished nodes, in the order in which they were found"""
    attention: tuple[Array, ...]
    """for each of `ends`: (layer, head, step, source position), cross-attention weights along its back-pointers"""

    def path(self, node: int) -> tuple[int, ...]:
        """Indices of the nodes from step 0 to `node`, by its back-pointers."""
        found = []
        while node >= 0:
            found.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(found))

    def hypothesis(self, end: int, alpha: float) -> Hypothesis:
        """The prefix that ends at node `end`, with its score."""
        tokens = tuple(self.nodes[node].token for node in self.path(end))
        total = self.nodes[end].log_probability
        return Hypothesis(tokens, total, total / length_penalty(len(tokens), alpha))

    def ranking(self, alpha: float) -> list[int]:
        """Places in `ends`, best score first; the first `beam_size` are what `beam_search` returns.

        The length penalty only ranks what is finished: prefixes that compete within a step are equally long.
        """
        scores = [self.hypothesis(end, alpha).score for end in self.ends]
        return sorted(range(len(scores)), key=lambda place: -scores[place])


def beam_tree(model: Transformer, source: list[int], beam_size: int) -> BeamTree:
    """Search translations of `source` (ids that end with </s>) and keep the whole tree.

    Interventions of a surrounding `applied` block take part; they must be position-free, as steps are cached.
    """
    nodes: list[Node] = []
    seen: dict[int, Array] = {}
    for step in beam_steps(model, source, beam_size):
        seen |= {beam: step.patterns[:, place] for place, beam in enumerate(step.beams)}
        nodes += step.nodes
    ends = tuple(index for index, node in enumerate(nodes) if node.fate == "finished")
    tree = BeamTree(beam_size, tuple(nodes), ends, ())
    # What chose a node is how its parent looked at the source.
    attention = tuple(np.stack([seen[nodes[node].parent] for node in tree.path(end)], axis=2) for end in ends)
    return BeamTree(beam_size, tree.nodes, ends, attention)


@torch.inference_mode()
def beam_steps(model: Transformer, source: list[int], beam_size: int) -> Iterator[BeamStep]:
    """The search, a step at a time, with the paper's bound on length (section 6.1); `source` ends with </s>."""
    state = _State.start(model, source, beam_size)
    (limit,) = length_limits(model, [source])
    first, finished = 0, 0
    while True:
        following, patterns = state.next_token()
        candidates = state.scores[:, None] + following
        values, indices = candidates.flatten().topk(2 * beam_size)
        found = [
            (value, *divmod(index, following.shape[1]))
            for value, index in zip(values.tolist(), indices.tolist(), strict=True)
            if value > -np.inf
        ]
        step = state.prefixes.shape[1] - 1
        fates = _fates([word for _, _, word in found], beam_size, last=step + 1 >= limit)
        finished += fates.count("finished")
        over = finished >= beam_size or "kept" not in fates
        fates = ["left" if over and fate == "kept" else fate for fate in fates]
        yield BeamStep(
            nodes=tuple(
                Node(step, rank, state.beams[beam], word, float(following[beam, word]), value, fate)
                for rank, ((value, beam, word), fate) in enumerate(zip(found, fates, strict=True))
            ),
            patterns=patterns[:, : 1 if step == 0 else beam_size],
            beams=state.beams[: 1 if step == 0 else beam_size],
        )
        if over:
            return
        kept = [rank for rank, fate in enumerate(fates) if fate == "kept"]
        state = state.grown([found[rank] for rank in kept], tuple(first + rank for rank in kept))
        first += len(found)


def _fates(words: Sequence[int], beam_size: int, last: bool) -> list[str]:
    """An end counts among the first `beam_size` candidates; of the others the first `beam_size` go on."""
    fates, going_on = [], 0
    for rank, word in enumerate(words):
        if word == EOS:
            fates.append("finished" if rank < beam_size else "pruned")
        else:
            going_on += 1
            fates.append(("finished" if last else "kept") if going_on <= beam_size else "pruned")
    return fates


@dataclass
class _State:
    """The beams between two steps: one row each."""

    model: Transformer
    memory: Tensor
    src_mask: Tensor
    cache: list[LayerCache]
    prefixes: Tensor
    """(beam, length), <s> first"""
    scores: Tensor
    """(beam,): log-probability of each prefix"""
    beams: tuple[int, ...]
    """the tree's index of each prefix"""

    @classmethod
    def start(cls, model: Transformer, source: list[int], beam_size: int) -> "_State":
        device = model.output.weight.device
        src = pad_batch([source], device)
        src_mask = padding_mask(src)
        memory = model.encode(src, src_mask).repeat_interleave(beam_size, 0)
        # At the first step all beams are the same empty prefix: only one of them speaks.
        scores = torch.full((beam_size,), -torch.inf, device=device)
        scores[0] = 0.0
        prefixes = torch.full((beam_size, 1), BOS, device=device)
        src_mask = src_mask.repeat_interleave(beam_size, 0)
        return cls(model, memory, src_mask, model.new_cache(), prefixes, scores, (-1,) * beam_size)

    def next_token(self) -> tuple[Tensor, Array]:
        """log p(next token | prefix), (beam, vocabulary), and the cross-attention weights it was read with."""
        check_cancelled()
        paths = [path for (kind, _), (path, _) in self.model.attentions().items() if kind == "cross"]
        position = self.prefixes.shape[1] - 1
        with recording(self.model, [f"{path}.pattern" for path in paths]) as activations:
            logits = self.model.decode_next(self.prefixes[:, -1], position, self.memory, self.src_mask, self.cache)
        patterns = torch.stack([activations[f"{path}.pattern"][:, :, 0] for path in paths])
        forbidden = torch.tensor([PAD, UNK, BOS], device=logits.device)
        following = logits.float().index_fill(-1, forbidden, -torch.inf).log_softmax(-1)
        return following, patterns.cpu().numpy()

    def grown(self, kept: Sequence[tuple[float, int, int]], beams: tuple[int, ...]) -> "_State":
        """The beams that go on: (log-probability, row, next token) each."""
        device = self.prefixes.device
        rows, words = (torch.tensor([found[i] for found in kept], device=device) for i in (1, 2))
        for layer in self.cache:
            layer.reorder(rows)
        prefixes = torch.cat([self.prefixes[rows], words[:, None]], dim=1)
        scores = torch.tensor([found[0] for found in kept], device=device)
        return _State(self.model, self.memory[rows], self.src_mask[rows], self.cache, prefixes, scores, beams)
