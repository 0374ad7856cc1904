"""Dropout from outside, through hook points: at the places where training has it, seeded, and nowhere else."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.analysis.inside.dropout import EVERYWHERE, drop, dropout_cost, dropout_places, dropped_at, factors
from model.analysis.sweep import log_probability
from model.hooks import editing
from model.network.dropout import Dropout
from tests.model.checkpoints.test_language_model import opened as language_model


class _Fixed(nn.Module):
    """Multiplies by the factors that belong to a place, as the model's own dropout would."""

    def __init__(self, path: str, rate: float, seed: int) -> None:
        super().__init__()
        self.case = path, rate, seed

    def forward(self, x: Tensor) -> Tensor:
        path, rate, seed = self.case
        return x * factors(path, x.shape, rate, seed)


def module_at(path: str) -> str:
    """Path of the model's own dropout at a place."""
    stack, _, point = path.rpartition(".")
    return f"{stack}.dropout" if point == "sum" else f"{stack}_residual.dropout"


@pytest.mark.parametrize("name", ["translator", "lm"])
def test_the_places_are_those_of_the_models_own_dropout(translator, tokenizer, name: str) -> None:
    opened = translator if name == "translator" else language_model(tokenizer)
    model, rate, seed = copy.deepcopy(opened.model), 0.3, 4
    places = dropout_places(model)
    own = {path for path, module in model.named_modules() if isinstance(module, Dropout)}
    assert {module_at(path) for path in places} == own
    for path in places:
        model.set_submodule(module_at(path), _Fixed(path, rate, seed))
    trace = opened.trace("A dog runs.")
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    with torch.inference_mode(), editing(opened.model, drop([*places], rate, seed)):
        edited = opened.model(*texts)
    with torch.inference_mode():
        assert torch.equal(model(*texts), edited)
        assert not torch.equal(opened.model(*texts), edited)


def test_the_drawn_cells_are_those_that_were_dropped(translator, trace) -> None:
    path = "decoder.layers.1.feed_forward.out"
    drawn = dropped_at(translator, trace, path, 0.3, 5)
    again, other = (dropped_at(translator, trace, path, 0.3, seed) for seed in (5, 6))
    assert np.array_equal(drawn.kept, drawn.after != 0)
    assert np.allclose(drawn.after[drawn.kept], drawn.before[drawn.kept] * 256 / (256 - 77))
    assert np.array_equal(drawn.after, again.after)
    assert not np.array_equal(drawn.kept, other.kept)


def test_the_cost_is_that_of_the_draws_and_the_model_stays_without_dropout(translator, trace) -> None:
    cost = dropout_cost(translator, trace, 0.5, draws=6)
    assert cost.without == pytest.approx(trace.log_probability, abs=1e-4)
    assert {len(changes) for changes in cost.changes.values()} == {6}
    assert len(set(cost.changes[EVERYWHERE])) == 6
    assert cost.changes[EVERYWHERE].mean() < 0
    assert translator.rerun(trace, ()).log_probability == trace.log_probability
    nothing = dropout_cost(translator, trace, 0.0, draws=2)
    assert np.allclose([*nothing.changes.values()], 0, atol=1e-4)


def test_the_cost_of_a_kind_of_place_is_that_of_dropout_there_alone(translator, trace) -> None:
    cost, places = dropout_cost(translator, trace, 0.5, draws=1), dropout_places(translator.model)
    for kind in {*places.values()}:
        here = drop([path for path, one in places.items() if one == kind], 0.5, 0)
        with torch.inference_mode(), editing(translator.model, here):
            (logits,) = translator.model(torch.tensor([trace.src_ids]), torch.tensor([trace.tgt_ids])).numpy()
        changed = log_probability(logits, trace.next_ids) - cost.without
        assert cost.changes[kind] == pytest.approx(changed, abs=1e-4)
