"""The Vision Transformer of the digits: patches, positions, the shipped model and its training."""

import sys

import numpy as np
import pytest
import torch

from model.background import digits
from model.commands import digits as training
from model.network.attention import MultiHeadAttention
from model.network.encoder_only import EncoderOnly
from model.network.vision import cut_patches


def test_patches_are_squares_from_left_to_right_row_by_row() -> None:
    image = torch.arange(64.0).view(1, 8, 8)
    patches = cut_patches(image, 2)
    assert patches.shape == (1, 16, 4)
    assert patches[0, 0].tolist() == [0, 1, 8, 9]
    assert patches[0, 1].tolist() == [2, 3, 10, 11]
    assert patches[0, 5].tolist() == [18, 19, 26, 27]
    assert sorted(patches.flatten().tolist()) == list(range(64))


def test_it_attends_with_the_class_of_the_text_models() -> None:
    model = digits.new_digits_model()
    of_text = EncoderOnly(model.config)
    attention = [type(layer.self_attn) for layer in (*model.encoder.layers, *of_text.encoder.layers)]
    assert set(attention) == {MultiHeadAttention}


def test_without_positions_the_order_of_the_patches_does_not_matter() -> None:
    rolled = []
    for positions in (True, False):
        model = digits.new_digits_model(positions)
        model.initialise(torch.Generator().manual_seed(0))
        if positions:
            model.positions.data.mul_(50)
        image = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(1))
        with torch.inference_mode():
            # Two pixels down: whole patches move.
            rolled.append(torch.allclose(*(model.eval()(each) for each in (image, image.roll(2, 1))), atol=1e-5))
    assert rolled == [False, True]


@pytest.mark.parametrize("number", [0, 17, 49])
def test_a_run_of_the_shipped_model_is_one(number: int) -> None:
    run = digits.read_digit(number)
    assert run.probability.sum() == pytest.approx(1, abs=1e-5)
    assert run.pattern.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    read = run.read_by_cls(1, 2)
    assert read.sum() + run.pattern[1, 2, 0, 0] == pytest.approx(1, abs=1e-5)
    assert read[1, 2] == run.pattern[1, 2, 0, 1 + 6]


def test_the_shipped_model_reads_most_shipped_images() -> None:
    answers, images = digits.read_images()
    assert images.shape == (50, 8, 8)
    assert np.bincount(answers).tolist() == [5] * 10
    with torch.inference_mode():
        read = digits.read_digits_model()(torch.from_numpy(images)).argmax(dim=-1).numpy()
    results = digits.read_digits_results()
    assert (read == answers).mean() == pytest.approx(results[results["positions"]]["accuracy"].iloc[0], abs=0.15)


def test_neighbours_are_the_patches_that_share_an_edge() -> None:
    places = np.array(list(np.ndindex(4, 4)))
    apart = np.abs(places[:, None] - places[None]).sum(axis=-1)
    assert digits.mean_similarity_by_distance((apart == 1) * 1.0) == (1, 0)
    assert digits.mean_similarity_by_distance((apart == 0) * 1.0) == (0, 0)


def test_the_training_writes_what_the_page_reads(tmp_path, monkeypatch) -> None:
    numbers = np.random.default_rng(0)
    answers, images = np.arange(500) % 10, numbers.integers(0, 17, (500, 8, 8)).astype(float)
    found = torch.tensor(images, dtype=torch.float32) / digits.INK, torch.tensor(answers)
    monkeypatch.setattr(training, "load_images", lambda: found)
    monkeypatch.setattr(training, "SEEDS", (0,))
    training.main(["--out", str(tmp_path), "--steps", "3"])
    monkeypatch.setattr(digits, "FOLDER", tmp_path)
    given, pixels = digits.read_images()
    assert given.tolist() == [digit for digit in range(10) for _ in range(5)]
    # Those that ship are among the images, and none is among those that it learned from.
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0)).numpy()
    learned = {images[n].tobytes() for n in order[training.TESTED :]}
    everything = {image.tobytes() for image in images}
    shipped = {(pixels[n].astype(float) * digits.INK).round().tobytes() for n in range(50)}
    assert shipped <= everything - learned
    assert len(digits.read_digits_results()) == 2
    assert digits.read_digit(3).probability.shape == (10,)


def test_a_missing_library_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match="digits-requirements"):
        training.load_images()
