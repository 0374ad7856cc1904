"""The recurrent models compute what their papers say, and the shipped ones do what their table says."""

import pytest
import torch

from model.background.recurrence import (
    ADDITIVE,
    EXACT_MATCH,
    FIXED,
    GRADIENT_BEFORE,
    LETTER_MODELS,
    TRAINED_LENGTHS,
    TRANSFORMER,
    AdditiveAttention,
    by_seed,
    count_letters_parameters,
    embedding_point,
    exact_matches,
    loss_gradient,
    read_letters_model,
    read_results,
    right_letter_weights,
    run_letters_model,
    sources,
    targets,
)
from model.commands import recurrence as training
from model.hooks import editing, recording


def test_additive_weights_are_the_softmax_of_v_tanh_of_both_states() -> None:
    torch.manual_seed(0)
    attention = AdditiveAttention(6).double()
    s, h = torch.randn(2, 6, dtype=torch.double), torch.randn(2, 5, 6, dtype=torch.double)
    weights, context = attention(s, h)
    w_1, (w_2, b), v = attention.w_1.weight, (attention.w_2.weight, attention.w_2.bias), attention.v.weight[0]
    for sentence in range(2):
        scores = torch.stack([v @ torch.tanh(w_1 @ s[sentence] + w_2 @ h[sentence, j] + b) for j in range(5)])
        torch.testing.assert_close(weights[sentence], scores.exp() / scores.exp().sum())
        torch.testing.assert_close(context[sentence], sum(weights[sentence, j] * h[sentence, j] for j in range(5)))


@pytest.mark.parametrize("name", [FIXED, ADDITIVE])
def test_the_states_that_are_drawn_are_the_lstms_and_the_decoder_begins_with_the_encoders_last(name: str) -> None:
    model, src, tgt = read_letters_model(name), sources(["cab"]), targets(["cab"])[:, :-1]
    with torch.inference_mode(), recording(model) as found:
        model(src, tgt)
        memory, (h, c) = model.encoder(model.embedding(src))
        first = model.embedding(tgt[:, 0])
        if model.attention:
            first = torch.cat([first, model.attention(h[0], memory)[1]], dim=-1)
        state, _ = model.decoder(first, (h[0], c[0]))
    torch.testing.assert_close(found["memory"], memory)
    torch.testing.assert_close(memory[:, -1], h[0])
    torch.testing.assert_close(found["states"][:, 0], state)


@pytest.mark.parametrize("name", LETTER_MODELS)
def test_a_run_is_what_the_model_writes_and_its_weights_sum_to_1(name: str) -> None:
    run = run_letters_model(name, "sequence")
    assert run.reads == (*"sequence", "</s>")
    assert run.exact
    assert run.writes == (*"ecneuqes", "</s>")
    assert (run.probability > 0.5).all()
    assert run.decoder.shape[1] == len(run.writes)
    if name == FIXED:
        assert not run.patterns.size
    else:
        assert run.patterns.sum(axis=-1) == pytest.approx(1, abs=1e-5)
        assert right_letter_weights(run).max() > 0.5


@pytest.mark.parametrize("name", LETTER_MODELS)
@torch.no_grad()
def test_the_gradient_is_that_of_central_differences(name: str) -> None:
    model, texts, step = training.new_letters_model(name, 0).double().eval(), ["bca"], 1e-5
    length, width = len(texts[0]) + 1, model.config.d_model if name == TRANSFORMER else model.embedding.embedding_dim
    # Each number of the embedded source moved alone, all in one batch: (moved number, position, dimension).
    moved = step * torch.eye(length * width, dtype=torch.double).unflatten(-1, (length, width))
    tgt = targets(texts)

    def losses(changes: torch.Tensor) -> torch.Tensor:
        with editing(model, {embedding_point(model): lambda embedded: embedded + changes}):
            logits = model(sources(texts * len(changes)), tgt[:, :-2].expand(len(changes), -1))[:, -1]
        return -logits.log_softmax(-1)[:, tgt[0, -2]]

    slopes = (losses(moved) - losses(-moved)) / (2 * step)
    expected = slopes.unflatten(0, (length, width)).norm(dim=-1).tolist()
    assert loss_gradient(model, texts)[0].tolist() == pytest.approx(expected, rel=1e-4)


def test_the_shipped_table_holds_for_the_shipped_weights_within_the_trained_lengths() -> None:
    results, tests = read_results(), training.test_texts()
    for name in LETTER_MODELS:
        lengths, values = by_seed(results, EXACT_MATCH, name)
        assert values.shape == (len(training.SEEDS), len(lengths))
        model, n = read_letters_model(name), TRAINED_LENGTHS[-1]
        share = exact_matches(model, tests[n][:50]).float().mean().item()
        assert share == pytest.approx(values[0, list(lengths).index(n)], abs=0.15)


def test_before_training_the_gradient_falls_with_the_distance_only_without_attention() -> None:
    """What the caption on Why attention says of the shipped table."""
    means = {name: by_seed(read_results(), GRADIENT_BEFORE, name)[1].mean(axis=0) for name in LETTER_MODELS}
    factors = means[FIXED][1:] / means[FIXED][:-1]
    assert (factors < 0.75).all()
    assert factors.max() - factors.min() < 0.2
    for name in (ADDITIVE, TRANSFORMER):
        assert means[name].max() < 3 * means[name].min()


def test_the_three_models_have_about_equal_size_and_no_test_text_is_in_training() -> None:
    sizes = count_letters_parameters().values()
    assert max(sizes) < 1.05 * min(sizes)
    tests = training.test_texts()
    known = {text for texts in tests.values() for text in texts}
    assert not known & {text for texts in training.texts_by_length(known).values() for text in texts}


def test_a_few_steps_of_training_lower_the_loss_and_the_command_writes_its_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(training, "SEEDS", (0,))
    monkeypatch.setattr(training, "TEST_TEXTS", 4)
    monkeypatch.setattr(training, "TRAIN_TEXTS", 5000)
    training.main(["--out", str(tmp_path), "--steps", "3"])
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        *(f"{name}.safetensors" for name in LETTER_MODELS),
    }
