"""A Vision Transformer that reads digits of 8 x 8 pixels: the shipped one, its runs, and what was measured.

`python -m model.commands.digits` trained it; the images that ship with it were not in its training.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file

from model.hooks import recording
from model.network.config import TransformerConfig
from model.network.vision import VisionTransformer
from model.trace import Array

FOLDER = Path(__file__).parents[2] / "checkpoints" / "digits"
WEIGHTS, IMAGES, RESULTS = "model.safetensors", "images.csv", "results.csv"
SIDE, PATCH, CLASSES, INK = 8, 2, 10, 16
"""pixels of an image's side and of a patch's; digits; value of a black pixel"""
ACROSS = SIDE // PATCH
"""patches in a row"""


def new_digits_model(positions: bool = True) -> VisionTransformer:
    """The network, pre-norm and with GELU as in its paper; its weights are yet to be set."""
    config = TransformerConfig(
        vocab_size=CLASSES,
        d_model=32,
        n_heads=4,
        d_ff=64,
        n_encoder_layers=2,
        n_decoder_layers=0,
        dropout=0.1,
        max_len=1 + ACROSS**2,
        norm="pre",
        positions="learned" if positions else "none",
        activation="gelu",
    )
    return VisionTransformer(config, PATCH)


def read_digits_model() -> VisionTransformer:
    """The shipped model, in evaluation mode."""
    model = new_digits_model()
    model.load_state_dict(load_file(FOLDER / WEIGHTS))
    return model.eval().requires_grad_(False)


def read_images() -> tuple[Array, Array]:
    """Digits (image,) and images (image, 8, 8), from 0 (white) to 1 (black)."""
    table = pd.read_csv(FOLDER / IMAGES)
    pixels = table.drop(columns="digit").to_numpy(np.float32)
    return table["digit"].to_numpy(), pixels.reshape(-1, SIDE, SIDE) / INK


def read_digits_results() -> pd.DataFrame:
    """Share of new images that each training reads right: positions, seed, accuracy."""
    return pd.read_csv(FOLDER / RESULTS)


def count_digits_parameters() -> int:
    """Number of parameters of the shipped model."""
    return sum(parameter.numel() for parameter in new_digits_model().parameters())


@dataclass(frozen=True)
class DigitRun:
    """One image, as the model reads it."""

    image: Array
    """(8, 8), 0 to 1"""
    probability: Array
    """(class,)"""
    pattern: Array
    """(layer, head, query, key) attention weights; token 0 is [CLS], then the patches row by row"""
    positions: Array
    """(token, d_model): what is added to each token"""

    def read_by_cls(self, layer: int, head: int) -> Array:
        """(patch row, patch column): the weight of each patch in the row of [CLS]."""
        return self.pattern[layer, head, 0, 1:].reshape(ACROSS, ACROSS)

    def similarity(self) -> Array:
        """(patch, patch): cosine of the positions of every two patches, row by row."""
        vectors = self.positions[1:].astype(np.float64)
        unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return unit @ unit.T


def read_digit(number: int) -> DigitRun:
    """Run the shipped model on one of `read_images`."""
    model, image = read_digits_model(), read_images()[1][number]
    paths = [f"encoder.layers.{layer}.self_attn.pattern" for layer in range(model.config.n_encoder_layers)]
    with torch.inference_mode(), recording(model, paths) as activations:
        probability = model(torch.from_numpy(image)[None])[0].softmax(dim=-1)
    pattern = torch.cat([activations[path] for path in paths])
    return DigitRun(image, probability.numpy(), pattern.numpy(), model.positions.numpy())


def mean_similarity_by_distance(similarity: Array) -> tuple[float, float]:
    """Mean cosine of the positions of patches that share an edge, and of all other two patches."""
    places = np.array(list(np.ndindex(ACROSS, ACROSS)))
    apart = np.abs(places[:, None] - places[None]).sum(axis=-1)
    return float(similarity[apart == 1].mean()), float(similarity[apart > 1].mean())
