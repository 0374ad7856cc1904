"""A head's weights: singular values are those of the whole product, and a head that copies is said to."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.head_weights import PROMOTED, copy_score, promoted_logits, singular_values, weight_arrays
from model.trace import Projections


def copying_head(d_model: int = 12, width: int = 5) -> Projections:
    """One head without biases whose W_V W_O projects onto `width` directions: what it reads there, it writes."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(d_model, width)))[0][None]
    none, zero = np.zeros((1, width)), np.zeros(d_model)
    return Projections(basis, basis, basis, none, none, none, basis.swapaxes(1, 2), zero, biases=False)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_the_squares_of_the_singular_values_sum_to_the_squares_of_the_product(trace, kind):
    for layer in (0, 1):
        learned = trace.attention(kind, layer).projections
        for head in range(4):
            found = singular_values(learned, head)
            products = {"qk": learned.w_q[head] @ learned.w_k[head].T, "ov": learned.w_v[head] @ learned.w_o[head]}
            for name, product in products.items():
                whole = np.linalg.svd(product.astype(np.float64), compute_uv=False)
                assert found[name].shape == (8,), "d_k: the other 24 are 0"
                assert found[name] == pytest.approx(whole[:8], rel=1e-4)
                assert whole[8:] == pytest.approx(0, abs=1e-5 * whole[0])
                assert (found[name] ** 2).sum() == pytest.approx((product.astype(np.float64) ** 2).sum(), rel=1e-5)


def test_a_head_that_copies_scores_1_one_that_suppresses_minus_1_and_one_that_swaps_0():
    learned, tokens = copying_head(), np.random.default_rng(1).normal(size=(40, 12))
    assert copy_score(learned, 0, tokens, tokens) == pytest.approx(1)
    assert copy_score(replace(learned, w_o=-learned.w_o), 0, tokens, tokens) == pytest.approx(-1)
    swap = np.eye(5)[[1, 0, 3, 2, 4]] * np.array([1, 1, 1, 1, 0])[:, None]
    orthogonal = np.linalg.qr(tokens)[0]  # U^T E = 1, so the eigenvalues are the swap's: two of 1, two of -1
    assert copy_score(replace(learned, w_v=learned.w_v @ swap), 0, orthogonal, orthogonal) == pytest.approx(0, abs=1e-9)
    assert copy_score(learned, 0, tokens, tokens[:20]) is None, "two vocabularies"


def test_the_eigenvalues_are_those_of_the_whole_matrix_of_the_vocabulary(translator, trace):
    learned, tokens = trace.attention("cross", 1).projections, translator.output_matrix()
    whole = np.linalg.eigvals(promoted_logits(learned, 2, tokens, tokens).astype(np.float64))
    found = copy_score(learned, 2, tokens, tokens)
    assert found == pytest.approx(whole.real.sum() / np.abs(whole).sum(), abs=1e-3)


def test_the_dictionary_is_what_the_head_would_add_to_the_logits(translator, trace):
    found, attention = weight_arrays(translator, trace, "cross", 1, 2), trace.attention("cross", 1)
    learned, output = attention.projections, translator.output_matrix()
    ids = list(trace.src_ids)
    own = translator.embedding_matrix("source")[ids] * translator.embedding_scale
    for name, x in {"embedding": own, "run": attention.key_input}.items():
        logits = x @ (learned.w_v[2] @ learned.w_o[2]) @ output.T
        assert found[f"{name}_ids"].shape == (len(ids), PROMOTED)
        assert found[f"{name}_logits"] == pytest.approx(-np.sort(-logits, axis=-1)[:, :PROMOTED], rel=1e-3, abs=1e-3)
        picked = np.take_along_axis(logits, found[f"{name}_ids"], axis=-1)
        assert picked == pytest.approx(found[f"{name}_logits"], rel=1e-3, abs=1e-3)


def test_the_encoder_of_a_translator_has_no_dictionary(translator, trace):
    assert weight_arrays(translator, trace, "encoder_self", 0, 0).keys() == {"qk", "ov"}
    assert "copy_score" in weight_arrays(translator, trace, "decoder_self", 0, 0)
