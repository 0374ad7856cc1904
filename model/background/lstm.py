"""Self-attention and an LSTM of the same width, for timing at growing sentence lengths."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from model.background.stopwatch import Contender
from model.network.attention import MultiHeadAttention
from model.network.network import Network

ATTENTION, LSTM = "self-attention", "LSTM"


def layer_contenders(model: Network, layer: int, batch: int) -> Mapping[str, Contender]:
    """One forward pass over so many sentences of the self-attention in `layer` of the model's first stack, which uses
    its trained weights as in translation, and of an LSTM of its width.

    The LSTM's weights and the inputs are seeded normal numbers; the run time of a dense layer does not depend on them.
    """
    attention = _first_attention(model, layer)
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
    """A single-layer LSTM with d_model inputs and outputs; the global random state is left unchanged."""
    lstm = nn.LSTM(d_model, d_model, batch_first=True, device="meta").to_empty(device="cpu").eval()
    numbers = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.normal_(0, d_model**-0.5, generator=numbers)
    return lstm


def layer_parameters(model: Network, layer: int) -> Mapping[str, int]:
    """Number of parameters of the two layers that `layer_contenders` compares."""
    layers: Mapping[str, MultiHeadAttention | nn.LSTM] = {
        ATTENTION: _first_attention(model, layer),
        LSTM: seeded_lstm(model.config.d_model),
    }
    return {name: sum(p.numel() for p in module.parameters()) for name, module in layers.items()}


def _first_attention(model: Network, layer: int) -> MultiHeadAttention:
    """The self-attention of the encoder's layer; without an encoder, the decoder's."""
    return next(iter(model.stacks.values())).layers[layer].self_attn


def _input(batch: int, length: int, d_model: int, device: torch.device) -> Tensor:
    return torch.randn(batch, length, d_model, generator=torch.Generator().manual_seed(length)).to(device)
