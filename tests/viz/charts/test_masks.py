"""Pictures of masks show the run's own numbers, and masked cells have no colour (claims 11 to 13 and 18)."""

import numpy as np
import pytest

from model.analysis.padded_batch import run_padded
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.charts.masks import (
    future_weight_map,
    leak_table,
    mask_maps,
    masking_bars,
    pad_names,
    padding_maps,
    probability_bars,
)
from viz.heatmap import cells_table, row_names

KINDS = ("encoder_self", "decoder_self", "cross")


def cells(trace: Trace, kind: str, head: int = 1) -> tuple:
    attention = trace.attention(kind, 1)
    rows = row_names(attention.query_tokens, None if kind == "encoder_self" else trace.next_tokens)
    return (
        rows,
        pad_names(attention.key_tokens, 0),
        *(getattr(attention, n)[head] for n in ("mask", "scaled", "pattern")),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_four_maps_are_the_runs_mask_scores_and_weights(trace: Trace, kind: str) -> None:
    rows, keys, mask, scaled, weights = cells(trace, kind)
    figure = mask_maps(rows, keys, mask, scaled, weights)
    drawn = [heat for heat in figure.data if "masked" not in heat.hovertemplate]
    for heat, expected in zip(drawn, (np.ones_like(scaled), scaled, scaled, weights), strict=True):
        shown = np.where(mask, expected, np.nan) if heat is not drawn[1] else expected
        assert np.array_equal(heat.z, shown, equal_nan=True)
        assert len(heat.y) == len(rows) == len(set(heat.y))
        assert len(heat.x) == len(keys) == len(set(heat.x))


def test_a_masked_cell_has_no_colour_and_says_why(trace: Trace) -> None:
    rows, keys, mask, scaled, weights = cells(trace, "decoder_self")
    figure = mask_maps(rows, keys, mask, scaled, weights)
    hidden = [heat for heat in figure.data if "masked" in heat.hovertemplate]
    assert len(hidden) == len(figure.layout.images) == 3
    for heat in hidden:
        assert np.array_equal(np.isnan(heat.z), mask)
        assert {colour for _, colour in heat.colorscale} == {"rgba(0,0,0,0)"}


def test_nothing_is_hatched_where_nothing_is_masked(trace: Trace) -> None:
    assert len(mask_maps(*cells(trace, "cross")).data) == 4
    assert not mask_maps(*cells(trace, "cross")).layout.images


def test_both_score_maps_share_one_range_that_the_bar_states(trace: Trace) -> None:
    rows, keys, mask, scaled, weights = cells(trace, "decoder_self")
    axis = mask_maps(rows, keys, mask, scaled, weights).layout.coloraxis
    limit = np.abs(scaled).max()
    assert (axis.cmin, axis.cmax) == (-limit, limit)
    assert f"{limit:.3g}" in axis.colorbar.title.text
    weight_axis = mask_maps(rows, keys, mask, scaled, weights).layout.coloraxis2
    assert (weight_axis.cmin, weight_axis.cmax) == (0, 1)


def test_a_decoder_row_says_what_it_reads_and_predicts(trace: Trace) -> None:
    rows = row_names(trace.tgt_tokens, trace.next_tokens)
    assert rows[0].startswith("0 reads <s>, predicts ")
    assert row_names(trace.src_tokens, None)[-1].endswith("</s>")


def test_long_sentences_get_few_ticks_and_tokens_never_become_markup() -> None:
    names = [f"{i} <b>x</b>" for i in range(100)]
    values = np.tri(100, dtype=np.float32)
    figure = mask_maps(names, names, values > 0, values, values)
    for axis in (figure.layout.xaxis, figure.layout.yaxis, figure.layout.xaxis4):
        assert len(axis.tickvals) == len(axis.ticktext) <= 30
        assert all("<" not in text for text in axis.ticktext)
    assert all("<" not in name for heat in figure.data for name in (*heat.x, *heat.y))


def test_a_single_cell_is_drawn() -> None:
    one = np.ones((1, 1), dtype=np.float32)
    assert mask_maps(["0 a"], ["0 a"], one > 0, one, one).data[3].z == 1


@pytest.mark.parametrize("kind", KINDS)
def test_padding_maps_stand_side_by_side_with_pads_uncoloured(trace: Trace, translator: Translator, kind: str) -> None:
    rows, keys, mask, _, alone = cells(trace, kind)
    run = run_padded(translator, trace, kind, 1, 3)
    figure = padding_maps(rows, keys, run.mask[1], alone, run.pattern[1])
    left, right = (heat for heat in figure.data if "masked" not in heat.hovertemplate)
    hidden = figure.data[-1]
    assert np.array_equal(left.z, np.where(mask, alone, np.nan), equal_nan=True)
    assert np.array_equal(right.z[:, :-3], np.where(mask, run.pattern[1][:, :-3], np.nan), equal_nan=True)
    assert np.isnan(right.z[:, -3:]).all()
    assert np.array_equal(np.isnan(hidden.z), run.mask[1])
    assert all("&lt;pad&gt;" in name for name in right.x[-3:])


def test_bars_of_the_three_ways_state_their_sums() -> None:
    ways = {"one": np.array([0.25, 0.75]), "two": np.array([0.25, 0.0]), "three": np.array([1.0, 0.0])}
    figure = masking_bars(["0 <a>", "1 b"], ways)
    for bar, (way, values) in zip(figure.data, ways.items(), strict=True):
        assert np.array_equal(bar.y, values)
        assert bar.name == f"{way}: sum {values.sum():.6f}"
        assert bar.x[0] == "0 &lt;a&gt;"


def test_probabilities_stand_before_after_and_as_their_difference() -> None:
    before, after = np.array([0.1, 0.9]), np.array([0.6, 0.5])
    bars = probability_bars(("<b>", "x"), before, after)
    assert [list(bar.y) for bar in bars.data] == [list(before), list(after), list(after - before)]
    assert bars.layout.yaxis.range == (-1, 1)
    assert "<b>" not in bars.data[0].customdata


def test_leaks_are_drawn_a_head_a_row() -> None:
    mass = np.array([[0.5, 0.25, 0], [0.1, 0.2, 0]])
    heat = future_weight_map(mass, ["0 a", "1 b", "2 c"]).data[0]
    assert heat.z == pytest.approx(mass)
    assert (heat.zmin, heat.zmax) == (0, 1)
    table = leak_table(["a", "b", "c"], mass[0], mass[1], mass[0], mass[1])
    assert list(table["difference"]) == pytest.approx(list(mass[1] - mass[0]))


def test_the_table_lists_queries_first(trace: Trace) -> None:
    rows, keys, mask, scaled, weights = cells(trace, "cross")
    table = cells_table(rows, keys, {"visible": mask, "scaled_score": scaled, "weight": weights})
    assert list(table["key"][: len(keys)]) == keys
    assert list(table["query"][: len(keys)]) == [rows[0]] * len(keys)
    assert np.array_equal(table["weight"].to_numpy().reshape(weights.shape), weights)
