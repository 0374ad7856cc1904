"""With the same weights, our layers compute what PyTorch's own compute."""

import dataclasses

import pytest
import torch
from torch import nn

from model.network.attention import MultiHeadAttention
from model.network.config import TransformerConfig
from model.network.layers import DecoderLayer, EncoderLayer
from tests.model.tiny import randomised

TOLERANCE = 1e-5
CONFIG = TransformerConfig(d_model=64, n_heads=8, d_ff=128, dropout=0.0)
BATCH, QUERIES, KEYS = 3, 9, 11

VARIANTS = [
    pytest.param(dataclasses.replace(CONFIG, norm=norm, activation=activation), id=f"{norm}-norm-{activation}")
    for norm in ("post", "pre")
    for activation in ("relu", "gelu")
]


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Theirs keeps W_Q, W_K and W_V in one matrix, one below the other."""
    theirs.in_proj_weight.data.copy_(torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]))
    theirs.in_proj_bias.data.copy_(torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias]))
    theirs.out_proj.load_state_dict(ours.w_o.state_dict())


def copy_layer(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    copy_attention(ours.self_attn, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    residuals = [ours.self_attn_residual, ours.feed_forward_residual]
    if isinstance(ours, DecoderLayer):
        copy_attention(ours.cross_attn, theirs.multihead_attn)
        residuals.insert(1, ours.cross_attn_residual)
    for number, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())


def their_layer(kind: type[nn.Module], config: TransformerConfig) -> nn.Module:
    layer = kind(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    # In evaluation mode PyTorch's encoder layer takes a fused path of its own; this is its plain one.
    return layer.train().requires_grad_(False)


def inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (batch, query, d_model), memory (batch, key, d_model), and how many keys of each sentence are words."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(BATCH, QUERIES, CONFIG.d_model, generator=generator)
    memory = torch.randn(BATCH, KEYS, CONFIG.d_model, generator=generator)
    words = torch.arange(KEYS) < torch.tensor([KEYS, KEYS - 4, 1])[:, None]
    return x, memory, words


def assert_same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


def test_attention_is_that_of_torch_down_to_each_heads_weights():
    ours, theirs = randomised(MultiHeadAttention(CONFIG)), nn.MultiheadAttention(64, 8, batch_first=True)
    copy_attention(ours, theirs)
    x, memory, words = inputs()
    patterns = []
    ours.pattern.register_forward_hook(lambda _module, _args, pattern: patterns.append(pattern))
    out = ours(x, memory, words[:, None, None, :])
    their_out, their_pattern = theirs(x, memory, memory, key_padding_mask=~words, average_attn_weights=False)
    assert_same(out, their_out)
    assert_same(patterns[0], their_pattern)


@pytest.mark.parametrize("config", VARIANTS)
def test_the_encoder_layer_is_that_of_torch(config):
    ours, theirs = randomised(EncoderLayer(config)), their_layer(nn.TransformerEncoderLayer, config)
    copy_layer(ours, theirs)
    _, x, words = inputs()
    out = ours(x, words[:, None, None, :])
    assert_same(out, theirs(x, src_key_padding_mask=~words))


@pytest.mark.parametrize("config", VARIANTS)
def test_the_decoder_layer_is_that_of_torch(config):
    ours, theirs = randomised(DecoderLayer(config)), their_layer(nn.TransformerDecoderLayer, config)
    copy_layer(ours, theirs)
    x, memory, words = inputs()
    future = torch.ones(QUERIES, QUERIES, dtype=torch.bool).triu(1)
    out = ours(x, memory, ~future[None, None], words[:, None, None, :])
    assert_same(out, theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~words))
