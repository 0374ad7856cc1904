"""The page "Layer by layer" without a browser: its figures are the run's tensors, its tabs hold at the extremes."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.stream.logit_lens import logit_lens
from model.analysis.stream.residual_stream import cosines, layer_norm, measure_stream, neurons, residual_stream
from model.network.dropout import Dropout
from model.network.residual import Residual
from model.run import Run
from pages.views import words as texts
from pages.views.model import layer_by_layer
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/layer_by_layer.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
TYPED = {"source": SOURCE, "target": "Typed", "typed": TEXT}


def choose(app, token: int, step: int):
    app.selectbox(key="layers_token").set_value(token)
    return app.selectbox(key="layers_step").set_value(step).run()


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_path_shows_the_chosen_tokens_measures_and_everybodys_map(
    open_app: Callable, translator: "Translator", stack: str
) -> None:
    app = open_app(PAGE, **TYPED, layers_stack=stack.title())
    app.selectbox(key="layers_measure").set_value("share").run()
    choose(app, 3, 2)
    assert not app.exception
    expected = measure_stream(translator.trace(SOURCE, TEXT), stack)
    out, added, norm, share, start, previous, cells, points = figure(app, "layer_by_layer-path")["data"]
    for drawn, name in ((out, "out"), (added, "added"), (norm, "norm")):
        assert np.array_equal(numbers(drawn["y"]).astype(float), getattr(expected, name)[3], equal_nan=True)
    for drawn, name in ((share, "share"), (start, "to_start"), (previous, "to_previous")):
        assert np.array_equal(numbers(drawn["y"]).astype(float), getattr(expected, name)[3], equal_nan=True)
    assert np.array_equal(numbers(cells["z"]), expected.share.astype(np.float32), equal_nan=True)
    for token, step, name, _, value in points["customdata"]:
        assert value == expected.share[token, step]
        assert name == expected.steps[step]


def test_one_sublayer_shows_the_four_vectors_and_its_norm(open_app: Callable, translator: "Translator") -> None:
    app = choose(open_app(PAGE, **TYPED, layers_tab="Inside one sub-layer"), 2, 5)
    app.number_input(key="layers_dimension").set_value(7).run()
    assert not app.exception
    sublayer = translator.trace(SOURCE, TEXT).streams["decoder"].sublayers[4]
    norm = layer_norm(sublayer, 2)
    drawn = figure(app, "layer_by_layer-strips")
    (strips,), colours = drawn["data"], drawn["layout"]["coloraxis"]
    vectors = [getattr(sublayer, name)[2] for name in ("before", "out", "added", "normed")]
    assert np.array_equal(numbers(strips["z"]), [*vectors, norm.gamma, norm.beta])
    assert colours["cmax"] == -colours["cmin"] == np.abs([*vectors, norm.gamma, norm.beta]).max()
    table = app.dataframe[0].value
    assert list(table["mean"]) == pytest.approx([v.mean(dtype=float) for v in vectors])
    assert table["mean"][2] == pytest.approx(norm.mean)
    assert any(r"\gamma_{7}" in element.value for element in app.latex)


def test_the_lens_shows_what_every_step_would_say(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, layers_tab="Logit lens", layers_every="true")
    app.selectbox(key="layers_token").set_value(2).run()
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    expected = logit_lens(translator, trace)
    (grid,) = figure(app, "layer_by_layer-lens")["data"]
    assert np.array_equal(numbers(grid["z"]), expected.probabilities[:, 2].astype(np.float32))
    probability, rank = (
        numbers(figure(app, f"layer_by_layer-{name}")["data"][0]["y"]) for name in ("probability", "rank")
    )
    assert np.array_equal(probability, expected.probability[:, 2])
    assert np.array_equal(rank, expected.rank[:, 2])
    (cells,) = figure(app, "layer_by_layer-lens-map")["data"]
    assert np.array_equal(numbers(cells["z"]), expected.probability.T.astype(np.float32))
    assert "differ by at most 0." in words(app)
    app.toggle(key="layers_every").set_value(False).run()
    assert len(figure(app, "layer_by_layer-lens")["data"][0]["y"]) == 1 + translator.model.config.n_decoder_layers


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_neurons_are_those_of_the_chosen_layer(open_app: Callable, translator: "Translator", stack: str) -> None:
    app = open_app(PAGE, **TYPED, layers_tab="Neurons", layers_stack=stack.title())
    choose(app, 1, 2)
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    sublayer = next(s for s in trace.streams[stack].sublayers if s.layer == 0 and s.name == "feed_forward")
    expected = neurons(translator, sublayer, 1, 10)
    bars, top = figure(app, "layer_by_layer-neurons")["data"]
    assert np.array_equal(numbers(bars["y"]), sublayer.hidden[1])
    marked = numbers(top["y"]).astype(float)
    assert sorted(np.flatnonzero(~np.isnan(marked))) == sorted(expected.top)
    assert np.array_equal(marked[expected.top], sublayer.hidden[1][expected.top])
    table = app.dataframe[0].value
    assert list(table["neuron"]) == list(expected.top)
    assert f"**{(sublayer.hidden[1] > 0).sum()} of 64 neurons are active**" in words(app)
    if stack == "decoder":
        predicted = trace.logits[1].argmax()
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
def test_neurons_that_could_not_be_read_are_not_drawn(translator: "Translator", change: Callable) -> None:
    """In the chosen layer; in the others they are."""
    trace = translator.trace(SOURCE, TEXT)
    stream = trace.streams["decoder"]
    sublayers = [change(one) if (one.layer, one.name) == (1, "feed_forward") else one for one in stream.sublayers]
    trace = replace(trace, streams={**trace.streams, "decoder": replace(stream, sublayers=sublayers)})
    run = Run.of(translator, trace)
    unread = layer_by_layer.neurons(run, step=5)
    assert not unread.arrays()
    assert unread.values["most"] is None
    assert "could not be read" in unread.blocks[0].text
    assert len(layer_by_layer.neurons(run, step=2).arrays()["hidden"]) == translator.config.d_ff


def test_similarity_is_that_of_the_chosen_step(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **TYPED, layers_tab="Similarity", layers_stack="Encoder")
    app.selectbox(key="layers_step").set_value(3).run()
    assert not app.exception
    expected = cosines(residual_stream(translator.trace(SOURCE, TEXT), "encoder")[3])
    assert np.array_equal(
        numbers(figure(app, "layer_by_layer-similarity")["data"][0]["z"]), expected.astype(np.float32)
    )


def test_the_blocks_add_up_to_the_model(open_app: Callable, translator: "Translator") -> None:
    table = open_app(PAGE, layers_tab="Parameters").dataframe[0].value
    total = sum(translator.model.parameters_by_part().values())
    assert list(table["together"])[-1] == total == sum(table["together"][:-1])


def test_what_another_stack_or_sentence_lacks_becomes_its_last(open_app: Callable) -> None:
    app = choose(open_app(PAGE, **TYPED), 5, 6)
    app.segmented_control(key="layers_stack").set_value("encoder").run()
    assert app.selectbox(key="layers_step").value == 4
    app.text_area(key="source").set_value("A").run()
    assert not app.exception
    last = len(app.selectbox(key="layers_token").options) - 1
    assert app.selectbox(key="layers_token").value == last < 5


@pytest.mark.parametrize("value", ["99", "<b>x</b>"])
def test_a_forged_link_gets_a_note(open_app: Callable, value: str) -> None:
    keys = ("layers_stack", "layers_token", "layers_step", "layers_measure", "layers_tab", "layers_dimension")
    app = open_app(PAGE, **TYPED, **dict.fromkeys((*keys, "layers_every", "layers_neurons"), value))
    assert not app.exception
    assert "does not exist here (token)" in words(app)
    assert "does not exist here (step)" in words(app)


@pytest.mark.parametrize("page", ["layer_by_layer", "whole_model"])
def test_the_explanation_says_where_dropout_acts(page: str, open_app: Callable) -> None:
    app = open_app(f"pages/{page}.py", source="a dog")
    assert str(texts._engine().get_template("facts.md").module.dropout()).strip() in words(app)


def test_dropout_acts_where_it_is_said(translator: "Translator") -> None:
    """On each sub-layer's output and on the sums of embeddings and positions, and nowhere else."""
    model = type(translator.model)(replace(translator.model.config, dropout=0.5))
    places = {path.removesuffix(".dropout") for path, part in model.named_modules() if isinstance(part, Dropout)}
    sublayers = {path for path, part in model.named_modules() if isinstance(part, Residual)}
    assert places == sublayers | {"src_embedding", "tgt_embedding"}
    assert not translator.model.training
