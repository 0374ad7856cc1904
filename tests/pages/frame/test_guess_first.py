"""Predict, then reveal: every answer is the run's own number, and the picture waits for a guess and no longer."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.run import Place, Request, Run
from model.trace import Trace
from pages import page_of
from pages.lessons.guesses import questions, subject_of
from pages.lessons.question import Asked, ask_one
from tests.pages.figures import holds, words

PICTURED = ("attention_step_by_step", "heads_and_layers", "masks", "temperature")
"""pages whose question marks a row, or is about the place"""
ON_A_TRANSLATOR = sorted(set(questions()) - {"continue_text", "fill_in"})
KINDS = ("encoder_self", "decoder_self", "cross")
HERE = {"source": "a dog and a cat", "target": "Greedy", "kind": "Decoder self-attention", "layer": "1", "head": "2"}
places = st.tuples(st.sampled_from(KINDS), st.integers(0, 1), st.integers(0, 3), st.integers(0, 40))
few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace("a dog and a cat on the mat", "Ein Hund mit einer Katze.")


def ask(run: Run, page: str, number: int = 0) -> Asked | None:
    return ask_one(run, questions()[page], number)


def path(page: str) -> str:
    return page_of(f"{page}.py").path


def question(trace: Trace, page: str, place: tuple) -> Any:
    kind, layer, head, number = place
    found = ask(Run(None, Request(trace.source), trace, Place(kind, layer, head), trace.source), page, number)
    assert found is None or 2 <= len(found.options) <= 12
    assert found is None or found.right
    return found


def row_named(asked: Any) -> int:
    """The row that a question quotes."""
    return int(re.search("“([0-9]+) ", asked.text)[1])


@few
@given(places)
def test_the_key_that_is_looked_at_most_is_the_argmax_of_the_pattern(trace: Trace, place: tuple) -> None:
    asked = question(trace, "attention_step_by_step", place)
    attention = trace.attention(place[0], place[1])
    row = row_named(asked)
    best = int(attention.pattern[place[2], row].argmax())
    right = [asked.options[i] for i in asked.right]
    numbers = [option.split()[0] for option in asked.options]
    assert (
        right == [next(o for o in asked.options if o.startswith(f"{best} "))] if str(best) in numbers else ["another"]
    )
    assert f"{attention.pattern[place[2], row, best]:.3f}" in asked.answer
    shown = [int(number) for number in numbers if number.isdigit()]
    assert attention.mask[place[2], row][shown].all(), "a masked key is no choice"


@few
@given(places)
def test_the_head_that_has_most_of_a_measure_is_the_summaries_argmax(trace: Trace, place: tuple) -> None:
    from model.analysis.heads.head_summary import summarise

    asked = question(trace, "heads_and_layers", place)
    column = re.search("Column “([a-z]+)", asked.answer)[1]
    values = np.array([getattr(head, column) for head in summarise(trace.attention(place[0], place[1]))])
    assert [asked.options[i] for i in asked.right] == [f"head {int(values.argmax())}"]
    assert f"{values.max():.3f}" in asked.answer


@few
@given(places)
def test_counts_and_weights_of_masked_cells_are_the_masks_own(trace: Trace, place: tuple) -> None:
    asked = question(trace, "masks", place)
    attention = trace.attention(place[0], place[1])
    mask, pattern = attention.mask[place[2]], attention.pattern[place[2]]
    if "At how many" in asked.text:
        assert [asked.options[i] for i in asked.right] == [str(int(mask[row_named(asked)].sum()))]
    else:
        assert pattern[~mask].max() == 0
        assert [asked.options[i] for i in asked.right] == ["exactly 0"]


@few
@given(places)
def test_above_or_below_is_what_the_softmax_at_that_temperature_says(trace: Trace, place: tuple) -> None:
    from model.analysis.heads.softmax import softmax_at

    asked = question(trace, "temperature", place)
    attention, row = trace.attention(place[0], place[1]), row_named(asked)
    tau = float(re.search(r"at τ = ([0-9.]+)\?", asked.text)[1])
    weight = softmax_at(attention.scaled[place[2], row], attention.mask[place[2], row], tau).max()
    line = float(asked.options[0].split()[1])
    assert [asked.options[i].split()[0] for i in asked.right] == ["Above" if weight > line else "Below"]
    assert f"It is {weight:.3f}" in asked.answer


def test_a_long_sentence_offers_few_keys_and_another(translator: Translator) -> None:
    trace = translator.trace("A dog runs. " * 12, beam_size=1)
    found = [question(trace, "attention_step_by_step", ("encoder_self", 0, 0, number)) for number in range(30)]
    assert all(len(asked.options) == 12 and asked.options[-1] == "another" for asked in found)
    assert {asked.options[i] == "another" for asked in found for i in asked.right} == {True, False}


def pictures(app) -> int:
    """What the main pictures of the four pages are drawn with."""
    own = [element.proto.id for element in app.get("bidi_component")]
    charts = [chart.proto.id for chart in app.get("plotly_chart")]
    return sum(
        any(name in found for name in ("matrices", "mosaic", "masks-maps", "temperature")) for found in own + charts
    )


def opened(app) -> Any:
    return app.session_state["questions"]


def choice(app) -> Any:
    return next(group for group in app.main.button_group if str(group.key).startswith("guess-"))


def guess(app, wanted: bool) -> None:
    """Switch the questions on or off, as the action of the search does."""
    app.session_state["guess_first"] = "true" if wanted else ""
    app.run()


@pytest.mark.parametrize("page", PICTURED)
def test_right_wrong_and_skip(page: str, open_app: Callable) -> None:
    app = open_app(path(page), **HERE)
    shown = pictures(app)
    assert "waits for your guess" not in words(app)
    guess(app, True)
    assert "The picture waits for your guess" in words(app)
    assert pictures(app) < shown
    asked = opened(app)[page].asked
    choice(app).set_value(asked.right[0]).run()
    assert pictures(app) == shown
    assert asked.answer in words(app)
    if asked.row is not None and page != "masks":  # Masks has its row in a tab.
        assert app.session_state["query"] == asked.row == row_named(asked), "the query asked about is marked"
    assert "✓ Right" in words(app)
    assert "1 of 1 right" in words(app)
    app.button(key=f"guess-next-{page}").click().run()
    other = opened(app)[page].asked
    assert pictures(app) < shown
    wrong = next(i for i in range(len(other.options)) if i not in other.right)
    choice(app).set_value(wrong).run()
    assert other.answer in words(app)
    assert "✗ Not this one" in words(app)
    assert "1 of 2 right" in words(app)
    app.button(key=f"guess-next-{page}").click().run()
    app.button(key=f"guess-skip-{page}").click().run()
    assert pictures(app) == shown
    assert "1 of 2 right" in words(app)
    assert holds(app) == 3


def test_another_place_is_another_question_and_an_old_guess_does_not_answer_it(open_app: Callable) -> None:
    app = open_app(path("attention_step_by_step"), **HERE)
    guess(app, True)
    choice(app).set_value(0).run()
    app.select_slider(key="head").set_value(3).run()
    assert "The picture waits for your guess" in words(app)
    assert len(app.session_state["guesses"]) == 1
    guess(app, False)
    assert "waits for your guess" not in words(app)


def test_a_changed_model_gets_another_question_but_where_the_slider_of_tau_checks_the_answer(
    translator: Translator, trace: Trace
) -> None:
    plain, cold = (Run.of(translator, one) for one in (trace, translator.rerun(trace, (AttentionTemperature(0.5),))))
    kept = {page: subject_of(plain, page) == subject_of(cold, page) for page in ("learn", "temperature", "masks")}
    assert kept == {"learn": True, "temperature": True, "masks": False}


def test_one_word_has_a_question_or_says_that_there_is_none(translator: Translator, open_app: Callable) -> None:
    trace = translator.trace("A", beam_size=1)
    run = Run(translator, Request("A", beam_size=1), trace, Place("decoder_self", 1, 2), "A")
    waits = {page: ask(run, page, 0) is not None for page in ON_A_TRANSLATOR}
    for waiting in (True, False):
        page = next(page for page in waits if waits[page] == waiting)
        app = open_app(path(page), **(HERE | {"source": "A"}))
        guess(app, True)
        assert ("The picture waits" in words(app)) == waiting
        assert ("there is nothing to guess" in words(app)) != waiting


def test_a_token_is_never_markup_in_a_choice(open_app: Callable) -> None:
    app = open_app(
        path("attention_step_by_step"), **(HERE | {"source": "*a* :red[b] `c` $d$", "kind": "Encoder self-attention"})
    )
    guess(app, True)
    texts = [option.content for option in choice(app).proto.options]
    assert not [text for text in texts if re.search(r"(?<!\\)[*`$\[<]", text)]


@pytest.mark.parametrize("page", ON_A_TRANSLATOR)
def test_every_page_asks_one_question_after_the_other(page: str, open_app: Callable, translator: Translator) -> None:
    app = open_app(path(page), **HERE, guess_first="true")
    assert "The picture waits for your guess" in words(app)
    assert holds(app) == 3
    run = Run.start(translator, Request(HERE["source"], beam_size=1), Place("decoder_self", 1, 2))
    for asked in (opened(app)[page].asked, ask(run, page, 1)):
        assert 2 <= len({*asked.options}) == len(asked.options) <= 12


@pytest.mark.parametrize(("checkpoint", "source"), [("lm", "the dog"), ("mlm", "the <mask> sees a cat")])
def test_other_families_ask_on_their_pages(checkpoint: str, source: str, open_family: Callable) -> None:
    asks = {"lm": ("continue_text", "decoding", "what_if"), "mlm": ("fill_in", "since_2017", "efficient_attention")}
    for page in asks[checkpoint]:
        app = open_family(path(page), checkpoint=checkpoint, source=source, guess_first="true")
        assert "The picture waits for your guess" in words(app), page


def right_options(asked: Any) -> list[str]:
    return [asked.options[i] for i in asked.right]


def test_answers_are_the_runs_own_extremes(trace: Trace, translator: Translator) -> None:
    """Each beside the plain computation, on the whole trace."""
    from viz.tokens import labels

    run = Run(translator, Request(trace.source), trace, Place("encoder_self", 1, 2), trace.source)

    def asked(page: str, number: int = 0) -> Any:
        return ask(run, page, number)

    least = int(trace.target_probabilities.argmin())
    assert right_options(asked("translate")) == [f"{least} {labels(trace.next_tokens)[least]}"]
    longest = int(np.linalg.norm(trace.src_embedded.embedding, axis=-1).argmax())
    assert right_options(asked("tokens_and_embeddings")) == [f"{longest} {labels(trace.src_tokens)[longest]}"]
    parts = translator.parameters_by_part()
    assert right_options(asked("whole_model")) == [max(parts, key=parts.get)]
    n, m = len(trace.src_tokens), len(trace.tgt_tokens)
    cells = sum(int(trace.attention(kind, 0).mask[0].sum()) for kind in KINDS)
    assert right_options(asked("three_families")) == [f"{cells:,}"]
    assert f"of {(n + m) ** 2:,}" in asked("three_families").answer
    sublayers = trace.streams["decoder"].sublayers
    added = max(sublayers, key=lambda each: np.linalg.norm(each.out.astype(float), axis=-1).mean())
    assert f"layer {added.layer}" in right_options(asked("layer_by_layer"))[0]
    low, high = {"below 0.25": (0, 0.25), "0.25 to 0.5": (0.25, 0.5), "0.5 to 0.75": (0.5, 0.75)}.get(
        right_options(asked("decoding"))[0], (0.75, 1)
    )
    assert low <= trace.candidates[0][0].probability <= high
    pattern = trace.attention("encoder_self", 1).pattern.astype(float)
    apart = np.abs(pattern - pattern[2]).sum(axis=-1).mean(axis=-1)
    assert right_options(asked("side_by_side")) == [f"head {int(apart.argmax())}"]
    assert right_options(asked("why_attention")) == [str(n - 1)]
    assert right_options(asked("training")) == [f"{np.log(trace.logits.shape[-1]):.2f}"]
    assert right_options(asked("since_2017")) == ["1"]
    assert right_options(asked("efficient_attention")) == [f"{4 * 4096**2 * 4 // 2**20} MiB"]
    assert right_options(asked("positional_encoding")) == ["position 11"]
