"""A run on a long text: its queries and keys are kept, and weights are computed from them on demand.

All weights of a long text would not fit: at 4,096 tokens those of one head take 67 MB.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy, max_pool2d, pad

from model.analysis.heads.many_sentences import read_heads
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import CHARACTERS_PER_TOKEN, Checkpoint
from model.hooks import recording
from model.language import Refusal, sentence
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.network.config import BOS, EOS
from model.network.embedding import InputEmbedding, sinusoids
from model.network.network import Network
from model.network.rotary import Rotary
from model.trace import Array, Kind, Tokens

MOST_TOKENS = 4096
CELLS, SMALL = 256, 96
"""along a side of one head's picture, and of each head in the picture of all"""
CELLS_AT_ONCE = 2**18
"""(head, query, key) of which scores exist at a time: 1 MB of float32, which stays in a processor's cache"""

Place = tuple[str, int]
"""kind and layer"""
Span = tuple[int, int]
"""the first position and the one after the last"""


@dataclass(frozen=True)
class LongRun:
    """One run on a text that may be long: what the weights follow from."""

    tokens: Tokens
    kinds: tuple[Kind, ...]
    positions: int
    """that the model was built for; beyond them only its encoding of positions goes on"""
    scale: float
    """1 / sqrt(d_k) in the paper"""
    window: int | None
    """sliding window of every attention; None: there is none"""
    q: Mapping[Place, Array]
    """(heads, position, d_k), rotated where the model does that"""
    k: Mapping[Place, Array]
    """(heads, position, d_k): a key for each query head"""
    log_probabilities: Array
    """(position,): log p of each token in nats, given those before it, from the second token on; empty where the model
    reads the tokens that follow, too"""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def bytes(self) -> int:
        """Of all queries and keys."""
        return sum(array.nbytes for part in (self.q, self.k) for array in part.values())


def why_no_long_run(checkpoint: Checkpoint) -> str:
    """Why `long_run` does not read this model, in a sentence; empty if it does."""
    if Need.OWN_LAYERS not in checkpoint.features:
        return sentence(
            "Long texts need layers of this project's own code; this model reads as many tokens as its other pages."
        )
    if len(checkpoint.model.stacks) > 1:
        return sentence(
            "A translator was trained on sentences: open a language model or a masked language model for long texts."
        )
    if checkpoint.config.positions == "alibi":
        return sentence(
            "This model adds a bias to its scores, so its weights do not follow from queries and keys alone."
        )
    return ""


def most_tokens(checkpoint: Checkpoint) -> int:
    """Tokens of the longest run: a table of learned positions cannot be continued."""
    return checkpoint.config.max_len if checkpoint.config.positions == "learned" else MOST_TOKENS


@torch.inference_mode()
def long_run(checkpoint: Checkpoint, text: str) -> LongRun:
    """Run a language model or masked language model once over the beginning of `text`, `most_tokens` at most.

    Attention is computed by the fused kernel, which never holds all weights.

    Raises:
        ValueError: the text is blank, or the model is none that can be read so (`why_no_long_run`).
    """
    if reason := why_no_long_run(checkpoint):
        raise Refusal(reason)
    check_cancelled()
    ids = read_ids(checkpoint, text)
    model = with_positions(checkpoint.model, len(ids))
    places = {place: path for place, (path, _) in model.attentions().items()}
    paths = [f"{path}.{name}" for path in places.values() for name in "qk"]
    with recording(model, paths) as found:
        logits = model(torch.tensor([ids], device=checkpoint.device))[0]
    predicted = torch.empty(0)
    if all(kind.causal for kind in model.kinds):
        predicted = -cross_entropy(logits[:-1], torch.tensor(ids[1:]).to(logits.device), reduction="none")
    _, module = next(iter(model.attentions().values()))
    q, k = ({place: found[f"{path}.{name}"][0].cpu().numpy() for place, path in places.items()} for name in "qk")
    return LongRun(
        tokens=checkpoint.tokenizer.describe(ids),
        kinds=model.kinds,
        positions=checkpoint.config.max_len,
        scale=1 / module.divisor,
        window=model.config.window or None,
        q=q,
        k=k,
        log_probabilities=predicted.double().cpu().numpy(),
    )


def read_ids(checkpoint: Checkpoint, text: str) -> list[int]:
    """The tokens of the beginning of `text`, with the special tokens that the model reads, `most_tokens` at most.

    Raises:
        ValueError: the text is blank.
    """
    if not text.strip():
        raise Refusal("The text is empty: there is nothing to look at. Type at least one word.")
    most = most_tokens(checkpoint)
    ids = checkpoint.tokenizer.encode(checkpoint.prepare(text[: CHARACTERS_PER_TOKEN * most]))
    if all(kind.causal for kind in checkpoint.kinds):
        return [BOS, *ids[: most - 1]]
    return [BOS, *ids[: most - 2], EOS]


def with_positions(model: Network, length: int) -> Network:
    """The same network, weights shared, whose rotations or sines and cosines go on to `length` positions."""
    if length <= model.config.max_len:
        return model
    longer = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    longer.config = config = replace(model.config, max_len=length)
    for module in longer.modules():
        if isinstance(module, MultiHeadAttention) and module.rotary:
            module.rotary = Rotary(module.d_k, length, config.rope_base).to(module.w_q.weight.device)
        elif isinstance(module, InputEmbedding) and config.positions == "sinusoidal":
            module.positions = sinusoids(length, config.d_model).to(module.positions)
    return longer


@torch.inference_mode()
def weights(run: LongRun, place: Place, heads: slice, rows: Span, tau: float = 1.0) -> Array:
    """softmax(q k^T scale / tau) of some queries over all keys, as the run computed it: (heads, rows, key)."""
    found = _weights(run, place, heads, rows, tau)
    return pad(found, (0, len(run) - found.shape[-1])).numpy()


@torch.inference_mode()
def scores(run: LongRun, place: Place, head: int, row: int) -> Array:
    """q k^T of one query, unscaled: (key,)."""
    return (run.k[place][head] @ run.q[place][head][row]).astype(np.float32)


def allowed(run: LongRun, place: Place, rows: Span, columns: Span, size: int = 1) -> Array:
    """bool: whether any cell of each square of `size` queries and keys may be attended to."""
    first, last = (np.arange(start, end, size) for start, end in (rows, columns))
    bottom, right = np.minimum(first + size, rows[1]) - 1, np.minimum(last + size, columns[1]) - 1
    seen = np.ones((len(first), len(last)), dtype=bool)
    if _causal(run, place):
        seen &= last[None] <= bottom[:, None]
    if run.window:
        seen &= first[:, None] - right[None] < run.window
        seen &= last[None] - bottom[:, None] < run.window
    return seen


def largest(run: LongRun, place: Place, heads: slice, rows: Span, columns: Span, size: int, tau: float = 1.0) -> Array:
    """The largest weight in each square of `size` queries and keys: (heads, rows / size, columns / size).

    Some queries at a time: no more than CELLS_AT_ONCE weights exist.
    """
    count = len(range(*heads.indices(len(run.q[place]))))
    step = max(CELLS_AT_ONCE // (count * len(run)) // size, 1) * size
    parts = []
    for start in range(rows[0], rows[1], step):
        check_cancelled()
        found = _weights(run, place, heads, (start, min(start + step, rows[1])), tau)
        # Later keys have weights of 0 in a causal attention: they are not computed.
        found = pad(found, (0, len(run) - found.shape[-1]))[..., slice(*columns)]
        parts.append(max_pool2d(found, size, ceil_mode=True) if size > 1 else found)
    return torch.cat(parts, dim=1).numpy()


def pooled_heads(run: LongRun) -> Array:
    """All heads, with no more than SMALL rows and columns each: (layers, heads, rows, columns)."""
    kind, whole, size = run.kinds[0], (0, len(run)), square_size(len(run), SMALL)
    return np.stack([largest(run, (kind.name, each), slice(None), whole, whole, size) for each in kind.layers])


def pooled_head(run: LongRun, place: Place, head: int, tau: float = 1.0) -> Array:
    """One head, with no more than CELLS rows and columns."""
    whole, size = (0, len(run)), square_size(len(run), CELLS)
    return largest(run, place, slice(head, head + 1), whole, whole, size, tau)[0]


@torch.inference_mode()
def weight_on_first(run: LongRun) -> Array:
    """Mean weight that a head's queries after the first give to the first token: (layers, heads).

    Xiao et al. 2024 call such a token a sink.
    """
    step = max(CELLS_AT_ONCE // (run.kinds[0].heads * len(run)), 1)
    found = []
    for layer in run.kinds[0].layers:
        place, total = (run.kinds[0].name, layer), 0.0
        for start in range(1, len(run), step):
            rows = _weights(run, place, slice(None), (start, min(start + step, len(run))), 1.0)
            total = total + rows[..., 0].double().sum(-1)
        found.append(total / (len(run) - 1))
    return torch.stack(found).numpy()


def square_size(length: int, cells: int) -> int:
    """How many neighbours a cell stands for, so that no more than `cells` remain."""
    return -(-length // cells)


def _weights(run: LongRun, place: Place, heads: slice, rows: Span, tau: float) -> torch.Tensor:
    keys = rows[1] if _causal(run, place) else len(run)
    q, k = torch.from_numpy(run.q[place][heads, slice(*rows)]), torch.from_numpy(run.k[place][heads, :keys])
    scaled = q @ k.transpose(-2, -1) * (run.scale / tau)
    if _causal(run, place) or run.window:
        seen = torch.from_numpy(allowed(run, place, rows, (0, keys)))
        scaled.masked_fill_(~seen, -torch.inf)
    return scaled.softmax(-1)


def _causal(run: LongRun, place: Place) -> bool:
    return next(kind.causal for kind in run.kinds if kind.name == place[0])


def example_text(checkpoint: Checkpoint) -> str:
    """The sentences that its heads were measured on and that show a head best, one after the other: a long text.

    Raises:
        ValueError: nothing was measured for this checkpoint.
    """
    return " ".join(dict.fromkeys(sentence for head in read_heads(checkpoint).heads for sentence, _ in head.best))


@dataclass(frozen=True)
class Opened:
    """One head on a window of the text, with what lies outside it."""

    weights: Array
    """(query, key): of the window's queries on the window's keys"""
    before: Array
    """(query,): sum of the weights on the keys before the window"""
    after: Array
    """(query,): on those after it"""


def open_window(run: LongRun, place: Place, head: int, window: Span, tau: float = 1.0) -> Opened:
    """The weights of a window of the text, in which queries and keys are the same tokens; nothing is cut off unsaid."""
    (found,) = weights(run, place, slice(head, head + 1), window, tau)
    start, end = window
    sums = (part.astype(np.float64).sum(-1) for part in (found[:, :start], found[:, end:]))
    return Opened(found[:, start:end], *sums)


@dataclass(frozen=True)
class LongRow:
    """One query of a window, from its scores to its weights; what is outside the window is summed."""

    scores: Array
    """(key,): q k^T over the window's keys"""
    exponentials: Array
    """(key,): exp(scaled / tau - largest of the whole row), 0 where masked"""
    outside: float
    """sum of the exponentials of all keys outside the window"""
    weights: Array
    """(key,): exponentials / sum of all of them"""


def open_row(run: LongRun, place: Place, head: int, row: int, window: Span, tau: float = 1.0) -> LongRow:
    """The steps of the softmax of one query, in double precision; `row` counts in the whole text."""
    q, k = (part[place][head].astype(np.float64) for part in (run.q, run.k))
    products = k @ q[row]
    (seen,) = allowed(run, place, (row, row + 1), (0, len(run)))
    masked = np.where(seen, products * run.scale / tau, -np.inf)
    exponentials = np.exp(masked - masked.max())
    inside = slice(*window)
    total = exponentials.sum()
    within = exponentials[inside]
    return LongRow(products[inside], within, float(total - within.sum()), within / total)


def bits_by_position(log_probabilities: Array, parts: int = 32) -> tuple[Array, Array]:
    """Mean of -log2 p of the tokens at positions 1, 2, ... in about equal parts of a text, `parts` at most: (part,)
    middle positions, and (part,) bits. The logarithms that are given are natural."""
    pieces = np.array_split(np.arange(1, len(log_probabilities) + 1), min(parts, len(log_probabilities)))
    bits = [-log_probabilities[piece - 1].mean() / np.log(2) for piece in pieces]
    return np.array([piece.mean() for piece in pieces]), np.array(bits)


def long_arrays(
    checkpoint: Checkpoint, text: str, kind: str, layer: int, head: int, window: Span, tau: float
) -> dict[str, Array]:
    """What the tab "Long text" draws: all heads and one head, pooled, and a window of that head as it is."""
    run, place = long_run(checkpoint, text), (kind, layer)
    opened = open_window(run, place, head, window, tau)
    return {
        "ids": np.array(run.tokens.ids),
        "all_heads": pooled_heads(run),
        "head": pooled_head(run, place, head),
        "window": opened.weights,
        "before_the_window": opened.before,
        "after_the_window": opened.after,
        "log_probabilities": run.log_probabilities,
    }
