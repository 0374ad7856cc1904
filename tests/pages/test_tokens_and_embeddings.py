"""The page on tokens: each number of its figures is an element of the run's tensors or the model's weights."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest

from model.analysis.stream.vocabulary import Neighbour, cosines, embedding_rows, lengths, neighbours
from model.checkpoints.translator import Translator
from model.run import Run
from pages.views.model import tokens_and_embeddings as views
from pages.views.model.tokens_and_embeddings import _cosines, tokens
from tests.pages.figures import figure, lines, maps, numbers

SENTENCE = "a dog and 🦖"


@pytest.fixture(scope="module")
def run(translator: Translator) -> Run:
    return Run.of(translator, translator.trace(SENTENCE))


@pytest.mark.parametrize("side", ["source", "target"])
def test_strips_and_arithmetic_are_the_chosen_token_s(run: Run, side: str) -> None:
    trace = run.trace
    embedded, ids = (trace.src_embedded, trace.src_ids) if side == "source" else (trace.tgt_embedded, trace.tgt_ids)
    for position, dimension in ((0, 0), (min(3, len(ids) - 1), 5), (len(ids) - 1, 31)):
        result = tokens(run, side=side, position=position, dimension=dimension)
        for drawn, name in zip(maps(result, "strips")[0], ("embedding", "positional", "sum"), strict=True):
            assert np.array_equal(drawn, getattr(embedded, name)[position])
        weight = embedding_rows(run.opened, side, [ids[position]])[0, dimension]
        equation = str(result.facts["equation"])
        assert f"E_{{{ids[position]}," in equation
        assert f" PE_{{{position}," in equation
        assert f"{abs(embedded.sum[position, dimension]):.7g}".split("e")[0] in equation
        assert f"{abs(weight):.7g}".split("e")[0] in equation


def test_lengths_maps_and_pieces_are_the_model_s(run: Run) -> None:
    terms, norms = run.trace.src_embedded.terms, lengths(run.trace.src_embedded)
    for drawn, name in zip(lines(views.lengths(run), "lengths"), terms, strict=True):
        assert np.array_equal(drawn, norms[name])
    sines_first = np.argsort(np.arange(terms["sum"].shape[-1]) % 2, kind="stable")
    assert np.array_equal(maps(views.all_tokens(run), "all")[2], terms["sum"][:, sines_first])
    assert list(views.pieces(run).shows["pieces"]["id"]) == list(run.trace.src_ids)


def test_a_choice_stays_from_tab_to_tab(open_app: Callable, translator: Translator) -> None:
    app = open_app("pages/tokens_and_embeddings.py", source=SENTENCE)
    app.number_input(key="tokens_position").set_value(1).run()
    app.session_state["tokens_tab"] = "Neighbours"
    app.run()
    token = translator.trace(SENTENCE).src_ids[1]
    found = neighbours(translator.tokenizer, cosines(translator, "source", token), token)
    drawn = figure(app, "tokens_and_embeddings-neighbours")["data"][0]
    assert np.array_equal(numbers(drawn["x"]), [neighbour.cosine for neighbour in found])


@pytest.mark.parametrize(("side", "position"), [("source", 0), ("source", 3), ("target", 1)])
def test_a_click_on_a_token_or_on_its_bar_chooses_it(run: Run, side: str, position: int) -> None:
    (control,) = tokens(run, side=side).shows["chips"].sets.values()
    bars = views.lengths(run, side=side, position=position).shows["lengths"]
    assert bars.clicked({"point_index": position}) == {"place": position}
    assert bars.sets == {"place": control}
    (band,) = bars.marks
    assert (band.x, band.to) == (position - 0.5, position + 0.5)
    assert all(bar.unselected.marker.opacity == 1 for bar in go.Figure(bars.draw().to_dict()).data)


@pytest.mark.parametrize(("position", "dimension"), [(0, 0), (2, 7), (4, 31)])
def test_the_strips_frame_the_chosen_dimension_in_the_range_of_all_tokens(
    run: Run, position: int, dimension: int
) -> None:
    result = tokens(run, position=position, dimension=dimension)
    layout = result.shows["strips"].layout
    assert (layout.shapes[0].x0, layout.shapes[0].x1) == (dimension - 0.5, dimension + 0.5)
    largest = max(np.abs(term).max() for term in run.trace.src_embedded.terms.values())
    assert (layout.coloraxis.cmin, layout.coloraxis.cmax) == pytest.approx((-largest, largest))
    assert result.facts["apart"] == 0


def test_emoji_are_named_as_bytes(run: Run) -> None:
    boxes = tokens(run).shows["chips"].drawing.data["html"]
    assert "together 🦖 U+1F996" in boxes
    assert "&lt;0xF0&gt;" in boxes


def test_neighbours_are_drawn_with_their_exact_cosines(translator: Translator) -> None:
    found = neighbours(translator.tokenizer, cosines(translator, "source", 300), 300)
    bars = _cosines(found, "#56B4E9").draw().data[0]
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
