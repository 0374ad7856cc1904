"""Embeddings, positions, initial weights and dropout, as the paper describes them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.network.config import TransformerConfig
from model.network.dropout import Dropout
from model.network.embedding import sinusoids
from model.network.encoder_decoder import Transformer
from tests.model.by_hand import positional_encoding
from tests.model.strategies import few


@few
@given(st.integers(1, 60), st.integers(1, 20).map(lambda pairs: 2 * pairs))
def test_sinusoids_are_the_papers_formula_interleaved(length, d_model):
    assert np.allclose(sinusoids(length, d_model).numpy(), positional_encoding(length, d_model), rtol=0, atol=1e-7)


def test_sinusoids_are_not_learned_and_not_saved(tiny_model):
    assert not [path for path in tiny_model.state_dict() if path.endswith("positions")]


def test_learned_positions_start_small_and_differ_by_side(tiny_config):
    model = Transformer(replace(tiny_config, positions="learned"))
    src, tgt = model.src_embedding.positions, model.tgt_embedding.positions
    assert src.requires_grad
    assert src is not tgt
    assert 0.01 < src.std() < 0.03


def test_each_projection_starts_within_xaviers_bound_and_fills_it(tiny_config):
    model = Transformer(tiny_config)
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and path != "output":
            bound = math.sqrt(6 / sum(module.weight.shape))
            assert 0.9 * bound < module.weight.abs().max() <= bound, path
            assert not module.bias.any(), path


@pytest.mark.parametrize(("tied", "count"), [(True, 1), (False, 3)])
def test_tied_embeddings_are_one_matrix_for_source_target_and_output(tiny_config, tied, count):
    model = Transformer(replace(tiny_config, tie_embeddings=tied))
    matrices = (model.src_embedding.tokens.weight, model.tgt_embedding.tokens.weight, model.output.weight)
    assert len({matrix.data_ptr() for matrix in matrices}) == count


def test_scaled_embeddings_start_as_large_as_the_sinusoids():
    model = Transformer(TransformerConfig(vocab_size=500, d_model=64, n_encoder_layers=1, n_decoder_layers=1))
    scaled = model.output.weight * model.src_embedding.scale
    assert 0.9 < scaled.std() < 1.1


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate):
    dropped = Dropout(rate).train()(torch.ones(1000, 1000))
    assert abs((dropped == 0).double().mean().item() - rate) < 0.004
    assert abs(dropped.double().mean().item() - 1) < 0.004
    assert len(dropped.unique()) == 2, "survivors are all scaled alike"


def test_dropout_drops_each_element_by_itself():
    kept = (Dropout(0.5).train()(torch.ones(4000, 16)) != 0).double()
    correlation = np.corrcoef(kept.T.numpy())
    assert np.abs(correlation - np.eye(16)).max() < 0.08


@pytest.mark.parametrize("rate", [0.3, 0.999])
def test_dropouts_gradient_is_its_mask_and_the_highest_rate_lets_something_finite_through(rate):
    x = torch.ones(10_000, requires_grad=True)
    dropped = Dropout(rate).train()(x)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())
    assert dropped.isfinite().all()
    assert dropped.any()


def test_dropout_stands_after_both_embeddings_and_every_sublayer(tiny_config):
    paths = [path for path, module in Transformer(tiny_config).named_modules() if isinstance(module, Dropout)]
    residuals = 2 * tiny_config.n_encoder_layers + 3 * tiny_config.n_decoder_layers
    assert sum(path.endswith("_residual.dropout") for path in paths) == residuals
    assert sum(path.endswith("_embedding.dropout") for path in paths) == 2
    assert len(paths) == residuals + 2
