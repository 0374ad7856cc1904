"""The page on decoding without a browser: its numbers are the run's, its tabs hold at the extremes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.checkpoints.store import load_checkpoint
from model.generation.beam_tree import beam_tree
from model.generation.sampling import Sampling, logits_at_attention_temperature, sample_texts, two_temperatures
from model.generation.search import beam_search, length_penalty
from model.generation.step_cost import cached_step, uncached_step
from model.interventions import MaskEdit
from model.interventions.link import encode
from model.network.config import EOS
from pages import page_of
from tests.pages.figures import figure, numbers, words
from tests.pages.test_pages import holds

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/decoding.py"
TABS = [view.title for view in page_of(PAGE).views]
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
    app = typed(open_app, layer="1", head="2", part="Token by token", **{"decoding-step": "4"})
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
    app.select_slider(key="decoding-alpha").set_value(1.5).run()
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
        assert app.query_params.get("decoding-seed", "0") == str(seed)
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


def test_a_temperature_in_attention_takes_part_in_the_search(open_app: Callable) -> None:
    cold = table(typed(open_app, part="Beam"), "score")
    hot = table(typed(open_app, part="Beam", tau="5", scope="Everywhere"), "score")
    assert list(cold["log p(Y | X)"]) != list(hot["log p(Y | X)"])


PROMPT = "Two dogs run"
NEW = 6


@pytest.fixture
def language_model(families):
    return load_checkpoint(str(families / "lm"), "cpu")


@pytest.fixture
def continued(open_family: Callable) -> Callable:
    def open_continued(**query: str):
        app = open_family(PAGE, **{"checkpoint": "lm", "source": PROMPT, "new_tokens": str(NEW)} | query)
        assert not app.exception
        assert holds(app) == 3
        return app

    return open_continued


def test_a_step_of_a_continuation_is_a_row_after_the_prompt(continued: Callable, language_model) -> None:
    app = continued(part="Token by token", layer="1", head="2", **{"decoding-step": "4"})
    trace = language_model.trace(PROMPT, max_new_tokens=NEW)
    row = len(language_model.tokenizer.encode(PROMPT)) + 4
    assert app.slider(key="decoding-step").max == NEW
    shares = numbers(figure(app, "decoding-next")["data"][0]["x"])
    assert shares[:10] == pytest.approx([candidate.probability for candidate in trace.candidates[row]])
    for which, weights in (
        ("head", trace.attention("decoder_self", 1).pattern[2, row]),
        ("last", trace.attention("decoder_self", 1).pattern[:, row].mean(axis=0)),
    ):
        app.segmented_control(key="alignment").set_value(which).run()
        shown = numbers(figure(app, "decoding-source")["data"][0]["y"])
        assert shown == pytest.approx(weights[: row + 1], abs=1e-6)
        assert shown.sum() == pytest.approx(1, abs=1e-5)


def test_the_search_of_a_continuation_is_the_plain_one_with_its_attention(continued: Callable, language_model) -> None:
    app = continued(part="Beam", layer="1", head="3", **{"decoding-beam": "2"})
    trace, prompt = language_model.trace(PROMPT, max_new_tokens=NEW), language_model.tokenizer.encode(PROMPT)
    tree = beam_tree(language_model.model, prompt, 2, NEW)
    order = tree.ranking(0.6)
    shown = table(app, "score")
    assert list(shown["log p(Y | X)"]) == pytest.approx(
        [tree.hypothesis(tree.ends[i], 0).log_probability for i in order]
    )
    assert list(shown["continuation"]) == [
        language_model.tokenizer.decode(list(tree.hypothesis(tree.ends[i], 0).tokens)) for i in order
    ]
    weights = numbers(figure(app, "decoding-beam-attention")["data"][0]["z"])
    assert weights == pytest.approx(tree.attention[order[0]][1, 3])
    app.slider(key="decoding-beam").set_value(1).run()
    assert "is the continuation of “Token by token”" in words(app), "a beam of one is the run's own greedy one"
    again = trace.attention("decoder_self", 1).pattern[3, len(prompt) : len(prompt) + NEW, : len(prompt) + NEW]
    assert numbers(figure(app, "decoding-beam-attention")["data"][0]["z"]) == pytest.approx(again, abs=1e-5)


def test_samples_and_temperatures_of_a_continuation_are_the_models(continued: Callable, language_model) -> None:
    app = continued(part="Sampling", **{"decoding-step": "2"})
    prompt = language_model.tokenizer.encode(PROMPT)
    expected = sample_texts(language_model.model, prompt, Sampling(), 0, 5, NEW)
    assert list(table(app, "sample")["log p(Y | X)"]) == pytest.approx([one.log_probability for one in expected])
    own, after = (numbers(bar["x"]) for bar in figure(app, "decoding-draw")["data"])
    assert own == pytest.approx(expected[0].draws[2].before)
    assert after == pytest.approx(expected[0].draws[2].after)
    trace = language_model.trace(PROMPT, max_new_tokens=NEW)
    values = two_temperatures(language_model.model, trace, len(prompt) + 2, 2.0)
    app = continued(part="Two temperatures", **{"decoding-step": "2"})
    for bar, expected in zip(figure(app, "decoding-two-temperatures")["data"], values.values(), strict=True):
        assert np.isin(np.round(numbers(bar["x"])[:-1], 9), np.round(expected, 9)).all()


def test_the_cost_of_a_language_model_has_no_source(continued: Callable, language_model) -> None:
    app = continued(part="Cost")
    _, cached = (numbers(line["y"]) for line in figure(app, "decoding-counted")["data"])
    config = language_model.model.config
    assert list(cached) == [cached_step(config, 0, t) for t in range(1, config.max_len)]
    formula = next(element.value for element in app.latex if "cache" in element.value)
    assert "h_{kv}" in formula
    assert "(t+n)" not in formula
    assert "3d" in formula
    assert "encoder" not in words(app)
    next(button for button in app.button if button.label == "Measure").click().run()
    assert "**the same tokens**" in words(app)


@pytest.mark.parametrize("part", TABS)
@pytest.mark.parametrize("query", [{"new_tokens": "0"}, {"source": "Two dogs run. " * 12, "new_tokens": "60"}])
def test_a_prompt_alone_and_one_that_fills_the_model(continued: Callable, part: str, query: dict[str, str]) -> None:
    app = continued(part=part, **query)
    assert "ranslation" not in words(app)


def test_a_search_repeats_a_change_that_needs_every_row(continued: Callable) -> None:
    """Cells of a mask are numbered by row, which a cached step does not have."""
    change = MaskEdit(forbid=((4, 0), (5, 1), (6, 2)), kind="decoder_self")
    app = continued(part="Beam", changes=encode((change,)), kept="1", **{"decoding-beam": "1"})
    assert "is the continuation of “Token by token”" in words(app)
    assert "this step of cached decoding" not in words(app)
