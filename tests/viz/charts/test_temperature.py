"""Pictures of temperature show the run's own numbers, one range for what is compared, and tokens as text."""

import math

import numpy as np
import pytest

from model.analysis.distributions import entropy
from model.analysis.softmax import entropy_by_temperature, product_statistics, softmax_at
from model.trace import Trace
from tests.viz.payload import KINDS, decode
from viz.charts.masks import probability_bars, weight_maps
from viz.charts.scaling import runs_chart, runs_table, score_histogram, variances_chart
from viz.charts.temperature import entropy_chart, live_weights, row_panels
from viz.heatmap import cells_table
from viz.tokens import numbered

TAUS = np.logspace(-2, 2, 9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_payload_holds_the_heads_scores_and_weights(trace: Trace, kind: str) -> None:
    attention = trace.attention(kind, 1)
    names = numbered(attention.query_tokens), numbered(attention.key_tokens)
    cells = {name: getattr(attention, name)[2] for name in ("mask", "scaled", "pattern")}
    payload = live_weights(names, (), cells, title="t", temperature=0.3, taus=(0.3, 1.0), row=1, scope="this head")
    header, found = decode(payload)
    assert np.array_equal(found["weights"]["values"], cells["pattern"])
    assert np.array_equal(found["masked"]["values"], np.where(cells["mask"], cells["scaled"], -np.inf))
    assert np.array_equal(found["weights"]["allowed"], cells["mask"])
    assert (found["weights"]["low"], found["weights"]["high"]) == (0, 1)
    assert (header["temperature"], header["taus"], header["row"]) == (0.3, [0.3, 1.0], 1)
    assert found["weights"]["rows"]["labels"] == names[0]


def test_a_panel_a_temperature_shows_one_rows_weights_without_masked_keys(trace: Trace) -> None:
    attention = trace.attention("decoder_self", 0)
    scaled, mask = attention.scaled[1][2], attention.mask[1][2]
    weights = {f"{tau:g}": softmax_at(scaled, mask, tau) for tau in (0.5, 2.0)}
    panels = {title: (found, float(entropy(found))) for title, found in weights.items()}
    keys = [f"{i} <b>" for i in range(len(mask))]
    figure = row_panels(keys, mask, panels)
    for bars, expected in zip(figure.data, weights.values(), strict=True):
        assert np.array_equal(bars.y, np.where(mask, expected, np.nan), equal_nan=True)
        assert "<b>" not in bars.customdata[0]
    for title, (_, bits) in panels.items():
        assert f"{title}:  entropy {bits:.3f} bits" in [note.text for note in figure.layout.annotations]
    assert {tuple(axis.range) for axis in figure.select_yaxes()} == {(0, 1.02)}


def test_a_hundred_keys_get_few_ticks() -> None:
    weights = np.full(100, 0.01)
    figure = row_panels([f"{i} x" for i in range(100)], np.ones(100, dtype=bool), {"a": (weights, 1.0)})
    assert len(figure.layout.xaxis.tickvals) <= 30


@pytest.mark.parametrize("visible", [1, 3])
def test_entropy_is_drawn_between_its_limits(trace: Trace, visible: int) -> None:
    attention = trace.attention("decoder_self", 0)
    curves = entropy_by_temperature(attention.scaled[0], attention.mask[0], TAUS)
    figure = entropy_chart(TAUS, curves[:, visible - 1], curves.mean(axis=1), visible, 0.3)
    row, head = figure.data
    assert np.array_equal(row.y, curves[:, visible - 1])
    assert np.array_equal(head.y, curves.mean(axis=1))
    heights = {line.y0 for line in figure.layout.shapes if line.y0 == line.y1}
    assert heights == {0, math.log2(visible)}
    assert any("τ = 0.3" in note.text for note in figure.layout.annotations)


def test_products_are_counted_once_each_in_bins_of_one_width(trace: Trace) -> None:
    attention = trace.attention("cross", 1)
    scores, scaled = attention.scores[0].ravel(), attention.scaled[0].ravel()
    figure = score_histogram(scores, scaled)
    for bars, values in zip(figure.data, (scores, scaled), strict=True):
        assert sum(bars.customdata) == len(values)
        assert sum(bars.y) == pytest.approx(1)
        assert f"{values.astype(float).var():.3g}" in bars.name
    assert figure.data[0].width == figure.data[1].width


def test_the_variance_of_every_head_stands_beside_d_k(trace: Trace) -> None:
    attention = trace.attention("encoder_self", 0)
    found = [product_statistics(attention, head) for head in range(attention.n_heads)]
    measured, independent = np.array([f.variance for f in found]), np.array([f.if_independent for f in found])
    bars, dots, line = variances_chart(measured, independent, attention.d_k, 2).data
    assert np.array_equal(bars.y, measured)
    assert np.array_equal(dots.y, independent)
    assert set(line.y) == {attention.d_k}


def test_versions_of_the_weights_share_one_range_and_their_hatching(trace: Trace) -> None:
    attention = trace.attention("decoder_self", 1)
    mask, names = attention.mask[0], numbered(attention.key_tokens)
    maps = {title: attention.pattern[head] for head, title in enumerate(("a", "b", "c"))}
    figure = weight_maps(names, names, mask, maps)
    drawn = [heat for heat in figure.data if "masked" not in heat.hovertemplate]
    for heat, values in zip(drawn, maps.values(), strict=True):
        assert np.array_equal(heat.z, np.where(mask, values, np.nan), equal_nan=True)
    assert len(figure.layout.images) == 3
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)


def test_probabilities_say_what_was_changed() -> None:
    bars = probability_bars(("x",), np.array([0.1]), np.array([0.3]), ("τ = 1", "τ = 2"))
    assert [bar.name for bar in bars.data][:2] == ["before: τ = 1", "after: τ = 2"]


def test_runs_at_many_temperatures_are_a_dot_and_a_line_each() -> None:
    taus, logs, bits = (0.5, 1.0, 2.0), np.array([-2.0, -0.5, -4.0]), np.array([0.1, 1.0, 2.0])
    left, right = runs_chart(taus, logs, bits).data
    assert (list(left.x), list(left.y), list(right.y)) == (list(taus), list(logs), list(bits))
    table = runs_table(taus, ["a", "b", "c"], logs, bits, bits)
    assert list(table["output"]) == ["a", "b", "c"]
    assert list(table["ln probability of the plain output"]) == list(logs)


def test_the_table_lists_queries_first() -> None:
    weights = np.arange(6).reshape(2, 3)
    table = cells_table(["0 a", "1 b"], ["0 c", "1 d", "2 e"], {"visible": weights > 0, "weight": weights})
    assert list(table["query"]) == ["0 a"] * 3 + ["1 b"] * 3
    assert list(table["weight"]) == list(range(6))
