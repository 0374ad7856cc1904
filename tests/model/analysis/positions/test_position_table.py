"""The table of positions (section 3.5): what the model adds, its wavelengths, similarities and rotations."""

import math
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.positions.position_table import (
    rotate,
    rotation_blocks,
    similarity,
    similarity_by_offset,
    wavelengths,
    wavelengths_in,
)
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.network.embedding import sinusoids
from tests.model.tiny import random_model


@pytest.fixture(scope="module", params=[(128, 32), (512, 128), (512, 512)], ids=str)
def encoding(request: pytest.FixtureRequest) -> np.ndarray:
    return sinusoids(*request.param).numpy()


@pytest.fixture(scope="module")
def learned(tiny_config: TransformerConfig, tokenizer: Tokenizer) -> Translator:
    model = random_model(replace(tiny_config, positions="learned"))
    return Translator(name="learned", hash="0" * 64, model=model, tokenizer=tokenizer)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_table_is_the_buffer_that_the_model_adds(translator: Translator, side: str) -> None:
    trace = translator.trace("Two young men are cooking in a kitchen.")
    added = trace.src_embedded.positional if side == "source" else trace.tgt_embedded.positional
    encoding = translator.positional_encoding(side)
    assert np.array_equal(encoding[: len(added)], added)
    assert len(encoding) == translator.model.config.max_len


def test_sines_and_cosines_are_interleaved_as_in_the_paper(translator: Translator) -> None:
    encoding = translator.positional_encoding()
    for position, pair in ((0, 0), (1, 0), (7, 3), (127, 15)):
        angle = position / 10_000 ** (2 * pair / encoding.shape[1])
        assert encoding[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-7)
        assert encoding[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-7)


def test_a_changed_copy_leaves_the_model_as_it_is(translator: Translator) -> None:
    before = translator.positional_encoding()
    translator.positional_encoding()[:] = 7
    assert np.array_equal(translator.positional_encoding(), before)


def test_learned_tables_are_one_for_each_side(learned: Translator) -> None:
    trace = learned.trace("A dog runs.")
    for side, embedded in (("source", trace.src_embedded), ("target", trace.tgt_embedded)):
        assert np.array_equal(learned.positional_encoding(side)[: len(embedded.positional)], embedded.positional)
    assert not np.array_equal(learned.positional_encoding("source"), learned.positional_encoding("target"))


def test_wavelengths_measured_in_the_table_are_those_of_the_formula(encoding: np.ndarray) -> None:
    formula = wavelengths(encoding.shape[1])
    assert formula[0] == pytest.approx(2 * math.pi)
    assert formula[-1] < 2 * math.pi * 10_000
    assert wavelengths_in(encoding) == pytest.approx(formula, rel=1e-6)


def test_one_matrix_takes_every_position_k_steps_on(encoding: np.ndarray) -> None:
    for k in (*range(0, len(encoding), 16), len(encoding) - 1):
        assert np.abs(rotate(encoding, k) - encoding[k:]).max() < 5e-7


def test_blocks_are_rotations(encoding: np.ndarray) -> None:
    blocks = rotation_blocks(encoding, 10)
    assert blocks.shape == (encoding.shape[1] // 2, 2, 2)
    assert blocks @ blocks.transpose(0, 2, 1) == pytest.approx(np.broadcast_to(np.eye(2), blocks.shape), abs=1e-6)
    assert np.linalg.det(blocks) == pytest.approx(1, abs=1e-6)


def test_similarity_depends_on_distance_alone(encoding: np.ndarray) -> None:
    lowest, highest = similarity_by_offset(similarity(encoding))
    half = encoding.shape[1] / 2
    assert lowest[0] == pytest.approx(half)
    assert (highest - lowest).max() < 1e-6 * half
    assert similarity(encoding, cosine=True) == pytest.approx(similarity(encoding) / half, abs=1e-6)
    angles = 3 * 2 * np.pi / wavelengths(encoding.shape[1])
    assert lowest[3] == pytest.approx(np.cos(angles).sum(), rel=1e-6)


def test_similarity_of_a_learned_table_depends_on_more(learned: Translator) -> None:
    lowest, highest = similarity_by_offset(similarity(learned.positional_encoding(), cosine=True))
    assert (highest - lowest)[1:-1].min() > 0.01
    assert (lowest[0], highest[0]) == pytest.approx((1, 1))
