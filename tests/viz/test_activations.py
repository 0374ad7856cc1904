"""Every function that a feed-forward may apply has its names, and a gated one has those of what it applies."""

import pytest

from model.network.feed_forward import ACTIVATIONS as TRAINED
from model.network.feed_forward import FUNCTIONS
from viz.activations import ACTIVATIONS, UNKNOWN, activation


@pytest.mark.parametrize("name", sorted({*TRAINED, *FUNCTIONS}))
def test_a_function_that_models_apply_is_named(name: str) -> None:
    assert activation(name) is not UNKNOWN
    assert activation(f"gated {name}") is activation(name)


@pytest.mark.parametrize(
    ("gated", "plain"),
    [("swiglu", "silu"), ("geglu", "gelu"), ("geglu, by tanh", "gelu, by tanh"), ("gated relu", "relu")],
)
def test_a_gated_one_is_called_as_what_it_applies_to_its_gate(gated: str, plain: str) -> None:
    assert activation(gated) is ACTIVATIONS[plain]


@pytest.mark.parametrize("name", ["other", "gated other", "", "relu6"])
def test_a_function_that_could_not_be_read_is_none_of_them(name: str) -> None:
    assert activation(name) is UNKNOWN
