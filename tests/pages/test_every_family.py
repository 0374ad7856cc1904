"""The numbers in the figures of every page are those of the Trace, in every family of models."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.analysis.mechanisms.linear_attention import linear_attention, sweep_features
from model.analysis.mechanisms.sparse_patterns import measure_kept
from model.analysis.runs.attributions import measure_tokens
from model.analysis.runs.gradients import stream_gradients
from model.analysis.stream.residual_stream import measure_stream
from model.background.attention_costs import attention_costs
from model.background.layer_size import layer_sizes
from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint
from model.generation.beam_tree import search_again
from model.generation.sampling import Sampling, sample_again
from model.interventions import MaskEdit, PatternMask, ResidualOff, Unscaled
from model.needs import Need
from model.trace import Array, Attention, Trace
from tests.pages.figures import PRINTED, figure, numbers, read_number, words
from tests.pages.test_pages import said
from tests.viz.canvas.test_lines import decode as decode_lines
from tests.viz.canvas.test_mosaic import decode as decode_mosaic
from tests.viz.payload import decode, unpack

pytest.importorskip("streamlit")
pytestmark = pytest.mark.usefixtures("valid_figures")

SOURCE, TARGET = "Two dogs run.", "Zwei Hunde."
QUERIES: dict[str, dict[str, str]] = {
    "unscaled": {"target": "Typed", "typed": TARGET},
    "lm": {"new_tokens": "4"},
    "mlm": {},
    "GPT-2": {"new_tokens": "4"},
    "Gemma 2": {"new_tokens": "4"},
}
"""what each family's pages are opened with, besides the text"""
HEAD = 2
HIDDEN = "Two <mask> run."
WRITTEN = ("translate", "translate-certainty")
"""page and chart of the probability of each token of a translation"""


@dataclass
class Family:
    """A checkpoint, one run of it, and how to open a page on the same run."""

    opened: Any
    trace: Trace
    attention: Attention
    """of the last layer and the kind that the pages open"""
    open_page: Callable


@pytest.fixture(autouse=True)
def open_boxes() -> None:
    """Boxes and feet stay closed, as visitors find them: the figures stand outside."""


@pytest.fixture(params=QUERIES)
def family(request: pytest.FixtureRequest, open_app, families: Path, others: dict[str, str], monkeypatch) -> Family:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(families))
    query, name = QUERIES[request.param], request.param
    if name in others:
        name = others[name]
        monkeypatch.setenv(MODELS_VARIABLE, name)
    opened = load_checkpoint(name, "cpu")
    lengths = {"max_new_tokens": 4} if "new_tokens" in query else {}
    trace = opened.trace(SOURCE, TARGET) if "typed" in query else opened.trace(SOURCE, **lengths)
    kind = trace.kinds[0]
    place = {"kind": kind.title, "layer": str(kind.layers[-1]), "head": str(HEAD)}
    return Family(
        opened,
        trace,
        trace.attention(kind.name, kind.layers[-1]),
        lambda page, **more: open_app(
            f"pages/{page}.py", **{"checkpoint": name, "source": SOURCE, **place, **query, **more}
        ),
    )


def canvas(app: Any, name: str) -> bytes:
    """The payload of one of our own pictures."""
    (data,) = (found.proto.bytes for found in app.get("bidi_component") if found.proto.component_name == name)
    return data


def maps(app: Any, key: str) -> Iterator[Array]:
    """The heat maps of a chart, without those that hatch masked cells."""
    for drawn in figure(app, key)["data"]:
        if drawn["type"] == "heatmap" and len({colour for _, colour in drawn.get("colorscale", ((0, 0), (1, 1)))}) > 1:
            yield numbers(drawn["z"]).astype(float)


def masked(attention: Attention, values: Array, filler: float = np.nan) -> Array:
    """(query, key): what the head shows of `values`, with `filler` where it may not attend."""
    return np.where(attention.mask[HEAD], values[HEAD], filler)


def equal(drawn: Array, expected: Array, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(drawn, expected, rtol=tolerance, atol=tolerance)


def test_every_head_in_the_mosaic_the_lines_and_the_map(family: Family) -> None:
    app = family.open_page("heads_and_layers")
    header, groups = decode_mosaic(canvas(app, "mosaic"))
    for group, drawn in zip(header["groups"], groups, strict=True):
        kind = family.trace.kind(group["kind"])
        layers = [family.trace.attention(kind.name, layer) for layer in kind.layers]
        equal(drawn, np.stack([np.where(a.mask, a.pattern, np.nan) for a in layers]), 1e-5)
    _, lines = decode_lines(canvas(app, "lines"))
    equal(lines, np.where(family.attention.mask, family.attention.pattern, np.nan)[: len(lines)])
    equal(next(maps(app, "heads_and_layers-map")), masked(family.attention, family.attention.pattern))


def test_each_of_the_seven_steps(family: Family) -> None:
    a = family.attention
    expected = {
        2: {"scores": a.scores[HEAD], "K^T": a.k[HEAD].T},
        3: {"scaled": a.scaled[HEAD]},
        4: {"masked": masked(a, a.pre_softmax, -np.inf)},
        5: {"weights": a.pattern[HEAD]},
        6: {f"z_{HEAD}": a.z[HEAD]},
        7: {"out": a.out, "concat(z)": a.concat},
    }
    for step, matrices in expected.items():
        _, drawn = decode(canvas(family.open_page("attention_step_by_step", step=str(step)), "matrices"))
        for symbol, values in matrices.items():
            np.testing.assert_array_equal(drawn[symbol]["values"], values, err_msg=f"step {step}")


def test_the_scores_and_weights_of_temperature_and_masks(family: Family) -> None:
    a = family.attention
    _, drawn = decode(canvas(family.open_page("temperature"), "temperature"))
    np.testing.assert_array_equal(drawn["weights"]["values"], a.pattern[HEAD])
    np.testing.assert_array_equal(drawn["masked"]["values"], masked(a, a.pre_softmax, -np.inf))
    *_, before, after, weights = maps(family.open_page("masks"), "masks-maps")
    equal(before, a.pre_softmax[HEAD])
    equal(after, masked(a, a.pre_softmax))
    equal(weights, masked(a, a.pattern))


def test_the_residual_stream_and_the_input(family: Family) -> None:
    stream = list(family.trace.streams.values())[-1]
    app = family.open_page("layer_by_layer", layers_stack=stream.name.title())
    measured, token = measure_stream(family.trace, stream.name), app.selectbox(key="layers_token").value
    names = ("out", "added", "norm", "share", "to_start", "to_previous")
    for drawn, name in zip(figure(app, "layer_by_layer-path")["data"][: len(names)], names, strict=True):
        equal(numbers(drawn["y"]).astype(float), getattr(measured, name)[token])
    app = family.open_page("layer_by_layer", layers_stack=stream.name.title(), layers_tab="Inside one sub-layer")
    (strips,) = figure(app, "layer_by_layer-strips")["data"]
    last = stream.sublayers[-1]
    order = ("before", "normed", "out", "after") if last.norm_first else ("before", "out", "added", "normed")
    order = (*order[:2], "result", "out") if last.placement == "sandwich" else order
    equal(numbers(strips["z"])[:4], [getattr(last, name)[token] for name in order])
    app = family.open_page("tokens_and_embeddings")
    (strips,) = figure(app, "tokens_and_embeddings-strips")["data"]
    first, position = next(iter(family.trace.streams.values())), app.number_input(key="tokens_position").value
    equal(numbers(strips["z"]), [term[position] for term in first.embedded.terms.values()])


def test_the_lengths_and_heads_of_the_whole_model(family: Family) -> None:
    app = family.open_page("whole_model")
    header, arrays = unpack(canvas(app, "whole_model"))
    streams = family.trace.streams
    sublayers = {f"{s.stack}.{s.layer}.{s.name}": s for stream in streams.values() for s in stream.sublayers}
    for box in header["boxes"]:
        values = dict(zip(box["values"], arrays[f"{box['name']}.values"], strict=True))
        if box["name"] in sublayers:
            sublayer = sublayers.pop(box["name"])
            computed = sublayer.out if sublayer.result is None else sublayer.result
            equal(values["out"], np.linalg.norm(computed.astype(float), axis=-1), 1e-5)
        if box["heads"]:
            kind = "cross" if box["part"] == "cross_attn" else f"{box['stack']}_self"
            a = family.trace.attention(kind, box["layer"])
            weights = arrays[f"{a.path}.pattern"]
            assert np.array_equal(np.isnan(weights), ~a.mask)
            equal(weights[a.mask], a.pattern[a.mask], 0.5 / 254 + 1e-6)
    assert not sublayers


def test_linear_attention_and_the_cost_over_n(family: Family) -> None:
    a = family.attention
    app = family.open_page("efficient_attention", efficient="Linear attention", linear_features="64")
    run, sweep = linear_attention(a, HEAD, 64, 0), sweep_features(a, HEAD)
    for drawn, weights in zip(maps(app, "efficient_attention-maps"), (run.exact, run.random, run.elu), strict=True):
        equal(drawn, np.where(a.mask[HEAD], weights, np.nan))
    equal(numbers(figure(app, "efficient_attention-z")["data"][2]["y"]), sweep.z_band[1])
    assert ("this model caps its scores" in words(app)) == (a.softcap is not None and sweep.weights_limit > 1e-3)
    app = family.open_page("efficient_attention", efficient="Cost over n", cost_n="1,000,000")
    sizes = layer_sizes(family.trace, a.kind)
    assert len(sizes) == len(family.trace.kind(a.kind).layers)
    window = int(app.selectbox(key="cost_window").value)
    assert window == (a.window or 256)
    counted = attention_costs(sizes, 1_000_000, window, 256)
    for line, cost in zip(figure(app, "efficient_attention-work")["data"], counted.values(), strict=True):
        equal(numbers(line["y"])[-1], cost.multiply_adds)
    assert app.dataframe[0].value["multiply-adds"].tolist() == [f"{cost.multiply_adds:,}" for cost in counted.values()]


def test_sparse_patterns(family: Family) -> None:
    a = family.attention
    app = family.open_page("efficient_attention", efficient="Patterns", pattern_size="2")
    pattern = PatternMask(2)
    changed = family.opened.rerun(family.trace, (pattern,))
    after = changed.attention(a.kind, a.layer)
    queries, keys = np.indices(a.mask.shape[1:])
    np.testing.assert_array_equal(after.mask, a.mask & (np.abs(queries - keys) < 2))
    expected = (masked(a, a.pattern), masked(after, a.pattern), masked(after, after.pattern))
    for drawn, weights in zip(maps(app, "efficient_attention-maps"), expected, strict=True):
        equal(drawn, weights)
    means = numbers(figure(app, "efficient_attention-share")["data"][1]["y"])
    equal(means, measure_kept(family.trace, a.kind, pattern).share.mean(axis=1))
    assert f"{changed.log_probability:.3f}".replace("-", "−") in words(app)
    app.button(key="pattern_sweep").click().run()
    line, *_ = figure(app, "efficient_attention-sizes")["data"]
    sizes = numbers(line["x"]).astype(int).tolist()
    scores = [family.opened.rerun(family.trace, (PatternMask(size),)).log_probability for size in sizes]
    equal(numbers(line["y"]), np.array(scores), 1e-4)
    assert np.isclose(scores[-1], family.trace.log_probability)


def test_the_maps_of_side_by_side_and_what_if(family: Family) -> None:
    weights = masked(family.attention, family.attention.pattern)
    equal(next(maps(family.open_page("side_by_side"), "side_by_side-maps")), weights)
    app = family.open_page("what_if")
    equal(next(maps(app, "what_if-maps-0")), weights)
    app = family.open_page("what_if", part="Each token")
    before, after, _ = (numbers(bar["y"]) for bar in figure(app, "what_if-tokens")["data"])
    equal(before, family.trace.target_log_probabilities)
    equal(after, family.trace.target_log_probabilities)


def test_the_probabilities_of_what_is_written_or_filled_in(family: Family) -> None:
    trace = family.trace
    page, chart = {
        Need.LANGUAGE_MODEL: ("continue_text", "continue_text-certainty"),
        Need.MASKED_MODEL: ("fill_in", "fill_in-weights"),
    }.get(next(iter({Need.LANGUAGE_MODEL, Need.MASKED_MODEL} & family.opened.features), ""), WRITTEN)
    if page == "fill_in":
        trace = family.opened.trace(HIDDEN)
        place = trace.streams["encoder"].tokens.ids.index(family.opened.tokenizer.mask)
        app = family.open_page(page, source=HIDDEN)
        weights = trace.attention("encoder_self", family.attention.layer).pattern[HEAD, place]
        bars = figure(app, chart)["data"][0]
        equal(numbers(bars["x" if bars.get("orientation") == "h" else "y"]), weights)
        expected = [candidate.probability for candidate in trace.candidates[place]]
        drawn = numbers(figure(app, "fill_in-candidates")["data"][0]["x"])
        assert all(np.isclose(drawn, probability).any() for probability in expected[:3])
        return
    app = family.open_page(page)
    (bars,) = (numbers(drawn["y"]) for drawn in figure(app, chart)["data"] if drawn["type"] == "bar")
    equal(bars, trace.target_probabilities)


def test_attention_sinks(family: Family) -> None:
    a, trace = family.attention, family.trace
    app = family.open_page("efficient_attention", efficient="Sinks", sink_window="2")
    if Need.LANGUAGE_MODEL not in family.opened.features:
        assert "belong to causal language models" in words(app)
        return
    points, means, chosen = figure(app, "efficient_attention-weights")["data"]
    layers = trace.kind(a.kind).layers
    weights = np.array([trace.attention(a.kind, layer).pattern[:, 1:, 0].mean(axis=1) for layer in layers])
    equal(numbers(points["y"]), weights.ravel())
    equal(numbers(means["y"]), weights.mean(axis=1))
    equal(numbers(chosen["y"]), weights[-1:, HEAD])
    queries, keys = np.indices(a.mask.shape[1:])
    own = queries == keys
    near = np.abs(queries - keys) < 2
    allowed = (own | (keys != 0), own | (keys != 1), near, near | (keys == 0), near | (keys < 4) | (queries < 4))
    drawn = numbers(figure(app, "efficient_attention-bars")["data"][0]["y"])
    for difference, cells in zip(drawn, allowed, strict=True):
        forbidden = tuple(map(tuple, np.argwhere(~cells).tolist()))
        changed = family.opened.rerun(trace, (MaskEdit(forbidden),))
        equal(difference, changed.log_probability - trace.log_probability, 1e-4)


def test_the_gradients_through_the_layers_and_of_a_row(family: Family) -> None:
    app = family.open_page("gradients")
    assert not app.exception
    runs = [
        (),
        (ResidualOff(),),
        *([(Unscaled(),), (ResidualOff(), Unscaled())] if family.attention.scale != 1 else []),
    ]
    expected = [stream_gradients(family.opened, family.trace, changes) for changes in runs]
    for stack in family.trace.streams:
        for drawn, norms in zip(figure(app, f"gradients-{stack}")["data"], expected, strict=True):
            equal(numbers(drawn["y"]), norms[stack], 1e-3)
    kind = family.opened.kinds[-1]
    place = {"kind": kind.title, "layer": str(kind.layers[-1])}
    app = family.open_page("gradients", part="Does attention explain?", **place)
    assert not app.exception
    *_, measured = measure_tokens(family.opened, family.trace, kind.layers[-1], [len(family.trace.next_ids) // 2])
    for drawn, values in zip(figure(app, "gradients-measures")["data"], measured.values(), strict=True):
        shares = values[0] / values[0].sum()
        equal(numbers(drawn["y"]), shares[: len(numbers(drawn["y"]))], 1e-3)


def test_the_search_and_the_samples_of_decoding(family: Family) -> None:
    if Need.DECODER not in family.opened.features:
        assert "This page needs a decoder" in said(family.open_page("decoding"))
        return
    limit = (4,) if Need.LANGUAGE_MODEL in family.opened.features else ()
    app = family.open_page("decoding", **{"decoding-beam": "2"})
    assert not app.exception
    tree = search_again(family.opened.model, family.trace, 2, *limit)
    found = [tree.hypothesis(tree.ends[i], 0.6) for i in tree.ranking(0.6)]
    table = next(each.value for each in app.dataframe if "lp(Y)" in each.value)
    equal(table["log p(Y | X)"], [each.log_probability for each in found], 1e-4)
    app = family.open_page("decoding", part="Token by token")
    row = family.trace.first_written
    shares = numbers(figure(app, "decoding-next")["data"][0]["x"])
    assert np.isclose(shares, family.trace.candidates[row][0].probability).any()
    app = family.open_page("decoding", part="Sampling")
    samples = sample_again(family.opened.model, family.trace, Sampling(), 0, 5, *limit)
    equal(app.dataframe[0].value["log p(Y | X)"], [one.log_probability for one in samples], 1e-4)
    for part in ("Greedy", "Two temperatures", "Cost"):
        assert not family.open_page("decoding", part=part).exception


SINCE = ("RoPE", "RMSNorm", "Pre-norm", "SwiGLU", "Shared keys and values")


def test_the_parts_since_2017_are_those_of_the_model(family: Family) -> None:
    trace, place = family.trace, {"since_token": "2"}
    stack = family.trace.kind(family.attention.kind).queries
    apps = {tab: family.open_page("since_2017", since=tab, **place) for tab in SINCE}
    position = apps["Pre-norm"].selectbox(key="since_token").value
    assert not any(app.exception for app in apps.values())
    sublayer = next(
        s for s in trace.streams[stack].sublayers if s.layer == family.attention.layer and s.hidden is not None
    )
    _, neurons, *_ = figure(apps["SwiGLU"], "since_2017-activation")["data"]
    activated = sublayer.hidden if sublayer.gate is None else sublayer.gate
    drawn = numbers(neurons["y"])
    rows = [row for row in activated if len(row) == len(drawn) and np.allclose(row, drawn, rtol=1e-5, atol=1e-6)]
    assert len(rows) == 1
    measured = measure_stream(trace, stack)
    lengths = [numbers(line["y"]) for line in figure(apps["Pre-norm"], "since_2017-stream")["data"]]
    assert any(len(y) == len(measured.steps) and np.allclose(y, measured.norm[position], rtol=1e-4) for y in lengths)
    if family.attention.rotary is not None:
        text = words(apps["RoPE"])
        assert "angles that no single b gives" not in text
        error = read_number(re.search(rf"sum to it to within {PRINTED}\.(?!\d)", text)[1])
        assert error < 1e-4 * np.abs(family.attention.scores).max()
