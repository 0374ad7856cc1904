"""A head whose queries and keys are normalised and rotated between projection and product."""

import numpy as np

from viz.canvas.matrices import Matrix
from viz.steps.head import head_of
from viz.steps.steps import STEPS


def test_the_first_step_shows_what_the_matrix_gives_and_what_is_multiplied_afterwards(rotated_attention):
    head = head_of(rotated_attention, 1)
    assert head.then == "normalise, rotate"
    for name, equation in zip("QKV", STEPS[0].equations(head), strict=True):
        x, w, *results = (part.values for part in equation if isinstance(part, Matrix))
        assert np.allclose(x @ w, results[0], atol=1e-5), "this model learned no biases, so none is drawn"
        assert np.array_equal(results[-1], getattr(rotated_attention, name.lower())[1])
        assert len(results) == (1 if name == "V" else 2)
    (scores,) = STEPS[1].equations(head)
    q, k, product = (part.values for part in scores if isinstance(part, Matrix))
    assert np.allclose(q @ k, product, atol=1e-4)
