"""Associative recall: pairs of a letter and a digit, then a letter again, and the digit that stood with it is wanted.

Three models of about equal size read such texts: layers of attention, layers of selective state space models, and one
of each. `read_recall_model` opens the shipped ones, `run_recall_model` shows one run of them; `python -m
model.commands.recall` trained them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase, digits

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor

from model.hooks import recording
from model.language import Refusal
from model.network.config import TransformerConfig
from model.network.state_space import HybridLanguageModel, LayerKind, StateSpaceConfig, equivalent_map
from model.trace import Array

FOLDER = Path(__file__).parents[2] / "checkpoints" / "recall"
RESULTS = "results.csv"
KEYS, VALUES = ascii_lowercase, digits
VOCABULARY = KEYS + VALUES
MOST_PAIRS = len(KEYS)
"""each letter stands in one pair at most"""
TRAINED_PAIRS, TESTED_PAIRS = range(2, 9), (2, 4, 6, 8, 10, 12, 16, 20, 26)
ATTENTION, STATE_SPACE, HYBRID = "attention", "state_space", "hybrid"
RECALL_MODELS: Mapping[str, tuple[LayerKind, ...]] = {
    ATTENTION: ("attention", "attention"),
    STATE_SPACE: ("state_space", "state_space"),
    HYBRID: ("state_space", "attention"),
}
"""layers of each model, from below"""
CONFIG = TransformerConfig(
    vocab_size=len(VOCABULARY),
    d_model=32,
    n_heads=4,
    d_ff=66,
    n_encoder_layers=0,
    n_decoder_layers=2,
    dropout=0.0,
    max_len=2 * MOST_PAIRS + 2,
    norm="pre",
    positions="alibi",
    norm_function="rms_norm",
    biases=False,
)
"""d_ff makes a layer of attention as large as one of the others"""
SIZES = StateSpaceConfig(d_model=CONFIG.d_model, d_inner=2 * CONFIG.d_model, d_state=8, dt_rank=2, d_conv=4)


def new_recall_model(name: str) -> HybridLanguageModel:
    """One of RECALL_MODELS; its weights are yet to be set."""
    return HybridLanguageModel(CONFIG, SIZES, RECALL_MODELS[name])


def read_recall_model(name: str) -> HybridLanguageModel:
    """The shipped model of this name, in evaluation mode."""
    model = new_recall_model(name)
    model.load_state_dict(load_file(FOLDER / f"{name}.safetensors"))
    return model.eval().requires_grad_(False)


def read_recall_results() -> pd.DataFrame:
    """Share of the questions that each training answers right: model, seed, pairs, recall."""
    return pd.read_csv(FOLDER / RESULTS)


def recall_by_seed(results: pd.DataFrame, name: str) -> tuple[Array, Array]:
    """Of one model out of `read_recall_results`: numbers of pairs, (at,) ascending, and recall (seed, at)."""
    table = results[results["model"] == name].pivot(index="seed", columns="pairs", values="recall")
    return table.columns.to_numpy(), table.to_numpy()


def chance_of_a_digit(pairs: int) -> float:
    """Probability that a random one of the digits of a text with so many pairs is the right one."""
    return 1 / pairs + (1 - 1 / pairs) / len(VALUES)


def count_recall_parameters() -> dict[str, int]:
    """Number of parameters of each of RECALL_MODELS."""
    return {name: sum(one.numel() for one in new_recall_model(name).parameters()) for name in RECALL_MODELS}


def read_pairs(typed: str) -> str:
    """The letters and digits of a text, which are pairs and then a letter out of one of them; nothing else is read.

    Raises:
        ValueError: they are not; the sentence says what to type.
    """
    text = "".join(token for token in typed.lower() if token in VOCABULARY)
    letters, values, asked = text[:-1:2], text[1:-1:2], text[-1:]
    if not letters or len(letters) != len(values) or not {*letters, asked} <= {*KEYS} or not {*values} <= {*VALUES}:
        raise Refusal("Type pairs of a letter and a digit, then one of these letters alone, as in: a3 k7 f1 k")
    if len(letters) != len({*letters}):
        again = next(letter for place, letter in enumerate(letters) if letter in letters[:place])
        raise Refusal("The letter {letter} is in two pairs: give each pair its own.", letter=again)
    if asked not in letters:
        raise Refusal("The last letter, {letter}, is in no pair: end with a letter that is in one.", letter=asked)
    return text


def encode_pairs(texts: list[str]) -> Tensor:
    """Token ids (text, position). All texts have the same length."""
    return torch.tensor([[VOCABULARY.index(token) for token in text] for text in texts])


@torch.inference_mode()
def recalled(model: HybridLanguageModel, ids: Tensor) -> Tensor:
    """bool (text,): whether the most probable token after all but the last of `ids` (text, position) is the last."""
    return model(ids[:, :-1])[:, -1].argmax(dim=-1) == ids[:, -1]


@dataclass(frozen=True)
class RecallRun:
    """One text, as one of RECALL_MODELS reads it."""

    tokens: str
    """pairs, and the letter that is asked for"""
    kinds: tuple[LayerKind, ...]
    """of each layer"""
    maps: tuple[Array, ...]
    """of each layer, (head, query, key) attention weights, or the equivalent map (channel, read for, read)"""
    probability: Array
    """(value,) of each digit after the last letter"""

    @property
    def answer(self) -> str:
        """The most probable digit."""
        return VALUES[int(self.probability.argmax())]

    @property
    def place(self) -> int:
        """Position of the digit that is wanted."""
        return self.tokens.index(self.tokens[-1]) + 1

    @property
    def right(self) -> str:
        """That digit."""
        return self.tokens[self.place]

    def reads_right(self, layer: int) -> Array:
        """(head or channel,): the share of the size of the last row, the weights without their signs, that lies on the
        wanted digit."""
        sizes = np.abs(self.maps[layer][:, -1])
        return sizes[:, self.place] / np.maximum(sizes.sum(axis=-1), 1e-12)

    @property
    def best_layer(self) -> int:
        """The layer with the head or channel that reads the wanted digit most."""
        return int(np.argmax([self.reads_right(layer).max() for layer in range(len(self.maps))]))


def run_recall_model(name: str, text: str) -> RecallRun:
    """Let the shipped model `name` read what `read_pairs` returned."""
    model = read_recall_model(name)
    with torch.inference_mode(), recording(model) as activations:
        logits = model(encode_pairs([text]))[0, -1]
        maps = tuple(_layer_map(model, activations, layer)[0].numpy() for layer in range(len(model.kinds)))
    probability = logits.softmax(dim=-1)[len(KEYS) :]
    return RecallRun(text, model.kinds, maps, probability.numpy())


def _layer_map(model: HybridLanguageModel, activations: Mapping[str, Tensor], layer: int) -> Tensor:
    """(batch, head or channel, position read for, position read)"""
    if model.kinds[layer] == "attention":
        return activations[f"layers.{layer}.self_attn.pattern"]
    path = f"layers.{layer}.state_space"
    delta, b, c = (activations[f"{path}.{name}"] for name in ("delta", "b", "c"))
    return equivalent_map(model.get_submodule(path).a, delta, b, c)
