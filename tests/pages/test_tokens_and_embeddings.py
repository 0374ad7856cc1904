"""The page on tokens: each number of its figures is an element of the run's tensors or the model's weights."""

import json
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.stream.vocabulary import Neighbour, cosines, embedding_rows, lengths, neighbours
from model.checkpoints.translator import Translator
from model.run import Run
from pages.views.model.tokens_and_embeddings import _cosines, tokens
from pages.views.model.tokens_and_embeddings import lengths as lengths_view
from tests.pages.figures import figure, numbers

pytest.importorskip("streamlit")

PAGE = "pages/tokens_and_embeddings.py"
SENTENCE = "a dog and 🦖"


def tab(app: object, name: str) -> object:
    app.session_state["tokens_tab"] = name
    return app.run()


@pytest.mark.parametrize("side", ["source", "target"])
def test_strips_and_arithmetic_are_the_chosen_token_s(open_app: Callable, translator: Translator, side: str) -> None:
    trace = translator.trace(SENTENCE)
    embedded, ids = (trace.src_embedded, trace.src_ids) if side == "source" else (trace.tgt_embedded, trace.tgt_ids)
    app = open_app(PAGE, source=SENTENCE)
    app.segmented_control(key="side").set_value(side).run()
    for position, dimension in ((0, 0), (min(3, len(ids) - 1), 5), (len(ids) - 1, 31)):
        app.number_input(key="tokens_position").set_value(position)
        app.number_input(key="tokens_dimension").set_value(dimension).run()
        assert not app.exception
        z = numbers(figure(app, "tokens_and_embeddings-strips")["data"][0]["z"])
        for drawn, name in zip(z, ("embedding", "positional", "sum"), strict=True):
            assert np.array_equal(drawn, getattr(embedded, name)[position])
        weight = embedding_rows(translator, side, [ids[position]])[0, dimension]
        latex = next(element.value for element in app.latex if "aligned" in element.value)
        assert f"E_{{{ids[position]}," in latex
        assert f"{abs(embedded.sum[position, dimension]):.7g}".split("e")[0] in latex
        assert f"{abs(weight):.7g}".split("e")[0] in latex


def test_neighbours_lengths_and_maps_are_the_model_s(open_app: Callable, translator: Translator) -> None:
    trace = translator.trace(SENTENCE)
    app = tab(open_app(PAGE, source=SENTENCE), "Neighbours")
    app.number_input(key="tokens_position").set_value(1).run()
    found = neighbours(translator.tokenizer, cosines(translator, "source", trace.src_ids[1]), trace.src_ids[1])
    drawn = figure(app, "tokens_and_embeddings-neighbours")["data"][0]
    assert np.array_equal(numbers(drawn["x"]), [neighbour.cosine for neighbour in found])
    bars = figure(tab(app, "Lengths"), "tokens_and_embeddings-lengths")["data"]
    assert [
        np.array_equal(numbers(bar["y"]), lengths(trace.src_embedded)[name])
        for bar, name in zip(bars, ("embedding", "positional", "sum"), strict=True)
    ] == [True] * 3
    maps = figure(tab(app, "All tokens"), "tokens_and_embeddings-all")["data"]
    assert np.array_equal(numbers(maps[2]["z"]), trace.src_embedded.sum)
    table = tab(app, "Pieces and bytes").dataframe[0].value
    assert list(table["id"]) == list(trace.src_ids)
    assert not app.exception


@pytest.mark.parametrize(("side", "position"), [("source", 0), ("source", 3), ("target", 1)])
def test_a_click_on_a_token_or_on_its_bar_chooses_it(translator: Translator, side: str, position: int) -> None:
    run = Run.of(translator, translator.trace(SENTENCE))
    (control,) = tokens(run, side=side).shows["chips"].sets.values()
    bars = lengths_view(run, side=side, position=position).shows["lengths"]
    assert bars.clicked({"point_index": position}) == {"place": position}
    assert bars.sets == {"place": control}
    (band,) = bars.marks
    assert (band.x, band.to) == (position - 0.5, position + 0.5)
    assert all(bar.unselected.marker.opacity == 1 for bar in go.Figure(bars.draw().to_dict()).data)


@pytest.mark.parametrize(("position", "dimension"), [(0, 0), (2, 7), (4, 31)])
def test_the_strips_frame_the_chosen_dimension_in_the_range_of_all_tokens(
    translator: Translator, position: int, dimension: int
) -> None:
    run = Run.of(translator, translator.trace(SENTENCE))
    result = tokens(run, position=position, dimension=dimension)
    layout = result.shows["strips"].layout
    assert (layout.shapes[0].x0, layout.shapes[0].x1) == (dimension - 0.5, dimension + 0.5)
    largest = max(np.abs(term).max() for term in run.trace.src_embedded.terms.values())
    assert (layout.coloraxis.cmin, layout.coloraxis.cmax) == pytest.approx((-largest, largest))
    assert result.facts["apart"] == 0


def test_emoji_are_named_as_bytes(open_app: Callable) -> None:
    app = open_app(PAGE, source=SENTENCE)
    (chips,) = (found.proto for found in app.get("bidi_component") if found.proto.component_name == "chips")
    boxes = json.loads(chips.json)["html"]
    assert "together 🦖 U+1F996" in boxes
    assert "&lt;0xF0&gt;" in boxes


def test_neighbours_are_drawn_with_their_exact_cosines(translator: Translator) -> None:
    found = neighbours(translator.tokenizer, cosines(translator, "source", 300), 300)
    bars = _cosines(found, "#56B4E9").draw().data[0]
    assert list(bars.x) == [neighbour.cosine for neighbour in found]
    assert list(bars.text) == [f"{neighbour.cosine:.4f}" for neighbour in found]
    assert [name.rsplit("id ", 1)[1] for name in bars.customdata] == [str(neighbour.id) for neighbour in found]


def test_bytes_and_special_tokens_are_marked_among_neighbours_and_text_is_escaped() -> None:
    found = [
        Neighbour("</s>", 3, "special", 0.5),
        Neighbour("<0xF0>", 244, "byte", 0.25),
        Neighbour("▁<b>", 400, "text", -0.5),
    ]
    figure = _cosines(found, "#56B4E9").draw()
    assert figure.layout.yaxis.ticktext == ("&lt;/s&gt; (special)", "&lt;0xF0&gt; (byte)", "&lt;b&gt;")
    assert figure.data[0].marker.pattern.shape == ("/", "/", "")
    assert figure.layout.xaxis.range[0] < -0.5
