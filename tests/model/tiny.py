"""Tiny random models and a tiny vocabulary: what the tests of the model run on."""

import torch
from torch import nn

from model.config import TransformerConfig
from model.tokenizer import Tokenizer, train_tokenizer
from model.transformer import Transformer

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


def tiny_tokenizer(vocab_size: int = 360) -> Tokenizer:
    return train_tokenizer((text for pair in SENTENCES for text in pair), vocab_size)


def randomised(module: nn.Module) -> nn.Module:
    """`module` in evaluation mode, without gradients, with random weights of which every one matters.

    A fresh model's biases are 0 and its norms 1, and its attention is almost uniform: errors in them
    would go unseen. Here biases and norms are random, and queries and keys large enough to be choosy.
    """
    for path, parameter in module.named_parameters():
        if path.endswith(".bias"):
            nn.init.normal_(parameter, std=0.2)
        elif "norm" in path:
            nn.init.uniform_(parameter, 0.5, 1.5)
        elif path.endswith(("w_q.weight", "w_k.weight")):
            parameter.data.mul_(2)
    return module.eval().requires_grad_(False)


def random_model(config: TransformerConfig, seed: int = 0, dtype: torch.dtype = torch.float32) -> Transformer:
    """The same `randomised` Transformer for the same configuration and seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return randomised(Transformer(config).to(dtype))
