"""What a view draws is the trace's in every family of models.

test_views.py compares the arrays of our own pictures; the tests of each page have the rest, on a translator.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.runs.attributions import measure_tokens
from model.analysis.runs.gradients import stream_gradients
from model.analysis.stream.residual_stream import measure_stream
from model.generation.beam_tree import search_again
from model.generation.sampling import Sampling, sample_again
from model.interventions import MaskEdit, ResidualOff, Unscaled
from model.run import Place, Run
from model.trace import Array
from pages.views.attention.heads_and_layers import heads
from pages.views.attention.masks import masks
from pages.views.beyond import efficient_attention as efficient
from pages.views.beyond import since_2017 as since
from pages.views.experiment import side_by_side, what_if
from pages.views.explore import continue_text, translate
from pages.views.model import decoding, gradients, layer_by_layer, whole_model
from pages.views.model.tokens_and_embeddings import tokens
from tests.pages.figures import ends, figure, lines, maps, numbers, seen
from tests.viz.payload import unpack

FAMILIES = "unscaled", "lm", "mlm", "GPT-2", "Gemma 2"
HEAD, TOKEN = 2, 2


@pytest.fixture(params=FAMILIES)
def run(request: pytest.FixtureRequest, family_run: Callable[[str], Run]) -> Run:
    return family_run(request.param)


def equal(drawn: Array, expected: Array, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(drawn, expected, rtol=tolerance, atol=tolerance)


def test_11_maps_have_the_scores_and_weights_of_the_head(run: Run) -> None:
    a = run.attention
    scores, before_softmax, weights = maps(masks(run), "maps")[-3:]
    equal(scores, a.pre_softmax[HEAD])
    equal(before_softmax, seen(a.pre_softmax[HEAD], a.mask[HEAD]))
    same = maps(side_by_side.maps(run, right=run), "maps")[0], maps(what_if.outcome(run, changed=run), "maps")[0]
    for drawn in (weights, maps(heads(run), "map")[0], *same):
        equal(drawn, seen(a.pattern[HEAD], a.mask[HEAD]))


def test_the_probabilities_are_those_of_the_tokens_that_were_written(run: Run) -> None:
    for drawn in ends(what_if.tokens(run, changed=run), "tokens"):
        equal(drawn, run.trace.target_log_probabilities)
    for view in (translate.certainty, continue_text.certainty):
        if not view.missing(run):
            equal(lines(view(run), "certainty")[0], run.trace.target_probabilities)


def test_the_residual_stream_and_the_input(run: Run) -> None:
    streams = list(run.trace.streams.values())
    stream, measured = streams[-1], measure_stream(run.trace, streams[-1].name)
    names = ("out", "added", "norm", "share", "to_start", "to_previous")
    drawn = figure(layer_by_layer.path(run, stack=stream.name, token=TOKEN), "path")["data"]
    for line, name in zip(drawn[: len(names)], names, strict=True):
        equal(numbers(line["y"]).astype(float), getattr(measured, name)[TOKEN])
    (strips,) = figure(layer_by_layer.inside(run, stack=stream.name, token=TOKEN), "strips")["data"]
    last = stream.sublayers[-1]
    order = ("before", "normed", "out", "after") if last.norm_first else ("before", "out", "added", "normed")
    order = (*order[:2], "result", "out") if last.placement == "sandwich" else order
    equal(numbers(strips["z"])[:4], [getattr(last, name)[TOKEN] for name in order])
    (strips,) = figure(tokens(run, position=TOKEN), "strips")["data"]
    equal(numbers(strips["z"]), [term[TOKEN] for term in streams[0].embedded.terms.values()])


def test_every_sub_layer_has_its_lengths_in_the_picture_of_the_whole_model(run: Run) -> None:
    header, arrays = unpack(whole_model.figure(run).shows["whole_model"].drawing.data)
    sublayers = {f"{s.stack}.{s.layer}.{s.name}": s for s in run.trace.sublayers}
    for box in header["boxes"]:
        if sublayer := sublayers.pop(box["name"], None):
            values = dict(zip(box["values"], arrays[f"{box['name']}.values"], strict=True))
            computed = sublayer.out if sublayer.result is None else sublayer.result
            equal(values["out"], np.linalg.norm(computed.astype(float), axis=-1), 1e-5)
    assert not sublayers


@pytest.mark.parametrize("name", ["lm", "GPT-2", "Gemma 2"])
def test_attention_sinks(name: str, family_run: Callable[[str], Run]) -> None:
    run = family_run(name)
    result, trace = efficient.sinks(run, window=2), run.trace
    points, means, chosen = lines(result, "weights")
    layers = trace.kind(run.kind).layers
    weights = np.array([trace.attention(run.kind, layer).pattern[:, 1:, 0].mean(axis=1) for layer in layers])
    equal(points, weights.ravel())
    equal(means, weights.mean(axis=1))
    equal(chosen, weights[-1:, HEAD])
    queries, keys = np.indices(run.attention.mask.shape[1:])
    own, near = queries == keys, np.abs(queries - keys) < 2
    allowed = (own | (keys != 0), own | (keys != 1), near, near | (keys == 0), near | (keys < 4) | (queries < 4))
    for difference, cells in zip(lines(result, "bars")[0], allowed, strict=True):
        forbidden = tuple(map(tuple, np.argwhere(~cells).tolist()))
        changed = run.opened.rerun(trace, (MaskEdit(forbidden),))
        equal(difference, changed.log_probability - trace.log_probability, 1e-4)


def test_the_gradients_through_the_layers_and_of_a_row(run: Run) -> None:
    scaled = [(Unscaled(),), (ResidualOff(), Unscaled())] if run.attention.scale != 1 else []
    expected = [stream_gradients(run.opened, run.trace, changes) for changes in ((), (ResidualOff(),), *scaled)]
    result = gradients.layers(run)
    for stack in run.trace.streams:
        for drawn, norms in zip(lines(result, stack), expected, strict=True):
            equal(drawn, norms[stack], 1e-3)
    kind, row = run.opened.kinds[-1], len(run.trace.next_ids) // 2
    placed = replace(run, place=Place(kind.name, kind.layers[-1], HEAD))
    *_, measured = measure_tokens(run.opened, run.trace, kind.layers[-1], [row])
    for drawn, values in zip(lines(gradients.explanation(placed, row=row), "measures"), measured.values(), strict=True):
        equal(drawn, (values[0] / values[0].sum())[: len(drawn)], 1e-3)


@pytest.mark.parametrize("name", ["unscaled", "GPT-2", "Gemma 2"])
def test_the_search_and_the_samples_of_decoding(name: str, family_run: Callable[[str], Run]) -> None:
    run = family_run(name)
    limit = (run.request.continuation.max_new_tokens,) if run.request.continuation else ()
    tree = search_again(run.opened.model, run.trace, 2, *limit)
    found = [tree.hypothesis(tree.ends[place], 0.6) for place in tree.ranking(0.6)]
    table = decoding.beam_search(run, beam=2).shows["hypotheses"]
    equal(table["log p(Y | X)"], [each.log_probability for each in found], 1e-4)
    samples = sample_again(run.opened.model, run.trace, Sampling(), 0, 5, *limit)
    table = decoding.samples(run, seed=0).shows["samples"]
    equal(table["log p(Y | X)"], [one.log_probability for one in samples], 1e-4)


def test_the_parts_since_2017_are_those_of_the_model(run: Run) -> None:
    trace, stack = run.trace, run.stream.name
    sublayer = next(s for s in run.stream.sublayers if s.layer == run.layer and s.hidden is not None)
    drawn = lines(since.gate(run, token=TOKEN), "activation")[1]
    equal(drawn, (sublayer.hidden if sublayer.gate is None else sublayer.gate)[TOKEN], 1e-5)
    lengths, measured = lines(since.placement(run, token=TOKEN), "stream"), measure_stream(trace, stack)
    expected = measured.norm[TOKEN]
    assert any(len(y) == len(expected) and np.allclose(y, expected, rtol=1e-4) for y in lengths)
    if run.attention.rotary is not None:
        assert since.rope(run, token=TOKEN, key=1).facts["off"] < 1e-4 * np.abs(run.attention.scores).max()
