"""Pictures of positional encoding show the model's own numbers (claims 11, 17 and 18)."""

import html
import math

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.position_table import (
    rotate,
    rotation_blocks,
    similarity,
    similarity_by_offset,
    wavelengths,
    wavelengths_in,
)
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.charts.position_waves import (
    block_equation,
    block_map,
    block_table,
    clock_chart,
    evenly_spaced_pairs,
    similarity_curve,
    wave_chart,
    wavelength_chart,
)
from viz.charts.positional_encoding import learned_and_sinusoidal_maps, similarity_map, sum_maps, table_map

SENTENCE = "Two young men are cooking in a kitchen."


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(SENTENCE)


@pytest.fixture(scope="module")
def encoding(translator: Translator) -> np.ndarray:
    return translator.positional_encoding()


@pytest.fixture(scope="module")
def waves(encoding: np.ndarray) -> np.ndarray:
    return wavelengths(encoding.shape[1])


def colours(figure: go.Figure) -> tuple[float, float]:
    return figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax


@pytest.mark.parametrize(("positions", "dimensions"), [(2, 2), (64, 32), (128, 7), (128, 32)])
def test_the_table_is_drawn_as_the_model_adds_it(
    encoding: np.ndarray, waves: np.ndarray, positions: int, dimensions: int
) -> None:
    figure = table_map(encoding[:positions, :dimensions], waves, 10)
    heat = figure.data[0]
    assert heat.z.dtype == np.float32
    assert np.array_equal(heat.z, encoding[:positions, :dimensions])
    assert colours(figure) == (-1, 1)
    assert figure.layout.yaxis.autorange == "reversed"
    assert len(figure.layout.xaxis.tickvals) <= 30


def test_the_tables_first_rows_are_what_was_added_to_the_sentence(
    encoding: np.ndarray, waves: np.ndarray, trace: Trace
) -> None:
    length = len(trace.src_tokens)
    figure = table_map(encoding, waves, length)
    assert np.array_equal(figure.data[0].z[:length], trace.src_embedded.positional)
    assert figure.layout.shapes[0].y0 == length - 0.5
    assert f"0 to {length - 1}" in figure.layout.annotations[0].text


def test_a_sentence_that_fills_the_picture_has_no_line(encoding: np.ndarray, waves: np.ndarray) -> None:
    assert table_map(encoding[:10], waves, 10).layout.shapes == ()


def test_hovering_names_the_formula_that_gives_the_number(encoding: np.ndarray, waves: np.ndarray) -> None:
    heat = table_map(encoding, waves, 5).data[0]
    d_model = encoding.shape[1]
    for dimension, name in enumerate(heat.x):
        pair = dimension // 2
        angle = 17 / 10_000 ** (2 * pair / d_model)
        value = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert name.startswith(f"dimension {dimension} (pair {pair})")
        assert f"{'cos' if dimension % 2 else 'sin'}(pos / 10000<sup>{2 * pair}/{d_model}</sup>)" in name
        assert heat.z[17, dimension] == pytest.approx(value, abs=1e-6)


def test_a_learned_table_claims_no_formula() -> None:
    heat = table_map(np.zeros((4, 2)), None, 2, (-0.5, 0.5)).data[0]
    assert tuple(heat.x) == ("dimension 0", "dimension 1")


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_sum_is_drawn_from_the_run_in_one_colour_range(trace: Trace, side: str) -> None:
    embedded, tokens = (
        (trace.src_embedded, trace.src_tokens) if side == "source" else (trace.tgt_embedded, trace.tgt_tokens)
    )
    figure = sum_maps(embedded.embedding, embedded.positional, embedded.sum, tokens)
    for heat, array in zip(figure.data, (embedded.embedding, embedded.positional, embedded.sum), strict=True):
        assert np.array_equal(heat.z, array)
        assert heat.coloraxis == "coloraxis"
        assert len(heat.y) == len(tokens)
    assert np.array_equal(figure.data[0].z + figure.data[1].z, figure.data[2].z)
    low, high = colours(figure)
    assert low == -high
    assert high == max(abs(heat.z).max() for heat in figure.data)


def test_tokens_never_become_markup_and_ticks_stay_few() -> None:
    zeros = np.zeros((100, 4), dtype=np.float32)
    figure = sum_maps(zeros, zeros, zeros, ("<b>x</b>",) * 100)
    assert figure.data[0].y[0] == "0 -" + html.escape("<b>x</b>")
    for axis in (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3):
        assert len(axis.tickvals) == len(axis.ticktext) <= 30
        assert all("<" not in text for text in axis.ticktext)


def test_wavelengths_are_drawn_as_measured_on_a_log_axis(encoding: np.ndarray, waves: np.ndarray) -> None:
    measured = wavelengths_in(encoding)
    figure = wavelength_chart(measured, waves, len(encoding), [5, 12])
    formula, table, first, second = figure.data
    assert np.array_equal(formula.y, waves)
    assert np.array_equal(table.y, measured)
    assert (first.x[0], first.y[0]) == (2, measured[2])
    assert (second.x[0], second.y[0]) == (6, measured[6])
    assert figure.layout.yaxis.type == "log"


def test_waves_are_columns_of_the_table_on_their_formula(encoding: np.ndarray, waves: np.ndarray) -> None:
    figure = wave_chart(encoding[:64], waves, [4, 9])
    guide, dots, _, other = figure.data
    assert np.array_equal(dots.y, encoding[:64, 4])
    assert np.array_equal(other.y, encoding[:64, 9])
    assert (dots.name, other.name) == ("4 sin", "9 cos")
    assert np.interp(dots.x, guide.x, guide.y) == pytest.approx(dots.y, abs=1e-2)


def test_similarities_are_drawn_row_by_row(encoding: np.ndarray) -> None:
    similarities = similarity(encoding)
    figure = similarity_map(similarities, "Dot product", 16.0)
    assert np.array_equal(figure.data[0].z, similarities)
    assert colours(figure) == (-16, 16)
    highest, lowest, row = similarity_curve(similarities, similarity_by_offset(similarities), 5, "Dot product").data
    assert np.array_equal(row.y, similarities[5])
    assert row.x[0] == -5
    assert row.y[list(row.x).index(0)] == pytest.approx(16)
    assert np.all(lowest.y <= row.y)
    assert np.all(row.y <= highest.y)


@pytest.mark.parametrize("pair", [0, 3, 15])
def test_clock_hands_end_where_the_table_says(encoding: np.ndarray, waves: np.ndarray, pair: int) -> None:
    rows = {"PE(5)": encoding[5], "PE(15)": encoding[15]}
    figure = clock_chart(
        rows, {"M PE(5)": rotate(encoding, 10)[5]}, sorted({*evenly_spaced_pairs(16), pair}), pair, waves
    )
    *hands, rings = figure.data
    pairs = hands[0].customdata[1::3, 2].astype(int)
    centres = 2.5 * np.arange(len(pairs))
    assert pair in pairs
    for hand, row in zip(hands, rows.values(), strict=True):
        assert hand.x[1::3] - centres == pytest.approx(row[2 * pairs + 1], abs=1e-5)
        assert np.array_equal(hand.y[1::3], row[2 * pairs])
        assert np.array_equal(hand.customdata[1::3, :2], np.stack([row[2 * pairs], row[2 * pairs + 1]], -1))
    assert rings.y == pytest.approx(hands[1].y[1::3], abs=1e-6)


def test_the_equation_shows_the_blocks_own_numbers(encoding: np.ndarray) -> None:
    block = rotation_blocks(encoding, 10)[3]
    latex = block_equation(block, encoding[5, 6:8], encoding[15, 6:8], 5, 10, 3)
    for value in (*block.ravel(), *encoding[5, 6:8], *encoding[15, 6:8]):
        assert f"{value:.5f}" in latex
    assert latex.count("{") == latex.count("}")


def test_learned_and_sinusoidal_tables_share_their_colours(encoding: np.ndarray) -> None:
    learned = 3 * encoding[::-1]
    figure = learned_and_sinusoidal_maps(learned, encoding)
    assert np.array_equal(figure.data[0].z, learned)
    assert np.array_equal(figure.data[1].z, encoding)
    assert colours(figure) == pytest.approx((-3, 3), abs=1e-5)


@pytest.mark.parametrize("pairs", [[0], [0, 3, 15]])
def test_blocks_stand_on_the_diagonal_with_their_own_numbers(encoding: np.ndarray, pairs: list[int]) -> None:
    blocks = rotation_blocks(encoding, 10)[pairs]
    figure = block_map(blocks, pairs, 10)
    matrix = figure.data[0].z
    for i, block in enumerate(blocks):
        cells = slice(2 * i, 2 * i + 2)
        assert matrix[cells, cells] == pytest.approx(block)
    assert np.isnan(matrix).sum() == matrix.size - 4 * len(pairs)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)
    assert list(figure.data[0].x)[-1] == f"{2 * pairs[-1] + 1} cos"


def test_the_table_of_blocks_gives_each_pairs_turn_and_error(waves: np.ndarray) -> None:
    errors = np.arange(16) * 1e-8
    table = block_table([0, 3], waves, 10, errors)
    assert list(table["pair"]) == [0, 3]
    assert table["rotation"][0] == f"{360 * 10 / (2 * math.pi):,.4g}°"
    assert list(table["largest error"]) == ["0.0e+00", "3.0e-08"]


@pytest.mark.parametrize(("pairs", "found"), [(1, [0]), (3, [0, 1, 2]), (128, [0, 25, 51, 76, 102, 127])])
def test_pairs_are_spread_from_the_first_to_the_last(pairs: int, found: list[int]) -> None:
    assert evenly_spaced_pairs(pairs) == found
