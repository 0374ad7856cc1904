"""The page on decoding without a browser: its numbers are the run's, its tabs hold at the extremes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.generation.beam_tree import beam_tree
from model.generation.sampling import Sampling, logits_at_attention_temperature, sample_texts
from model.generation.search import beam_search, length_penalty
from model.generation.step_cost import cached_step, uncached_step
from model.network.config import EOS
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/decoding.py"
TABS = ("Greedy", "Beam", "Sampling", "Two temperatures", "Cost")
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


def ids_of(translator: "Translator") -> list[int]:
    return [*translator.tokenizer.encode(SOURCE), EOS]


def typed(open_app: Callable, **query: str):
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, **query)
    assert not app.exception
    return app


def table(app, column: str):
    return next(frame.value for frame in app.dataframe if column in frame.value)


def test_a_step_shows_its_row_of_the_run(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, layer="1", head="2", part="Cost", **{"decoding-step": "4"})
    trace = translator.trace(SOURCE, TEXT)
    shares = numbers(figure(app, "decoding-next")["data"][0]["x"])
    expected = [candidate.probability for candidate in trace.candidates[4]]
    assert shares[:10] == pytest.approx(expected)
    assert shares.sum() == pytest.approx(1)
    for which, weights in (
        ("last", trace.attention("cross", 1).pattern[:, 4].mean(axis=0)),
        ("head", trace.attention("cross", 1).pattern[2, 4]),
    ):
        app.segmented_control(key="alignment").set_value(which).run()
        assert numbers(figure(app, "decoding-source")["data"][0]["y"]) == pytest.approx(weights)


def test_the_table_of_finished_sentences_is_the_plain_search(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Beam", **{"decoding-beam": "3"})
    app.slider(key="decoding-alpha").set_value(1.5).run()
    (expected,) = beam_search(translator.model, [ids_of(translator)], 3, 1.5)
    shown = table(app, "score").head(3)
    assert list(shown["log p(Y | X)"]) == pytest.approx([h.log_probability for h in expected], abs=1e-4)
    assert list(shown["score"]) == pytest.approx([h.score for h in expected], abs=1e-4)
    assert list(shown["length |Y|"]) == [len(h.tokens) for h in expected]
    assert list(shown["lp(Y)"]) == pytest.approx([length_penalty(len(h.tokens), 1.5) for h in expected])


def test_the_beams_attention_follows_the_chosen_sentence(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Beam", layer="1", head="3")
    tree = beam_tree(translator.model, ids_of(translator), 4)
    for rank in (0, 2):
        app.selectbox(key="decoding-hypothesis").set_value(rank).run()
        weights = numbers(figure(app, "decoding-beam-attention")["data"][0]["z"])
        assert weights == pytest.approx(tree.attention[tree.ranking(0.6)[rank]][1, 3])


def test_greedy_and_beam_stand_side_by_side(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Greedy")
    found = [beam_search(translator.model, [ids_of(translator)], size)[0][0] for size in (1, 4)]
    lines = [numbers(line["y"]) for line in figure(app, "decoding-race")["data"]]
    assert [len(line) for line in lines] == [len(hypothesis.tokens) for hypothesis in found]
    assert [line[-1] for line in lines] == pytest.approx([h.log_probability for h in found], rel=1e-5)
    probabilities = table(app, "greedy")["p"].dropna()
    assert np.log(probabilities).sum() == pytest.approx(found[0].log_probability, rel=1e-5)


def test_samples_are_the_seeds_and_again_takes_the_next(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Sampling", **{"decoding-step": "2"})
    for seed in (0, 1):
        expected = sample_texts(translator.model, ids_of(translator), Sampling(), seed, 5)
        assert list(table(app, "sample")["log p(Y | X)"]) == pytest.approx([d.log_probability for d in expected])
        own, after = (numbers(bar["x"]) for bar in figure(app, "decoding-draw")["data"])
        assert own == pytest.approx(expected[0].draws[2].before)
        assert after == pytest.approx(expected[0].draws[2].after)
        next(button for button in app.button if button.label == "Sample again").click().run()


def test_top_k_cuts_all_but_k(open_app: Callable) -> None:
    app = typed(open_app, part="Sampling")
    app.number_input(key="decoding-top-k").set_value(3).run()
    _, after = (numbers(bar["x"]) for bar in figure(app, "decoding-draw")["data"])
    assert (after > 0).sum() == 3
    assert "drawn from 3 of 360 tokens" in words(app)


def test_two_temperatures_are_told_apart(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Two temperatures", **{"decoding-step": "1"})
    trace = translator.trace(SOURCE, TEXT)
    inside = logits_at_attention_temperature(translator.model, trace, 2.0)[1]
    run, output, attention = (bar for bar in figure(app, "decoding-two-temperatures")["data"])
    for bar, logits in ((run, trace.logits[1]), (output, trace.logits[1] / 2), (attention, inside)):
        powers = np.exp(logits.astype(np.float64))
        found = numbers(bar["x"])
        assert found.sum() == pytest.approx(1)
        assert np.isin(np.round(found[:-1], 9), np.round(powers / powers.sum(), 9)).all()


def test_cost_is_counted_at_once_and_measured_when_asked(open_app: Callable, translator: "Translator") -> None:
    app = typed(open_app, part="Cost")
    uncached, cached = (numbers(line["y"]) for line in figure(app, "decoding-counted")["data"])
    n_src = len(ids_of(translator))
    assert list(cached) == [cached_step(translator.model.config, n_src, t) for t in range(1, 97)]
    assert list(uncached) == [uncached_step(translator.model.config, n_src, t) for t in range(1, 97)]
    next(button for button in app.button if button.label == "Measure").click().run()
    assert not app.exception
    assert all((numbers(line["y"]) > 0).all() for line in figure(app, "decoding-measured")["data"])
    assert "**the same tokens**" in words(app)


@pytest.mark.parametrize("part", TABS)
@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, part: str, source: str) -> None:
    app = open_app(PAGE, source=source, target="Greedy", part=part)
    assert not app.exception
    assert sum("holds" in element.value for element in app.markdown) == 3


@pytest.mark.parametrize("asked", ["9999", "-1", "x"])
def test_a_step_that_is_not_there_falls_back_with_a_note(open_app: Callable, asked: str) -> None:
    app = typed(open_app, part="Greedy", **{"decoding-step": asked})
    assert app.slider(key="decoding-step").value == 0
    assert "The link asks for a step that is not there" in words(app)


def test_a_shorter_translation_has_its_last_step(open_app: Callable) -> None:
    app = typed(open_app, part="Greedy")
    last = app.slider(key="decoding-step").max
    app.slider(key="decoding-step").set_value(int(last)).run()
    app.text_area(key="typed").set_value("Ein").run()
    assert not app.exception
    assert app.slider(key="decoding-step").value == app.slider(key="decoding-step").max < last


def test_a_temperature_in_attention_takes_part_in_the_search(open_app: Callable) -> None:
    cold = table(typed(open_app, part="Beam"), "score")
    hot = table(typed(open_app, part="Beam", tau="5", scope="Everywhere"), "score")
    assert list(cold["log p(Y | X)"]) != list(hot["log p(Y | X)"])


def test_a_tab_of_another_page_in_the_link_opens_the_beam(open_app: Callable) -> None:
    app = typed(open_app, part="Padding")
    assert app.slider(key="decoding-beam").value == 4
