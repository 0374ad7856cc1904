"""QK-clip: the largest score of a step becomes the limit, and nothing else changes."""

import copy
from dataclasses import replace

import pytest
import torch

from model.hooks import recording
from model.network.config import TransformerConfig
from model.network.families import new_network
from model.training.score_clip import ScoreClip

CONFIG = TransformerConfig(30, d_model=16, n_heads=4, d_ff=16, n_encoder_layers=2, n_decoder_layers=1, dropout=0.0)
NETWORKS = {
    "heads with keys of their own": CONFIG,
    "shared keys, rotated, without biases": replace(
        CONFIG, n_encoder_layers=0, n_decoder_layers=2, n_kv_heads=2, positions="rope", biases=False
    ),
}
LIMIT = 0.5


@pytest.fixture(params=NETWORKS)
def network(request):
    """A network with random weights and biases, and what it is called with."""
    model = new_network(NETWORKS[request.param])
    numbers = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=numbers)
    tokens = torch.randint(4, 30, (3, 6), generator=numbers)
    return model.eval(), (tokens, tokens) if model.config.family == "encoder_decoder" else (tokens,)


def largest_scores(model, inputs):
    """path -> (heads,) largest score that a softmax reads."""
    with torch.no_grad(), recording(model) as found:
        model(*inputs)
    return {path: scores.amax(dim=(0, 2, 3)) for path, scores in found.items() if path.endswith(".masked")}


def clipped(model, inputs, limit=LIMIT):
    clip = ScoreClip(model, limit)
    with torch.no_grad(), clip.watching():
        model(*inputs)
    clip.apply()


def test_scores_above_the_limit_become_the_limit_and_others_stay(network):
    model, inputs = network
    before = largest_scores(model, inputs)
    clipped(model, inputs)
    after = largest_scores(model, inputs)
    # What comes after the first attention of a stack reads another stream.
    for path in (path for path in before if ".layers.0.self_attn" in path):
        torch.testing.assert_close(after[path], before[path].clamp(max=LIMIT), rtol=1e-5, atol=1e-6)
        assert (before[path] > LIMIT).any(), "the test's own premise"


def test_only_queries_and_keys_change_and_shared_keys_stay(network):
    model, inputs = network
    before = copy.deepcopy(model.state_dict())
    clipped(model, inputs)
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all(".w_q." in name or ".w_k." in name for name in changed)
    assert any(".w_k." in name for name in changed) == (not model.config.n_kv_heads)


def test_normalised_queries_and_keys_are_refused():
    with pytest.raises(ValueError, match="qk_norm"):
        ScoreClip(new_network(replace(CONFIG, qk_norm=True)), LIMIT)
