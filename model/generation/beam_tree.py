"""Beam search with its whole tree: every candidate of every step, its parent, and what became of it.

Same steps as `model.generation.search.beam_search`, for one sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.generation.search import Hypothesis, beam_steps, hypothesis
from model.generation.steps import EXTRA_LENGTH, ids_to_decode_from, length_limits, steps_of
from model.hooks import recording
from model.interventions import applied
from model.network.network import Network
from model.trace import Array, Trace


@dataclass(frozen=True)
class Node:
    """One candidate: a prefix of the written text, ending with `token`."""

    step: int
    """0-based; the prefix has step + 1 tokens"""
    rank: int
    """among the candidates of its step; 0 is the most probable prefix"""
    parent: int
    """index in the tree of the prefix it extends; -1 at step 0"""
    token: int
    token_log_probability: float
    """log p(token | parent's prefix, source), natural logarithm"""
    log_probability: float
    """log p(prefix | source): the parent's plus the token's"""
    fate: str
    """one of `model.generation.search.FATES`"""


@dataclass(frozen=True)
class BeamTree:
    """A complete search; nodes are numbered consecutively, step by step."""

    beam_size: int
    nodes: tuple[Node, ...]
    ends: tuple[int, ...]
    """indices of the finished nodes, in the order they were found"""
    attention: tuple[Array, ...]
    """for each of `ends`: (layer, head, step, key), the weights along its back-pointers: of cross-attention, or of a
    language model's self-attention, 0 for tokens that were not yet written"""

    def path(self, node: int) -> tuple[int, ...]:
        """Indices of the nodes from step 0 to `node`, by its back-pointers."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(nodes))

    def hypothesis(self, end: int, alpha: float) -> Hypothesis:
        """The prefix that ends at node `end`, with its score."""
        return hypothesis([self.nodes[node].token for node in self.path(end)], self.nodes[end].log_probability, alpha)

    def ranking(self, alpha: float) -> list[int]:
        """Positions in `ends`, best score first; the first `beam_size` are what `beam_search` returns.

        The length penalty ranks finished sentences only: prefixes that compete within a step are equally long.
        """
        scores = [self.hypothesis(end, alpha).score for end in self.ends]
        return sorted(range(len(scores)), key=lambda place: -scores[place])


@torch.inference_mode()
def beam_tree(
    model: Network,
    source: Sequence[int],
    beam_size: int,
    max_new_tokens: int = EXTRA_LENGTH,
    use_cache: bool = True,
) -> BeamTree:
    """Search translations or continuations of `source` and keep every candidate of every step.

    Interventions of a surrounding `applied` block take part; with the cache they must be position-free. A continuation
    is at most `max_new_tokens` long; a translation's length follows from its source. Other arguments as in
    `beam_search`.
    """
    read_kind = "cross" if model.config.n_encoder_layers else "decoder_self"
    paths = [f"{path}.pattern" for (kind, _), (path, _) in model.attentions().items() if kind == read_kind]
    nodes: list[Node] = []
    parents = [-1]
    """index in `nodes` of each row's prefix"""
    read: dict[int, Array] = {}
    """by prefix: (layer, head, key), the weights with which its next token was chosen"""
    with recording(model, paths) as activations:
        steps = steps_of(model)(model, [source], beam_size, use_cache)
        limits = length_limits(model, [source], max_new_tokens)
        for step, (candidates, following) in enumerate(beam_steps(steps, limits, beam_size)):
            weights = torch.stack([activations[path][:, :, -1] for path in paths], dim=1).cpu().numpy()
            read |= zip(parents, weights, strict=False)
            first = len(nodes)
            nodes += [
                Node(step, rank, parents[row], token, float(following[row, token]), total, fate)
                for rank, (row, token, total, fate) in enumerate(candidates[0])
            ]
            parents = [index for index in range(first, len(nodes)) if nodes[index].fate == "kept"]
    ends = tuple(index for index, node in enumerate(nodes) if node.fate == "finished")
    tree = BeamTree(beam_size, tuple(nodes), ends, ())
    # A node was chosen with the weights that its parent's row read.
    attention = tuple(_stack_rows([read[nodes[node].parent] for node in tree.path(end)]) for end in ends)
    return replace(tree, attention=attention)


def _stack_rows(rows: Sequence[Array]) -> Array:
    """Rows of weights, (layer, head, key), as (layer, head, step, key); keys that a row does not have yet get 0."""
    n_keys = rows[-1].shape[-1]
    padded = [np.pad(row, ((0, 0), (0, 0), (0, n_keys - row.shape[-1]))) for row in rows]
    return np.stack(padded, axis=2)


def search_again(model: Network, trace: Trace, beam_size: int, max_new_tokens: int = EXTRA_LENGTH) -> BeamTree:
    """The complete search from a trace's source or prompt, with its interventions."""
    cached = all(change.position_free for change in trace.interventions)
    with applied(model, trace.interventions):
        return beam_tree(model, ids_to_decode_from(model, trace), beam_size, max_new_tokens, cached)


def tree_arrays(tree: BeamTree) -> dict[str, Array]:
    """An array for each field of the nodes, and the attention of each finished sentence."""
    columns = {name: np.array([getattr(node, name) for node in tree.nodes]) for name in Node.__annotations__}
    return columns | {f"attention_{number}": weights for number, weights in enumerate(tree.attention)}
