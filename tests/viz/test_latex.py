"""Formulas and numbers as text."""

import math
from types import SimpleNamespace

import pytest

from viz.latex import attention_formula, block_equation, error_text, scaled_scores, signed


def a_head(scale: float, softcap: float | None = None, bias: bool = False, **more: object) -> SimpleNamespace:
    """With what the formulas ask of an attention or of one of its heads."""
    numbers = {"scale": scale, "d_k": 64, "softcap": softcap, "bias": bias or None, "adds_bias": bias}
    return SimpleNamespace(**numbers, n_heads=4, index=1, crosses=False, **{"learns_biases": True, **more})


def test_scores_are_divided_where_the_model_divides_them() -> None:
    assert scaled_scores(a_head(0.125)) == r"\frac{QK^{\top}}{\sqrt{d_k}}"
    assert scaled_scores(a_head(0.125), tau=True) == r"\frac{QK^{\top}}{\tau \sqrt{d_k}}"
    assert scaled_scores(a_head(1.0), r"q_i \cdot k_j") == r"q_i \cdot k_j"
    assert scaled_scores(a_head(1.0), tau=True) == r"\frac{QK^{\top}}{\tau }"
    assert scaled_scores(a_head(0.1)) == r"\frac{QK^{\top}}{10.00}", "as Gemma 2 of 27B, which divides by another root"


def test_soft_caps_and_biases_are_part_of_what_the_softmax_reads() -> None:
    assert scaled_scores(a_head(0.125, 50.0)) == r"50\tanh\!\left(\frac{QK^{\top}}{50\,\sqrt{d_k}}\right)"
    assert scaled_scores(a_head(1.0, bias=True), "s", "b", tau=True) == r"\left(s + b\right) / \tau"
    capped = attention_formula(3, a_head(0.125, 50.0, bias=True))[1]
    assert r"50\tanh\Big(" in capped
    assert " + B" in capped
    assert capped.count("{") == capped.count("}")
    assert "b_Q" not in attention_formula(0, a_head(0.125, learns_biases=False))[0]
    assert "b_O" not in attention_formula(6, a_head(0.125, learns_biases=False))[1]


@pytest.mark.parametrize("step", range(7))
def test_the_formula_of_a_head_leaves_out_a_division_that_the_model_leaves_out(step: int) -> None:
    own, room = attention_formula(step, a_head(1.0))[1].split(r"\vphantom")
    assert "sqrt" not in own
    assert own.count("{") == own.count("}")
    divided = attention_formula(step, a_head(0.125))[1]
    assert r"\sqrt{d_k}" in divided.split(r"\vphantom")[0]
    assert divided.split(r"\vphantom")[1] == room, "so that nothing moves between the steps"


def test_numbers_have_a_true_minus_sign_and_rounding_has_two_digits() -> None:
    assert (signed(-4.5), signed(0.25, "+.3f"), signed(-0.25, "+.3f")) == ("−4.5", "+0.250", "−0.250")
    assert (error_text(1.234e-7), error_text(0.0)) == ("1.2 · 10⁻⁷", "0")
    assert (signed(-math.inf, ".1f"), signed(math.inf)) == ("−∞", "∞")


def test_the_equation_works_out_the_dimension_in_the_order_of_the_norm() -> None:
    numbers = {"before": 1.0, "out": -0.5, "added": 0.5, "normed": 2.25}
    numbers |= {"mean": 0.25, "std": 0.125, "gamma": 1.0, "beta": 0.25}
    post, pre = (block_equation(numbers, 3, before, "LayerNorm") for before in (False, True))
    assert post.index("s_{3} &=") < post.index("LayerNorm}(s)")
    assert pre.index("LayerNorm}(x)_{3} &=") < pre.index("s_{3} &=")
    assert r"\frac{0.500000 - 0.250000}{0.125000}" in post
    assert r"\mathbf{2.25000}" in post
