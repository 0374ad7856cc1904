"""Tiny random models and a tiny vocabulary: what the tests of the model run on."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from model.network.config import BOS, EOS, PAD, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.training.loss import label_smoothed_loss

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


def taught(model: Transformer, tokenizer: Tokenizer) -> Transformer:
    """`model` after a moment of training: it knows SENTENCES, ends them, and goes on for long with LONG.

    A random model almost never chooses </s>: each of its translations runs to the last position that there is.
    Queries and keys stay as they were, choosy but not certain.
    """
    lessons = [_lesson(pairs, tokenizer) for pairs in (SENTENCES, (LONG,))]
    learning = [
        parameter.requires_grad_(True)
        for path, parameter in model.named_parameters()
        if not path.endswith(("w_q.weight", "w_q.bias", "w_k.weight", "w_k.bias"))
    ]
    optimizer = torch.optim.Adam(learning, lr=0.01, betas=(0.9, 0.98))
    for step in range(60):
        optimizer.zero_grad()
        for sources, shifted, targets in lessons[: 1 + step % 2]:
            label_smoothed_loss(model(sources, shifted), targets, 0.1).backward()
        optimizer.step()
    return model.requires_grad_(False)


def _lesson(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (sentence, position): sources, targets behind <s>, targets."""
    sources, targets = (
        pad_sequence(
            [torch.tensor([*tokenizer.encode(pair[side]), EOS]) for pair in pairs], batch_first=True, padding_value=PAD
        )
        for side in (0, 1)
    )
    return sources, torch.cat((torch.full((len(pairs), 1), BOS), targets[:, :-1]), dim=1), targets
