"""The selective state space model, the matrix that it is equal to, and the shipped models of associative recall."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.background import recall
from model.commands import recall as training
from model.hooks import recording
from model.language import Sentence
from model.network.state_space import (
    LARGEST_STEP,
    SMALLEST_STEP,
    START_A,
    SelectiveStateSpace,
    StateSpaceConfig,
    equivalent_map,
)


def new_layer(d_inner: int = 6, d_state: int = 4, seed: int = 0) -> SelectiveStateSpace:
    layer = SelectiveStateSpace(StateSpaceConfig(d_model=8, d_inner=d_inner, d_state=d_state, dt_rank=2, d_conv=4))
    layer.initialise(torch.Generator().manual_seed(seed))
    return layer.double().requires_grad_(False)


def new_input(positions: int, seed: int = 0, size: float = 1.0) -> torch.Tensor:
    numbers = torch.Generator().manual_seed(seed)
    return size * torch.randn(2, positions, 8, dtype=torch.double, generator=numbers)


def run_layer(layer: SelectiveStateSpace, u: torch.Tensor) -> dict[str, torch.Tensor]:
    with recording(layer) as activations:
        layer(u)
    return activations


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.1, 1.0, 30.0]), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_equivalent_map_times_x_is_what_the_recurrence_gives(positions, d_state, d_inner, size, seed) -> None:
    layer = new_layer(d_inner, d_state, seed)
    run = run_layer(layer, new_input(positions, seed, size))
    weights = equivalent_map(layer.a, run["delta"], run["b"], run["c"])
    assert not weights.triu(1).any()
    product = torch.einsum("bdij,bjd->bid", weights, run["x"])
    torch.testing.assert_close(product, run["y"], rtol=1e-9, atol=1e-9 * float(run["y"].abs().max() + 1))


def test_the_recurrence_is_the_papers() -> None:
    """h_t = exp(delta_t A) h_{t-1} + delta_t B_t x_t, of the states that are recorded."""
    layer = new_layer()
    run = run_layer(layer, new_input(9))
    written = (run["delta"] * run["x"])[..., None] * run["b"][:, :, None]
    decay = torch.exp(run["delta"][..., None] * layer.a)
    torch.testing.assert_close(run["state"][:, 0], written[:, 0])
    torch.testing.assert_close(run["state"][:, 1:], decay[:, 1:] * run["state"][:, :-1] + written[:, 1:])
    torch.testing.assert_close(run["y"], (run["state"] * run["c"][:, :, None]).sum(dim=-1))


def test_states_decay_whatever_the_weights_are_and_begin_as_the_docstring_says() -> None:
    layer = new_layer(d_inner=200)
    torch.testing.assert_close(layer.a, torch.full_like(layer.a, -START_A))
    step = torch.nn.functional.softplus(layer.delta_from_rank.bias)
    assert step.min() > 0.9 * SMALLEST_STEP
    assert step.max() < 1.1 * LARGEST_STEP
    layer.log_a.copy_(torch.randn(200, 4, generator=torch.Generator().manual_seed(0)) * 3)
    assert (layer.a < 0).all()


@pytest.mark.parametrize("name", recall.RECALL_MODELS)
@pytest.mark.parametrize("changed", [1, 5, 10])
def test_no_position_reads_a_later_one(name: str, changed: int) -> None:
    model = recall.new_recall_model(name)
    model.initialise(torch.Generator().manual_seed(0))
    ids = torch.randint(36, (3, 11), generator=torch.Generator().manual_seed(1))
    other = ids.clone()
    other[:, changed:] = (other[:, changed:] + 7) % 36
    with torch.inference_mode():
        before, after = (model.eval()(each) for each in (ids, other))
    torch.testing.assert_close(before[:, :changed], after[:, :changed], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(before[:, changed:], after[:, changed:], atol=1e-3)


def test_the_three_models_have_about_equal_size_and_the_hybrid_has_a_layer_of_each() -> None:
    sizes = recall.count_recall_parameters().values()
    assert max(sizes) < 1.01 * min(sizes)
    assert set(recall.RECALL_MODELS[recall.HYBRID]) == {"attention", "state_space"}


@pytest.mark.parametrize("name", recall.RECALL_MODELS)
def test_the_shipped_weights_recall_as_the_shipped_table_says(name: str) -> None:
    pairs, values = recall.recall_by_seed(recall.read_recall_results(), name)
    assert pairs.tolist() == list(recall.TESTED_PAIRS)
    assert values.shape[0] == len(training.SEEDS)
    model, numbers = recall.read_recall_model(name), torch.Generator().manual_seed(5)
    for place in (0, 2, len(pairs) - 1):
        # New texts: with 150 of them the standard error of a share is at most 0.041.
        ids = training.draw_texts(150, int(pairs[place]), 1, numbers)
        share = float(recall.recalled(model, ids).float().mean())
        assert share == pytest.approx(values[0, place], abs=0.2)


@pytest.mark.parametrize("name", recall.RECALL_MODELS)
@pytest.mark.parametrize("text", ["a3k7f1d5k", "b2b", "u1c7p4y9g2n6z0s8j3v5g"])
def test_a_run_has_a_map_of_each_layer_and_they_are_those_of_its_kind(name: str, text: str) -> None:
    run = recall.run_recall_model(name, text)
    assert len(run.maps) == len(run.kinds)
    for kind, maps in zip(run.kinds, run.maps, strict=True):
        assert maps.shape[1:] == (len(text), len(text))
        assert np.triu(maps, 1) == pytest.approx(0)
        if kind == "attention":
            assert maps.sum(axis=-1) == pytest.approx(1, abs=1e-5)
        else:
            assert len(maps) == recall.SIZES.d_inner
            assert (maps < 0).any()
    assert 0 < run.probability.sum() < 1 + 1e-5
    assert run.right == text[text.index(text[-1]) + 1]


def test_the_maps_of_the_shipped_run_give_what_its_layer_hands_on() -> None:
    text = recall.read_pairs("a3 k7 f1 d5 k")
    model, run = recall.read_recall_model(recall.HYBRID), recall.run_recall_model(recall.HYBRID, text)
    with torch.inference_mode(), recording(model) as activations:
        model(recall.encode_pairs([text]))
    x, y = (activations[f"layers.0.state_space.{name}"][0].numpy() for name in ("x", "y"))
    assert np.einsum("dij,jd->id", run.maps[0], x) == pytest.approx(y, rel=1e-3, abs=1e-4)
    assert run.maps[1] == pytest.approx(activations["layers.1.self_attn.pattern"][0].numpy(), abs=1e-6)


@pytest.mark.parametrize(
    ("typed", "read"), [("a3 k7 k", "a3k7k"), ("A3, K7? a", "a3k7a"), ("b1b", "b1b"), ("ß a3 é k7 → k", "a3k7k")]
)
def test_whatever_is_no_letter_or_digit_is_left_out(typed: str, read: str) -> None:
    assert recall.read_pairs(typed) == read


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        *((typed, "Type pairs of a letter and a digit") for typed in ("", "🐕", "a", "7", "a3", "a3 k7", "3a 7k a")),
        *((typed, "Type pairs of a letter and a digit") for typed in ("ab3 a", "a34 a", "a3 k7 7", "3", "a3 " * 9)),
        ("a3 k7 f", "The last letter, f, is in no pair"),
        ("a3 a4 a", "The letter a is in two pairs"),
        ("b1 a3 " + "a3 " * 10_000 + "a", "The letter a is in two pairs"),
    ],
)
def test_a_text_that_is_no_question_is_refused_with_what_to_type(typed: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        recall.read_pairs(typed)


@given(st.one_of(st.text(max_size=40), st.text("abc123 ", max_size=9)))
@settings(max_examples=200, deadline=None)
def test_any_text_is_refused_or_is_pairs_and_a_letter_out_of_one(typed: str) -> None:
    try:
        text = recall.read_pairs(typed)
    except ValueError as error:
        problem = error.args[0]
        text = ""
    if not text:
        assert isinstance(problem, Sentence)
        return
    assert len(text) % 2
    assert text[-1] in text[:-1:2]
    assert len({*text[:-1:2]}) == len(text) // 2
    assert {*text[::2]} <= {*recall.KEYS}
    assert {*text[1::2]} <= {*recall.VALUES}


@pytest.mark.parametrize(("pairs", "questions"), [(1, 1), (2, 1), (8, 8), (26, 3)])
def test_each_question_of_a_drawn_text_has_the_digit_that_stood_with_its_letter(pairs: int, questions: int) -> None:
    ids = training.draw_texts(40, pairs, questions, torch.Generator().manual_seed(pairs))
    assert ids.shape == (40, 2 * (pairs + questions))
    for row in ids.tolist():
        text = "".join(recall.VOCABULARY[token] for token in row)
        told = dict(zip(text[: 2 * pairs : 2], text[1 : 2 * pairs : 2], strict=True))
        assert len(told) == pairs
        asked = text[2 * pairs :: 2]
        assert len(set(asked)) == questions
        assert [told[letter] for letter in asked] == list(text[2 * pairs + 1 :: 2])
        assert recall.read_pairs(text[: 2 * pairs + 1]) == text[: 2 * pairs + 1]


@pytest.mark.parametrize("pairs", [2, 8, 26])
def test_a_random_digit_of_the_text_is_right_as_often_as_said(pairs: int) -> None:
    ids = training.draw_texts(4000, pairs, 1, torch.Generator().manual_seed(pairs))
    share = (ids[:, 1 : 2 * pairs : 2] == ids[:, -1:]).float().mean()
    assert float(share) == pytest.approx(recall.chance_of_a_digit(pairs), abs=0.02)


def test_the_training_writes_what_the_page_reads(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(training, "SEEDS", (0,))
    monkeypatch.setattr(training, "measure_recall", partial(training.measure_recall, texts=4))
    monkeypatch.setattr(training, "BATCH", 4)
    training.main(["--out", str(tmp_path), "--steps", "3"])
    assert {path.name for path in tmp_path.iterdir()} == {
        recall.RESULTS,
        *(f"{name}.safetensors" for name in recall.RECALL_MODELS),
    }
    monkeypatch.setattr(recall, "FOLDER", tmp_path)
    for name in recall.RECALL_MODELS:
        pairs, values = recall.recall_by_seed(recall.read_recall_results(), name)
        assert pairs.tolist() == list(recall.TESTED_PAIRS)
        assert values.shape == (1, len(pairs))
        assert recall.run_recall_model(name, "a3k7k").probability.shape == (10,)


def test_training_lowers_the_loss_of_a_state_space_model() -> None:
    numbers = torch.Generator().manual_seed(7)
    ids = training.draw_texts(200, 2, 1, numbers)

    def loss(steps: int) -> float:
        model = recall.new_recall_model(recall.STATE_SPACE)
        training.train(model, steps, peak_rate=1e-2, seed=0)
        with torch.inference_mode():
            return torch.nn.functional.cross_entropy(model(ids[:, :-1])[:, -1], ids[:, -1]).item()

    assert loss(12) < loss(0)
