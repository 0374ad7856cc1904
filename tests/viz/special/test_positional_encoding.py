"""Pictures of positional encoding show the model's own numbers (claims 11, 17 and 18)."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.positions.position_table import rotate, rotation_blocks, wavelengths
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.special.position_waves import block_equation, block_map, clock_chart, wave_chart
from viz.special.positional_encoding import PositionMap, VectorMaps, dimension_formulas, end_of_text

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
    values, explained = encoding[:positions, :dimensions], dimension_formulas(dimensions, waves)
    figure = PositionMap(values=values, limits=(-1, 1), title="dimension", explained=explained).draw()
    heat = figure.data[0]
    assert heat.z.dtype == np.float32
    assert np.array_equal(heat.z, values)
    assert colours(figure) == (-1, 1)
    assert figure.layout.yaxis.autorange == "reversed"
    assert len(figure.layout.xaxis.tickvals) <= 30


def test_sines_stand_beside_cosines_with_their_own_numbers_and_dimensions(
    encoding: np.ndarray, waves: np.ndarray
) -> None:
    explained, marks = dimension_formulas(encoding.shape[1], waves), end_of_text(9, len(encoding), "your sentence")
    table = PositionMap(
        values=encoding,
        limits=(-1, 1),
        title="dimension",
        explained=explained,
        halves=("Sines", "Cosines"),
        marks=marks,
    )
    figure = table.draw()
    for half, heat in enumerate(figure.data):
        assert np.array_equal(heat.z, encoding[:, half::2])
        assert list(heat.x) == explained[half::2]
    axes = figure.layout.xaxis, figure.layout.xaxis2
    assert [int(text) % 2 for axis in axes for text in axis.ticktext] == [0] * 8 + [1] * 8
    assert np.array_equal(table.arrays()[""], encoding)
    assert [(shape.yref, shape.y0) for shape in figure.layout.shapes] == [("y", 8.5), ("y2", 8.5)]


@pytest.mark.parametrize("length", [1, 9])
def test_a_line_stands_below_the_rows_that_the_text_uses(encoding: np.ndarray, length: int) -> None:
    marks = end_of_text(length, len(encoding), "your sentence")
    figure = PositionMap(values=encoding, limits=(-1, 1), title="dimension", marks=marks).draw()
    assert figure.layout.shapes[0].y0 == figure.layout.annotations[0].y == length - 0.5
    assert (f"0 to {length - 1}" in figure.layout.annotations[0].text) == (length > 1)
    assert not end_of_text(len(encoding), len(encoding), "your sentence")


def test_hovering_names_the_formula_that_gives_the_number(encoding: np.ndarray, waves: np.ndarray) -> None:
    d_model = encoding.shape[1]
    for dimension, name in enumerate(dimension_formulas(d_model, waves)):
        pair = dimension // 2
        angle = 17 / 10_000 ** (2 * pair / d_model)
        value = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert name.startswith(f"dimension {dimension} (pair {pair})")
        assert f"{'cos' if dimension % 2 else 'sin'}(pos / 10000<sup>{2 * pair}/{d_model}</sup>)" in name
        assert encoding[17, dimension] == pytest.approx(value, abs=1e-6)


def test_a_learned_table_claims_no_formula() -> None:
    assert dimension_formulas(2, None) == ["dimension 0", "dimension 1"]


@pytest.mark.parametrize("side", ["source", "target"])
def test_maps_of_vectors_are_the_runs_in_one_colour_range(trace: Trace, side: str) -> None:
    embedded, tokens = (
        (trace.src_embedded, trace.src_tokens) if side == "source" else (trace.tgt_embedded, trace.tgt_tokens)
    )
    figure = VectorMaps(maps=embedded.terms, tokens=tokens).draw()
    for heat, array in zip(figure.data, embedded.terms.values(), strict=True):
        assert np.array_equal(heat.z, array)
        assert heat.coloraxis == "coloraxis"
        assert len(heat.y) == len(tokens)
    low, high = colours(figure)
    assert low == -high
    magnitudes = np.abs(np.stack([heat.z for heat in figure.data]))
    assert (magnitudes > high).mean() == pytest.approx(0.01, abs=0.005)
    assert [text[0] for text in figure.layout.coloraxis.colorbar.ticktext] == ["≤", "0", "≥"]


def test_a_range_that_holds_all_numbers_claims_none_beyond_it(encoding: np.ndarray) -> None:
    picture = VectorMaps(maps={"sines and cosines": np.round(encoding), "zeros": 0 * encoding})
    assert (picture.limits, picture.beyond) == ((-1.0, 1.0), 0.0)
    assert "≥" not in str(picture.draw().layout.coloraxis.colorbar.ticktext)


@pytest.mark.parametrize("size", [2, 7, 16])
def test_waves_stand_with_all_sines_first_and_every_number_keeps_the_name_of_its_dimension(
    encoding: np.ndarray, size: int
) -> None:
    table = encoding[:9, :size]
    (heat,) = VectorMaps(maps={"": table}, waves=True).draw().data
    assert len(heat.x) == size
    for column, name in enumerate(heat.x):
        dimension, wave = name.split()
        assert np.array_equal(heat.z[:, column], table[:, int(dimension)].astype(np.float32))
        assert wave == ("cos" if int(dimension) % 2 else "sin")
    shown = [int(name.split()[0]) for name in heat.x]
    assert shown == [*range(0, size, 2), *range(1, size, 2)]


def test_waves_are_columns_of_the_table_on_their_formula(encoding: np.ndarray, waves: np.ndarray) -> None:
    figure = wave_chart(encoding[:64], waves, [4, 9])
    guide, dots, _, other = figure.data
    assert np.array_equal(dots.y, encoding[:64, 4])
    assert np.array_equal(other.y, encoding[:64, 9])
    assert (dots.name, other.name) == ("4 sin", "9 cos")
    assert np.interp(dots.x, guide.x, guide.y) == pytest.approx(dots.y, abs=1e-2)


@pytest.mark.parametrize("pairs", [[0, 6, 15], [3], [0, 15]])
def test_clock_hands_end_where_the_table_says(encoding: np.ndarray, waves: np.ndarray, pairs: list[int]) -> None:
    rows = {"PE(5)": encoding[5], "PE(15)": encoding[15]}
    *hands, rings = clock_chart(rows, {"M PE(5)": rotate(encoding, 10)[5]}, pairs, pairs[-1], waves).data
    shown = hands[0].customdata[1::3, 2].astype(int)
    assert shown.tolist() == pairs
    for hand, row in zip(hands, rows.values(), strict=True):
        assert hand.x[1::3] - 2.5 * np.arange(len(pairs)) == pytest.approx(row[2 * shown + 1], abs=1e-5)
        assert np.array_equal(hand.y[1::3], row[2 * shown])
        assert np.array_equal(hand.customdata[1::3, :2], np.stack([row[2 * shown], row[2 * shown + 1]], -1))
    assert rings.y == pytest.approx(hands[1].y[1::3], abs=1e-6)


def test_the_equation_shows_the_blocks_own_numbers(encoding: np.ndarray) -> None:
    block = rotation_blocks(encoding, 10)[3]
    latex = block_equation(block, encoding[5, 6:8], encoding[15, 6:8], 5, 10, 3)
    for value in (*block.ravel(), *encoding[5, 6:8], *encoding[15, 6:8]):
        assert f"{value:.5f}" in latex
    assert latex.count("{") == latex.count("}")


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
