"""A recurrent layer beside self-attention of the same width, to be timed as the sentence grows."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from model.background.stopwatch import Contender
from model.network.attention import MultiHeadAttention
from model.network.encoder_decoder import Transformer

ATTENTION, LSTM = "self-attention", "LSTM"


def layer_contenders(model: Transformer, layer: int, batch: int) -> Mapping[str, Contender]:
    """One forward pass of the model's own encoder self-attention in `layer`, and of an LSTM of its width.

    The LSTM's weights and the input are seeded normal numbers: a dense layer takes the same time whatever they are.

    Args:
        model: in evaluation mode; self-attention runs as in translation, with its own weights.
        layer: of the encoder.
        batch: sentences at once.
    """
    attention = model.encoder.layers[layer].self_attn
    d_model, device = model.config.d_model, next(attention.parameters()).device
    lstm = seeded_lstm(d_model).to(device)

    def attend(length: int) -> Callable[[], Tensor]:
        x = _input(batch, length, d_model, device)
        mask = torch.ones(batch, 1, 1, length, dtype=torch.bool, device=device)
        return lambda: attention(x, x, mask)

    def recur(length: int) -> Callable[[], Tensor]:
        x = _input(batch, length, d_model, device)
        return lambda: lstm(x)[0]

    return {ATTENTION: attend, LSTM: recur}


def seeded_lstm(d_model: int) -> nn.LSTM:
    """A single-layer LSTM, d_model wide inside and out; the process's own random numbers stay as they are."""
    lstm = nn.LSTM(d_model, d_model, batch_first=True, device="meta").to_empty(device="cpu").eval()
    numbers = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.normal_(0, d_model**-0.5, generator=numbers)
    return lstm


def layer_parameters(model: Transformer, layer: int) -> Mapping[str, int]:
    """Parameters of the two layers that `layer_contenders` compares."""
    layers: Mapping[str, MultiHeadAttention | nn.LSTM] = {
        ATTENTION: model.encoder.layers[layer].self_attn,
        LSTM: seeded_lstm(model.config.d_model),
    }
    return {name: sum(p.numel() for p in module.parameters()) for name, module in layers.items()}


def _input(batch: int, length: int, d_model: int, device: torch.device) -> Tensor:
    return torch.randn(batch, length, d_model, generator=torch.Generator().manual_seed(length)).to(device)
