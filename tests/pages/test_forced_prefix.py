"""The tab that forces a prefix: what is shown is what the model goes on with, and nonsense in a link does no harm."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.network.config import EOS
from tests.pages.figures import figure, numbers

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE, PART = "pages/what_if.py", "Force a prefix"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


def joined(ids) -> str:
    return "-".join(map(str, ids))


def numbers_shown(app) -> list[str]:
    """Without the prefix, with it, and their difference."""
    values = [metric.value for metric in app.metric]
    first = [metric.label for metric in app.metric].index("log p, nothing forced")
    return values[first : first + 3]


def said(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.3f}".replace("-", "−")


def test_a_prefix_of_the_original_goes_on_to_the_same_translation(open_app: Callable, translator: "Translator") -> None:
    own = translator.trace(SOURCE, beam_size=1)
    total = own.target_log_probabilities.sum()
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix=joined(own.next_ids[:3]))
    assert not app.exception
    assert numbers_shown(app) == [said(total), said(total), "+0.000"]
    drawn = numbers(figure(app, "what_if-certainty")["data"][0]["y"])
    assert drawn == pytest.approx(np.exp(own.target_log_probabilities), abs=1e-6)


def test_another_word_is_forced_and_can_be_taken_back(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, part=PART, prefix_at="2")
    trace = translator.trace(SOURCE, TEXT)
    other = next(c for c in trace.candidates[2] if c.id not in (*range(4), trace.next_ids[2]))
    bars = numbers(figure(app, "what_if-alternatives-2-0")["data"][0]["x"])
    listed = [c.probability for c in trace.candidates[2]]
    assert bars[: len(listed)] == pytest.approx(listed, abs=1e-6)
    assert bars.sum() == pytest.approx(1), "the rest of the vocabulary is stated"
    app.selectbox(key="prefix-choice-0-2").set_value(other.id).run()
    app.button(key="prefix_force").click().run()
    assert not app.exception
    prefix = (*trace.next_ids[:2], other.id)
    assert app.session_state["prefix"] == joined(prefix)
    assert app.number_input(key="prefix_at").value == 3
    found = translator.continue_from(SOURCE, prefix, 4)
    after = translator.trace_ids(SOURCE, found.tokens)
    before, now = (run.target_log_probabilities.sum() for run in (trace, after))
    assert numbers_shown(app) == [said(before), said(now), said(now - before, signed=True)]
    app.button(key="prefix_force").click().run()
    assert app.session_state["prefix"].startswith(joined((*found.tokens[:3], "")))
    app.button(key="prefix_undo").click().run()
    assert app.session_state["prefix"] == joined(prefix)
    app.button(key="prefix_reset").click().run()
    assert app.session_state["prefix"] == ""
    assert numbers_shown(app)[2] == "+0.000"


def test_the_end_can_be_forced_too(open_app: Callable, translator: "Translator") -> None:
    first = translator.trace(SOURCE, beam_size=1).next_ids[0]
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix=f"{first}-{EOS}")
    ended = translator.trace_ids(SOURCE, (first, EOS))
    assert numbers_shown(app)[1] == said(ended.target_log_probabilities.sum())


def test_another_sentence_begins_without_the_prefix(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix="40-41")
    app.text_area(key="source").set_value("a cat").run()
    assert not app.exception
    assert app.session_state["prefix"] == ""


def test_a_hyphen_continues_the_word_before_and_a_link_begins_at_a_position(
    open_app: Callable, translator: "Translator"
) -> None:
    tokenizer = translator.tokenizer
    assert tokenizer.decode(tokenizer.encode("Der") + tokenizer.encode_next("Rüssel")) == "Der Rüssel"
    assert tokenizer.decode(tokenizer.encode("Koffer") + tokenizer.encode_next("-raum")) == "Kofferraum"
    assert tokenizer.encode_next("-") == tokenizer.encode("-")
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, part=PART, force_at="2")
    assert "force_at" not in app.query_params
    assert app.number_input(key="prefix_at").value == 2


@pytest.mark.parametrize("prefix", ["<b>", "0-1", "99999999", "3-40", "٣", "40-" * 250, "12.5", "1e3"])
def test_nonsense_in_the_link_forces_nothing(open_app: Callable, prefix: str) -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", part=PART, prefix=prefix, prefix_at="-7")
    assert not app.exception
    assert any("forced" in note.value for note in app.info)
    assert "+0.000" in numbers_shown(app)


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str) -> None:
    app = open_app(PAGE, source=source, target="Greedy", part=PART, prefix_at="300")
    app.button(key="prefix_force").click().run()
    assert not app.exception
    assert app.session_state["prefix"]
