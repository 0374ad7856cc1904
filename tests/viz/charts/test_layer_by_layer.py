"""Pictures of a token's way through a stack show the numbers they are given, on the axes they name."""

import numpy as np
import pytest

from model.analysis.logit_lens import logit_lens
from model.analysis.residual_stream import cosines, measure_stream, neurons, residual_stream
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.charts.layer_by_layer import MEASURES, path_chart, path_table, similarity_map
from viz.charts.logit_lens import lens_curves, lens_grid, lens_map, neuron_chart, neuron_table
from viz.heatmap import vector_strips
from viz.latex import block_equation
from viz.tokens import numbered


def measured(trace: Trace, stack: str = "decoder") -> tuple:
    found = measure_stream(trace, stack)
    tokens = trace.src_tokens if stack == "encoder" else trace.tgt_tokens
    return {name: getattr(found, name) for name in (*MEASURES, "added")}, found.steps, (numbered(tokens), tokens)


@pytest.mark.parametrize("shown", list(MEASURES))
def test_the_map_shows_all_tokens_in_a_stated_range(trace: Trace, shown: str) -> None:
    measures, steps, names = measured(trace)
    heat = path_chart(measures, steps, names, (1, 2), shown).data[-2]
    assert np.array_equal(heat.z, measures[shown].astype(np.float32), equal_nan=True)
    assert (heat.zmin, heat.zmax)[0] == (-1 if MEASURES[shown].cosine else 0)
    assert heat.zmax >= np.nanmax(measures[shown])
    assert f"{heat.zmax:.3g}" in heat.colorbar.title.text


def test_every_point_says_which_token_and_step_a_click_on_it_chooses(trace: Trace) -> None:
    measures, steps, names = measured(trace)
    figure = path_chart(measures, steps, names, (1, 2), "share")
    for lines in figure.data[:6]:
        assert [tuple(point[:2]) for point in lines.customdata] == [(1, step) for step in range(len(steps))]
    cells = figure.data[-1]
    for x, y, (token, step, name, _, value) in zip(cells.x, cells.y, cells.customdata, strict=True):
        assert (y, x) == (token, step)
        assert name == steps[step]
        assert value == measures["share"][token, step]


def test_long_sentences_get_few_ticks_and_tokens_never_become_markup() -> None:
    tokens = ["<b>x</b>"] * 100
    measures = {name: np.full((100, 3), 0.5) for name in (*MEASURES, "added")}
    figure = path_chart(measures, ["input", "0 a", "0 b"], (numbered(tokens), tokens), (99, 2), "norm")
    rows = figure.layout.yaxis3
    assert len(rows.tickvals) == len(rows.ticktext) <= 30
    texts = [*rows.ticktext, *(said[3] for said in figure.data[-1].customdata)]
    assert not any("<" in text for text in texts)
    assert "<b>x" not in figure.layout.legend.title.text
    assert not any("<" in name for name in similarity_map(np.eye(100), numbered(tokens)).data[0].x)


def test_strips_share_one_range_and_frame_the_dimension() -> None:
    vectors = {"one": np.array([0.5, -3.0]), "two": np.array([1.0, 2.0])}
    figure = vector_strips(vectors, 1, (-3, 3), "dimension", 300)
    heat = figure.data[0]
    assert np.array_equal(heat.z, [*vectors.values()])
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-3, 3)
    assert figure.layout.coloraxis.colorbar.ticktext == ("−3", "0", "3")
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)


def test_similarities_keep_their_places(trace: Trace) -> None:
    values = cosines(residual_stream(trace, "encoder")[1])
    heat = similarity_map(values, numbered(trace.src_tokens)).data[0]
    assert np.array_equal(heat.z, values.astype(np.float32))
    assert (heat.zmin, heat.zmax) == (-1, 1)


def test_the_table_lists_tokens_first(trace: Trace) -> None:
    measures, steps, (rows, _) = measured(trace)
    table = path_table(measures, steps, rows)
    assert list(table["step"][: len(steps)]) == list(steps)
    assert set(table["token"][: len(steps)]) == {rows[0]}
    assert np.array_equal(table["norm"].to_numpy().reshape(len(rows), -1), measures["norm"])


def test_the_lens_frames_the_token_it_follows(trace: Trace, translator: Translator) -> None:
    found, tokens = logit_lens(translator, trace), translator.tokenizer.tokens
    tops = [tokens(ids) for ids in found.top[:, 1].tolist()]
    followed = tokens([int(found.predicted[1])])[0]
    grid = lens_grid(tops, found.probabilities[:, 1], found.steps, followed)
    assert np.array_equal(grid.data[0].z, found.probabilities[:, 1].astype(np.float32))
    framed = {(round(s.y0 + 0.46), round(s.x0 + 0.48)) for s in grid.layout.shapes}
    assert framed == {(i, j) for i, row in enumerate(tops) for j, token in enumerate(row) if token == followed}
    assert (len(tops) - 1, 0) in framed
    curves = lens_curves(found.probability[:, 1], found.rank[:, 1], found.steps, trace.logits.shape[-1])
    assert np.array_equal(curves.data[1].y, found.rank[:, 1])
    names = numbered(trace.tgt_tokens), tokens(found.predicted.tolist())
    heat = lens_map(found.probability.T, found.rank.T, found.steps, names, 1).data[0]
    assert np.array_equal(heat.z, found.probability.T.astype(np.float32))
    assert np.array_equal(heat.customdata, found.rank.T)


def test_neurons_keep_their_numbers(trace: Trace, translator: Translator) -> None:
    sublayer = trace.streams["encoder"].sublayers[1]
    found = neurons(translator, sublayer, 0, 5)
    bars, top = neuron_chart(found.hidden, found.top).data
    assert np.array_equal(bars.y, sublayer.hidden[0])
    assert np.array_equal(top.y, sublayer.hidden[0][found.top])
    table = neuron_table(found.top, found.hidden, found.written, [["\u2581a", "b"]] * 5, np.ones((5, 2)))
    assert list(table["neuron"]) == list(found.top)
    assert table["raises the logits of"][0] == "a +1.00   -b +1.00"


def test_the_equation_works_out_the_dimension_in_the_order_of_the_norm() -> None:
    numbers = {"before": 1.0, "out": -0.5, "added": 0.5, "normed": 2.25}
    numbers |= {"mean": 0.25, "std": 0.125, "gamma": 1.0, "beta": 0.25}
    post, pre = (block_equation(numbers, 3, before, "LayerNorm") for before in (False, True))
    assert post.index("s_{3} &=") < post.index("LayerNorm}(s)")
    assert pre.index("LayerNorm}(x)_{3} &=") < pre.index("s_{3} &=")
    assert r"\frac{0.500000 - 0.250000}{0.125000}" in post
    assert r"\mathbf{2.25000}" in post
