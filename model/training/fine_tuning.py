"""Fine-tuning: a copy of a network that learns, and the optimizer of its steps."""

import copy

import torch

from model.network.network import Network


def copy_to_train(network: Network) -> Network:
    """The same weights in tensors of their own that take gradients, without dropout.

    Weights that were loaded for inference alone take part in no gradient.
    """
    with torch.inference_mode(False), torch.enable_grad():
        return copy.deepcopy(network).requires_grad_(True).eval()


def new_optimizer(network: Network, rate: float) -> torch.optim.Optimizer:
    """Adam as in section 5.3, at one rate."""
    return torch.optim.Adam(network.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9)
