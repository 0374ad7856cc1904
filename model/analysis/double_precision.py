"""A model of this project in double precision: where single precision would show its rounding."""

import copy
from dataclasses import replace

import torch
from torch import nn

from model.checkpoints.checkpoint import Checkpoint
from model.network.embedding import sinusoids
from model.network.rotary import Rotary, rotation


def in_double_precision(checkpoint: Checkpoint) -> Checkpoint:
    """The same model in double precision, on the same device; itself if it is already."""
    if checkpoint.model.output.weight.dtype == torch.float64:
        return checkpoint
    # The weights are doubled instead of copied first; a tied matrix stays one.
    doubled = {
        id(each): nn.Parameter(each.detach().double(), each.requires_grad) for each in checkpoint.model.parameters()
    }
    model = copy.deepcopy(checkpoint.model, doubled).double()
    config = model.config
    if config.positions == "sinusoidal":
        for embedding in model.embeddings.values():
            table = sinusoids(config.max_len, config.d_model, torch.float64)
            embedding.positions = table.to(embedding.positions.device)
    for rotary in (module for module in model.modules() if isinstance(module, Rotary)):
        angles = rotation(torch.arange(config.max_len), config.d_k, config.rope_base)
        rotary.cos, rotary.sin = (each.to(rotary.cos.device) for each in angles)
    return replace(checkpoint, model=model)
