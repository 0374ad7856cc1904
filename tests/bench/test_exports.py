"""What `make bench` compares is the same function, and differences are noticed."""

import pytest

from model.network.config import BOS, EOS
from model.training.data import Batch
from tests.bench.proof import DifferentError, agreement, log_probability_difference, logit_difference
from tests.bench.rounds import line, measured
from tests.bench.torch_twin import TorchTwin

PAIRS = [([7, 8, 9, 10, EOS], [BOS, 20, 21, EOS]), ([30, EOS], [BOS, 31, 32, 33, 34, EOS])]


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
