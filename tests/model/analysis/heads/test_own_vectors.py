"""The bench: equation 1 on typed vectors is what the formulas say, and what does not fit is told in a sentence."""

import numpy as np
import pytest

from model.analysis.heads.own_vectors import LARGEST, MOST_ROWS, MOST_WIDTH, attend, random_widths, read_rows
from model.language import Language, speaking

Q, K, V = np.array([[1.0, -2.0, 0.5]]), np.eye(4, 3), np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("1 0; 0 1", ("", ""), [[1, 0], [0, 1]]),
        ("cat 1, 0.5; dog -2 .25 ;", ("cat", "dog"), [[1, 0.5], [-2, 0.25]]),
        ("\u22123e-2", ("",), [[-0.03]]),
        ("1\uff0c0.5\uff1b0 1", ("", ""), [[1, 0.5], [0, 1]]),
    ],
)
def test_rows_are_read_as_they_are_typed(text: str, names: tuple, values: list) -> None:
    rows = read_rows(text, "Keys")
    assert rows.names == names
    np.testing.assert_array_equal(rows.values, values)


@pytest.mark.parametrize("text", ["cat 1 0,5; dog -2 ,25", "cat 1 0.5; dog -2 .25", "cat 1, 0,5; dog -2, 0.25"])
def test_where_the_language_has_a_decimal_comma_either_sign_is_read(text: str) -> None:
    with speaking(Language("xx", "Erfunden", decimal=",", group=".")):
        np.testing.assert_array_equal(read_rows(text, "Keys").values, [[1, 0.5], [-2, 0.25]])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ; ;",
            "cat",
            "1 2; 3",
            "1 two",
            "nan 1 nan",
            "1 inf",
            "1e999",
            f"{LARGEST * 2}",
            "1 2 <b>",
            "cat dog 1",
        ),
        "1;" * (MOST_ROWS + 1),
        "1 " * (MOST_WIDTH + 1),
        *("1" * 5000, "٣ ٤", "1 1_000"),
    ],
)
def test_what_is_no_row_of_numbers_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Keys: .+\.$") as told:
        read_rows(text, "Keys")
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("tau", [1.0, 0.05, 20.0])
@pytest.mark.parametrize(("divide", "divisor"), [(True, 3**0.5), (False, 1.0)])
def test_scores_weights_and_results_are_equation_1_at_any_temperature(divide: bool, divisor: float, tau: float) -> None:
    own = attend(Q, K, V, divide, tau)
    powers = np.exp(Q @ K.T / divisor / tau)
    np.testing.assert_allclose(own.weights, powers / powers.sum())
    np.testing.assert_allclose(own.z, own.weights @ V)
    np.testing.assert_allclose(own.scaled * own.divisor, own.scores)


def test_the_jacobian_is_the_derivative_of_the_weights() -> None:
    own, step = attend(Q, K, V, divide=True), 1e-6
    for key in range(len(K)):
        moved = own.scaled[0] + step * np.eye(len(K))[key]
        powers = np.exp(moved - moved.max())
        change = (powers / powers.sum() - own.weights[0]) / step
        np.testing.assert_allclose(own.jacobian(0)[:, key], change, atol=1e-5)
    np.testing.assert_allclose(own.jacobian(0).sum(axis=0), 0, atol=1e-15)


def test_the_steps_of_the_softmax_lead_to_the_weights_however_large_the_scores() -> None:
    own = attend(1e6 * Q, K, V, divide=False, tau=0.05)
    steps = own.softmax_steps(0)
    np.testing.assert_array_equal(steps["exponential"] / steps["exponential"].sum(), steps["weight"])
    assert own.z.tolist() == [V[0].tolist()], "a lookup"


@pytest.mark.parametrize(("q", "k", "v"), [(Q[:, :2], K, V), (Q, K, V[:3])])
def test_shapes_that_do_not_fit_are_told_in_a_sentence(q, k, v) -> None:
    with pytest.raises(ValueError, match=r"^(Queries have|Keys:) .+\.$"):
        attend(q, k, v, divide=True)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_products_have_the_variance_of_footnote_4_and_the_division_keeps_the_slope(seed: int) -> None:
    drawn = random_widths(40, seed)
    np.testing.assert_allclose(drawn.variance / drawn.widths, 1, atol=0.5)
    wide = drawn.widths >= 64
    assert (drawn.peak[wide] > 2 * drawn.divided_peak[wide]).all()
    wide = drawn.widths >= 256
    assert (drawn.slope[wide] < drawn.divided_slope[wide]).all()
    np.testing.assert_array_equal(drawn.peak[0], drawn.divided_peak[0], err_msg="√1 divides by nothing")
