"""The whole Transformer in one file: it opens a checkpoint alone and computes, bit for bit, what the model does."""

import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from sentencepiece import SentencePieceProcessor

from model import transformer
from model.checkpoints.store import DEFAULT_CHECKPOINT, available_checkpoints, load_checkpoint
from model.hooks import explicit_path
from model.network.config import PRESETS, TransformerConfig
from model.network.families import new_network
from model.network.network import Network
from tests.model.checkpoints.test_language_model import opened as language_model

TEXT = "the dog sees a cat"
TOY = PRESETS["toy"]
SHAPES = {
    "the paper's": TOY,
    "pre-norm, learned positions, GELU, untied": replace(
        TOY, norm="pre", positions="learned", activation="gelu", tie_embeddings=False
    ),
    "rotated, shared keys, without biases": replace(
        TOY, positions="rope", n_kv_heads=2, biases=False, norm_function="rms_norm", activation="swiglu"
    ),
    "no positions, no division, window": replace(TOY, positions="none", scale_scores=False, window=3),
    "ALiBi, wide keys, normalised": replace(TOY, positions="alibi", d_key=24, qk_norm=True, scale_embeddings=False),
    "BatchNorm": replace(TOY, norm_function="batch_norm"),
    "neither norm nor residual connection": replace(TOY, norm_function="none", residual=False),
    "language model": replace(TOY, n_encoder_layers=0, positions="rope", qk_norm=True, norm="pre", activation="geglu"),
    "language model with ALiBi, untied": replace(TOY, n_encoder_layers=0, positions="alibi", tie_embeddings=False),
    "masked model": replace(TOY, n_decoder_layers=0, positions="learned", norm="pre", n_kv_heads=1),
}


def copied(network: Network) -> transformer.Transformer:
    """The network of the file, with the weights of ours; each has a place."""
    other = transformer.Transformer(transformer.Config(**asdict(network.config))).eval()
    left = other.load_state_dict(network.weights(), strict=False)
    assert not left.unexpected_keys
    return other


def logits_of(other: transformer.Transformer, network: Network, length: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the file and of the network itself, on the same tokens, some of them padding."""
    numbers = torch.Generator().manual_seed(1)
    texts = {
        name: torch.randint(5, network.config.vocab_size, (2, length), generator=numbers) for name in network.stacks
    }
    for tokens in texts.values():
        tokens[1, 5:] = 0
    with torch.inference_mode(), explicit_path():
        return other(texts.get("encoder"), texts.get("decoder")), network(*texts.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_computes_what_a_network_of_any_shape_does(shape: str) -> None:
    network = new_network(SHAPES[shape])
    with torch.no_grad():  # biases and norms begin at values that a mistake could hide behind
        for values in network.weights().values():
            values.add_(0.1 * torch.rand(values.shape, generator=torch.Generator().manual_seed(3)))
    file, own = logits_of(copied(network.eval()), network)
    assert torch.equal(file, own)


@pytest.mark.parametrize("name", available_checkpoints())
def test_the_file_gives_the_logits_of_each_shipped_checkpoint(name: str) -> None:
    network = load_checkpoint(name, "cpu").model
    file, own = logits_of(copied(network), network, length=40)
    assert torch.equal(file, own)


def test_the_file_has_every_choice_of_a_network() -> None:
    assert asdict(transformer.Config()) == asdict(TransformerConfig())


def test_the_file_opens_a_checkpoint_in_a_fresh_process_and_gives_its_logits(
    translator, saved_checkpoints, tmp_path
) -> None:
    trace = translator.trace(TEXT)
    shutil.copy(transformer.__file__, tmp_path / "program.py")
    folder = saved_checkpoints / DEFAULT_CHECKPOINT
    script = (
        "import pathlib, sys, numpy, torch, program\n"
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        "model, vocabulary = program.load(pathlib.Path(sys.argv[1]))\n"
        f"src = [*vocabulary.encode({TEXT!r}), program.EOS]\n"
        f"with torch.inference_mode(): logits = model(torch.tensor([src]), torch.tensor([{list(trace.tgt_ids)}]))[0]\n"
        "numpy.save('logits.npy', logits.numpy())\n"
        "print(program.run(model, vocabulary, sys.argv[2]))\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('model', 'pages', 'viz')]\n"
    )
    command = [sys.executable, "-c", script, str(folder), TEXT]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), trace.logits)
    assert made.stdout.strip() == translator.trace(TEXT, beam_size=1).translation


def test_the_file_goes_on_with_a_text_as_the_language_model_does(tokenizer) -> None:
    opened = language_model(tokenizer)
    pieces = SentencePieceProcessor(model_proto=tokenizer.serialized)
    written = opened.trace(TEXT, max_new_tokens=30).translation
    assert transformer.run(copied(opened.model), pieces, TEXT) == written != TEXT
