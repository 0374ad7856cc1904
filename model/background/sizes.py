"""The number of parameters and multiply-adds of a Transformer, from its configuration alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.background.layer_size import LayerSize
from model.network.config import TransformerConfig
from model.network.families import new_network
from model.trace import Array


@dataclass(frozen=True)
class Work:
    """Multiply-adds of one part of the model, summed over its layers."""

    layers: int
    queries: int
    """positions it processes"""
    keys: int
    """positions each of them attends to; 0 outside attention"""
    scores: int
    """of Q K^T, all heads"""
    weighted: int
    """of pattern V, all heads"""
    weights: int
    """of products with learned matrices: W_Q, W_K, W_V and W_O, or W_1 and W_2, or the output matrix"""

    @property
    def total(self) -> int:
        return self.scores + self.weighted + self.weights


def count_parameters(config: TransformerConfig) -> dict[str, int]:
    """`parameters_by_part` of a model with this configuration, built on PyTorch's meta device, without memory."""
    with torch.device("meta"):
        return new_network(config).parameters_by_part()


def multiply_adds(config: TransformerConfig, n_src: int, n_tgt: int) -> dict[str, Work]:
    """Multiply-adds of the matrix products in one teacher-forced pass over one sentence.

    Masked cells are counted, because the model computes them before masking. Terms of order n d or h n^2 are left out:
    biases, norms, residuals and the softmax.

    Args:
        config: of the model.
        n_src: tokens that the encoder reads, including the end token; 0 in a model without encoder.
        n_tgt: tokens that the decoder reads, including the start token; 0 in a model without decoder.

    Returns:
        by part: encoder_self, decoder_self, cross, encoder_feed_forward, decoder_feed_forward, output; 0 for parts that
        the model does not have.

    Raises:
        ValueError: a length is below 1.
    """
    if (config.n_encoder_layers and n_src < 1) or (config.n_decoder_layers and n_tgt < 1):
        raise ValueError(f"a sentence has at least one token, got {n_src} and {n_tgt}")
    encoder, decoder, d_model = config.n_encoder_layers, config.n_decoder_layers, config.d_model
    crossed = decoder if encoder else 0
    matrices = 3 if config.gated else 2
    vocabulary = (n_tgt or n_src) * d_model * config.vocab_size
    return {
        "encoder_self": _attention(LayerSize.of(config), encoder, n_src, n_src),
        "decoder_self": _attention(LayerSize.of(config), decoder, n_tgt, n_tgt),
        "cross": _attention(LayerSize.of(config, cross=True), crossed, n_tgt, n_src),
        "encoder_feed_forward": Work(encoder, n_src, 0, 0, 0, encoder * matrices * n_src * d_model * config.d_ff),
        "decoder_feed_forward": Work(decoder, n_tgt, 0, 0, 0, decoder * matrices * n_tgt * d_model * config.d_ff),
        "output": Work(1, n_tgt, 0, 0, 0, vocabulary),
    }


def self_attention_layer(config: TransformerConfig, n: int) -> Work:
    """Multiply-adds of one layer of self-attention over n tokens, with its own h, h_kv, d_k and d_v."""
    return _attention(LayerSize.of(config), 1, n, n)


def work_by_length(config: TransformerConfig, lengths: Sequence[int]) -> dict[str, Array]:
    """Multiply-adds of one sentence, source and target equally long, at each of the lengths.

    Returns:
        n: (length,); multiply_adds: (4, length), of Q K^T and pattern V, of the projections, of the feed-forwards and
        of the output.
    """
    texts = (bool(config.n_encoder_layers), bool(config.n_decoder_layers))
    works = [multiply_adds(config, *(n * there for there in texts)) for n in lengths]
    attentions = ("encoder_self", "decoder_self", "cross")
    curves = (
        [sum(work[part].scores + work[part].weighted for part in attentions) for work in works],
        [sum(work[part].weights for part in attentions) for work in works],
        [work["encoder_feed_forward"].total + work["decoder_feed_forward"].total for work in works],
        [work["output"].total for work in works],
    )
    return {"n": np.array(lengths), "multiply_adds": np.array(curves)}


def break_even(config: TransformerConfig) -> float:
    """Length n of source and target at which Q K^T and pattern V cost as much as all projections and feed-forwards.

    The former grow with n^2 and the latter with n, so n is the ratio of the two at n = 1.
    """
    works = [work for part, work in multiply_adds(config, 1, 1).items() if part != "output"]
    return sum(work.weights for work in works) / sum(work.scores + work.weighted for work in works)


def _attention(size: LayerSize, layers: int, queries: int, keys: int) -> Work:
    pairs = layers * size.heads * queries * keys
    return Work(layers, queries, keys, pairs * size.d_k, pairs * size.d_v, layers * size.projections(queries, keys))
