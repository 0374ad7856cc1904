"""A window that slides over a long text, with and without the first tokens (Xiao et al. 2024, StreamingLLM).

A streaming model keeps the keys and values of the last tokens only. Its positions are those in the cache, so that no
distance is larger than the cache: RoPE turns a query and a key by the difference of their positions, so within the
window that changes nothing, and for the first tokens the distance stops growing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from model.analysis.long.long_run import read_ids, why_no_long_run, with_positions
from model.background.layer_size import LayerSize
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit, editing, recording
from model.language import Refusal, sentence
from model.network.attention import MultiHeadAttention
from model.network.masks import causal_mask
from model.network.network import Network
from model.network.rotary import rotate
from model.trace import Array

MOST_TOKENS = 2048
"""All weights of one layer exist at a time."""
SINKS = 4
"""first tokens that are kept, as in the paper"""


@dataclass(frozen=True)
class CachedTokens:
    """What a query sees."""

    name: str
    window: int | None
    """keys less than this many positions away, itself included; None: all earlier ones"""
    sinks: int = 0
    """first tokens that it sees besides"""
    in_cache: bool = True
    """whether positions are those in the cache; if not, those in the text"""


def why_no_streaming(checkpoint: Checkpoint) -> str:
    """Why `stream` does not work for this model, in a sentence; empty if it does."""
    if reason := why_no_long_run(checkpoint):
        return reason
    if not all(kind.causal for kind in checkpoint.kinds):
        return sentence(
            "A model that also reads what follows writes nothing from left to right, so there is no cache to cut."
        )
    if checkpoint.config.positions != "rope":
        return sentence("Positions in the cache need a model that rotates queries and keys.")
    return ""


def strategies(window: int) -> tuple[CachedTokens, ...]:
    """What is compared: everything, a window, and the same number of keys with the first tokens among them."""
    kept = {"first": SINKS, "last": window - SINKS}
    return (
        CachedTokens(sentence("all tokens"), None),
        CachedTokens(sentence("the last {last}", last=window), window),
        CachedTokens(
            sentence("the first {first} and the last {last}, positions of the text", **kept), kept["last"], SINKS, False
        ),
        CachedTokens(
            sentence("the first {first} and the last {last}, positions in the cache", **kept), kept["last"], SINKS
        ),
    )


@torch.inference_mode()
def stream(checkpoint: Checkpoint, text: str, kept: CachedTokens) -> Array:
    """(position - 1,): log p of each token in nats from the second on, when each query sees what `kept` says.

    Raises:
        ValueError: the text is blank, or the model is none that can stream (`why_no_streaming`).
    """
    if reason := why_no_streaming(checkpoint):
        raise Refusal(reason)
    ids = read_ids(checkpoint, text)[:MOST_TOKENS]
    model = with_positions(checkpoint.model, len(ids))
    with _seeing(model, kept, len(ids)):
        logits = model(torch.tensor([ids], device=checkpoint.device))[0, :-1]
    found = logits.double().log_softmax(-1)
    return found[torch.arange(len(ids) - 1), ids[1:]].cpu().numpy()


def compare(checkpoint: Checkpoint, text: str, window: int) -> Iterator[tuple[float, dict[str, Array]]]:
    """The share that is done, and the log probabilities by name of the strategy."""
    found: dict[str, Array] = {}
    chosen = strategies(window)
    for number, kept in enumerate(chosen, start=1):
        check_cancelled()
        found[kept.name] = stream(checkpoint, text, kept)
        yield number / len(chosen), dict(found)


def cache_bytes(checkpoint: Checkpoint, tokens: int, width: int = 4) -> int:
    """Of the keys and values of so many tokens in all layers."""
    layers = sum(len(kind.layers) for kind in checkpoint.kinds)
    return layers * LayerSize.of(checkpoint.config).cached * tokens * width


def kept_keys(kept: CachedTokens, n: int) -> Tensor:
    """bool (query, key)"""
    seen = causal_mask(n)[0, 0]
    if kept.window is not None:
        i, j = torch.arange(n)[:, None], torch.arange(n)
        seen = seen & ((i - j < kept.window) | (j < kept.sinks))
    return seen


@contextmanager
def _seeing(model: Network, kept: CachedTokens, n: int) -> Iterator[None]:
    if kept.window is None:
        yield
        return
    attentions: Sequence[tuple[str, MultiHeadAttention]] = list(model.attentions().values())
    seen = kept_keys(kept, n).to(model.output.weight.device)
    moved = kept.sinks and kept.in_cache and n > kept.window + kept.sinks
    read = [f"{path}.{name}_pre" for path, _ in attentions for name in "qk"] if moved else []
    with recording(model, read) as found:
        edits: dict[str, Edit] = {f"{path}.mask": lambda mask: mask & seen for path, _ in attentions}
        if moved:
            for path, module in attentions:
                edits[f"{path}.scores"] = _in_cache(module, found, path, kept)
        with editing(model, edits):
            yield


def _in_cache(module: MultiHeadAttention, found: Mapping[str, Tensor], path: str, kept: CachedTokens) -> Edit:
    """An edit of q k^T: the first tokens stand at the beginning of the cache, however long the text has become."""

    def edit(scores: Tensor) -> Tensor:
        rotary, last = module.rotary, kept.window + kept.sinks - 1  # the query's position in a full cache
        q = found[f"{path}.q_pre"] if not module.qk_norm else module.q_norm(found[f"{path}.q_pre"])
        k = found[f"{path}.k_pre"] if not module.qk_norm else module.k_norm(found[f"{path}.k_pre"])
        late = q[:, :, last + 1 :]
        late = rotate(late, rotary.cos[last], rotary.sin[last])
        first = rotary(k[:, :, : kept.sinks])
        first = first.repeat_interleave(module.n_heads // module.n_kv_heads, dim=1)
        scores = scores.clone()
        scores[:, :, last + 1 :, : kept.sinks] = late @ first.transpose(-2, -1)
        return scores

    return edit
