"""What a step of decoding costs with and without the cache of keys and values: counted, and measured."""

import time
from collections.abc import Sequence

import torch

from model.background.sizes import multiply_adds
from model.cancel import check_cancelled
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, PAD, UNK, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask

DECODER_PARTS = ("decoder_self", "cross", "decoder_feed_forward", "output")


def uncached_step(config: TransformerConfig, n_src: int, length: int) -> int:
    """Multiply-adds of the matrix products of one step that reads the whole prefix of `length` tokens again."""
    works = multiply_adds(config, n_src, length)
    return sum(works[part].total for part in DECODER_PARTS)


def cached_step(config: TransformerConfig, n_src: int, length: int) -> int:
    """Multiply-adds of the matrix products of one step that reads the newest of `length` tokens alone.

    A layer has 4 d^2 of self-attention (W_Q, W_K, W_V, W_O) and 2 d^2 of cross-attention (W_Q, W_O) for one position,
    2 d (length + n_src) of Q K^T and pattern V, and 2 d d_ff; the output has d times the vocabulary. The memory's keys
    and values, 2 n_src d^2 a layer, are projected at the first step only.
    """
    d_model = config.d_model
    layer = 6 * d_model**2 + 2 * d_model * (length + n_src) + 2 * d_model * config.d_ff
    if length == 1:
        layer += 2 * n_src * d_model**2
    return config.n_decoder_layers * layer + d_model * config.vocab_size


@torch.inference_mode()
def timed_steps(
    model: Transformer, source: Sequence[int], steps: int, use_cache: bool
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Greedy decoding of `steps` tokens, each step by the clock; </s> is forbidden so that the sentence grows that far.

    Args:
        model: in evaluation mode.
        source: ids that end with </s>.
        steps: how many tokens to write; fewer where the model's positions end.
        use_cache: False computes every step from its whole prefix again.

    Returns:
        the tokens, and the seconds that each took.
    """
    device = model.output.weight.device
    src = pad_batch([list(source)], device)
    src_mask, cache = padding_mask(src), model.new_cache()
    memory = model.encode(src, src_mask)
    prefix = torch.full((1, 1), BOS, device=device)
    forbidden = torch.tensor([PAD, UNK, BOS, EOS], device=device)
    tokens: list[int] = []
    seconds: list[float] = []
    for position in range(min(steps, model.config.max_len - 1)):
        check_cancelled()
        started = time.perf_counter()
        if use_cache:
            logits = model.decode_next(prefix[:, -1], position, memory, src_mask, cache)
        else:
            logits = model.decode(prefix, memory, src_mask)[:, -1]
        best = logits.index_fill(-1, forbidden, -torch.inf).argmax(-1)
        tokens.append(int(best))  # waits for the device, so the clock sees the whole step
        seconds.append(time.perf_counter() - started)
        prefix = torch.cat([prefix, best[:, None]], dim=1)
    return tuple(tokens), tuple(seconds)
