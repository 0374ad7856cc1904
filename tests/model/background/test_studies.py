"""Our own runs beside the paper's: when a difference counts, and how sure an exponent is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.background.studies import ROWS, compare_with_paper, ends_of_runs, fit_power_law, judge
from model.background.table_3 import TABLE_3
from model.commands import ablations


def table(**bleus: list[float]) -> pd.DataFrame:
    """ablations.csv with these BLEU scores, and 100 divided by each as perplexity."""
    rows = [(row, seed, 1000, 100 / bleu, bleu) for row, found in bleus.items() for seed, bleu in enumerate(found)]
    return pd.DataFrame(rows, columns=["row", "seed", "parameters", "perplexity", "bleu"])


def test_rows_are_those_that_are_trained_and_the_papers_rows_are_in_its_table() -> None:
    assert list(ROWS) == list(ablations.ROWS)
    assert {row.paper for row in ROWS.values()} - {""} <= {row.change for row in TABLE_3}


@pytest.mark.parametrize(
    ("own", "base", "expected", "verdict"),
    [
        ([18, 18.5, 19], [20, 20.5, 21], -0.9, "agrees"),
        ([18, 18.5, 19], [20, 20.5, 21], 0.4, "disagrees"),
        ([18, 18.5, 19], [20, 20.5, 21], 0.0, "disagrees"),
        ([18, 18.5, 19], [20, 20.5, 21], None, "no such row"),
        ([19.6, 20.1, 20.4], [20, 20.5, 21], -0.9, "within the seeds' spread"),
        ([18, 20, 22], [20.9, 21, 21.1], -0.9, "within the seeds' spread"),
        ([18], [20, 20.5, 21], -0.9, "one seed"),
        ([18, 19], [20], -0.9, "one seed"),
    ],
)
def test_a_difference_counts_only_beyond_the_range_of_the_seeds(own, base, expected, verdict) -> None:
    assert judge(np.array(own, float), np.array(base, float), expected) == verdict


def test_a_row_is_compared_with_the_mean_of_base_and_with_the_papers_row() -> None:
    base, one = compare_with_paper(table(**{"heads-1": [18.0, 18.4], "base": [20.0, 20.4]}))
    assert (base.name, one.name) == ("base", "heads-1")
    assert one.bleu_difference == pytest.approx(-2.0)
    assert one.perplexity_ratio == pytest.approx((100 / 18 + 100 / 18.4) / (100 / 20 + 100 / 20.4))
    assert (one.bleu_verdict, one.perplexity_verdict) == ("agrees", "agrees")
    assert one.paper.bleu == 24.9


def test_without_base_or_any_run_there_is_nothing_to_compare() -> None:
    assert compare_with_paper(pd.DataFrame()) == []
    assert compare_with_paper(table(**{"heads-1": [18.0]})) == []


@given(exponent=st.floats(-2, 2), factor=st.floats(0.1, 100), n=st.integers(3, 8))
def test_an_exact_power_law_is_read_back_without_uncertainty(exponent: float, factor: float, n: int) -> None:
    x = np.geomspace(10, 1e6, n)
    law = fit_power_law(x, factor * x**-exponent)
    assert law.exponent == pytest.approx(exponent, abs=1e-9)
    assert law.interval < 1e-9


def test_the_interval_of_four_points_holds_the_true_exponent_19_times_in_20() -> None:
    numbers, x, held = np.random.default_rng(0), np.geomspace(1e4, 1e7, 4), 0
    for _ in range(2000):
        law = fit_power_law(x, 50 * x**-0.08 * np.exp(numbers.normal(0, 0.02, 4)))
        held += abs(law.exponent - 0.08) <= law.interval
    assert 0.93 < held / 2000 < 0.97


def test_too_few_points_have_no_interval() -> None:
    with pytest.raises(ValueError, match="needs 3 to 8 points"):
        fit_power_law([1, 2], [3, 4])


def test_the_end_of_a_run_has_its_compute() -> None:
    columns = ["run", "parameters", "embedding_parameters", "tokens", "dev_loss"]
    curves = pd.DataFrame(
        [("b", 900, 400, 10, 5.0), ("b", 900, 400, 20, 4.0), ("a", 500, 400, 20, 6.0)], columns=columns
    )
    ends = ends_of_runs(curves)
    assert ends["run"].tolist() == ["a", "b"]
    assert ends["dev_loss"].tolist() == [6.0, 4.0]
    assert ends["compute"].tolist() == [6 * 100 * 20, 6 * 500 * 20]
