"""Formulas and numbers as text."""

import pytest

from viz.latex import attention_formula, error_text, scaled_scores, signed


def test_scores_are_divided_where_the_model_divides_them() -> None:
    assert scaled_scores(0.125) == r"\frac{QK^{\top}}{\sqrt{d_k}}"
    assert scaled_scores(0.125, more=r"\tau ") == r"\frac{QK^{\top}}{\tau \sqrt{d_k}}"
    assert scaled_scores(1.0, r"q_i \cdot k_j") == r"q_i \cdot k_j"
    assert scaled_scores(1.0, more=r"\tau ") == r"\frac{QK^{\top}}{\tau }"


@pytest.mark.parametrize("step", range(7))
def test_the_formula_of_a_head_leaves_out_a_division_that_the_model_leaves_out(step: int) -> None:
    own, room = attention_formula(step, 4, 1, False, 1.0)[1].split(r"\vphantom")
    assert "sqrt" not in own
    assert own.count("{") == own.count("}")
    divided = attention_formula(step, 4, 1, False, 0.5)[1]
    assert r"\sqrt{d_k}" in divided.split(r"\vphantom")[0]
    assert divided.split(r"\vphantom")[1] == room, "so that nothing moves between the steps"


def test_numbers_have_a_true_minus_sign_and_rounding_has_two_digits() -> None:
    assert (signed(-4.5), signed(0.25, "+.3f"), signed(-0.25, "+.3f")) == ("−4.5", "+0.250", "−0.250")
    assert (error_text(1.234e-7), error_text(0.0)) == ("1.2e-07", "0")
