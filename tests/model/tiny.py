"""Tiny random models and tiny vocabularies for tests of any configuration; tests/fixture has the trained model."""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import OPENED
from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from model.network.config import TransformerConfig
from model.network.families import new_network
from model.network.network import Network

SENTENCES = (
    ("A man rides a red bicycle down the street.", "Ein Mann fährt auf einem roten Fahrrad die Straße entlang."),
    ("Two young men are cooking in a kitchen.", "Zwei junge Männer kochen in einer Küche."),
    ("A dog runs through the white snow.", "Ein Hund rennt durch den weißen Schnee."),
    ("Three women sit on a bench and talk.", "Drei Frauen sitzen auf einer Bank und reden."),
    ("A little girl plays with a yellow ball.", "Ein kleines Mädchen spielt mit einem gelben Ball."),
    ("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    ("People are waiting for the train.", "Leute warten auf den Zug."),
    ("An old man reads a newspaper outside.", "Ein alter Mann liest draußen eine Zeitung."),
)
LONG = ("A dog runs. " * 13, "Ein Hund. " * 13)
"""More than a hundred tokens on both sides."""


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]] = SENTENCES) -> Path:
    """A file of parallel text, as trainings and commands read it."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def train_tiny_tokenizer(vocab_size: int = 360) -> Tokenizer:
    """A vocabulary of SENTENCES, byte fallback included."""
    return train_tokenizer((text for pair in SENTENCES for text in pair), vocab_size)


def randomised(module: nn.Module) -> nn.Module:
    """Put `module` in evaluation mode, without gradients, with random weights of which every one matters.

    A fresh model's biases are 0, its norms 1, and its attention is almost uniform, so errors in them would not show.
    Here biases and norms are random, and queries and keys are large enough for selective attention.
    """
    for path, parameter in module.named_parameters():
        if path.endswith(".bias"):
            nn.init.normal_(parameter, std=0.2)
        elif "norm" in path:
            nn.init.uniform_(parameter, 0.5, 1.5)
        elif path.endswith(("w_q.weight", "w_k.weight")):
            parameter.data.mul_(2)
    return module.eval().requires_grad_(False)


def random_model(config: TransformerConfig, seed: int = 0, dtype: torch.dtype = torch.float32) -> Network:
    """The same `randomised` network for the same configuration and seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return randomised(new_network(config).to(dtype))


def random_checkpoint(
    config: TransformerConfig, tokenizer: Tokenizer, dtype: torch.dtype = torch.float32
) -> Checkpoint:
    """The `random_model` of a configuration, opened as one of its family is."""
    return OPENED[config.family]("random", "0" * 64, random_model(config, dtype=dtype), tokenizer)
