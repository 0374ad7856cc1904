"""A head whose queries and keys are normalised and rotated between projection and product."""

import numpy as np

from tests.viz.payload import decode
from viz.steps.head import Choice, head_of
from viz.steps.steps import picture


def test_the_first_step_shows_what_the_matrix_gives_and_what_is_multiplied_afterwards(rotated_attention):
    head = head_of(rotated_attention, 1)
    assert head.then == "normalise, rotate"
    header, drawn = decode(picture(0, head, Choice(), "title"))
    assert "b_Q" not in drawn, "this model learned no biases, so none is drawn"
    for name in "QKV":
        linear = drawn[f"{name}_pre" if name != "V" else name]["values"]
        assert np.allclose(drawn["X"]["values"] @ drawn[f"W_{name}"]["values"], linear, atol=1e-5)
        assert np.array_equal(drawn[name]["values"], getattr(rotated_attention, name.lower())[1])
    assert ("V_pre" in drawn, header["facts"]["linear_q"]) == (False, "qk_norm.q")
    _, drawn = decode(picture(1, head, Choice(), "title"))
    assert np.allclose(drawn["Q"]["values"] @ drawn["K^T"]["values"], drawn["scores"]["values"], atol=1e-4)
