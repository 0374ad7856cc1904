"""Layer by layer: measures, vectors, lens and neurons are the run's, and what is not there falls back."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.stream.logit_lens import logit_lens
from model.analysis.stream.residual_stream import cosines, layer_norm, measure_stream, neurons, residual_stream
from model.analysis.written import shares_of_last
from model.checkpoints.translator import Translator
from model.network.dropout import Dropout
from model.network.residual import Residual
from pages.views.model import layer_by_layer
from tests.pages.conftest import TYPED
from tests.pages.figures import figure, lines, maps

PAGE = "pages/layer_by_layer.py"


def test_the_map_of_all_tokens_shows_the_chosen_measure(run_at: Callable) -> None:
    for stack in ("encoder", "decoder"):
        expected = measure_stream(run_at().trace, stack)
        result = layer_by_layer.path(run_at(), stack=stack, measure="share", token=3, step=2)
        *_, points = figure(result, "path")["data"]
        np.testing.assert_array_equal(maps(result, "path")[0], expected.share.astype(np.float32))
        for token, step, name, _, value in points["customdata"]:
            assert value == expected.share[token, step]
            assert name == expected.steps[step]


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_river_carries_what_each_sublayer_wrote_of_the_tokens_last_vector(run_at: Callable, stack: str) -> None:
    run = run_at()
    result = layer_by_layer.path(run, stack=stack, token=1, step=2)
    *flows, texts = figure(result, "river")["data"]
    shares = shares_of_last(run.trace, stack, 1)[:-1]
    assert result.shows["river"].shares == pytest.approx(shares)
    assert result.shows["river"].clicked({"point_index": 1})["step"] == 1
    assert len(flows) == len(texts["text"]) == len(run.trace.streams[stack].sublayers) + 1
    assert result.facts["most"][0] == measure_stream(run.trace, stack).steps[int(shares.argmax())]


def test_one_sublayer_shows_the_four_vectors_and_its_norm(run_at: Callable) -> None:
    result = layer_by_layer.inside(run_at(), stack="decoder", token=2, step=5, dimension=7)
    sublayer = run_at().trace.streams["decoder"].sublayers[4]
    norm = layer_norm(sublayer, 2)
    colours = figure(result, "strips")["layout"]["coloraxis"]
    vectors = [getattr(sublayer, name)[2] for name in ("before", "out", "added", "normed")]
    assert np.array_equal(maps(result, "strips")[0], [*vectors, norm.gamma, norm.beta])
    assert colours["cmax"] == -colours["cmin"] == np.abs([*vectors, norm.gamma, norm.beta]).max()
    table = result.shows["table"]
    assert list(table["mean"]) == pytest.approx([v.mean(dtype=float) for v in vectors])
    assert table["mean"][2] == pytest.approx(norm.mean)
    assert r"\gamma_{7}" in result.facts["equation"]


def test_the_lens_shows_what_every_step_would_say(run_at: Callable) -> None:
    run = run_at()
    expected, result = logit_lens(run.opened, run.trace), layer_by_layer.lens(run, token=2, every=True)
    assert np.array_equal(maps(result, "lens")[0], expected.probabilities[:, 2].astype(np.float32))
    for name in ("probability", "rank"):
        assert np.array_equal(lines(result, name)[0], getattr(expected, name)[:, 2])
    assert np.array_equal(maps(result, "lens-map")[0], expected.probability.T.astype(np.float32))
    assert result.facts["apart"] == expected.difference
    ends = layer_by_layer.lens(run, token=2)
    assert len(maps(ends, "lens")[0]) == 1 + run.opened.config.n_decoder_layers


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_neurons_are_those_of_the_chosen_layer(run_at: Callable, stack: str) -> None:
    run = run_at()
    sublayer = next(s for s in run.trace.streams[stack].sublayers if s.layer == 0 and s.name == "feed_forward")
    expected, result = neurons(run.opened, sublayer, 1, 10), layer_by_layer.neurons(run, stack=stack, token=1, step=2)
    bars, marked = lines(result, "neurons")
    assert np.array_equal(bars, sublayer.hidden[1])
    assert sorted(np.flatnonzero(~np.isnan(marked))) == sorted(expected.top)
    assert np.array_equal(marked[expected.top], sublayer.hidden[1][expected.top])
    table = result.shows["table"].frame
    assert list(table["neuron"]) == list(expected.top)
    assert result.facts["active"] == (sublayer.hidden[1] > 0).sum()
    if stack == "decoder":
        predicted = run.trace.logits[1].argmax()
        assert list(table["for what is predicted"]) == pytest.approx(list(expected.logits[:, predicted]))


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, hidden=None),
        lambda one: replace(one, name="experts"),
        lambda one: replace(one, out=one.out[:, :5]),
    ],
    ids=["not recorded", "not a feed-forward", "narrower than the output matrix"],
)
def test_neurons_that_could_not_be_read_are_not_drawn(run_at: Callable, change: Callable) -> None:
    """In the chosen layer; in the others they are."""
    run = run_at()
    stream = run.trace.streams["decoder"]
    sublayers = [change(one) if (one.layer, one.name) == (1, "feed_forward") else one for one in stream.sublayers]
    trace = replace(run.trace, streams={**run.trace.streams, "decoder": replace(stream, sublayers=sublayers)})
    run = replace(run, trace=trace)
    unread = layer_by_layer.neurons(run, step=5)
    assert not unread.arrays()
    assert (unread.values["most"], unread.facts["read"]) == (None, False)
    assert len(layer_by_layer.neurons(run, step=2).arrays()["hidden"]) == run.opened.config.d_ff


def test_similarity_is_that_of_the_chosen_step_and_the_blocks_add_up_to_the_model(run_at: Callable) -> None:
    expected = cosines(residual_stream(run_at().trace, "encoder")[3])
    drawn = maps(layer_by_layer.similarity(run_at(), stack="encoder", step=3), "similarity")[0]
    assert np.array_equal(drawn, expected.astype(np.float32))
    together = list(layer_by_layer.parameters(run_at()).shows["parameters"].frame["together"])
    assert together[-1] == sum(run_at().opened.parameters_by_part().values()) == sum(together[:-1])


def test_what_another_stack_or_sentence_lacks_becomes_its_last(open_app: Callable) -> None:
    app = open_app(PAGE, **TYPED)
    app.selectbox(key="layers_token").set_value(5)
    app.selectbox(key="layers_step").set_value(6).run()
    app.segmented_control(key="layers_stack").set_value("encoder").run()
    assert app.selectbox(key="layers_step").value == 4
    app.text_area(key="source").set_value("A").run()
    last = len(app.selectbox(key="layers_token").options) - 1
    assert app.selectbox(key="layers_token").value == last < 5


def test_dropout_acts_where_it_is_said(translator: Translator) -> None:
    """On each sub-layer's output and on the sums of embeddings and positions, and nowhere else."""
    model = type(translator.model)(replace(translator.model.config, dropout=0.5))
    places = {path.removesuffix(".dropout") for path, part in model.named_modules() if isinstance(part, Dropout)}
    sublayers = {path for path, part in model.named_modules() if isinstance(part, Residual)}
    assert places == sublayers | {"src_embedding", "tgt_embedding"}
    assert not translator.model.training
