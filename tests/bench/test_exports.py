"""What `make bench` hands to other libraries holds every weight once, and in the order that they expect."""

import dataclasses

import numpy as np
import pytest
import torch

from model.network.config import BOS, EOS
from model.network.encoder_decoder import Transformer
from model.training.data import Batch
from tests.bench.export import check_comparable, ctranslate2_weights, marian_weights
from tests.bench.proof import DifferentError, agreement, log_probability_difference, logit_difference
from tests.bench.rounds import line, measured
from tests.bench.torch_twin import TorchTwin
from tests.model.tiny import random_model

PAIRS = [([7, 8, 9, 10, EOS], [BOS, 20, 21, EOS]), ([30, EOS], [BOS, 31, 32, 33, 34, EOS])]


@pytest.mark.parametrize("export", [marian_weights, ctranslate2_weights])
def test_every_weight_is_exported_once(export, tiny_model):
    """The shared matrix and the positions stand where each library wants its own copies of them."""
    exported = {path: np.asarray(tensor) for path, tensor in export(tiny_model).items() if path != "final_logits_bias"}
    shared = tiny_model.output.weight
    inner = [array for array in exported.values() if array.shape[0] not in (len(shared), tiny_model.config.max_len)]
    outer = {path: array for path, array in exported.items() if not any(array is other for other in inner)}
    ours = [parameter for name, parameter in tiny_model.named_parameters() if not name.startswith("src_embedding")]
    assert np.sort(np.concatenate([array.ravel() for array in inner])).tolist() == (
        torch.cat([parameter.flatten() for parameter in ours]).sort().values.tolist()
    )
    for path, array in outer.items():
        theirs = tiny_model.src_embedding.positions if "position" in path else shared
        assert array.tolist() == theirs.tolist()


def test_fused_projections_split_into_queries_keys_and_values(tiny_model):
    attention, x = tiny_model.decoder.layers[1].self_attn, torch.randn(5, tiny_model.config.d_model)
    weights = {path: torch.tensor(array) for path, array in ctranslate2_weights(tiny_model).items()}
    path = "decoder/layer_1/self_attention/linear_0"
    fused = x @ weights[f"{path}/weight"].T + weights[f"{path}/bias"]
    for part, projection in zip(fused.chunk(3, dim=-1), (attention.w_q, attention.w_k, attention.w_v), strict=True):
        torch.testing.assert_close(part, projection(x))


def test_the_network_of_torch_is_the_same_function(tiny_model):
    assert logit_difference(tiny_model, TorchTwin(tiny_model).eval(), PAIRS) < 1e-4


def test_a_different_network_is_noticed(tiny_model):
    other = TorchTwin(tiny_model).eval()
    other.transformer.decoder.layers[1].linear1.bias.data[0] += 0.5
    with pytest.raises(DifferentError, match="logits differ by"):
        logit_difference(tiny_model, other, PAIRS)


def test_log_probabilities_are_those_of_the_target_tokens(tiny_model):
    def ours(source: list[int], target: list[int]) -> list[float]:
        batch = Batch.of([(source, [BOS, *target])])
        log_p = tiny_model(batch.src, batch.tgt_in).log_softmax(-1)
        return [log_p[0, position, token].item() for position, token in enumerate(target)]

    assert log_probability_difference(tiny_model, ours, PAIRS) < 1e-5
    with pytest.raises(DifferentError, match="log-probabilities differ by"):
        log_probability_difference(tiny_model, lambda source, target: [p + 0.01 for p in ours(source, target)], PAIRS)


@pytest.mark.parametrize("change", [{"norm": "pre"}, {"tie_embeddings": False}])
def test_what_marian_cannot_be_is_refused(change, tiny_config):
    model: Transformer = random_model(dataclasses.replace(tiny_config, **change))
    with pytest.raises(ValueError, match="only post-norm models with tied embeddings"):
        check_comparable(model.config)


def test_agreement_counts_whole_translations():
    assert agreement({"ours": ["a", "b"], "theirs": ["a", "c"]}) == {"ours": 1.0, "theirs": 0.5}


def test_everyone_works_once_a_round_and_another_one_is_first():
    turns: list[str] = []
    rates = measured({name: lambda name=name: turns.append(name) or 5 for name in "abc"}, rounds=3)
    assert "".join(turns) == "abcbcacab"
    assert all(len(of_one) == 3 and min(of_one) > 0 for of_one in rates.values())


def test_a_line_holds_medians_and_their_ratios():
    assert line("x", {"a": [1.0, 2.0, 30.0], "b": [8.0, 4.0, 3.0]}).split() == [
        "x",
        *("2.0", "(1.0-30.0)"),
        *("4.0", "(3.0-8.0)"),
        "0.50",
    ]
