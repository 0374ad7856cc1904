"""The table of positions (section 3.5): what the model adds, its wavelengths, similarities and rotations."""

import math
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.positions.position_table import (
    rotate,
    similarity,
    similarity_by_offset,
    wavelengths,
    wavelengths_in,
)
from model.checkpoints.translator import Translator
from model.network.embedding import sinusoids
from tests.model.tiny import random_checkpoint


@pytest.fixture(scope="module", params=[(128, 32), (512, 128), (512, 512)], ids=str)
def encoding(request) -> np.ndarray:
    return sinusoids(*request.param).numpy()


@pytest.fixture(scope="module")
def learned(tiny_config, tokenizer) -> Translator:
    return random_checkpoint(replace(tiny_config, positions="learned"), tokenizer)


@pytest.mark.parametrize("model", ["translator", "learned"])
def test_the_table_of_a_side_is_what_the_model_adds_there(model: str, request) -> None:
    translator = request.getfixturevalue(model)
    trace = translator.trace("A dog runs.")
    source, target = (translator.positional_encoding(side) for side in ("source", "target"))
    for encoding, embedded in ((source, trace.src_embedded), (target, trace.tgt_embedded)):
        assert np.array_equal(encoding[: len(embedded.positional)], embedded.positional)
        assert len(encoding) == translator.model.config.max_len
    assert np.array_equal(source, target) == (model == "translator"), "learned tables are one for each side"


def test_a_changed_copy_leaves_the_model_as_it_is(translator) -> None:
    before = translator.positional_encoding()
    translator.positional_encoding()[:] = 7
    assert np.array_equal(translator.positional_encoding(), before)


def test_wavelengths_measured_in_the_table_are_those_of_the_formula(encoding) -> None:
    formula = wavelengths(encoding.shape[1])
    assert formula[0] == pytest.approx(2 * math.pi)
    assert formula[-1] < 2 * math.pi * 10_000
    assert wavelengths_in(encoding) == pytest.approx(formula, rel=1e-6)


def test_one_matrix_takes_every_position_k_steps_on(encoding) -> None:
    for k in (*range(0, len(encoding), 16), len(encoding) - 1):
        assert np.abs(rotate(encoding, k) - encoding[k:]).max() < 5e-7


def test_similarity_depends_on_distance_alone(encoding) -> None:
    lowest, highest = similarity_by_offset(similarity(encoding))
    half = encoding.shape[1] / 2
    assert lowest[0] == pytest.approx(half)
    assert (highest - lowest).max() < 1e-6 * half
    np.testing.assert_allclose(similarity(encoding, cosine=True), similarity(encoding) / half, rtol=1e-6, atol=1e-6)
    angles = 3 * 2 * np.pi / wavelengths(encoding.shape[1])
    assert lowest[3] == pytest.approx(np.cos(angles).sum(), rel=1e-6)


def test_similarity_of_a_learned_table_depends_on_more(learned) -> None:
    lowest, highest = similarity_by_offset(similarity(learned.positional_encoding(), cosine=True))
    assert (highest - lowest)[1:-1].min() > 0.01
    assert (lowest[0], highest[0]) == pytest.approx((1, 1))
