"""Decoding: steps, searches, samples and costs are the model's, of a translator and of a language model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.checkpoints.store import load_checkpoint
from model.generation.beam_tree import beam_tree
from model.generation.sampling import Sampling, logits_at_attention_temperature, sample_texts, two_temperatures
from model.generation.search import beam_search, length_penalty
from model.generation.step_cost import cached_step, uncached_step
from model.interventions import AttentionTemperature, MaskEdit
from model.run import Continuation, Place, Request, Run
from pages import page_of
from pages.views.model import decoding
from tests.pages.conftest import TYPED
from tests.pages.figures import figure, lines, maps, numbers

PAGE = "pages/decoding.py"
PROMPT, NEW = "Two dogs run", 6


@pytest.fixture(scope="module")
def continued(families: Path) -> Callable[..., Run]:
    """The run of a language model that writes NEW tokens after PROMPT, in layer 1, with changes."""
    opened = load_checkpoint(str(families / "lm"), "cpu")

    def continued(head: int = 2, *changes: Any) -> Run:
        request = Request(PROMPT, interventions=changes, continuation=Continuation(NEW))
        return Run.start(opened, request, Place("decoder_self", 1, head))

    return continued


def start_of(run: Run) -> list[int]:
    """What its text is written after: the source, or the prompt."""
    return [*run.trace.src_ids] or run.opened.tokenizer.encode(PROMPT)


def shares(result: Any, name: str) -> list[np.ndarray]:
    return [numbers(bar["x"]) for bar in figure(result, name)["data"]]


def test_a_step_shows_its_row_of_the_run(run_at: Callable, continued: Callable) -> None:
    """Of a translation what it looks at in the source, of a continuation in its own text."""
    for run, kind, row in ((run_at("cross", 1, 2), "cross", 4), (continued(), "decoder_self", 4)):
        row += run.trace.first_written
        found = shares(decoding.one_step(run, step=4), "next")[0]
        assert found[:10] == pytest.approx([candidate.probability for candidate in run.trace.candidates[row]])
        assert found.sum() == pytest.approx(1)
        pattern = run.trace.attention(kind, 1).pattern
        seen = len(run.trace.src_tokens) or row + 1
        for which, weights in (("last", pattern[:, row].mean(axis=0)), ("head", pattern[2, row])):
            drawn = lines(decoding.one_step(run, step=4, weights=which), "source")[0]
            assert drawn == pytest.approx(weights[:seen], abs=1e-6)
            assert drawn.sum() == pytest.approx(1, abs=1e-5)
    assert decoding.one_step.offers(continued())["step"].limits == (0, NEW)


def test_the_table_of_finished_sentences_is_the_plain_search(run_at: Callable) -> None:
    run = run_at()
    (expected,) = beam_search(run.opened.model, [start_of(run)], 3, 1.5)
    shown = decoding.beam_search(run, beam=3, alpha=1.5).shows["hypotheses"].head(3)
    assert list(shown["log p(Y | X)"]) == pytest.approx([one.log_probability for one in expected], abs=1e-4)
    assert list(shown["score"]) == pytest.approx([one.score for one in expected], abs=1e-4)
    assert list(shown["length |Y|"]) == [len(one.tokens) for one in expected]
    assert list(shown["lp(Y)"]) == pytest.approx([length_penalty(len(one.tokens), 1.5) for one in expected])


def test_the_search_of_a_continuation_is_the_plain_one(continued: Callable) -> None:
    run = continued(3)
    tree = beam_tree(run.opened.model, start_of(run), 2, NEW)
    found = [tree.hypothesis(tree.ends[place], 0) for place in tree.ranking(0.6)]
    shown = decoding.beam_search(run, beam=2).shows["hypotheses"]
    assert list(shown["log p(Y | X)"]) == pytest.approx([one.log_probability for one in found])
    assert list(shown["continuation"]) == [run.opened.tokenizer.decode(list(one.tokens)) for one in found]
    alone = decoding.beam_search(run, beam=1)
    assert alone.facts["own"], "a beam of one is the run's own greedy one"
    first = run.trace.first_written
    again = run.attention.pattern[3, first : first + NEW, : first + NEW]
    assert maps(alone, "beam-attention")[0] == pytest.approx(again, abs=1e-5)


def test_the_beams_attention_follows_the_chosen_sentence(open_app: Callable, run_at: Callable) -> None:
    app, run = open_app(PAGE, **TYPED, part="Beam", layer="1", head="3"), run_at()
    tree = beam_tree(run.opened.model, start_of(run), 4)
    for rank in (0, 2):
        app.selectbox(key="decoding-hypothesis").set_value(rank).run()
        weights = maps(app, "decoding-beam-attention")[0]
        assert weights == pytest.approx(tree.attention[tree.ranking(0.6)[rank]][1, 3])


def test_greedy_and_beam_stand_side_by_side(run_at: Callable) -> None:
    run = run_at()
    result = decoding.greedy_search(run)
    found = [beam_search(run.opened.model, [start_of(run)], size)[0][0] for size in (1, 4)]
    drawn = lines(result, "race")
    assert [len(line) for line in drawn] == [len(one.tokens) for one in found]
    assert [line[-1] for line in drawn] == pytest.approx([one.log_probability for one in found], rel=1e-5)
    probabilities = result.shows["steps"]["p"].dropna()
    assert np.log(probabilities).sum() == pytest.approx(found[0].log_probability, rel=1e-5)
    assert result.facts["same"] == (found[0].tokens == found[1].tokens)


def test_samples_are_the_seeds_and_again_takes_the_next(
    open_app: Callable, run_at: Callable, continued: Callable
) -> None:
    app = open_app(PAGE, **TYPED, part="Sampling", **{"decoding-step": "2"})
    next(button for button in app.button if button.label == "Sample again").click().run()
    assert app.query_params["decoding-seed"] in ("1", ["1"])
    for run, limit in ((run_at(), ()), (continued(), (NEW,))):
        for seed in (0, 1):
            expected = sample_texts(run.opened.model, start_of(run), Sampling(), seed, 5, *limit)
            result = decoding.samples(run, seed=seed, step=2)
            assert list(result.shows["samples"]["log p(Y | X)"]) == pytest.approx(
                [one.log_probability for one in expected]
            )
            own, after = shares(result, "draw")
            assert own == pytest.approx(expected[0].draws[2].before)
            assert after == pytest.approx(expected[0].draws[2].after)
    cut = decoding.samples(run_at(), top_k=3)
    assert (shares(cut, "draw")[1] > 0).sum() == (cut.facts["look"].after > 0).sum() == 3


def test_two_temperatures_are_told_apart(run_at: Callable, continued: Callable) -> None:
    run = run_at()
    inside = logits_at_attention_temperature(run.opened.model, run.trace, 2.0)[1]
    expected = [np.exp(logits.astype(float)) for logits in (run.trace.logits[1], run.trace.logits[1] / 2, inside)]
    drawn = shares(decoding.temperatures(run, step=1), "two-temperatures")
    for bars, powers in zip(drawn, expected, strict=True):
        assert bars.sum() == pytest.approx(1)
        assert np.isin(np.round(bars[:-1], 9), np.round(powers / powers.sum(), 9)).all()
    run = continued()
    values = two_temperatures(run.opened.model, run.trace, run.trace.first_written + 2, 2.0)
    drawn = shares(decoding.temperatures(run, step=2), "two-temperatures")
    for bars, probabilities in zip(drawn, values.values(), strict=True):
        assert np.isin(np.round(bars[:-1], 9), np.round(probabilities, 9)).all()


def test_cost_is_counted_at_once_and_measured_when_asked(
    open_app: Callable, run_at: Callable, continued: Callable
) -> None:
    app, config = open_app(PAGE, **TYPED, part="Cost"), run_at().opened.config
    for drawn, count in zip(lines(app, "decoding-counted"), (uncached_step, cached_step), strict=True):
        assert list(drawn) == [count(config, len(start_of(run_at())), t) for t in range(1, 97)]
    next(button for button in app.button if button.label == "Measure").click().run()
    assert all((times > 0).all() for times in lines(app, "decoding-measured"))
    config, result = continued().opened.config, decoding.cost(continued())
    assert list(lines(result, "counted")[1]) == [cached_step(config, 0, t) for t in range(1, config.max_len)]
    assert result.facts["same"], "with and without the cache the same tokens"


def test_a_temperature_in_attention_takes_part_in_the_search(run_at: Callable) -> None:
    cold, hot = (
        decoding.beam_search(run_at("cross", 0, 0, *changes)).shows["hypotheses"]["log p(Y | X)"]
        for changes in ((), (AttentionTemperature(5.0),))
    )
    assert list(cold) != list(hot)


@pytest.mark.parametrize(("source", "new"), [(PROMPT, 0), ("Two dogs run. " * 12, 60)])
def test_a_prompt_alone_and_one_that_fills_the_model(source: str, new: int, families: Path) -> None:
    opened = load_checkpoint(str(families / "lm"), "cpu")
    request = Request(opened.truncate(source), continuation=Continuation(new))
    run = Run.start(opened, request, Place("decoder_self", 1, 2))
    for view in page_of(PAGE).views:
        assert view(run).blocks, view.title


def test_a_search_repeats_a_change_that_needs_every_row(continued: Callable) -> None:
    """Cells of a mask are numbered by row, which a cached step does not have."""
    run = continued(2, MaskEdit(forbid=((4, 0), (5, 1), (6, 2)), kind="decoder_self"))
    assert decoding.beam_search(run, beam=1).facts["own"]
    assert not decoding.one_step(run).facts["cached"]


def test_on_a_projector_a_line_of_tokens_stands_above_the_picture_it_belongs_to(open_app: Callable) -> None:
    app = open_app("pages/decoding.py", part="Token by token", present="true")
    components = [found.proto.component_name for found in app.get("bidi_component")]
    assert components.count("chips") == len(app.get("plotly_chart")) == 1
