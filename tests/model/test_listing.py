"""The whole program in one file: it opens a checkpoint alone, in a fresh process, and computes what the model does."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.hooks import explicit_path
from model.listing import whole_program
from model.network.config import PRESETS, TransformerConfig
from model.network.families import new_network
from model.network.network import Network

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
    "language model": replace(TOY, n_encoder_layers=0, positions="rope", qk_norm=True, norm="pre", activation="geglu"),
    "language model with ALiBi": replace(TOY, n_encoder_layers=0, positions="alibi"),
    "masked model": replace(TOY, n_decoder_layers=0, positions="learned", norm="pre", n_kv_heads=1),
}


def opened(text: str) -> dict[str, object]:
    """What the file defines."""
    defined: dict[str, object] = {"__name__": "listing"}
    exec(compile(text, "listing.py", "exec"), defined)
    return defined


def logits_of(network: Network) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the file and of the network itself, on the same tokens, some of them padding."""
    file = opened(whole_program(network, "toy"))
    own = file[type(network).__name__](file["TransformerConfig"]()).eval()
    own.load_state_dict(dict(network.named_parameters()), strict=False)
    numbers = torch.Generator().manual_seed(1)
    texts = [torch.randint(5, TOY.vocab_size, (2, 7), generator=numbers) for _ in network.stacks]
    for tokens in texts:
        tokens[1, 5:] = 0
    with torch.inference_mode(), explicit_path():
        return own(*texts), network(*texts)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_computes_what_a_network_of_any_shape_does(shape: str) -> None:
    network = new_network(SHAPES[shape])
    with torch.no_grad():  # biases and norms begin at values that a mistake could hide behind
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    file, own = logits_of(network.eval())
    assert torch.equal(file, own)


def test_a_changed_network_does_not_agree() -> None:
    network = new_network(TOY).eval()
    file, own = logits_of(network)
    assert torch.equal(file, own)
    text = whole_program(network, "toy").replace("scores / self.divisor", "scores")
    other = opened(text)
    changed = other["Transformer"](other["TransformerConfig"]()).eval()
    changed.load_state_dict(dict(network.named_parameters()), strict=False)
    tokens = torch.arange(5, 12)[None]
    with torch.inference_mode(), explicit_path():
        assert not torch.equal(changed(tokens, tokens), network(tokens, tokens))


def test_the_file_opens_a_checkpoint_in_a_fresh_process_and_gives_its_logits(
    translator, saved_checkpoints: Path, tmp_path: Path
) -> None:
    trace = translator.trace(TEXT)
    (tmp_path / "program.py").write_text(whole_program(translator.model, "en-de"), encoding="utf-8")
    folder = saved_checkpoints / DEFAULT_CHECKPOINT
    script = (
        "import pathlib, sys, numpy, torch, program\n"
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        "model, vocabulary = program.load(pathlib.Path(sys.argv[1]))\n"
        f"src = [*vocabulary.encode({TEXT!r}), program.EOS]\n"
        f"with torch.inference_mode(): logits = model(torch.tensor([src]), torch.tensor([{list(trace.tgt_ids)}]))[0]\n"
        "numpy.save('logits.npy', logits.numpy())\n"
        "print(program.translate(model, vocabulary, sys.argv[2]))\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('model', 'pages', 'viz')]\n"
    )
    command = [sys.executable, "-c", script, str(folder), TEXT]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), trace.logits)
    assert made.stdout.strip() == translator.trace(TEXT, beam_size=1).translation


def test_the_file_has_nothing_that_only_the_app_needs(translator) -> None:
    text = whole_program(translator.model, "en-de")
    for word in ("HookPoint", "cache", "observed", "interven", "model.", "_fused"):
        assert word not in text.replace("model.safetensors", "").replace("model.named_parameters", "")
    code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith('"""')]
    assert len(code) < 170


def test_a_network_that_is_not_ours_has_no_file() -> None:
    class Other(Network):
        pass

    with pytest.raises(ValueError, match="not a network of this project"):
        whole_program(Other(TransformerConfig()), "other")
