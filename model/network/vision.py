"""A Vision Transformer (Dosovitskiy et al. 2021): the patches of an image are the tokens, the rest is an encoder."""

import torch
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.network import Encoder


def cut_patches(images: Tensor, side: int) -> Tensor:
    """(batch, height, width) -> (batch, patch, side * side): squares of pixels, from left to right, row by row."""
    rows = images.unflatten(1, (-1, side)).unflatten(3, (-1, side))  # (batch, patch row, side, patch column, side)
    return rows.transpose(2, 3).flatten(3).flatten(1, 2)


class VisionTransformer(nn.Module):
    """Patches W_E + learned positions, a token [CLS] before them, and what the encoder makes of that token as a class.

    Args:
        config: `vocab_size` is the number of classes, `max_len` that of the patches and [CLS].
        patch: pixels of a patch's side.
    """

    def __init__(self, config: TransformerConfig, patch: int) -> None:
        super().__init__()
        self.config, self.patch = config, patch
        self.embedding = nn.Linear(patch * patch, config.d_model)
        self.cls = nn.Parameter(torch.zeros(config.d_model))
        self.positions = (
            nn.Parameter(torch.zeros(config.max_len, config.d_model)) if config.positions != "none" else None
        )
        self.encoder = Encoder(config, config.n_encoder_layers)
        self.output = nn.Linear(config.d_model, config.vocab_size)
        self.sum, self.logits = HookPoint(), HookPoint()

    def initialise(self, numbers: torch.Generator) -> None:
        """Xavier for every projection, zero biases, small normal numbers for [CLS] and the positions."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=numbers)
                nn.init.zeros_(module.bias)
        for parameter in (self.cls, self.positions):
            if parameter is not None:
                nn.init.normal_(parameter, std=0.02, generator=numbers)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, class) of images (batch, height, width)."""
        x = self.embedding(cut_patches(images, self.patch))
        x = torch.cat([self.cls.expand(len(x), 1, -1), x], dim=1)
        x = self.sum(x if self.positions is None else x + self.positions)
        everywhere = torch.ones(1, 1, 1, x.shape[1], dtype=torch.bool, device=x.device)
        return self.logits(self.output(self.encoder(x, everywhere)[:, 0]))
