"""Force a prefix: what is shown is what the model goes on with, and nonsense in a link does no harm."""

from collections.abc import Callable

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.network.config import EOS
from model.run import Place, Request, Run
from pages.views.experiment.what_if import forced, join_ids
from tests.pages.conftest import SOURCE, TYPED
from tests.pages.figures import figure, lines, numbers

PAGE, PART = "pages/what_if.py", "Force a prefix"


def numbers_shown(app) -> list[str]:
    """Without the prefix, with it, and their difference."""
    values = [metric.value for metric in app.metric]
    first = [metric.label for metric in app.metric].index("log p, nothing forced")
    return values[first : first + 3]


def said(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.3f}".replace("-", "−")


def test_a_prefix_of_the_original_goes_on_to_the_same_translation_and_the_end_can_be_forced(
    translator: Translator,
) -> None:
    own = translator.trace(SOURCE, beam_size=1)
    run = Run.start(translator, Request(SOURCE, beam_size=1), Place("cross", 0, 0))
    result = forced(run, prefix=join_ids(own.next_ids[:3]))
    assert list(result.shows["result"].scores.values()) == pytest.approx([own.log_probability] * 2)
    assert lines(result, "certainty")[0] == pytest.approx(np.exp(own.target_log_probabilities), abs=1e-6)
    ids = (own.next_ids[0], EOS)
    ended = translator.trace_ids(SOURCE, ids).log_probability
    assert list(forced(run, prefix=join_ids(ids)).shows["result"].scores.values())[1] == pytest.approx(ended)


def test_another_word_is_forced_and_can_be_taken_back(open_app: Callable, translator: Translator) -> None:
    app = open_app(PAGE, **TYPED, part=PART, prefix_at="2")
    trace = translator.trace(TYPED["source"], TYPED["typed"])
    other = next(c for c in trace.candidates[2] if c.id not in (*range(4), trace.next_ids[2]))
    bars = numbers(figure(app, "what_if-alternatives-2-0")["data"][0]["x"])
    listed = [c.probability for c in trace.candidates[2]]
    assert bars[: len(listed)] == pytest.approx(listed, abs=1e-6)
    assert bars.sum() == pytest.approx(1), "the rest of the vocabulary is stated"
    app.selectbox(key="prefix-choice-0-2").set_value(other.id).run()
    app.button(key="prefix_force").click().run()
    prefix = (*trace.next_ids[:2], other.id)
    assert app.session_state["prefix"] == join_ids(prefix)
    assert app.number_input(key="prefix_at").value == 3
    found = translator.continue_from(SOURCE, prefix, 4)
    after = translator.trace_ids(SOURCE, found.tokens)
    before, now = (run.target_log_probabilities.sum() for run in (trace, after))
    assert numbers_shown(app) == [said(before), said(now), said(now - before, signed=True)]
    app.button(key="prefix_force").click().run()
    assert app.session_state["prefix"].startswith(join_ids((*found.tokens[:3], "")))
    app.button(key="prefix_undo").click().run()
    assert app.session_state["prefix"] == join_ids(prefix)
    app.button(key="prefix_reset").click().run()
    assert app.session_state["prefix"] == ""
    assert numbers_shown(app)[2] == "+0.000"


def test_another_sentence_begins_without_the_prefix(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix="40-41")
    app.text_area(key="source").set_value("a cat").run()
    assert app.session_state["prefix"] == ""


def test_a_hyphen_continues_the_word_before_and_a_link_begins_at_a_position(
    open_app: Callable, translator: Translator
) -> None:
    tokenizer = translator.tokenizer
    assert tokenizer.decode(tokenizer.encode("Der") + tokenizer.encode_next("Rüssel")) == "Der Rüssel"
    assert tokenizer.decode(tokenizer.encode("Koffer") + tokenizer.encode_next("-raum")) == "Kofferraum"
    assert tokenizer.encode_next("-") == tokenizer.encode("-")
    app = open_app(PAGE, **TYPED, part=PART, force_at="2")
    assert "force_at" not in app.query_params
    assert app.number_input(key="prefix_at").value == 2


@pytest.mark.parametrize("prefix", ["<b>", "0-1", "99999999", "٣", "40-" * 250])
def test_nonsense_in_the_link_forces_nothing(open_app: Callable, prefix: str) -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix=prefix, prefix_at="-7")
    assert any("forced" in note.value for note in app.info)
    assert "+0.000" in numbers_shown(app)
