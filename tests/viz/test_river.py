"""A river is anywhere as wide as the sum so far, and what flows in or out is as wide as its share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viz.river import River

SHARES = arrays(float, st.integers(2, 14), elements=st.floats(-1, 1, width=16))


def river(shares: np.ndarray) -> River:
    names = [f"{step} <b>" for step in range(len(shares))]
    above = [False, *(step % 2 == 0 for step in range(1, len(shares)))]
    return River(names=names, shares=shares, above=above, chosen=1)


@given(SHARES)
def test_the_river_is_as_wide_as_the_sum_so_far_and_each_flow_as_its_share(shares: np.ndarray) -> None:
    shares[0] = abs(shares[0])
    body, *flows, _ = river(shares).draw().content["data"]
    upper, lower = np.split(body["y"], 2)
    widths = upper - lower[::-1]
    np.testing.assert_allclose(widths, np.repeat(np.cumsum(shares), 2), atol=1e-12)
    for flow, share in zip(flows, shares[1:], strict=True):
        inner, outer = np.split(flow["y"], 2)
        np.testing.assert_allclose(np.abs(outer[::-1] - inner), abs(share), atol=1e-12)


@given(SHARES)
def test_what_flows_in_ends_at_the_bank_that_it_widens_and_what_flows_out_begins_at_it(shares: np.ndarray) -> None:
    shares[0] = abs(shares[0])
    picture = river(shares)
    banks = picture.banks()
    _, *flows, _ = picture.draw().content["data"]
    for step, flow in enumerate(flows, start=1):
        half = len(flow["y"]) // 2
        assert flow["x"][half - 1] == flow["x"][half] == step
        assert (flow["x"][0] > step) == (shares[step] < 0)
        bank = banks[0 if picture.above[step] else 1]
        found = sorted([flow["y"][half - 1], flow["y"][half]])
        assert found == pytest.approx(sorted([bank[step - 1], bank[step]]), abs=1e-12)


def test_each_share_is_written_if_it_is_not_too_small() -> None:
    *_, texts = river(np.array([0.001, 0.7, 0.399, 0.001, -0.101])).draw().content["data"]
    assert [*texts["text"]] == ["0.1%", "70%", "40%", "", "−10%"]
    assert texts["customdata"][1][:2] == ["1 &lt;b&gt;", "70.00%"]
    assert [row[2] for row in texts["customdata"]] == pytest.approx([0.001, 0.701, 1.1, 1.101, 1.0])
